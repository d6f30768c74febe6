"""Ranges of an observable's values, which give means exact intervals."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from moe_theory.core.errors import DeclarationError

F = TypeVar("F", bound=Callable[..., Any])
CLAIMED = "__moe_theory_claimed__"  # attribute of functions that are claims
_RANGE = "__moe_theory_range__"  # attribute of functions with a declared range


class Range(NamedTuple):
    """The range of an observable's values for all draws. An end is infinite if there is no bound."""

    low: float = -math.inf
    high: float = math.inf
    is_constant: bool = False  # whether all replicates of a cell have the same number or numbers (V,)


def ranged(low: float, high: float = math.inf) -> Callable[[F], F]:
    """Decorate a function that returns measured or claimed values with their range, such as 0 to 1.

    The mean then has an exact interval, and a value outside the range is an ERROR.

    Raises: DeclarationError unless `low` is below `high` and one of them is finite, or if the function is a claim.

    Examples:
        >>> from moe_theory.verification.ranges import range_of, ranged
        >>> @ranged(0, 1)
        ... def share_of_first_expert(run):
        ...     return (run.records.expert == 0).mean(axis=0)
        >>> range_of(share_of_first_expert)
        Range(low=0.0, high=1.0, is_constant=False)
    """
    if not low < high or (math.isinf(low) and math.isinf(high)):
        raise DeclarationError(f"a range from {low} to {high} is empty or unbounded. Give a finite end and low < high.")
    return _with_range(Range(float(low), float(high)))


def constant(function: F) -> F:
    """Decorate a function that depends only on parameters, so that all replicates of a cell have one value."""
    return _with_range(Range(is_constant=True))(function)


def range_of(value: Any) -> Range | None:
    """Return the range that a function declares or that a number has, or None."""
    if value is None or callable(value):
        return getattr(value, _RANGE, None)
    return Range(is_constant=True)


def _with_range(declared: Range) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        if hasattr(function, CLAIMED):
            raise DeclarationError(f"{function.__name__} is already a claim. Put its range below `.claim(...)`.")
        setattr(function, _RANGE, declared)
        return function

    return decorate
