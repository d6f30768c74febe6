"""Where a claim is declared, and which public functions it is computed with: read from the source, nothing is run.

A file of statements has a page with numbered lines, for claims to link to.
"""

import ast
import dataclasses
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from builder import Page, slot
from moe_theory.verify.claim import Claim
from moe_theory.verify.registry import all_claims

FOLDER = "source"


@dataclasses.dataclass(frozen=True)
class Declaration:
    """Where a claim stands in its statement's file, and what computes it."""

    module: ModuleType
    first: int  # lines
    last: int
    calls: tuple[Any, ...]  # public functions that its numbers come from, in the order in which they are met

    @property
    def path(self) -> Path:
        """The module's file, as in `path_of`."""
        return path_of(self.module)

    @property
    def address(self) -> str:
        """The address of its first line, from a page one folder down."""
        return f"../{_page(self.module)}.html#line-{self.first}"

    @property
    def excerpt(self) -> Markup:
        """Its lines, with their words marked for the style sheet."""
        return Markup(_block(_lines(self.module)[self.first - 1 : self.last]))


def pages() -> Iterator[Page]:
    """A page for each module, left out of the search, which finds its content on the papers' pages."""
    head = ["---", "search: {exclude: true}", "hide: [navigation, toc]", "---", ""]
    for name in dict.fromkeys(claim.module for claim in all_claims().values()):
        module = importlib.import_module(name)
        text = "\n".join([*head, f"# `{path_of(module)}`", "", slot("code"), ""])
        yield Page(f"{_page(module)}.md", text, {"code": _block(_numbered(module))})


def path_of(module: ModuleType) -> Path:
    """A module's file below the folder that it is imported from: `moe_theory/deep/gate.py`."""
    file = Path(inspect.getsourcefile(module) or "")
    return Path(*file.parts[-len(module.__name__.split(".")) - (file.stem == "__init__") :])


def declaration(claim: Claim, is_public: Callable[[Any], bool]) -> Declaration | None:
    """The lines that declare a claim: the function that measures it, or what names its id; None if none does.

    Args:
        is_public: of an object, whether it is described elsewhere: what such a function calls is not followed.
    """
    module = importlib.import_module(claim.module)
    ids = {claim.id, claim.id.removeprefix(f"{claim.paper}.")}
    body = _tree(module).body
    declared = [node for node in body if any(_declares(inner, ids) for inner in ast.walk(node))]
    spelled = [node for node in body if any(_is_text(inner, ids) for inner in ast.walk(node))]
    found = declared or spelled or [node for node in body if any(_fits(inner, ids) for inner in ast.walk(node))]
    if not found:
        return None
    decorators = found[0].decorator_list if isinstance(found[0], ast.FunctionDef) else []
    first = min([found[0].lineno, *(decorator.lineno for decorator in decorators)])
    calls = _reached(found[0], module, is_public, set())
    return Declaration(module, first, found[0].end_lineno or first, tuple(calls))


def _declares(node: ast.AST, ids: set[str]) -> bool:
    """Whether a call of a statement's method names one of these ids first."""
    is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and bool(node.args)
    return is_method and _is_text(node.args[0], ids)


def _is_text(node: ast.AST, ids: set[str]) -> bool:
    return isinstance(node, ast.Constant) and node.value in ids


def _fits(node: ast.AST, ids: set[str]) -> bool:
    """Whether a text that is put together may be one of these ids: what is written of it is."""
    if not isinstance(node, ast.JoinedStr) or not any(isinstance(part, ast.Constant) for part in node.values):
        return False
    texts = [re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+" for part in node.values]
    return any(re.fullmatch("".join(texts), id) for id in ids)


def _page(module: ModuleType) -> str:
    return f"{FOLDER}/{module.__name__.removeprefix('moe_theory.').replace('.', '-')}"


def _numbered(module: ModuleType) -> list[str]:
    links = '<a class="mt-number" id="line-{0}" href="#line-{0}">{0}</a>'
    return [links.format(number) + line for number, line in enumerate(_lines(module), 1)]


def _block(lines: list[str]) -> str:
    return f'<div class="highlight"><pre tabindex="0"><code>{chr(10).join(lines)}</code></pre></div>'


@functools.cache
def _lines(module: ModuleType) -> list[str]:
    """A module's lines, each with its words marked and nothing left open at its end."""
    return highlight(inspect.getsource(module), PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)).splitlines()


def _reached(node: ast.AST, module: ModuleType, is_public: Callable[[Any], bool], seen: set[int]) -> Iterator[Any]:
    """The public functions that an expression of a module, and the module's own functions in it, come to."""
    for inner in ast.walk(node):
        if not isinstance(inner, ast.Name | ast.Attribute):
            continue
        value = _value(inner, module)
        if value is None or id(value) in seen:
            continue
        seen.add(id(value))
        if is_public(value):
            yield value
            continue
        home = inspect.getmodule(value) if inspect.isfunction(value) else module
        if home is None or not {"statements", "experiments"} & set(home.__name__.split(".")):
            continue
        name = value.__name__ if inspect.isfunction(value) else getattr(inner, "id", "")
        if name in _defined(home):
            yield from _reached(_defined(home)[name], home, is_public, seen)


def _value(node: ast.expr, module: ModuleType) -> Any:
    if isinstance(node, ast.Name):
        return vars(module).get(node.id)
    if isinstance(node, ast.Attribute):
        owner = _value(node.value, module)
        return getattr(owner, node.attr, None) if isinstance(owner, ModuleType) else None
    return None


@functools.cache
def _defined(module: ModuleType) -> dict[str, ast.AST]:
    """What a module's own names stand for."""
    found: dict[str, ast.AST] = {}
    for statement in _tree(module).body:
        if isinstance(statement, ast.FunctionDef):
            found[statement.name] = statement
        elif isinstance(statement, ast.Assign):
            found |= {target.id: statement.value for target in statement.targets if isinstance(target, ast.Name)}
    return found


@functools.cache
def _tree(module: ModuleType) -> ast.Module:
    return ast.parse(inspect.getsource(module))
