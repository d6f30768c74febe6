"""Values that the names in a specification may have: plain Python, of one type a name.

pydantic checks the types. Its errors become one line that names the entry, the value, the bound and the way out.
"""

import dataclasses
import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeVar, get_type_hints

import numpy as np
from pydantic import AfterValidator, BeforeValidator, Field, Strict, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from moe_theory.core.constraints import require_representable
from moe_theory.core.errors import InvalidParamsError, InvalidSpecError, MoeTheoryError, shortened, unknown_name
from moe_theory.sweep.systems import Sweepable, sweepable

MOST_VALUES = 1_000_000  # of an axis
LARGEST_SIZE = 2**20
READING = "reading"
SPACINGS = {"linspace": np.linspace, "logspace": np.geomspace}
NO_FORMULAS = "Formulas are no longer read: give numbers, and vary parameters that go together in [zips]."

Value = bool | int | float | str
_T = TypeVar("_T")


def checked(kind: TypeAdapter[_T], given: Any, *key: str, error_type: type[MoeTheoryError] = InvalidSpecError) -> _T:
    """A value that `kind` accepts, for the entry `key` of a specification. Raises: MoeTheoryError of one line, of
    `error_type` unless a validator raised another, with the entry's `key`.
    """
    try:
        return kind.validate_python(given)
    except ValidationError as failure:
        found = failure.errors(include_url=False)[0]
        context = found.get("ctx", {})
        error = context.get("error")
        where = (*key, *(part for part in found["loc"] if isinstance(part, str) and part != "[key]"))
        if not isinstance(error, MoeTheoryError):
            template = _MESSAGES.get(found["type"])
            problem = template.format(**context) if template else found["msg"]
            value = "" if found["type"] in _OF_LISTS else f"={shortened(found['input'])}"
            name = where[-1] if where[-1].isprintable() else shortened(where[-1])
            error = error_type(f"{name}{value} {problem}")
        error.key = where
        raise error from None


def one_of(kind: str, known: Iterable[str]) -> AfterValidator:
    def check(given: str) -> str:
        if given not in known:
            raise unknown_name(kind, given, known)
        return given

    return AfterValidator(check)


def _problem(kind: str, message: str) -> PydanticCustomError:
    """A validator's error: kind "value" for a message that follows the value, "list" for one about a list."""
    return PydanticCustomError(kind, message)  # pyright: ignore[reportArgumentType]


def between(least: int, most: int, why: str) -> AfterValidator:
    def check(given: float) -> float:
        if not least <= given <= most:
            raise _problem("value", f"must be from {least} to {most}: {why}. Change it.")
        return given

    return AfterValidator(check)


def plain(given: Any) -> Any:
    """A scalar of NumPy or JAX as a Python one; everything else as it is."""
    return given.item() if hasattr(given, "item") and getattr(given, "ndim", None) == 0 else given


def distinct(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        seen: set[Any] = set()
        again = next(value for value in values if value in seen or seen.add(value))
        raise _problem("list", f"has {shortened(again)} twice. Take one away.")
    return values


def _listed(given: Any) -> Sequence[Any]:
    """A list of some kind, NumPy's and JAX's included."""
    if hasattr(given, "tolist") and getattr(given, "ndim", None) == 1:
        return tuple(given.tolist())
    if isinstance(given, Sequence) and not isinstance(given, (str, bytes, bytearray)):
        try:
            number = len(given)
        except OverflowError:  # a range longer than any list
            number = MOST_VALUES + 1
        if number <= MOST_VALUES:
            return tuple(given)
        raise _problem("list", f"has more than {MOST_VALUES} values. Give fewer.")
    raise _problem("value", "must be a list. Put it in brackets.")


def _double(given: Any) -> float:
    given = plain(given)
    if isinstance(given, str):
        raise _problem("value", f"is text, but must be a number. {NO_FORMULAS}")
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise _problem("value", "must be a number. Change it.")
    try:
        return float(given)
    except OverflowError:  # an integer above all doubles
        return math.inf


def _whole(given: float) -> int:
    if not given.is_integer():
        raise _problem("value", "must be a whole number. Change it.")
    return int(given)


def _boolean(given: Any) -> bool:
    given = plain(given)
    if isinstance(given, str):
        raise _problem("value", "is text, but must be true or false. Drop the quotes.")
    if not isinstance(given, int) or given not in (0, 1):
        raise _problem("value", "must be true or false. Change it.")
    return bool(given)


Text = Annotated[str, Strict()]
Whole = Annotated[int, BeforeValidator(plain), Strict()]
Real = Annotated[float, BeforeValidator(_double), Field(allow_inf_nan=False), AfterValidator(lambda value: value + 0.0)]
Table = Annotated[
    Mapping[Text, Any], BeforeValidator(lambda given: dict(given) if isinstance(given, Mapping) else given)
]
List = Annotated[Sequence[_T], BeforeValidator(_listed)]

_MESSAGES = {  # for pydantic's types of errors
    "int_type": "must be a whole number. Change it.",
    "string_type": "must be text. Put it in quotes.",
    "string_unicode": "must be text. Change it.",
    "dict_type": "must be a table of names and values.",
    "finite_number": "must be a finite number. Change it.",
    "too_short": "has {actual_length} values, and must have at least {min_length}. Give more.",
    "too_long": "has more than {max_length} values. Give fewer.",
}
_OF_LISTS = ("list", "too_short", "too_long")  # types of errors that are about the number of values
_NUM = TypeAdapter(Annotated[Whole, between(2, MOST_VALUES, "more values fit no picture")])
_ENDS = TypeAdapter(Annotated[List[Real], Field(min_length=2, max_length=2)])


@functools.cache
def vocabulary_of(system: str, precision: str) -> "Vocabulary":
    """The vocabulary of a system. Raises: UnknownNameError for a system that is not registered."""
    return Vocabulary(sweepable(system), precision)


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
        raise unknown_name("parameter, size or choice", name, everything, self.known.params)

    def value(self, name: str, given: Any, *key: str) -> Value:
        """A value of `name`, in the type that `name` has, for the entry `key`. Raises: InvalidParamsError,
        InvalidSpecError or UnknownNameError.
        """
        key = key or (self.home(name), name)
        return checked(self._kinds[name][0], given, *key, error_type=self._error_type(name))

    def column(self, name: str, given: Any, *key: str) -> tuple[Value, ...]:
        """The values of `name` on an axis, in order. Raises: as `value`."""
        return checked(self._kinds[name][1], given, *key, error_type=self._error_type(name))

    def _error_type(self, name: str) -> type[MoeTheoryError]:
        return InvalidParamsError if self.home(name) == "params" else InvalidSpecError

    @functools.cached_property
    def _kinds(self) -> dict[str, tuple[TypeAdapter, TypeAdapter]]:
        kinds = {}
        for name in (name for names in self.tables.values() for name in names):
            value: Any = self._kind(name)
            expanded = BeforeValidator(functools.partial(self._expanded, name))
            column: Any = Annotated[List[value], Field(min_length=1), expanded]
            kinds[name] = TypeAdapter(value), TypeAdapter(column)
        return kinds

    def _kind(self, name: str) -> Any:
        home = self.home(name)
        if home == "dims":
            size = Annotated[Whole, between(0, LARGEST_SIZE, "larger arrays fit no memory")]
            return Text if self._is_text(name) else size
        if home != "params":
            return Annotated[Text, one_of(name, self.known.readings if home == READING else self.known.choices[name])]
        if self._is_boolean(name):
            return Annotated[bool, BeforeValidator(_boolean)]
        representable = AfterValidator(functools.partial(self._representable, name))
        if self._is_whole(name):
            return Annotated[Real, AfterValidator(_whole), representable]
        return Annotated[Real, representable]

    def _representable(self, name: str, value: float) -> float:
        require_representable(name, value, self.precision if isinstance(value, float) else "float32")
        return value

    def _expanded(self, name: str, given: Any) -> Sequence[Any]:
        """The values that a list, or `{"linspace": [a, b], "num": n}`, stands for; whole numbers rounded, each once."""
        if not isinstance(given, Mapping):
            return _listed(given)
        spacing = next((key for key in given if key != "num"), "")
        if given.keys() != {spacing, "num"} or spacing not in SPACINGS:
            raise _problem("value", "says no values. Write a list, or linspace or logspace = [first, last] with num.")
        if self.home(name) not in ("params", "dims") or self._is_boolean(name) or self._is_text(name):
            raise InvalidSpecError(f"{name} takes no {spacing}: its values are no range of numbers. List them.")
        num = checked(_NUM, given["num"], f"num of {name}")
        first, last = checked(_ENDS, given[spacing], f"{spacing} of {name}")
        if spacing == "logspace" and not (first > 0 and last > 0):
            raise InvalidSpecError(
                f"logspace={[first, last]} must have both ends above 0: they are the end values of {name} themselves, "
                "not exponents. Raise them, or use linspace."
            )
        with np.errstate(all="ignore"):  # what overflows is refused as a value
            spread = SPACINGS[spacing](first, last, num).tolist()
        values = [first, *(float(f"{value:.12g}") for value in spread[1:-1]), last]  # 0.3, not 0.30000000000000004
        if not self._is_whole(name) or not np.isfinite(values).all():
            return values
        return list(dict.fromkeys(map(round, values)))

    @functools.cached_property
    def _defaults(self) -> Any:
        return self.known.readings[self.known.default_reading].defaults

    def _is_text(self, name: str) -> bool:
        return get_type_hints(self.known.dims).get(name) is str

    def _is_boolean(self, name: str) -> bool:
        return isinstance(getattr(self._defaults, name, None), bool)

    def _is_whole(self, name: str) -> bool:
        return name in self.known.sizes or isinstance(getattr(self._defaults, name), int)
