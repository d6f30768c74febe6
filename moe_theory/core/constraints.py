"""Constraints on fields of `Params` and `Dims` and on arguments of closed forms, and their checks on the host.

class Params(NamedTuple):
    num_experts: Annotated[Count, PaddedTo("max_experts")] = 10  # M
    learning_rate: Positive = 0.5  # eta of (9)

@checked
def termination_rounds(num_experts: Count, learning_rate: Positive) -> int: ...
"""

import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Bool, Float, Int
from numpy.typing import ArrayLike

from moe_theory.core.errors import InvalidValueError, enclosed, shortened
from moe_theory.core.errors import shown as shown
from moe_theory.core.numerics import Scalar

Values = Mapping[str, np.ndarray]  # parameters that are not traced, by name
Function = TypeVar("Function", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Within:
    """A number between `low` and `high`, both included unless open."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    why: str = ""  # the end of the message, such as "it is a probability"

    def complaint(self, name: str, value: Any) -> str | None:
        """Return the error message for a value, with the way out, or None if the value is allowed."""
        is_low = value < self.low or (self.open_low and value == self.low)
        is_high = value > self.high or (self.open_high and value == self.high)
        if not (is_low or is_high):
            return None
        opening = "(" if self.open_low else "["
        closing = ")" if self.open_high else "]"
        bound = f"in {opening}{self.low:g}, {self.high:g}{closing}"
        if math.isinf(self.high):
            bound = f"{'above' if self.open_low else 'at least'} {self.low:g}"
        elif math.isinf(self.low):
            bound = f"at most {self.high:g}"
        return f"must be {bound}{enclosed(': ', self.why)}. {'Raise' if is_low else 'Lower'} {name}."


@dataclasses.dataclass(frozen=True)
class Whole:
    least: int = 1
    most: int | None = None
    why: str = ""  # why the number is at most `most`

    def complaint(self, name: str, value: Any) -> str | None:
        is_whole = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, (bool, np.bool_))
        if not is_whole or value % 1 != 0 or value < self.least:
            return f"must be a whole number of at least {self.least}. Raise {name}."
        if self.most is not None and value > self.most:
            return f"must be at most {self.most}{enclosed(': ', self.why)}. Lower {name}."
        return None


@dataclasses.dataclass(frozen=True)
class OneOf:
    choices: tuple[Any, ...]
    why: str = ""

    def complaint(self, name: str, value: Any) -> str | None:
        if value in self.choices:
            return None
        return f"must be {' or '.join(map(str, self.choices))}{enclosed(': ', self.why)}. Change {name}."


@dataclasses.dataclass(frozen=True)
class Squared:
    """0, or a number whose square fits the run's precision, with room for sums of such squares."""

    room: float = 1e4  # factor between the allowed numbers and the roots of the precision's limits

    def complaint(self, name: str, value: Any) -> str | None:
        dtype = jnp.result_type(float)
        low = math.sqrt(np.finfo(dtype).tiny) * self.room
        high = math.sqrt(np.finfo(dtype).max) / self.room
        if value == 0 or low <= abs(value) <= high:
            return None
        bounds = f"0, or between {low:.1g} and {high:.1g}"
        return f"must be {bounds}: {dtype} must hold its square. Change {name}, or run in float64."


@dataclasses.dataclass(frozen=True)
class AtMost:
    upper: str  # the field or argument that the number must not exceed
    why: str


PaddedTo = functools.partial(AtMost, why="arrays are padded to this size")  # takes the name of a size in `Dims`


@dataclasses.dataclass(frozen=True)
class Undefined:
    """A value of a state or an info that may be NaN or infinite."""

    why: str


Real = Float[Scalar, ""]
NonNegative = Annotated[Real, Within(low=0)]
Positive = Annotated[Real, Within(low=0, open_low=True)]
Scale = Annotated[Real, Within(low=0), Squared()]  # scale of vectors whose squared lengths are computed
LARGEST_STEP = Within(high=1e12, why="in float32 anything added to a larger step is lost")
StepSize = Annotated[Real, Within(low=0), LARGEST_STEP]
Probability = Annotated[Real, Within(0, 1, why="it is a probability")]
A_PROBABILITY = Within(0, 1, open_low=True, open_high=True, why="it is a probability")  # neither 0 nor 1
OpenProbability = Annotated[Real, A_PROBABILITY]
Flag = Annotated[Bool[Scalar, ""], OneOf((True, False))]
Count = Annotated[Int[Scalar, ""], Whole(1)]
FEW_ACTIVE = AtMost("num_experts", "no more experts can be active than exist")
AT_LEAST_0 = Within(low=0)  # for arrays in a state or an info
SHARE = Within(0, 1)  # for arrays in a state or an info
CountOrZero = Annotated[Int[Scalar, ""], Whole(0)]
Size = Annotated[int, Whole(1)]  # static
SizeOrZero = Annotated[int, Whole(0)]
Features = Annotated[int, Whole(2)]
Switch = Annotated[bool, OneOf((True, False))]
Amount = Annotated[float, Within(low=0)]
PositiveAmount = Annotated[float, Within(low=0, open_low=True)]


def check(params: Any, dims: Any = None) -> Values:
    """Return the parameters that are not traced, after a check of their constraints and of the run's precision."""
    real_type = jnp.result_type(float)
    values = {name: np.asarray(value) for name, value in params._asdict().items() if not isinstance(value, Tracer)}
    for name, value in values.items():
        if value.ndim != 0:
            raise InvalidValueError(
                f"{name} has shape {value.shape}, but must be a number. Start one run per cell.", argument=name
            )
        _require_numbers(_constraints(type(params))[name], name, value.item())
        _require_representable(name, value.item(), real_type)
    size_names = getattr(dims, "__dataclass_fields__", getattr(dims, "_fields", ()))  # of a dataclass or a NamedTuple
    sizes = {name: getattr(dims, name) for name in size_names}
    _require_order(type(params), {**sizes, **values})
    return values


def _require_order(kind: Any, values: Mapping[str, ArrayLike | None]) -> None:
    given_values = {name: value for name, value in values.items() if value is not None}
    for name, constraints in _constraints(kind).items():
        for constraint in constraints:
            if isinstance(constraint, AtMost):
                require_ordered(given_values, name, constraint.upper, constraint.why)


def _require_allowed(constraints: Sequence[Any], name: str, text: Any, number: Any) -> None:
    """Raise InvalidValueError, which shows `text`, for a number that a constraint does not allow."""
    for constraint in constraints:  # `_require_order` reads `AtMost`, and `debug` reads `Undefined`
        problem = constraint.complaint(name, number) if hasattr(constraint, "complaint") else None
        if problem:
            raise InvalidValueError(f"{name}={text} {problem}", argument=name)


def check_sizes(dims: Any) -> None:
    values = {name: getattr(dims, name) for name in _constraints(type(dims))}
    for name, value in values.items():
        if value is None and type(None) in get_args(hints_of(type(dims))[name]):
            continue
        is_whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        number = value if is_whole else math.nan  # NaN violates every constraint on sizes
        _require_allowed(_constraints(type(dims))[name], name, text=repr(value), number=number)
    _require_order(type(dims), values)


def require(constraint: Any, **values: Any) -> None:
    """Raise InvalidValueError for values that are not finite or violate a constraint, such as `Whole(2)` or `Count`."""
    for name, value in values.items():
        _require_numbers(getattr(constraint, "__metadata__", (constraint,)), name, value)


def checked(function: Function) -> Function:
    """Decorate a closed form to refuse arguments that violate their constraints, and to accept lists as arrays.

    Fields of named tuples are checked too, but traced arguments are not.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.arguments |= _admitted(function, bound.arguments)
        _require_order(function, {name: value for name, value in bound.arguments.items() if is_known(value)})
        return function(*bound.args, **bound.kwargs)

    return call  # pyright: ignore[reportReturnType]


def require_active(num_experts: Any, num_active: Any) -> None:
    """Raise InvalidValueError unless both numbers or arrays are whole and 1 <= num_active <= num_experts."""
    require(Count, num_experts=num_experts, num_active=num_active)
    values = {"num_experts": num_experts, "num_active": num_active}
    require_ordered(values, "num_active", "num_experts", FEW_ACTIVE.why)


@checked
def require_overparameterized(num_features: Features, num_samples: Size) -> None:
    """Raise InvalidValueError unless 1 <= num_samples < num_features. Source: Section 3.1 of `continual`.

    Examples:
        >>> from moe_theory.continual import theory
        >>> theory.require_overparameterized(num_features=10, num_samples=10)
        Traceback (most recent call last):
            ...
        moe_theory.core.errors.InvalidValueError: num_samples=10 must be below num_features=10: ...
    """
    if num_samples >= num_features:
        raise InvalidValueError(
            f"num_samples={num_samples} must be below num_features={num_features}: the paper studies "
            "the overparameterized regime. Lower num_samples or raise num_features.",
            argument="num_samples",
        )


def require_ordered(values: Mapping[str, ArrayLike], lower: str, upper: str, why: str) -> None:
    """Raise InvalidValueError if `values` has both names and the value of `lower` exceeds that of `upper`."""
    if not {lower, upper} <= values.keys():
        return
    try:
        low, high = np.broadcast_arrays(values[lower], values[upper])
    except ValueError:
        shapes = f"{lower} has shape {np.shape(values[lower])} and {upper} {np.shape(values[upper])}"
        raise InvalidValueError(f"{shapes}, but they must broadcast. Change {lower}.", argument=lower) from None
    is_above = low > high
    if np.any(is_above):
        bounds = f"{lower}={low[is_above][0]} must be at most {upper}={high[is_above][0]}"
        raise InvalidValueError(f"{bounds}: {why}. Lower {lower} or raise {upper}.", argument=lower)


def _require_representable(name: str, value: float, dtype: Any) -> None:
    limits: Any = np.finfo(dtype)
    smallest = float(limits.tiny)
    largest = float(limits.max)
    if isinstance(value, int):  # runs hold integers with as many bits as real numbers
        limits = np.iinfo(f"int{8 * np.dtype(dtype).itemsize}")
        smallest = 1
        largest = limits.max
    if not isinstance(value, bool) and value != 0 and not smallest <= abs(value) <= largest:
        raise InvalidValueError(
            f"{name}={shortened(value)} is outside the range of {limits.dtype}, in which absolute values lie between "
            f"{smallest:.4g} and {largest:.10g}. Change {name}, or run in float64.",
            argument=name,
        )


def is_known(*leaves: Any) -> bool:
    """Return whether all values can be read now, because none of them is traced."""
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(leaves))


@functools.cache
def hints_of(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def constraints_of(kind: type) -> dict[str, tuple[Any, ...]]:
    """Return the constraints on the fields of a named tuple, if its annotations are readable."""
    try:
        return _constraints(kind)
    except (NameError, TypeError):
        return {}


@functools.cache
def _constraints(kind: type) -> dict[str, tuple[Any, ...]]:
    kinds = (Within, Whole, OneOf, Squared, AtMost, Undefined)
    constraints: dict[str, tuple[Any, ...]] = {}
    for name, hint in hints_of(kind).items():
        constraints[name] = ()
        for member in (hint, *get_args(hint)):  # also the members of a union
            metadata = getattr(member, "__metadata__", ())
            constraints[name] += tuple(part for part in metadata if isinstance(part, kinds))
    return constraints


def _admitted(owner: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the checked arguments of a function or fields of a NamedTuple, with arrays in place of lists."""
    is_tuple = isinstance(owner, type)
    admitted = {}
    for name, value in values.items():
        hint = hints_of(owner)[name]
        constraints = _constraints(owner)[name]
        if isinstance(hint, type) and issubclass(hint, tuple):
            if not hasattr(value, "_fields"):
                raise InvalidValueError(
                    f"{name}={shortened(value)} must be a {hint.__name__}. Change {name}.", argument=name
                )
            admitted[name] = value._replace(**_admitted(hint, value._asdict()))
        elif is_known(value) and (constraints or is_tuple):
            admitted[name] = _admitted_value(name, value, hint, constraints, is_field=is_tuple)
    return admitted


def _admitted_value(name: str, value: Any, hint: Any, constraints: tuple[Any, ...], is_field: bool) -> Any:
    if value is None and type(None) in get_args(hint):
        return None
    base = _base_of(hint)
    if base is str:
        _require_allowed(constraints[:1], name, text=shortened(value), number=value)  # one `OneOf`, or no constraint
        return value
    _require_numbers(constraints, name, value)
    axes = None if is_field else axes_of(hint)  # in a batch, fields have one more axis
    shape = np.asarray(value).shape
    if axes is not None and len(shape) != len(axes):
        is_open = any(axis.startswith("*") for axis in axes)  # "*batch" stands for any number of axes, or none
        if not is_open or len(shape) < len(axes) - 1:
            expected = f"an array with axes ({' '.join(axes)})" if axes else "one number"
            raise InvalidValueError(f"{name} has shape {shape}, but must be {expected}. Change {name}.", argument=name)
    if isinstance(value, (list, tuple)) and get_origin(base) is not Sequence:
        return np.asarray(value)
    return value


def _base_of(hint: Any) -> Any:
    """Return a type, or the first member of a union, without its constraints."""
    annotated = hint if hasattr(hint, "__metadata__") else next(iter(get_args(hint)), hint)
    return getattr(annotated, "__origin__", annotated)


def axes_of(hint: Any) -> list[str] | None:
    """Return the names of the axes in an argument's jaxtyping type, or None if the type does not name them."""
    base = _base_of(hint)
    if base in (bool, int, float):
        return []
    if get_origin(base) is Sequence:
        return ["n"]
    shapes = [kind.dim_str for kind in (base, *get_args(base)) if hasattr(kind, "dim_str")]
    if shapes:
        return shapes[0].split()
    return None


def _require_numbers(constraints: tuple[Any, ...], name: str, value: Any) -> None:
    try:
        kind = np.asarray(value).dtype.kind
        array = None
        if kind in "iu":  # whole numbers with and without a sign
            array = np.asarray(value)
        elif kind in "bfOV":  # b: truth values, f: reals, O: Python's large integers, V: bfloat16
            array = np.asarray(value, float)
    except OverflowError:
        raise InvalidValueError(f"{name}={shortened(value)} is too large. Lower {name}.", argument=name) from None
    except (TypeError, ValueError):
        array = None
    if array is None:
        raise InvalidValueError(f"{name}={shortened(value)} must be a number. Change {name}.", argument=name)
    if isinstance(value, (int, float)):
        numbers = [value]
    elif array.size and not any(isinstance(constraint, (Whole, OneOf, Squared)) for constraint in constraints):
        numbers = [array.min().item(), array.max().item()]  # the other constraints allow all numbers in between
    else:
        numbers = np.unique(array).tolist()
    for number in numbers:
        if not math.isfinite(number):
            raise InvalidValueError(f"{name}={number} must be a finite number. Change {name}.", argument=name)
        _require_allowed(constraints, name, text=number, number=number)


_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def typed(name: str, value: Any, defaults: Any) -> bool | int | float:
    """Return a number, or a text's number, in the type of the field `name` of `defaults`. Raises: InvalidValueError."""
    kind = np.asarray(getattr(defaults, name)).dtype.kind
    text = str(value).strip()
    try:
        number: Any = _BOOLEANS[text.lower()] if kind == "b" else float(text)
    except (KeyError, ValueError):
        expected = "true or false" if kind == "b" else "a number"
        raise InvalidValueError(f"{name}={text} must be {expected}. Change {name}.", argument=name) from None
    if kind in "bf":
        return number
    if not number.is_integer():
        raise InvalidValueError(f"{name}={text} must be a whole number. Change {name}.", argument=name)
    return int(number)
