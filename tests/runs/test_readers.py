"""Every file that the package reads is opened by `runs.reading`: regular files alone, and no more than a limit."""

import ast
import os
import socket
from pathlib import Path

import pytest

import moe_theory
from moe_theory.runs.reading import open_file, read_bytes, read_text

ROOT = Path(moe_theory.__file__).parent
METHODS = {"read_text", "read_bytes"}  # of paths; `runs.reading` has functions of these names
FUNCTIONS = {
    "safe_open", "load_file", "memmap", "loadtxt", "genfromtxt", "fromfile", "ZipFile", "copyfile", "copytree", "move",
    "rc_params_from_file", "open_dataset", "load_dataset", "open_zarr", "read_parquet", "read_csv", "exec_module",
    "run_path", "open_code", "GzipFile", "TarFile", "getlines", "imread",
}  # fmt: skip
OF_MODULES = {"load": {"np", "json", "pickle", "tomllib"}, "mmap": {"mmap"}}
ELSEWHERE = {
    "core/papers.py:import_command": "of an installed distribution",
    "cli/new.py:template": "of this package",
    "cli/output.py:discard": "to write nowhere",
    "deep/datasets/files.py:opened": "by `runs.reading`",
    "deep/datasets/images.py:_decode": "after `runs.reading` has opened it",
    "deep/datasets/own.py:_read": "after `runs.reading` has opened it",
    "edge/delays.py:_read": "by `runs.reading`",
    "generalization/certificate.py:mean_loss": "after `runs.reading` has opened it",
    "report/notebook.py:status_style": "of this package",
    "report/overview.py:read": "of this project's figures, for its README",
    "plot/style.py:_read_style": "after `runs.reading` has read it",
    "plot/style.py:our_style": "of this package",
    "report/document.py:written": "what was written just now",
    "runs/arrays.py:_opened": "by `runs.reading`",
    "runs/files.py:_sync": "only to sync it",
    "runs/fingerprint.py:_version": "of an installed distribution",
    "core/machine.py:machine_memory": "of the kernel",
    "runs/provenance.py:processor_fact": "of the kernel",
    "runs/store.py:unpack": "of bytes in memory",
    "runs/tensors.py:bytes": "by `runs.reading`",
    "runs/tensors.py:read_header": "after `runs.reading` has opened it",
    "runs/tensors.py:read_safetensors": "after `runs.reading` has opened it",
    "sweep/specification.py:example": "of this package",
    "verify/recorded.py:kept_at": "of an installed distribution",
    "verify/recorded.py:searches_of": "of an installed distribution",
    "verify/registry.py:run_file": "after `runs.reading` has read it",
    "verify/verdict.py:source_of": "of an installed distribution",
}


def readers(tree: ast.AST) -> set[str]:
    """Functions in which something else than `runs.reading` opens a file that it may read."""
    found: set[str] = set()

    def visit(node: ast.AST, function: str) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            function = node.name
        if isinstance(node, ast.Call) and reads(node):
            found.add(function)
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(tree, "")
    return found


def reads(call: ast.Call) -> bool:
    is_method = isinstance(call.func, ast.Attribute)
    name = call.func.attr if is_method else getattr(call.func, "id", "")
    value = getattr(call.func, "value", None)
    owner = getattr(value, "id", getattr(value, "attr", ""))
    if name == "open":  # of a path or a library; no file is opened by what is only called so
        words = [*call.args, *(keyword.value for keyword in call.keywords)]
        modes = [each.value for each in words if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        is_written = any(set(mode) <= set("wxab+t") and set(mode) & set("wxa") for mode in modes)
        return not is_written and owner not in NO_FILES
    if name in OF_MODULES:
        return owner in OF_MODULES[name]
    return name in FUNCTIONS or (is_method and name in METHODS)


# What else has a method of this name: pools of workers, their own too, a browser, results whose store reads them.
NO_FILES = {"pool", "_pool", "self", "webbrowser", "Results", "archive"}


def test_every_reader_is_careful():
    """Would catch a reader that waits for a named pipe, or reads `/dev/zero` until memory ends."""
    found = set()
    for path in ROOT.rglob("*.py"):
        place = path.relative_to(ROOT).as_posix()
        if place != "runs/reading.py" and path.parent.name not in ("witnesses", "proofs"):
            found |= {f"{place}:{function}" for function in readers(ast.parse(path.read_text()))}
    assert found == set(ELSEWHERE)


@pytest.mark.parametrize(
    "line",
    ["open(path)", "path.open('rb')", "path.read_text()", "np.load(path)", "os.open(path, 0)", "Image.open(path)"],
)
def test_a_reader_is_found(line):
    """Would catch a search that finds nothing."""
    assert readers(ast.parse(f"def mine():\n    {line}\n")) == {"mine"}
    assert not readers(ast.parse("def mine():\n    read_bytes(path)\n    open_file(path)\n    path.open('w')\n"))


def special(folder):
    """Everything that may have a name and is no file, by what it is."""
    os.mkfifo(folder / "pipe")
    (folder / "folder").mkdir()
    (folder / "link").symlink_to(folder / "pipe")
    (folder / "dangling").symlink_to(folder / "nothing")
    (folder / "loop").symlink_to(folder / "loop")
    with socket.socket(socket.AF_UNIX) as opened:
        here = Path.cwd()
        os.chdir(folder)  # names of sockets are short
        try:
            opened.bind("socket")
        finally:
            os.chdir(here)
    names = ("pipe", "folder", "link", "dangling", "loop", "socket", "nothing", "\0", "\ud800", "a" * 300)
    return [*(folder / name for name in names), Path("/dev/zero"), Path("/dev/null"), Path("/dev/tty")]


@pytest.mark.parametrize("read", [open_file, read_bytes, read_text])
def test_only_regular_files_are_opened(read, tmp_path):
    """Would catch an open that blocks, and one that lets a device through."""
    for path in special(tmp_path):
        with pytest.raises(OSError) as refused:
            read(path)
        assert refused.value.strerror


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 1 << 40])
def test_no_more_is_read_than_a_limit(size, tmp_path):
    """Would catch a limit that is off by one, and a sparse file of a terabyte that is read."""
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(size)
    if size <= 100:
        assert read_bytes(path, 100) == bytes(size)
        assert read_text(path, 100) == "\0" * size
        return
    with pytest.raises(OSError, match=f"it has {size:,} bytes, and at most 100 are read"):
        read_bytes(path, 100)


@pytest.mark.skipif(not Path("/proc/self/cmdline").is_file(), reason="needs files of /proc")
def test_a_file_that_declares_no_size_is_read_whole_or_refused():
    """Would catch the first byte of a file of the kernel's taken for all of it."""
    whole = Path("/proc/self/status").read_bytes()
    assert os.stat("/proc/self/status").st_size == 0
    assert read_bytes("/proc/self/status", 1 << 16)[:40] == whole[:40]
    with pytest.raises(OSError, match="it has more"):
        read_bytes("/proc/self/status", 40)
