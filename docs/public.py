"""The public surface of moe_theory: what the API pages list and what the contract over public names walks."""

import ast
import functools
import importlib
import inspect
from collections.abc import Iterator
from importlib.util import resolve_name
from types import ModuleType
from typing import Any

import moe_theory
from moe_theory.core import errors
from moe_theory.core.papers import all_papers

TITLES = {  # of the API's pages, by package
    "moe_theory": "moe_theory",
    **{paper.package: name for name, paper in all_papers().items()},
    "moe_theory.verification": "verification",
    "moe_theory.sweep": "sweep",
    "moe_theory.core": "core",
}
PACKAGES = (*(paper.package for paper in all_papers().values()), "moe_theory.verification", "moe_theory.sweep")


@functools.cache
def public_names() -> dict[str, Any]:
    """Every public name by its dotted path, as users write it.

    These are, in this order: what `moe_theory` itself offers; what each of `PACKAGES` re-exports (`import X as X`) or
    defines; what the modules among these do, and so on down; the errors of `moe_theory.core.errors`. A function, class
    or module that is reached by several paths is listed under the first alone.
    """
    packages = [importlib.import_module(name) for name in PACKAGES]
    found = [(f"moe_theory.{name}", getattr(moe_theory, name)) for name in moe_theory.__all__]
    for package in packages:
        found += [(package.__name__, package), *_offered(package)]
    found += [
        (errors.__name__, errors),
        *((path, value) for path, value in _offered(errors) if isinstance(value, type)),
    ]
    names, seen = {}, set()
    for path, value in found:
        is_one_thing = inspect.isroutine(value) or isinstance(value, type | ModuleType)
        if path not in names and not (is_one_thing and id(value) in seen):
            names[path] = value
            seen.add(id(value))
    return names


@functools.cache
def listed() -> list[tuple[str, list[tuple[str, list[str], list[str]]]]]:
    """The API's pages: of each its modules, with the names that have docstrings and the constants."""
    pages: dict[str, dict[str, tuple[list[str], list[str]]]] = {title: {} for title in TITLES.values()}
    for path, value in public_names().items():
        is_module = isinstance(value, ModuleType)
        module = path if is_module else path.rpartition(".")[0]
        described, constants = pages[page_of(path)].setdefault(module, ([], []))
        if inspect.isroutine(value) or isinstance(value, type):
            described.append(path)
        elif not is_module and not path.endswith("__"):
            constants.append(path)
    return [(page, [(module, *names) for module, names in modules.items()]) for page, modules in pages.items()]


def page_of(path: str) -> str:
    """The title of the API's page that describes a public name."""
    packages = [package for package in TITLES if f"{path}.".startswith(f"{package}.")]
    if path in packages and not isinstance(public_names()[path], ModuleType):
        packages = ["moe_theory"]
    return TITLES[max(packages, key=len)]


def constant(path: str) -> list[str]:
    """The lines that give a public constant its value, ten at most."""
    module = importlib.import_module(defining_module(path))
    statement = assigned(module).get(path.rpartition(".")[2])
    if statement is None:
        return [f"{path.rpartition('.')[2]} = {public_names()[path]!r}"]
    lines = inspect.getsource(module).splitlines()[statement.lineno - 1 : statement.end_lineno]
    return [*lines[:10], *["..."] * (len(lines) > 10)]


def defining_module(path: str) -> str:
    """The module whose source has a public name's definition, by its dotted path; of a module, itself."""
    parent, _, name = path.rpartition(".")
    value = public_names()[path]
    if isinstance(value, ModuleType):
        return value.__name__
    module = getattr(value, "__module__", None) if hasattr(value, "__name__") else None
    is_bound = inspect.ismethod(value)  # such as `reading = PAPER.reading`: an assignment, where it stands
    if module is not None and module.startswith("moe_theory.") and not is_bound:
        return module
    return imported_from(importlib.import_module(parent)).get(name, parent)


def assigned(module: ModuleType) -> dict[str, ast.Assign | ast.AnnAssign]:
    """The statements of a module's source that give its constants and its names of types their values."""
    found: dict[str, ast.Assign | ast.AnnAssign] = {}
    for statement in tree(module).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                found |= {name.id: statement for name in names if isinstance(name, ast.Name)}
    return found


def imported_from(module: ModuleType) -> dict[str, str]:
    """The names that a module re-exports, each written `import X as X`, and the modules that they come from."""
    return {
        alias.name: resolve_name("." * statement.level + (statement.module or ""), module.__package__)
        for statement in tree(module).body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
        if alias.asname == alias.name
    }


@functools.cache
def tree(module: ModuleType) -> ast.Module:
    """A module's source, parsed."""
    return ast.parse(inspect.getsource(module))


def _offered(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """The names that a module re-exports or defines, then those of the modules among them."""
    found = {name: getattr(module, name) for name in _names(module)}
    yield from (
        (value.__name__ if isinstance(value, ModuleType) else f"{module.__name__}.{name}", value)
        for name, value in found.items()
    )
    for value in found.values():
        if isinstance(value, ModuleType):
            yield from _offered(value)


def _names(module: ModuleType) -> list[str]:
    listed_names = assigned(module).get("__all__")
    if listed_names is not None and isinstance(listed_names.value, ast.List):
        return ast.literal_eval(listed_names.value)
    defined = [node.name for node in tree(module).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    names = [*imported_from(module), *assigned(module), *defined]
    return [name for name in names if not name.startswith("_")]
