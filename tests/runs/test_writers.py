"""Files are written whole and durably, by `runs.files`, under a temporary name: catches others, or an address."""

import ast
import contextlib
from pathlib import Path

from refusals import refusal

import moe_theory
from moe_theory.core.errors import OutputError
from moe_theory.runs import files
from moe_theory.runs.store import Store

ROOT = Path(moe_theory.__file__).parent
WRITING = {
    "write_text", "write_bytes", "save_file", "savez", "savez_compressed", "savetxt", "savefig", "to_netcdf", "to_zarr",
    "to_parquet", "touch",
}  # fmt: skip
OF_MODULES = {"np": {"save"}, "os": {"replace", "rename"}, "json": {"dump"}, "shutil": {"copyfile", "copytree", "move"}}
DURABLE = {"whole_set"}  # which give a temporary name, and put what is written there in its place
ELSEWHERE = {
    "plot/style.py:saved": "into memory",
    "plot/layout.py:_repr_png_": "into memory",
    "plot/svg.py:written": "into memory",
    "cli/__init__.py:format_epilog": "Click's, into memory",
    "runs/store.py:pack": "into memory",
    "sweep/results.py:save": "by `sweep.dataset`, whose writer is durable",
    "plot/document.py:write": "to temporary names, which `cli.papers` gives",
    "deep/report.py:document": "likewise",
    "merging/report.py:document": "likewise",
}


def writers(tree: ast.AST) -> set[str]:
    """Functions in which something is written, in no block that makes it durable."""
    found: set[str] = set()

    def visit(node: ast.AST, function: str, is_durable: bool) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function, is_durable = node.name, False
        if isinstance(node, ast.With):
            names = {
                getattr(item.context_expr.func, "id", "")
                for item in node.items
                if isinstance(item.context_expr, ast.Call)
            }
            is_durable = is_durable or bool(names & DURABLE)
        if isinstance(node, ast.Call) and writes(node) and not is_durable:
            found.add(function)
        for child in ast.iter_child_nodes(node):
            visit(child, function, is_durable)

    visit(tree, "", False)
    return found


def writes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "open":
        modes = [
            part.value
            for part in [*call.args, *(keyword.value for keyword in call.keywords)]
            if isinstance(part, ast.Constant)
        ]
        return any(isinstance(mode, str) and set(mode) <= set("rwaxb+t") and set(mode) & set("wax+") for mode in modes)
    owner = getattr(getattr(call.func, "value", None), "id", "")
    for module, own in OF_MODULES.items():
        if name in own:
            return owner == module
    return name in WRITING


def test_every_writer_is_durable():
    """Would catch a file that a power cut leaves empty, or a stopped process half written."""
    found = set()
    for path in ROOT.rglob("*.py"):
        place = path.relative_to(ROOT).as_posix()
        if place != "runs/files.py":
            found |= {f"{place}:{function}" for function in writers(ast.parse(path.read_text()))}
    assert found == set(ELSEWHERE)


def test_an_address_is_no_folder(tmp_path):
    """Would catch results in a local folder that is called `s3:`, which its user looks for in vain."""
    with contextlib.chdir(tmp_path):
        for address in ("s3://bucket/x", "gs://bucket", "abfs://x@y/z", "hdfs:/x"):
            for use in (Store, files.prepare_folder, files.local):
                refusal(OutputError, use, address)
    assert list(tmp_path.iterdir()) == []
