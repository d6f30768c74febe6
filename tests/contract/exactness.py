"""Whether the program of a proof computes without rounding."""

import ast
import builtins
import contextlib
import io
import itertools
import operator
import types
from collections.abc import Callable, Set
from typing import Any

from moe_theory.core.errors import DeclarationError, shortened
from moe_theory.verification.verdict import source_of

FORBIDDEN = {
    "float",
    "complex",
    "round",
    "open",
    "eval",
    "exec",
    "__import__",
    "input",
    "getattr",
    "globals",
    "vars",
    "pow",
}
ROUNDING = {"Float", "N", "n", "evalf", "nsimplify", "lambdify", "limit_denominator"}  # names and attributes
# Integers in, integers or fractions out; SymPy checks algebra, and never numbers that are no Rational.
ALLOWED = {
    "fractions": {"Fraction"},
    "itertools": set(dir(itertools)),
    "math": {"comb", "factorial", "gcd", "lcm", "isqrt", "prod", "perm"},
    "collections": {"Counter", "defaultdict"},
    "functools": {"cache", "reduce"},
    "sys": {"exit"},
}
OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
PROGRAM = "proof"  # the file of its lines in a traceback


def require_exact(path: str, kind: str) -> tuple[int, str]:
    """Return the exit code and the output of the program of a proof. Raise DeclarationError unless it computes exactly,
    and imports what a proof may.
    """
    source = source_of(path)
    tree = ast.parse(source)
    imports = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imports |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    allowed = [*ALLOWED, *([] if kind == "disproof" else ["sympy"])]
    for each in sorted(imports):
        if each.partition(".")[0] not in allowed:
            raise DeclarationError(f"it imports {each}, and a {kind} may import {', '.join(allowed)} alone")
    return run(source)


def run(source: str) -> tuple[int, str]:
    """Exit code and output of a program, of which every operation is checked. Raises:
    DeclarationError for what is not exact, and what the program raises.
    """
    tree = ast.parse(source)
    own = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in ast.walk(tree):
        _require_exact(node, own)
    program = compile(ast.fix_missing_locations(_Checked().visit(tree)), PROGRAM, "exec")
    safe = {name: value for name, value in vars(builtins).items() if name not in FORBIDDEN}
    safe["__import__"] = _imported
    scope = {"__name__": "__main__", "__builtins__": safe, "_computed": _computed}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        try:
            exec(program, scope)
        except SystemExit as ended:
            return int(ended.code if isinstance(ended.code, int) else ended.code is not None), said.getvalue()
    return 0, said.getvalue()


def _require_exact(node: ast.AST, own: Set[str]) -> None:
    """Raise DeclarationError for what rounds, or may; `own` are the names that the program itself gives."""
    line = f"line {getattr(node, 'lineno', 0)}"
    if isinstance(node, ast.Constant) and isinstance(node.value, (float, complex)):
        raise DeclarationError(f"{line}: {node.value!r} is rounded; write it as a Fraction")
    if isinstance(node, (ast.Global, ast.AsyncFunctionDef)):
        raise DeclarationError(f"{line}: a proof has no global names, and awaits nothing")
    names = {getattr(node, "attr", ""), node.name if isinstance(node, ast.alias) else ""} - {"__getitem__"}
    for each in names:
        if each in ROUNDING or each.startswith("__"):
            raise DeclarationError(f"{line}: {each} may round")
    if isinstance(node, ast.Name) and node.id in FORBIDDEN - own:
        raise DeclarationError(f"{line}: {node.id} is no exact arithmetic; use integers and Fraction")
    if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
        raise DeclarationError(f"{line}: a number is printed as it is, without a format")


class _Checked(ast.NodeTransformer):
    """The same program, whose every operation is checked for exactness."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) not in OPERATORS:
            return node
        return self.called("_computed", ast.Constant(type(node.op).__name__), node.left, node.right)

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if type(node.op) not in OPERATORS:
            return node
        read = ast.parse(ast.unparse(node.target), mode="eval").body
        value = self.called("_computed", ast.Constant(type(node.op).__name__), read, node.value)
        return ast.Assign([node.target], value)

    @staticmethod
    def called(name: str, *arguments: ast.expr) -> ast.Call:
        return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _computed(name: str, left: Any, right: Any) -> Any:
    made = OPERATORS[getattr(ast, name)](left, right)
    if isinstance(made, (float, complex)):
        raise DeclarationError(f"{name} of {shortened(left)} and {shortened(right)} is rounded; use Fraction")
    return made


def _imported(name: str, into: Any = None, local: Any = None, names: Any = (), level: int = 0) -> Any:
    head = name.partition(".")[0]
    if head == "sympy":
        return builtins.__import__(name, into, local, names, level)
    others = {*(names or ())} - ALLOWED.get(head, set())
    if others or head not in ALLOWED:
        raise DeclarationError(f"it imports {', '.join(sorted(others)) or 'all'} of {name}, which is not exact")
    made = builtins.__import__(name, into, local, names, level)
    return types.SimpleNamespace(**{each: getattr(made, each) for each in ALLOWED[head]})
