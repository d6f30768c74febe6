"""What the names in a specification may be set to: every value as plain Python, of one type a name."""

import dataclasses
import functools
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from moe_theory.core.errors import InvalidParamsError, InvalidSpecError, shortened, unknown_name
from moe_theory.core.values import typed
from moe_theory.sweep.systems import Sweepable

MOST_VALUES = 1_000_000  # of an axis
LARGEST_SIZE = 2**20
LARGEST_WHOLE = 2**31 - 1  # whole-number parameters are int32 in a run
PRECISIONS = ("float32", "float64")
READING = "reading"
SPACINGS = {"linspace": np.linspace, "logspace": np.geomspace}

Value = bool | int | float | str


@dataclasses.dataclass(frozen=True)
class Vocabulary:
    """The names that a specification of one system may set, and what to."""

    known: Sweepable
    precision: str  # of the run: parameters must be numbers in it

    @functools.cached_property
    def tables(self) -> dict[str, tuple[str, ...]]:
        """The names by the table that holds their fixed values; `reading` has no table, and stands by itself."""
        return {
            "params": self.known.parameters,
            "dims": self.known.sizes,
            "choices": tuple(self.known.choices),
            READING: (READING,),
        }

    def home(self, name: str) -> str:
        """The table that a fixed value of `name` belongs to. Raises: UnknownNameError."""
        for table, names in self.tables.items():
            if name in names:
                return table
        everything = [name for names in self.tables.values() for name in names]
        raise unknown_name("parameter, size or choice", name, everything)

    def value(self, name: str, given: Any) -> Value:
        """A value of `name` in the type that `name` has.

        Raises: InvalidParamsError, InvalidSpecError or UnknownNameError for what it cannot be.
        """
        given = plain(given)
        home = self.home(name)
        if home == "params":
            return self._parameter(name, given)
        if home == "dims":
            return self._size(name, given)
        names = self.known.readings if home == READING else self.known.choices[name]
        return one_of(name, given, names)

    def column(self, name: str, given: Any) -> tuple[Value, ...]:
        """The values of `name` on an axis, in order. Raises: what `value` and `count` raise."""
        count(name, given)
        values = self._spaced(name, given) if isinstance(given, Mapping) else map(plain, given)
        return tuple(self.value(name, value) for value in values)

    def _parameter(self, name: str, given: Any) -> Value:
        if isinstance(given, str):
            raise InvalidSpecError(
                f"{name}={shortened(given)} is text, but must be a number, true or false. Formulas belong in params."
            )
        if not isinstance(given, (bool, int, float)):
            raise InvalidSpecError(f"{name}={shortened(given)} must be a number, true or false. Change {name}.")
        if not math.isfinite(_double(given)):
            raise InvalidParamsError(f"{name}={shortened(given)} must be a finite number. Change {name}.")
        value = typed(name, given, self._defaults)
        if isinstance(value, float):
            limits = np.finfo(self.precision)
            if value != 0 and not limits.tiny <= abs(value) <= limits.max:
                raise InvalidParamsError(
                    f"{name}={value!r} is outside what {self.precision} can hold, {limits.tiny:.3g} to {limits.max:.3g}"
                    " in size. Change it, or set precision to 'float64'."
                )
            return value + 0.0  # one zero, not two
        if abs(value) > LARGEST_WHOLE:
            raise InvalidParamsError(
                f"{name}={shortened(value)} must be at most {LARGEST_WHOLE} in size: a run counts in 32 bits. "
                f"Lower {name}."
            )
        return value

    def _size(self, name: str, given: Any) -> int | str:
        if self._is_text(name):
            return text(name, given)
        return whole(name, given, 0, LARGEST_SIZE, "larger arrays fit no memory")

    def _spaced(self, name: str, given: Mapping[str, Any]) -> list[Any]:
        """The values that `{"linspace": [a, b], "num": n}` stands for; whole numbers rounded, and each of them once.

        Raises: InvalidSpecError for ends that are no two numbers, or for a name whose values are no numbers.
        """
        spacing = next(key for key in given if key != "num")
        if not self._is_number(name):
            raise InvalidSpecError(f"{name} takes no {spacing}: its values are no range of numbers. List them.")
        ends = [plain(end) for end in listed(f"{spacing} of {name}", given[spacing])]
        if len(ends) != 2 or any(isinstance(end, bool) or not isinstance(end, (int, float)) for end in ends):
            raise InvalidSpecError(
                f"{spacing}={shortened(given[spacing])} must be two numbers, the first value of {name} and the last."
            )
        first, last = map(_double, ends)
        if not (math.isfinite(first) and math.isfinite(last)):
            raise InvalidSpecError(
                f"{spacing}={shortened(ends)} must be two finite numbers. Change the ends of {name}."
            )
        if spacing == "logspace" and not (first > 0 and last > 0):
            raise InvalidSpecError(
                f"logspace={shortened(ends)} must have both ends above 0: they are the end values of {name} "
                "themselves, not exponents. Raise them, or use linspace."
            )
        with np.errstate(all="ignore"):  # what overflows is refused as a value
            spread = SPACINGS[spacing](first, last, int(plain(given["num"]))).tolist()
        values = [first, *(_tidy(value) for value in spread[1:-1]), last]
        if not self._is_whole(name) or not np.isfinite(values).all():
            return values
        return list(dict.fromkeys(map(round, values)))

    @functools.cached_property
    def _defaults(self) -> Any:
        return self.known.readings[self.known.default_reading].defaults

    def _is_text(self, size: str) -> bool:
        return next(field.type is str for field in dataclasses.fields(self.known.dims) if field.name == size)

    def is_boolean(self, name: str) -> bool:
        """Whether `name` is a parameter that is true or false."""
        return self.home(name) == "params" and isinstance(getattr(self._defaults, name), bool)

    def _is_whole(self, name: str) -> bool:
        return self.home(name) == "dims" or isinstance(getattr(self._defaults, name), int)

    def _is_number(self, name: str) -> bool:
        home = self.home(name)
        return (home == "params" and not self.is_boolean(name)) or (home == "dims" and not self._is_text(name))


def _tidy(value: float) -> float:
    """Without the last digits, so that what is printed as 0.3 is what one writes as 0.3."""
    return float(f"{value:.12g}")


def count(name: str, given: Any) -> int:
    """How many values an axis says it has, without making any.

    Raises: InvalidSpecError unless it is a list, or a linspace or logspace, of 1 to `MOST_VALUES` values.
    """
    if isinstance(given, Mapping):
        keys = set(given) - {"num"}
        if len(keys) != 1 or not keys <= SPACINGS.keys() or "num" not in given:
            raise InvalidSpecError(
                f"{name}={shortened(dict(given))} says no values. Write a list, or linspace or logspace = [first, last]"
                " with num."
            )
        return whole(f"num of {name}", given["num"], 2, MOST_VALUES, "an axis of more values fills no picture")
    try:
        number = len(listed(name, given))
    except OverflowError:  # a range longer than any list
        number = sys.maxsize
    if not 1 <= number <= MOST_VALUES:
        raise InvalidSpecError(
            f"{name} has {number} values, but an axis has 1 to {MOST_VALUES}. Give fewer, or drop an axis of none."
        )
    return number


def listed(name: str, given: Any) -> Sequence[Any]:
    """A list of some kind, NumPy's and JAX's included. Raises: InvalidSpecError for anything else."""
    if hasattr(given, "tolist") and getattr(given, "ndim", None) == 1:
        return given
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes, bytearray)):
        return given
    raise InvalidSpecError(f"{name}={shortened(given)} must be a list. Put it in brackets.")


def table(name: str, given: Any) -> dict[str, Any]:
    """Entries by name. Raises: InvalidSpecError for anything else."""
    if not isinstance(given, Mapping):
        raise InvalidSpecError(f"{name}={shortened(given)} must be a table of names and values.")
    for key in given:
        text(f"a name in {name}", key)
    return dict(given)


def plain(given: Any) -> Any:
    """A scalar of NumPy or JAX as a Python one; everything else as it is."""
    return given.item() if hasattr(given, "item") and getattr(given, "ndim", None) == 0 else given


def whole(name: str, given: Any, least: int, most: int, why: str) -> int:
    """A whole number between `least` and `most`, both included. Raises: InvalidSpecError."""
    given = plain(given)
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise InvalidSpecError(
            f"{name}={shortened(given)} must be a whole number from {least} to {most}: {why}. Change {name}."
        )
    return given


def text(name: str, given: Any) -> str:
    """A text. Raises: InvalidSpecError for anything else."""
    if not isinstance(given, str):
        raise InvalidSpecError(f"{name}={shortened(given)} must be text. Put it in quotes.")
    return str(given)


def one_of(name: str, given: Any, known: Mapping[str, Any] | Sequence[str]) -> str:
    """One of the `known` names. Raises: InvalidSpecError for what is no text, else UnknownNameError."""
    if text(name, given) not in known:
        raise unknown_name(name, given, known)
    return str(given)


def _double(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer above all doubles
        return math.inf
