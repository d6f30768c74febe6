"""Where a claim is declared, and which public functions it is computed with: read from the source, nothing is run.

A module that declares claims has a page with numbered lines, for claims to link to.
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
NUMBERS = ("observe", "predict", "trivial", "scale")  # the attributes whose functions compute something


@dataclasses.dataclass(frozen=True)
class Declaration:
    """A claim's class: where it stands, and what computes it."""

    module: ModuleType
    first: int  # lines
    last: int
    parts: dict[str, str]  # of NUMBERS and `experiment`, as written
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
    """The class that declares a claim: the one that fits its id, source, kind and statement best; None if none does.

    Args:
        is_public: of an object, whether it is described elsewhere: what such a function calls is not followed.
    """
    module = importlib.import_module(claim.module)
    fits = [(found.fit(claim), found) for found in _declared(module)]
    best = max((fit for fit, _ in fits), default=-1)
    fitting = [found for fit, found in fits if fit == best]
    if best < 0 or len(fitting) > 1:
        return None
    (found,) = fitting
    parts = {
        name: ast.unparse(_bare(value)) for name, value in found.assigned.items() if name in (*NUMBERS, "experiment")
    }
    return Declaration(module, found.first, found.last, parts, tuple(found.calls(is_public)))


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


def _bare(value: ast.expr) -> ast.expr:
    """An expression without the `staticmethod` that keeps a function from being bound."""
    is_wrapped = isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "staticmethod"
    return value.args[0] if is_wrapped else value


@dataclasses.dataclass(frozen=True)
class _Declared:
    """A class that declares a claim; made in a function, it may stand for many claims."""

    module: ModuleType
    node: ast.ClassDef
    decorator: ast.Call
    function: ast.FunctionDef | None

    @property
    def first(self) -> int:
        return self.decorator.lineno

    @property
    def last(self) -> int:
        return self.node.end_lineno or self.node.lineno

    @functools.cached_property
    def assigned(self) -> dict[str, ast.expr]:
        return {
            target.id: statement.value
            for statement in self.node.body
            if isinstance(statement, ast.Assign)
            for target in statement.targets
            if isinstance(target, ast.Name)
        }

    def fit(self, claim: Claim) -> int:
        """Characters of the claim that the class spells out, below 0 where it spells out something else."""
        keywords = {keyword.arg: keyword.value for keyword in self.decorator.keywords}
        kind = keywords.get("kind", self.decorator.func)  # which the name of `rate` and its like spells out
        statement = self.assigned.get("__doc__") or ast.Constant(ast.get_docstring(self.node))
        asked = [
            (keywords.get("id") or self.decorator.args[0], claim.id),
            (keywords["where"], claim.where),
            (kind, claim.kind),
            (statement, claim.statement),
        ]
        spelled = [_spelled(expression, value) for expression, value in asked]
        return -1 if min(spelled) < 0 else sum(spelled)

    def calls(self, is_public: Callable[[Any], bool]) -> Iterator[Any]:
        seen: set[int] = set()
        roots = [value for name, value in self.assigned.items() if name in NUMBERS]
        inside = [
            statement for statement in (self.function.body if self.function else []) if statement is not self.node
        ]
        for node in (*roots, *inside):
            yield from _reached(node, self.module, is_public, seen)


@functools.cache
def _declared(module: ModuleType) -> list[_Declared]:
    return list(_classes(module, _tree(module), None))


def _classes(module: ModuleType, node: ast.AST, function: ast.FunctionDef | None) -> Iterator[_Declared]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            for decorator in child.decorator_list:
                if isinstance(decorator, ast.Call) and "where" in {keyword.arg for keyword in decorator.keywords}:
                    yield _Declared(module, child, decorator, function)
        else:
            yield from _classes(module, child, child if isinstance(child, ast.FunctionDef) else function)


def _spelled(expression: ast.expr, value: str) -> int:
    """How many characters of a value an expression spells out; -1 if it cannot have this value."""
    if isinstance(expression, ast.Constant):
        return len(value) if expression.value == value else -1
    if isinstance(expression, ast.JoinedStr):
        texts = [str(part.value) if isinstance(part, ast.Constant) else None for part in expression.values]
        pattern = "".join(".*" if text is None else re.escape(text) for text in texts)
        return sum(len(text or "") for text in texts) if re.fullmatch(pattern, value, re.DOTALL) else -1
    return 0


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
        if home is None or not {"claims", "experiments"} & set(home.__name__.split(".")):
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
