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

PACKAGES = (*(paper.package for paper in all_papers().values()), "moe_theory.verification", "moe_theory.sweep")
TITLES = {  # of the API's pages, by package
    package: package.removeprefix("moe_theory.") for package in ("moe_theory", *PACKAGES, "moe_theory.core")
}


@functools.cache
def public_names() -> dict[str, Any]:
    """Every public name by its dotted path, as users write it.

    These are, in this order: what `moe_theory` itself offers; what each of `PACKAGES` re-exports (`import X as X`) or
    defines; what the modules among these do, and so on down; the errors of `moe_theory.core.errors`. A function, class
    or module that is reached by several paths is listed under the first alone.
    """
    offered = [(f"moe_theory.{name}", getattr(moe_theory, name)) for name in moe_theory.__all__]
    for package in PACKAGES:
        offered += _offered(importlib.import_module(package))
    offered += [(path, value) for path, value in _offered(errors) if isinstance(value, type | ModuleType)]
    names: dict[str, Any] = {}
    seen: set[int] = set()
    for path, value in offered:
        is_one_thing = inspect.isroutine(value) or isinstance(value, type | ModuleType)
        if path not in names and not (is_one_thing and id(value) in seen):
            names[path] = value
            seen.add(id(value))
    return names


def listed() -> dict[str, dict[str, list[str]]]:
    """The API's pages by title: of each its modules, with the names in them."""
    pages: dict[str, dict[str, list[str]]] = {title: {} for title in TITLES.values()}
    for path, value in public_names().items():
        modules = pages[page_of(path)]
        if isinstance(value, ModuleType):
            modules.setdefault(path, [])
        elif not path.endswith("__"):
            modules.setdefault(path.rpartition(".")[0], []).append(path)
    return pages


def page_of(path: str) -> str:
    """The title of the API's page that describes a public name."""
    if path in TITLES and not isinstance(public_names()[path], ModuleType):
        return "moe_theory"
    return TITLES[max((package for package in TITLES if f"{path}.".startswith(f"{package}.")), key=len)]


def constant(path: str) -> str:
    """The lines that give a public constant its value, ten at most."""
    module = importlib.import_module(defining_module(path))
    statement = assigned(module)[path.rpartition(".")[2]]
    lines = inspect.getsource(module).splitlines()[statement.lineno - 1 : statement.end_lineno]
    if len(lines) > 10:
        lines[10:] = ["..."]
    return "\n".join(lines)


def defining_module(path: str) -> str:
    """The module whose source has a public name's definition, by its dotted path; of a module, itself."""
    parent, _, name = path.rpartition(".")
    value = public_names()[path]
    if isinstance(value, ModuleType):
        return value.__name__
    is_bound = inspect.ismethod(value)  # such as `reading = PAPER.reading`: an assignment, where it stands
    if hasattr(value, "__name__") and not is_bound and str(value.__module__).startswith("moe_theory."):
        return value.__module__
    return imported_from(importlib.import_module(parent)).get(name, parent)


def assigned(module: ModuleType) -> dict[str, ast.Assign | ast.AnnAssign]:
    """The statements of a module's source that give its constants and its names of types their values."""
    constants: dict[str, ast.Assign | ast.AnnAssign] = {}
    for statement in tree(module).body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            constants[ast.unparse(target)] = statement
    return constants


def imported_from(module: ModuleType) -> dict[str, str]:
    """The names that a module re-exports, each written `import X as X`, and the modules that they come from."""
    origins: dict[str, str] = {}
    for statement in tree(module).body:
        if isinstance(statement, ast.ImportFrom):
            origin = resolve_name("." * statement.level + (statement.module or ""), module.__package__)
            origins |= {alias.name: origin for alias in statement.names if alias.asname == alias.name}
    return origins


@functools.cache
def tree(module: ModuleType) -> ast.Module:
    """A module's source, parsed."""
    return ast.parse(inspect.getsource(module))


def _offered(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """A module, the names that it re-exports or defines, then what the modules among them offer."""
    values = {f"{module.__name__}.{name}": getattr(module, name) for name in _names(module)}
    yield module.__name__, module
    yield from ((path, value) for path, value in values.items() if not isinstance(value, ModuleType))
    for value in values.values():
        if isinstance(value, ModuleType):
            yield from _offered(value)


def _names(module: ModuleType) -> list[str]:
    """Public names that a module's `__all__` or else its source has."""
    if "__all__" in assigned(module):
        return ast.literal_eval(assigned(module)["__all__"].value)
    defined = [node.name for node in tree(module).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    names = [*imported_from(module), *assigned(module), *defined]
    return [name for name in names if name[0].isalpha()]
