"""Imports: catches modules that need one another in a circle, also by imports inside functions or for types alone."""

import ast
import graphlib
from pathlib import Path

import moe_theory

ROOT = Path(moe_theory.__file__).parent


def modules() -> dict[str, Path]:
    """Every module of the package but its front page, which imports on first use."""
    paths = {".".join(path.relative_to(ROOT.parent).with_suffix("").parts): path for path in ROOT.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in paths.items() if path != ROOT / "__init__.py"}


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of the package that a file names in its imports."""
    named = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            named |= members if members <= known.keys() else members | {node.module}
    return named & known.keys()


def test_no_modules_need_one_another_in_a_circle():
    known = modules()
    graph = {name: imported(path, known) - {name} for name, path in known.items()}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle
