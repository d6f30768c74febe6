"""Formulas: a parameter computed from other parameters of the same cell, as text such as "1 / truth_scale".

A formula knows numbers, names, + - * / **, parentheses and a few functions, in double precision. Its text is parsed,
never run: what is not on the lists below is refused.
"""

import ast
import dataclasses
import graphlib
import math
import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping

from moe_theory.core.errors import InvalidSpecError, shortened, unknown_name

LONGEST = 500  # characters
DEEPEST = 60  # operations inside one another

Values = Mapping[str, float]
Evaluate = Callable[[Values], float]

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,  # refuses complex results, which `**` would return
}
_UNARY: dict[type[ast.unaryop], Callable[[float], float]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
_OF_ONE: dict[str, Callable[[float], float]] = {
    "sqrt": math.sqrt,
    "exp": math.exp,
    "log": math.log,
    "ceil": math.ceil,
    "floor": math.floor,
    "abs": abs,
}
_OF_SEVERAL: dict[str, Callable[..., float]] = {"min": min, "max": max}
FUNCTIONS = (*_OF_ONE, *_OF_SEVERAL)
_CHARACTERS = re.compile(r"[A-Za-z0-9_+\-*/(),. ]*")


@dataclasses.dataclass(frozen=True)
class Formula:
    """A parsed formula."""

    text: str
    names: frozenset[str]  # the parameters and sizes that it needs
    _evaluate: Evaluate = dataclasses.field(repr=False, compare=False)

    def __call__(self, values: Values) -> float:
        """Its value where the names have these `values`.

        Raises: InvalidSpecError where that is no finite real number.
        """
        try:
            result = self._evaluate(values)
        except ZeroDivisionError:
            reason = "divides by zero"
        except ValueError:
            reason = "is not a real number"
        except OverflowError:
            reason = "is too large"
        else:
            if math.isfinite(result):
                return result
            reason = "is too large"
        where = ", ".join(f"{name}={float(values[name])!r}" for name in sorted(self.names))
        raise InvalidSpecError(
            f"the formula {shortened(self.text)} {reason}{f' where {where}' if where else ''}. Change the formula, or "
            "what it is given."
        )


def parse(text: str, known: Iterable[str]) -> Formula:
    """The formula that `text` says, over the `known` names.

    Raises: InvalidSpecError for text that is no formula; UnknownNameError for other names than the `known`.
    """
    if len(text) > LONGEST:
        raise InvalidSpecError(
            f"the formula {shortened(text)} has {len(text)} characters, above {LONGEST}. Shorten it, or put it into "
            "several parameters."
        )
    flat = " ".join(text.split())
    allowed = _CHARACTERS.match(flat)
    end = allowed.end() if allowed else 0
    if end < len(flat):
        raise InvalidSpecError(f"the formula {shortened(text)} has {shortened(flat[end])}, which no formula uses.")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of numbers that run into words, which Python will refuse one day
            tree = ast.parse(flat, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise InvalidSpecError(
            f"the formula {shortened(text)} cannot be read. Write it as in '1 / truth_scale', with + - * / **, "
            f"parentheses and {', '.join(FUNCTIONS)}."
        ) from None
    names: set[str] = set()
    evaluate = _Reader(text, tuple(known), names).read(tree, 0)
    return Formula(text, frozenset(names), evaluate)


def in_order(formulas: Mapping[str, Formula]) -> dict[str, Formula]:
    """The formulas by what they decide, each behind those that it needs.

    Raises: InvalidSpecError for formulas that need one another in a circle, with the `key` of the first of them.
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


@dataclasses.dataclass(frozen=True)
class _Reader:
    """Turns the nodes of a formula into functions, and notes the names."""

    text: str
    known: tuple[str, ...]
    names: set[str]

    def read(self, node: ast.expr, depth: int) -> Evaluate:
        if depth > DEEPEST:
            raise InvalidSpecError(
                f"the formula {shortened(self.text)} has more than {DEEPEST} operations inside one another. Put it "
                "into several parameters."
            )
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self._number(value)
            case ast.Name(id=name):
                return self._name(name)
            case ast.BinOp(left, operation, right) if type(operation) in _BINARY:
                act = _BINARY[type(operation)]
                first, second = self.read(left, depth + 1), self.read(right, depth + 1)
                return lambda values: _finite(act(first(values), second(values)))
            case ast.UnaryOp(operation, operand) if type(operation) in _UNARY:
                sign, inner = _UNARY[type(operation)], self.read(operand, depth + 1)
                return lambda values: sign(inner(values))
            case ast.Call(ast.Name(id=name), args, []):
                return self._call(name, args, depth)
        shown = shortened(ast.unparse(node)) if depth < DEEPEST // 2 else "a part"
        raise InvalidSpecError(
            f"the formula {shortened(self.text)} has {shown}, which no formula may have. Use numbers, names, + - * / "
            f"**, parentheses and {', '.join(FUNCTIONS)}."
        )

    def _number(self, value: float) -> Evaluate:
        try:
            number = _finite(float(value))
        except OverflowError:
            raise InvalidSpecError(
                f"the formula {shortened(self.text)} has a number too large for double precision."
            ) from None
        return lambda values: number

    def _name(self, name: str) -> Evaluate:
        if name not in self.known:
            raise unknown_name("name in a formula", name, self.known)
        self.names.add(name)
        return lambda values: float(values[name])

    def _call(self, name: str, args: list[ast.expr], depth: int) -> Evaluate:
        inner = [self.read(arg, depth + 1) for arg in args]
        if name in _OF_ONE and len(inner) == 1:
            act, operand = _OF_ONE[name], inner[0]
            return lambda values: _finite(float(act(operand(values))))
        if name in _OF_SEVERAL and len(inner) >= 2:
            choose = _OF_SEVERAL[name]
            return lambda values: choose(operand(values) for operand in inner)
        if name not in FUNCTIONS:
            raise unknown_name("function in a formula", name, FUNCTIONS)
        takes = "one value" if name in _OF_ONE else "two values or more"
        raise InvalidSpecError(f"the formula {shortened(self.text)} gives {name} {len(inner)}, but it takes {takes}.")


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise OverflowError
    return value
