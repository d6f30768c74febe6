"""Mutants of the code that simulates and judges, and which the suite kills: `python tests/hostile/mutants.py OUT.json`.

A mutant is one small edit of a copy of the tree: a comparison, an operator, a constant, an index, a bound off by one, a
`not` or a term dropped, arguments swapped, `min` for `max`. Docstrings, annotations and messages are left alone. Tests
run with `-x`, those nearest to the edit first; OUT.json is written after each mutant, and rerunning resumes. A mutant
is known by file, function, the statement before and after, and its occurrence, so that `--before EARLIER.json` finds
the same ones in a tree whose lines have moved, tries first what killed them there, and prints which live now that did
not. Where neither its module nor the file of the test that killed it has changed, it is taken as killed without a run.

mutmut does not serve here: it forks a process that has run tests, in which JAX hangs, and wraps every function, while
claims, statements and fingerprints are made of functions' own source, signature and bytecode.
"""

import argparse
import ast
import contextlib
import copy
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORMULAS = "theory corrected algorithm system delays policies model rewards tree".split()
FOLDERS = "contract golden statistical properties cli".split()  # of tests, after the nearest and the papers'
KEPT = ("file", "function", "before", "after", "occurrence", "kind", "line")  # of a mutant

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
PAIRS = "min max|minimum maximum|argmin argmax|any all|floor ceil|sum max|lower upper|sin cos|zeros ones|exp expm1"
NAMES = {a: b for pair in PAIRS.split("|") for a, b in (pair.split(), pair.split()[::-1])} | {"sum": "max"}
# What decides no number: how much is kept or checked, and what is only said.
SILENT = {"strict", "maxsize", "stacklevel", "why", "timeout", "frozen", "kw_only", "precision", "inline"}


def papers(tree: Path) -> list[str]:
    """Folders that have a paper's formulas."""
    return sorted(path.parent.name for path in tree.glob("moe_theory/*/theory.py"))


def modules(tree: Path) -> list[str]:
    """Files that are mutated."""
    named = [*tree.glob("moe_theory/core/*.py"), *tree.glob("moe_theory/verify/*.py")]
    named += [tree / "moe_theory" / paper / f"{name}.py" for paper in papers(tree) for name in FORMULAS]
    return sorted(str(path.relative_to(tree)) for path in named if path.is_file())


def variants(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Kinds of edits of one expression, and what it becomes."""
    match node:
        case ast.Compare(ops=[op, *_]) if type(op) in COMPARISONS:
            yield "comparison", _with(node, ops=[COMPARISONS[type(op)](), *node.ops[1:]])
        case ast.BinOp() if type(node.op) in OPERATORS and not any(
            isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", None), str | None.__class__)
            for side in (node.left, node.right)
            if isinstance(side, ast.JoinedStr | ast.Constant)
        ):
            yield "operator", _with(node, op=OPERATORS[type(node.op)]())
            yield "term", node.left
            if isinstance(node.op, ast.Add | ast.Mult):
                yield "term", node.right
        case ast.BoolOp():
            yield "operator", _with(node, op=ast.And() if isinstance(node.op, ast.Or) else ast.Or())
            yield "term", node.values[0]
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()) if not isinstance(node.operand, ast.Constant):
            yield "not", node.operand
        case ast.Constant(value=bool()):
            yield "constant", ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield "constant", ast.Constant(node.value + 1)
        case ast.Constant(value=float()) if node.value:
            yield "constant", ast.Constant(1.5 * node.value)
        case ast.Subscript(slice=ast.Constant(value=int()) as index):
            yield "index", _with(node, slice=ast.Constant(index.value + 1))
        case ast.Subscript(slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int()))):
            yield "index", _with(node, slice=ast.Constant(0))
        case ast.Slice() if node.lower or node.upper:
            side = "upper" if node.upper else "lower"
            yield "bound", _with(node, **{side: ast.BinOp(getattr(node, side), ast.Add(), ast.Constant(1))})
        case ast.IfExp():
            yield "arguments", _with(node, body=node.orelse, orelse=node.body)
        case ast.Call():
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in {"range", "arange"}:
                yield "bound", _with(node, args=[*node.args[:-1], ast.BinOp(node.args[-1], ast.Sub(), ast.Constant(1))])
            if name in NAMES:
                other = copy.copy(node.func)
                setattr(other, "attr" if isinstance(other, ast.Attribute) else "id", NAMES[name])
                yield "function", _with(node, func=other)
            plain = not any(isinstance(value, ast.Starred | ast.GeneratorExp) for value in node.args)
            if (
                len(node.args) > 1
                and plain
                and name not in {"isinstance", "getattr", "min", "max", "minimum", "maximum"}
            ):
                yield "arguments", _with(node, args=[*node.args[:-2], node.args[-1], node.args[-2]])


def _with(node: ast.AST, **fields: Any) -> Any:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


class Candidates(ast.NodeVisitor):
    """All mutants of one file, each with the text that its source becomes."""

    def __init__(self, file: str, source: str) -> None:
        self.file, self.lines, self.found, self.seen = file, source.encode().splitlines(keepends=True), [], Counter()
        self.function: list[str] = []
        self.unit: ast.AST = ast.Pass()  # the statement, or its header, in whose words an edit is told
        self.visit(ast.parse(source))

    def generic_visit(self, node: ast.AST) -> None:
        for name, value in ast.iter_fields(node):
            if name in {"annotation", "returns", "decorator_list", "format_spec", "bases"}:
                continue
            for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(child, ast.AST):
                    if isinstance(child, ast.expr) and isinstance(node, ast.stmt):
                        self.unit = child if hasattr(node, "body") else node
                    self.offer(node, name, index, child)
                    self.visit(child)

    def offer(self, parent: ast.AST, name: str, index: int | None, node: ast.AST) -> None:
        for kind, other in variants(node):
            before = ast.unparse(self.unit)
            place = getattr(parent, name) if index is not None else parent
            put = (
                (lambda new, p=place, i=index: p.__setitem__(i, new))
                if index is not None
                else (lambda new, p=place, n=name: setattr(p, n, new))
            )
            if self.unit is node:
                after = ast.unparse(other)
            else:
                put(other)
                after = ast.unparse(self.unit)
                put(node)
            key = (".".join(self.function), before, after)
            if before != after:
                self.found.append(
                    {
                        "file": self.file,
                        "function": key[0],
                        "before": before,
                        "after": after,
                        "occurrence": self.seen[key],
                        "kind": kind,
                        "line": node.lineno,
                        "text": self.edited(node, ast.unparse(other)),
                    }
                )
                self.seen[key] += 1

    def edited(self, node: Any, text: str) -> str:
        if isinstance(node, ast.BinOp | ast.BoolOp | ast.Compare | ast.UnaryOp | ast.IfExp):
            text = f"({text})"
        lines = self.lines
        head = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
        tail = lines[node.end_lineno - 1][node.end_col_offset :] + b"".join(lines[node.end_lineno :])
        return (head + text.encode() + tail).decode()

    def visit_FunctionDef(self, node: Any) -> None:
        self.function.append(node.name)
        if not node.name.startswith("__") or node.name == "__post_init__":
            self.generic_visit(node)
        self.function.pop()

    visit_ClassDef = visit_FunctionDef  # noqa: N815

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" not in ast.unparse(node.test):
            self.generic_visit(node)

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg not in SILENT:
            self.generic_visit(node)

    def silent(self, node: ast.AST) -> None:
        """Messages, text, and what only names types."""

    visit_Raise = visit_Assert = visit_JoinedStr = visit_Import = visit_ImportFrom = visit_TypeAlias = silent  # noqa: N815

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if (
            ast.unparse(node.value).split(".")[-1]
            not in "Float Int Bool Array Key Annotated Callable dict list tuple".split()
        ):
            self.generic_visit(node)


def key(mutant: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(mutant[name] for name in ("file", "function", "before", "after", "occurrence"))


def choose(tree: Path, number: int, seed: int) -> list[dict[str, Any]]:
    """At least `number` mutants, over files by their lines of code, and in a file over functions and kinds of edits."""
    generator = random.Random(seed)
    found = {file: Candidates(file, (tree / file).read_text()).found for file in modules(tree)}
    found = {file: mutants for file, mutants in found.items() if mutants}
    sizes = {file: len({mutant["line"] for mutant in mutants}) for file, mutants in found.items()}
    chosen = []
    for file, mutants in found.items():
        groups: dict[Any, list[Any]] = {}
        for mutant in mutants:
            groups.setdefault((mutant["kind"], mutant["function"]), []).append(mutant)
        for group in generator.sample(
            sorted(groups), min(len(groups), max(1, round(number * sizes[file] / sum(sizes.values()))))
        ):
            chosen.append(generator.choice(groups[group]))
    generator.shuffle(chosen)
    return chosen


def stages(tree: Path, file: str) -> list[list[str]]:
    """Test files in the order in which they are tried: those that name the module or one that uses it and the others of
    its folder, nearest first; then all that may reach it.
    """
    _, folder, name = Path(file).with_suffix("").parts
    import_of = re.compile(
        rf"moe_theory\.{folder}\.{name}\b|from moe_theory\.{folder} import [^\n]*\b{name}\b|{folder}\.{name}\."
    )
    users = [path for path in tree.glob("moe_theory/*/*.py") if import_of.search(path.read_text())]
    users = {(path.parent.name, path.stem) for path in users}
    others = {paper for paper in papers(tree) if paper != folder} if folder in papers(tree) else set()
    reaching = {folder, *papers(tree), *FOLDERS} - others

    def distance(test: Path) -> int:
        within, stem = test.parent.name == folder, test.stem
        if within and (name in stem or import_of.search(test.read_text())):
            return 0
        if test.parent.name in reaching and import_of.search(test.read_text()):
            return 1
        return 2 if any(test.parent.name == user and word in stem for user, word in users) else 3 if within else 4

    ranked = sorted((distance(test), test) for test in tree.glob("tests/*/test_*.py"))
    ranked = [(rank, str(test.relative_to(tree))) for rank, test in ranked if rank < 4 or test.parent.name in reaching]
    near, far = ([test for rank, test in ranked if (rank < 4) == is_near] for is_near in (True, False))
    return [stage for stage in (near, far) if stage]


def tried(tree: Path, tests: list[str], limit: float) -> tuple[str, str]:
    """What these tests say, "killed", "survived", or "stopped" at the limit, and the test that failed or hung."""
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    hanging = f"faulthandler_timeout={limit / 2}"  # ends the process
    line = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-o", hanging, *tests]
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(line, cwd=tree, env=environment, capture_output=True, text=True, timeout=limit)
        if done.returncode in (0, 5):  # all passed, or no test is left
            return "survived", ""
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        return "killed", (failed or re.findall(r"tests/\w+/\w+\.py", done.stdout + done.stderr) or tests)[0]
    return "stopped", ""


def code_of(tree: Path, mutant: dict[str, Any], test: str | None) -> str | None:
    """Digest of the module and of the file of the test that killed its mutant; None if one of them is gone."""
    files = [tree / mutant["file"], tree / (test or "").partition("::")[0]]
    if not all(file.is_file() for file in files):
        return None
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def copied(tree: Path, folder: str) -> Path:
    """A copy of what tests need."""
    skipped = shutil.ignore_patterns(".git", "__pycache__", ".venv", "site", ".pytest_cache")

    def ignored(place: str, names: list[str]) -> set[str]:
        return skipped(place, names) | ({"runs"} if place == str(tree) else set())  # results, and a package below

    return Path(shutil.copytree(tree, Path(folder) / "tree", ignore=ignored))


def settle(mutant: dict[str, Any], before: dict[str, Any], place: Path, source: Path, limit: float) -> dict[str, Any]:
    """Outcome of a mutant, and the test that killed it; by what is known of it `before`, if that still holds."""
    file = mutant["file"]
    text = (source / file).read_text() if (source / file).exists() else ""
    texts = {key(other): other["text"] for other in Candidates(file, text).found}
    if key(mutant) not in texts:
        return {"outcome": "gone"}
    first = []
    if before.get("outcome") == "killed":
        if before["code"] and before["code"] == code_of(source, mutant, before["by"]):
            return {name: before[name] for name in ("outcome", "by", "code")}
        first = [[before["by"]]] if (source / before["by"].partition("::")[0]).exists() else []
    (place / file).write_text(texts[key(mutant)])
    try:
        said = set()
        for tests in [*first, *stages(source, file)]:
            outcome, test = tried(place, tests, limit)
            if outcome == "killed":
                return {"outcome": outcome, "by": test, "code": code_of(source, mutant, test)}
            said.add(outcome)
        return {"outcome": "stopped" if "stopped" in said else "survived"}
    finally:
        shutil.copy2(source / file, place / file)


def main() -> None:
    """Try the mutants and print a summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tree", type=Path, default=Path.cwd())
    parser.add_argument("--before", type=Path, help="an earlier OUT.json: its mutants are tried again")
    parser.add_argument("--number", type=int, default=220)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=120, help="seconds of each of two runs of tests of a mutant")
    parser.add_argument("--most", type=int, default=10**6, help="stop after that many")
    asked = parser.parse_args()
    earlier = {key(each): each for each in json.loads(asked.before.read_text())} if asked.before else {}
    tree = asked.tree.resolve()
    if asked.out.exists():
        results = json.loads(asked.out.read_text())
    else:
        chosen = earlier.values() or choose(tree, asked.number, asked.seed)
        results = [{name: each[name] for name in KEPT} for each in chosen]
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(tree / ".pytest_cache" / "programs"))
    with tempfile.TemporaryDirectory() as folder:
        place = copied(tree, folder)
        for mutant in [each for each in results if "outcome" not in each][: asked.most]:
            mutant |= settle(mutant, earlier.get(key(mutant), {}), place, tree, asked.limit)
            asked.out.write_text(json.dumps(results, indent=1) + "\n")
            print(*(mutant.get(name) for name in ("file", "line", "kind", "outcome", "by")), flush=True)
    print(Counter(mutant.get("outcome", "left") for mutant in results))
    for mutant in results:
        if mutant.get("outcome") in ("survived", "stopped") and earlier.get(key(mutant), {}).get("outcome") == "killed":
            print("lives now:", *key(mutant)[:4], "| was killed by", earlier[key(mutant)]["by"])


if __name__ == "__main__":
    main()
