"""What closed forms take: numbers, or arrays that broadcast, in float64; checked once, with the way out."""

from typing import Any

import numpy as np

from moe_theory.core.errors import InvalidParamsError
from moe_theory.generalization.params import require_probability

Real = float | np.ndarray  # a number, or an array of them; results are of the shape that arguments broadcast to


def check_sizes(num_experts: Real, num_active: Real, num_samples: Real) -> None:
    """Raise InvalidParamsError unless 1 <= k <= T and m >= 1, all of them whole numbers."""
    for name, value in (("num_experts", num_experts), ("num_active", num_active), ("num_samples", num_samples)):
        require_whole(name, value)
    if np.any(np.asarray(num_active) > np.asarray(num_experts)):
        raise InvalidParamsError(
            f"num_active={num_active} must be at most num_experts={num_experts}: k of T experts are active (4). "
            "Lower num_active."
        )


def require_deltas(delta: Real) -> None:
    """Raise InvalidParamsError unless every delta is strictly between 0 and 1."""
    for value in np.ravel(_numbers("delta", delta)):
        require_probability("delta", value)


def require_whole(name: str, value: Any, least: int = 1) -> None:
    """Raise InvalidParamsError unless every number is whole and at least `least`."""
    numbers = _numbers(name, value)
    if not np.all((numbers >= least) & (numbers == np.floor(numbers)) & np.isfinite(numbers)):
        raise InvalidParamsError(f"{name}={value} must be a whole number of at least {least}. Change {name}.")


def require_amounts(**values: Any) -> None:
    """Raise InvalidParamsError unless every number is finite and at least 0."""
    for name, value in values.items():
        numbers = _numbers(name, value)
        if not np.all(numbers >= 0) or not np.all(np.isfinite(numbers)):
            raise InvalidParamsError(f"{name}={value} must be a finite number of at least 0. Change {name}.")


def _numbers(name: str, value: Any) -> np.ndarray:
    try:
        return np.asarray(value, float)
    except (TypeError, ValueError):
        raise InvalidParamsError(f"{name}={value!r} must be a number. Change {name}.") from None


def plain(value: Any) -> Real:
    """A float where there is one number."""
    array = np.asarray(value, float)
    return float(array) if array.ndim == 0 else array
