"""The API reference: a page for the package itself, one for each paper and one for each part of the engine.

What is public says `docs/public.py`; what it does say the docstrings, through mkdocstrings.
"""

import functools
import importlib.util
import inspect
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

from public import assigned, defining_module, public_names

from builder import Page, plain
from moe_theory.core.papers import all_papers

ROOT_PACKAGE = "moe_theory"
TITLES = {
    ROOT_PACKAGE: "moe_theory",
    **{paper.package: name for name, paper in all_papers().items()},
    "moe_theory.verify": "verify",
    "moe_theory.sweep": "sweep",
    "moe_theory.core": "errors",
}
FOLDER = "api"
MOST_LINES = 10  # of the source of a constant


@functools.cache
def names() -> dict[str, Any]:
    """Every public name but `__version__`, which has no docstring."""
    return {path: value for path, value in public_names().items() if not path.endswith("__")}


@functools.cache
def addresses() -> dict[int, str]:
    """Where functions, classes and modules are described: the page and anchor, by the id of the object."""
    return {id(value): f"{page_of(path)}#{path}" for path, value in names().items() if is_described(path)}


def page_of(path: str) -> str:
    """The page, below the site's pages and without its suffix, that describes a public name."""
    packages = [package for package in TITLES if f"{path}.".startswith(f"{package}.")]
    if path in packages and not isinstance(names().get(path), ModuleType):
        packages = [ROOT_PACKAGE]
    return f"{FOLDER}/{TITLES[max(packages, key=len)]}"


def pages() -> Iterator[Page]:
    """The pages, in the order of the navigation."""
    by_page: dict[str, list[str]] = {f"{FOLDER}/{title}": [] for title in TITLES.values()}
    for path in names():
        by_page[page_of(path)].append(path)
    for page, paths in by_page.items():
        yield Page(f"{page}.md", _text(page, paths))


def _text(page: str, paths: list[str]) -> str:
    """Modules as sections with the names that they offer below them, constants last."""
    lines = [f"# {page.removeprefix(f'{FOLDER}/')}", ""]
    by_module: dict[str, list[str]] = {}
    for path in paths:
        module = path if isinstance(names()[path], ModuleType) else path.rpartition(".")[0]
        by_module.setdefault(module, [])
        if path != module:
            by_module[module].append(path)
    for module, members in by_module.items():
        lines += _described(module, 2, "members: []")
        described = [path for path in members if is_described(path)]
        for path in described:
            lines += _described(path, 3)
        constants = [path for path in members if path not in described]
        if constants:
            lines += [f"### Constants and types of {module.rpartition('.')[2]}", ""]
            lines += [line for path in constants for line in _constant(path)]
    return "\n".join(lines)


def is_described(path: str) -> bool:
    """Whether a public name is a function, a class or a module: what has a docstring."""
    value = names()[path]
    return inspect.isroutine(value) or isinstance(value, type | ModuleType)


def _described(path: str, level: int, *options: str) -> list[str]:
    """The directive for a name; where a submodule has the name of a function in it, for the function's own path."""
    value, lines, extra = names().get(path), [], [f"heading_level: {level}", *options]
    parent = importlib.import_module(path.rpartition(".")[0] or path)
    if inspect.isroutine(value) and hasattr(parent, "__path__") and importlib.util.find_spec(path) is not None:
        lines = [f'<a id="{path}"></a>', ""]
        extra.append(f"heading: {path}")
        path = f"{value.__module__}.{value.__qualname__}"
    return [
        *lines,
        f"::: {path}",
        "    options:",
        *(f"      {option}" for option in extra),
        "",
    ]


def _constant(path: str) -> list[str]:
    """A constant as its source says it, with the comment beside it; a table of what says in a sentence what it is."""
    name, value = path.rpartition(".")[2], names()[path]
    heading = [f"#### `{name}` {{ #{path} }}", ""]
    if isinstance(value, Mapping) and all(hasattr(each, "summary") for each in value.values()):
        rows = (f"| `{key}` | {plain(each.summary).replace('|', '&#124;')} |" for key, each in value.items())
        return [*heading, "| name | what it chooses |", "| --- | --- |", *rows, ""]
    module = importlib.import_module(defining_module(path))
    statement = assigned(module).get(name)
    source = inspect.getsource(module).splitlines()
    lines = [f"{name} = {value!r}"]
    if statement is not None:
        lines = source[statement.lineno - 1 : statement.end_lineno]
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], "..."]
    return [*heading, "```python", *lines, "```", ""]
