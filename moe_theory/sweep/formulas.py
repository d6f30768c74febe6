"""Formulas: a parameter computed from other parameters of the same cell, as text such as "1 / truth_scale".

A formula has numbers, names, + - * / **, parentheses and a few functions, in double precision. Its text is parsed and
never executed: what is not listed here is refused.
"""

import ast
import dataclasses
import graphlib
import math
import operator
import re
import warnings
from collections.abc import Callable, Collection, Mapping
from typing import Any

from moe_theory.core.errors import InvalidSpecError, shortened, unknown_name

LONGEST = 500  # characters
DEEPEST = 60  # nested operations
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "ceil": math.ceil,
    "floor": math.floor,
    "abs": abs,
    "min": min,
    "max": max,
}
_OF_SEVERAL = ("min", "max")  # functions of two values or more; the others are of one
_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,  # refuses complex results, which `**` would return
}
_UNARY: dict[type[ast.unaryop], Callable[[float], float]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_CHARACTERS = re.compile(r"[A-Za-z0-9_+\-*/(),. ]*")
_ALLOWED = f"numbers, names, + - * / **, parentheses and {', '.join(FUNCTIONS)}"

Values = Mapping[str, float]


@dataclasses.dataclass(frozen=True)
class Formula:
    text: str
    names: frozenset[str]  # the parameters and sizes that it needs
    _tree: ast.expr = dataclasses.field(repr=False, compare=False)

    def __call__(self, values: Values) -> float:
        """Its value for these `values` of the names. Raises: InvalidSpecError where that is no finite real number."""
        try:
            return _evaluate(self._tree, values)
        except ZeroDivisionError:
            reason = "divides by zero"
        except ValueError:
            reason = "is not a real number"
        except OverflowError:
            reason = "is too large"
        where = ", ".join(f"{name}={float(values[name])!r}" for name in sorted(self.names))
        raise InvalidSpecError(
            f"the formula {shortened(self.text)} {reason}{f' where {where}' if where else ''}. Change the formula, or "
            "the values that it uses."
        )


def parse(text: str, known: Collection[str], of: type | None = None) -> Formula:
    """The formula in `text`, over the `known` names. Raises: InvalidSpecError for text that is no formula;
    UnknownNameError for other names than the `known`, which says what symbols of the `Params` `of` are called.
    """
    formula = f"the formula {shortened(text)}"
    if len(text) > LONGEST:
        raise InvalidSpecError(
            f"{formula} has {len(text)} characters, above {LONGEST}. Shorten it, or use several parameters."
        )
    flat = " ".join(text.split())
    allowed = _CHARACTERS.match(flat)
    end = allowed.end() if allowed else 0
    if end < len(flat):
        raise InvalidSpecError(f"{formula} has {shortened(flat[end])}, which is not allowed. Use {_ALLOWED}.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers that run into words, which Python will refuse one day
            tree = ast.parse(flat, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidSpecError(
            f"{formula} cannot be parsed. Write it as in '1 / truth_scale', with {_ALLOWED}."
        ) from None
    names: set[str] = set()
    _check(tree, formula, known, names, of, 0)
    return Formula(text, frozenset(names), tree)


def in_order(formulas: Mapping[str, Formula]) -> dict[str, Formula]:
    """The formulas by the parameter they set, each behind those that it needs. Raises: InvalidSpecError for formulas
    that need one another in a circle, with the `key` of the first of them.
    """
    needs = {name: sorted(formula.names & formulas.keys()) for name, formula in formulas.items()}
    try:
        return {name: formulas[name] for name in graphlib.TopologicalSorter(needs).static_order()}
    except graphlib.CycleError as cycle:
        circle = cycle.args[1]
        error = InvalidSpecError(
            f"the formulas need one another in a circle: {' -> '.join(reversed(circle))}. Give one of them as a number."
        )
        error.key = ("params", circle[0])
        raise error from None


def _check(node: ast.expr, formula: str, known: Collection[str], names: set[str], of: type | None, depth: int) -> None:
    """Refuse what a formula may not have, and collect its names."""
    if depth > DEEPEST:
        raise InvalidSpecError(f"{formula} has more than {DEEPEST} nested operations. Use several parameters.")
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            if not _is_finite(value):
                raise InvalidSpecError(f"{formula} has a number too large for double precision. Lower it.")
            operands = []
        case ast.Name(id=name):
            if name not in known:
                raise unknown_name("name in a formula", name, known, of)
            names.add(name)
            operands = []
        case ast.BinOp(left, operation, right) if type(operation) in _BINARY:
            operands = [left, right]
        case ast.UnaryOp(operation, operand) if type(operation) in _UNARY:
            operands = [operand]
        case ast.Call(ast.Name(id=name), operands, []):
            if name not in FUNCTIONS:
                raise unknown_name("function in a formula", name, FUNCTIONS)
            if len(operands) < 2 if name in _OF_SEVERAL else len(operands) != 1:
                takes = "two values or more" if name in _OF_SEVERAL else "one value"
                raise InvalidSpecError(f"{formula} gives {name} {len(operands)}, but it takes {takes}. Correct it.")
        case _:
            shown = shortened(ast.unparse(node)) if depth < DEEPEST // 2 else "a part"
            raise InvalidSpecError(f"{formula} has {shown}, which is not allowed. Use {_ALLOWED}.")
    for operand in operands:
        _check(operand, formula, known, names, of, depth + 1)


def _evaluate(node: ast.expr, values: Values) -> float:
    """The value of a checked formula. Raises: OverflowError, ValueError or ZeroDivisionError."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id=name):
            return float(values[name])
        case ast.UnaryOp(operation, operand):
            return _UNARY[type(operation)](_evaluate(operand, values))
        case ast.BinOp(left, operation, right):
            result = _BINARY[type(operation)](_evaluate(left, values), _evaluate(right, values))
        case ast.Call(ast.Name(id=name), operands):
            result = FUNCTIONS[name](*(_evaluate(operand, values) for operand in operands))
        case _:
            raise AssertionError(ast.dump(node))
    if not _is_finite(result):
        raise OverflowError
    return float(result)


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(float(value))
    except OverflowError:  # an integer above all doubles
        return False
