"""The package's shape: catches a lower layer that needs a higher one, circles of imports, a class name that is
defined twice, and code written twice.
"""

import ast
import functools
import graphlib
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import moe_theory

ROOT = Path(moe_theory.__file__).parent
# From the top; entries on one line stand beside each other and may not import one another.
LAYERS = [
    {"cli"},
    {"report"},
    {"deep"},
    {"reinforced"},
    {"continual", "edge", "generalization", "merging"},
    {"plot"},
    {"verification"},
    {"sweep"},
    {"runs"},
    {"core"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}


APART = (ROOT / "__init__.py", ROOT / "__main__.py")  # which users import, and run
FILES = sorted(path for path in ROOT.rglob("*.py") if path not in APART)


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module(path) for path in FILES}


def layer(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@functools.cache
def nodes(path: Path) -> list[ast.AST]:
    """Those of imports, strings and classes, of a module's whole tree."""
    kinds = (ast.Import, ast.ImportFrom, ast.Constant, ast.ClassDef)
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]


@functools.cache
def imported_names(path: Path) -> set[str]:
    """The modules, or names in modules, of this package that a module imports, also for types alone."""
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by the full name"
            members = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= members if members <= MODULES else members | {node.module}
    return {name for name in names if name.startswith("moe_theory.")}


def layers_named(tree: Iterable[ast.AST]) -> set[str]:
    """The layers that strings name, as `import_module` and "module:attribute" take them, also begun as f-strings."""
    strings = (node.value for node in tree if isinstance(node, ast.Constant))
    found = (re.fullmatch(r"moe_theory\.(\w+)(\.\w+)*\.?(:\w+)?", each) for each in strings if isinstance(each, str))
    return {match[1] for match in found if match} & RANK.keys()


@functools.cache
def imported(path: Path) -> set[str]:
    strings = layers_named(nodes(path))
    return {name.split(".")[1] for name in imported_names(path)} & RANK.keys() | strings


def test_imports_point_down():
    """Also inside functions. Would catch a paper that needs the command line, or how it is shown."""
    upward = {}
    for path in FILES:
        above = {name for name in imported(path) if name != layer(path) and RANK[name] <= RANK[layer(path)]}
        upward |= {str(path.relative_to(ROOT)): above} if above else {}
    assert not upward, "imported from above or beside"


def test_the_page_lists_the_layers():
    page = (ROOT.parent / "docs" / "pages" / "built.md").read_text(encoding="utf-8")
    table = page[page.index("| layer |") :].partition("\n\n")[0].splitlines()[2:]
    rows = [set(re.findall(r"`(\w+)(?:/|\.py)`", line.split("|")[1])) for line in table]
    assert rows == LAYERS


def test_no_modules_need_one_another_in_a_circle():
    """Also by imports inside functions."""
    graph = {module(path): (imported_names(path) & MODULES) - {module(path)} for path in FILES}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


EVERY_PAPERS = {"Arrival", "Dims", "Info", "Params", "Pool", "State"}  # what each paper has of its own


def test_a_class_name_is_defined_once():
    """Would catch a search for a class that finds another one, and a docstring that means either."""
    defined = Counter(node.name for path in FILES for node in nodes(path) if isinstance(node, ast.ClassDef))
    assert not {name for name, count in defined.items() if count > 1} - EVERY_PAPERS


REPEATED_LINES = 10  # so many lines in a row, but for blank ones and indentation, stand in one place only


def test_nothing_is_written_twice():
    first: dict[tuple[str, ...], tuple[Path, int]] = {}
    twice = []
    for path in (path for path in FILES if path.parent.name not in ("counterexamples", "proofs")):  # which stand alone
        lines = [(row, line.strip()) for row, line in enumerate(path.read_text().splitlines(), 1) if line.strip()]
        for start in range(len(lines) - REPEATED_LINES + 1):
            run = tuple(line for _, line in lines[start : start + REPEATED_LINES])
            if run in first:
                twice.append((first[run], (path, lines[start][0])))
            first.setdefault(run, (path, lines[start][0]))
    assert not twice
