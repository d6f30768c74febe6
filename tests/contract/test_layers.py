"""The package's shape: catches a lower layer that needs a higher one, circles of imports, and code written twice."""

import ast
import graphlib
import re
from pathlib import Path

import pytest

import moe_theory

ROOT = Path(moe_theory.__file__).parent
# From the top; entries on one line stand beside each other and may not import one another.
LAYERS = [
    {"deep"},
    {"continual", "edge", "generalization", "merging"},
    {"cli"},
    {"tour"},
    {"report"},
    {"plot"},
    {"verify"},
    {"sweep"},
    {"checkpoints"},
    {"runs"},
    {"core"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


APART = (ROOT / "__init__.py", ROOT / "tour" / "script.py")  # which users import, and run
FILES = sorted(path for path in ROOT.rglob("*.py") if path not in APART)


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module(path) for path in FILES}


def layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported_names(path: Path) -> set[str]:
    """The modules, or names in modules, of this package that a module imports, also for types alone."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by the full name"
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= members if members <= MODULES else members | {node.module}
    return {name for name in names if name.startswith("moe_theory.")}


def imported(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imported_names(path)} & RANK.keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path):
    own = layer(path)
    assert own in RANK, f"{own} is in no layer: add it to the list, or move it"
    upward = {name for name in imported(path) if name != own and RANK[name] <= RANK[own]}
    assert not upward, f"{path} imports {upward} from above or beside it"


def test_the_page_lists_the_layers():
    page = (ROOT.parent / "docs" / "pages" / "built.md").read_text(encoding="utf-8")
    table = page[page.index("| layer |") :].partition("\n\n")[0].splitlines()[2:]
    rows = [set(re.findall(r"`(\w+)(?:/|\.py)`", line.split("|")[1])) for line in table]
    assert rows == LAYERS


def test_no_modules_need_one_another_in_a_circle():
    """Also by imports inside functions."""
    graph = {module(path): (imported_names(path) & MODULES) - {module(path)} for path in FILES}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


REPEATED_LINES = 10  # so many lines in a row, but for blank ones and indentation, stand in one place only


def test_nothing_is_written_twice():
    first: dict[tuple[str, ...], tuple[Path, int]] = {}
    twice = []
    for path in (path for path in FILES if path.parent.name not in ("witnesses", "proofs")):  # which stand alone
        lines = [(row, line.strip()) for row, line in enumerate(path.read_text().splitlines(), 1) if line.strip()]
        for start in range(len(lines) - REPEATED_LINES + 1):
            run = tuple(line for _, line in lines[start : start + REPEATED_LINES])
            if run in first:
                twice.append((first[run], (path, lines[start][0])))
            first.setdefault(run, (path, lines[start][0]))
    assert not twice
