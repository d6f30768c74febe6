"""What every paper's static sizes and traced parameters must be, checked on the host before anything runs.

Parameters that are traced have no value yet and are passed over: inside a compiled program nothing is checked.
"""

import math
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from moe_theory.core.errors import InvalidDimsError, InvalidParamsError

Values = dict[str, np.ndarray]


def require_size(name: str, value: Any, least: int = 1) -> None:
    """Raise InvalidDimsError unless a static size is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidDimsError(f"{name}={value!r} must be a whole number of at least {least}. Raise {name}.")


def require_overparameterized_sizes(num_features: int, num_samples: int) -> None:
    """Raise InvalidDimsError unless there are fewer samples than features."""
    if num_samples >= num_features:
        raise InvalidDimsError(
            f"num_samples={num_samples} must be below num_features={num_features}: the paper studies "
            "the overparameterized regime. Lower num_samples or raise num_features."
        )


def known_values(params: Any) -> Values:
    """The parameters that are not traced, each a finite real scalar.

    Raises: InvalidParamsError for one that is something else.
    """
    values = {name: np.asarray(value) for name, value in params._asdict().items() if not isinstance(value, Tracer)}
    for name, value in values.items():
        if value.dtype.kind not in "biuf":
            raise InvalidParamsError(f"{name}={getattr(params, name)!r} must be a real number. Change {name}.")
        if value.ndim != 0:
            raise InvalidParamsError(
                f"{name} has shape {value.shape}, but a run has one setting: call once per cell, the program is reused."
            )
        if not math.isfinite(value):
            raise InvalidParamsError(f"{name}={value} must be a finite number. Change {name}.")
    return values


def require_at_least_zero(values: Values, names: Iterable[str]) -> None:
    """Raise InvalidParamsError for a negative one."""
    for name in names:
        if name in values and values[name] < 0:
            raise InvalidParamsError(f"{name}={values[name]} must not be negative. Raise {name} to 0 or more.")


def require_boolean(values: Values, names: Iterable[str]) -> None:
    """Raise InvalidParamsError for one that is neither True nor False, nor 1 nor 0."""
    for name in names:
        if name in values and values[name] not in (0, 1):
            raise InvalidParamsError(f"{name}={values[name]} must be True or False.")


def require_whole(values: Values, name: str, bound: int | None = None, bound_name: str = "", least: int = 1) -> None:
    """Raise InvalidParamsError unless whole, at least `least` and at most the `bound` that arrays are padded to."""
    if name not in values:
        return
    value = values[name]
    if value.dtype == bool or value != np.floor(value) or value < least:
        raise InvalidParamsError(f"{name}={value} must be a whole number of at least {least}. Raise {name}.")
    if bound is not None and value > bound:
        raise InvalidParamsError(
            f"{name}={value} must be at most {bound_name}={bound}, which the arrays are padded to. "
            f"Lower {name} or raise Dims.{bound_name}."
        )


def require_ordered(values: Values, lower: str, upper: str, why: str) -> None:
    """Raise InvalidParamsError where the value called `lower` is above the one called `upper`."""
    if {lower, upper} <= values.keys() and values[lower] > values[upper]:
        raise InvalidParamsError(
            f"{lower}={values[lower]} must be at most {upper}={values[upper]}: {why}. Lower {lower}."
        )


def is_known(*leaves: Any) -> bool:
    """Whether none of these is traced, so that their values can be looked at."""
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(leaves))
