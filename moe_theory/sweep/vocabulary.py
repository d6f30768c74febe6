"""Values for the names in a specification, in plain Python with one type per name."""

import functools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar, get_type_hints

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, Strict, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from moe_theory.core.errors import DeclarationError, MoeTheoryError, shortened, unknown_name
from moe_theory.sweep.systems import Sweepable, sweepable

MOST_VALUES = 1_000_000  # most values on an axis
LARGEST_SIZE = 2**20
READING = "reading"

Value = bool | int | float | str
_T = TypeVar("_T")


def validated(adapter: TypeAdapter[_T], value: Any, name: str = "") -> _T:
    """Return the value of the entry `name` as `adapter` converts it. Raises: MoeTheoryError with one line."""
    try:
        return adapter.validate_python(value)
    except ValidationError as failure:
        problem = failure.errors(include_url=False)[0]
        error = problem.get("ctx", {}).get("error")  # the exception that a validator raised, if any
        if isinstance(error, MoeTheoryError):
            raise error from None
        # Pydantic's path also has positions in lists, and "[key]" for a key.
        path = [name, *(part for part in problem["loc"] if isinstance(part, str) and part != "[key]")]
        words = ".".join(part if part.isidentifier() else shortened(part) for part in path if part)
        if problem["type"] == "missing":
            raise DeclarationError(f"{words} is missing. Add it.", words) from None
        text = problem["msg"].partition(" ")[2]  # without "Input", such as "should be ..."
        raise DeclarationError(f"{words}={shortened(problem['input'])} {text}. Change this value.", words) from None


def one_of(kind: str, names: Iterable[str]) -> AfterValidator:
    def check(name: str) -> str:
        if name not in names:
            raise unknown_name(kind, name, names)
        return name

    return AfterValidator(check)


def to_python(value: Any) -> Any:
    """Return ranges, tuples and arrays as lists or numbers of Python, and other values unchanged."""
    if isinstance(value, range):
        value = value[: MOST_VALUES + 1]  # a longer list is refused too, but could take all memory
    if isinstance(value, (range, tuple)):
        return list(value)
    return value.tolist() if hasattr(value, "tolist") else value


def distinct(values: Sequence[_T]) -> tuple[_T, ...]:
    """Return the values as a tuple. Raises: PydanticCustomError if two are equal."""
    for value, count in Counter(values).most_common(1):
        if count > 1:
            message: Any = f"Input should not have {shortened(value)} twice"
            raise PydanticCustomError("distinct", message)
    return tuple(values)


def _whole(value: float) -> int:
    if not value.is_integer():
        raise PydanticCustomError("whole", "Input should be a whole number")
    return int(value)


Text = Annotated[str, Strict()]
Whole = Annotated[int, Strict(), BeforeValidator(to_python)]
_without_sign_of_zero = AfterValidator(lambda value: value + 0.0)  # the sum turns -0.0 into 0.0
Real = Annotated[float, Strict(), Field(allow_inf_nan=False), BeforeValidator(to_python), _without_sign_of_zero]
Boolean = Annotated[bool, Strict(), BeforeValidator(to_python)]
Table = dict[Text, Any]


class Spacing(BaseModel):
    """Values at equal distances or ratios. The ends of a logspace are values, not exponents."""

    model_config = ConfigDict(extra="forbid")
    num: Annotated[Whole, Field(ge=2, le=MOST_VALUES)]
    linspace: Annotated[list[Real], Field(min_length=2, max_length=2)] | None = None
    logspace: Annotated[list[Annotated[Real, Field(gt=0)]], Field(min_length=2, max_length=2)] | None = None

    def values(self) -> list[float]:
        ends = self.linspace or self.logspace
        if ends is None or (self.linspace and self.logspace):
            raise PydanticCustomError("spacing", "Input should have either linspace or logspace = [first, last]")
        spread = np.linspace if self.linspace else np.geomspace
        with np.errstate(all="ignore"):  # an overflow is refused later as a value
            values = spread(ends[0], ends[1], self.num).tolist()
        inner = [float(f"{value:.12g}") for value in values[1:-1]]  # 0.3 rather than 0.30000000000000004
        return [ends[0], *inner, ends[1]]


class Vocabulary(NamedTuple):
    system: Sweepable
    fixed: Mapping[str, Mapping[str, TypeAdapter]]  # by table and name. `reading` is its own table
    columns: Mapping[str, TypeAdapter]  # for values on an axis, by name

    def table_of(self, name: str) -> str:
        """Return the table for fixed values of `name`. Raises: UnknownNameError."""
        for table, names in self.fixed.items():
            if name in names:
                return table
        raise unknown_name("parameter, size or choice", name, self.columns, self.system.params)

    def column(self, name: str, values: Any) -> tuple[Value, ...]:
        """Return the values of `name` on an axis. Raises: MoeTheoryError."""
        self.table_of(name)  # refuses unknown names
        return validated(self.columns[name], values, name)

    def fixed_value(self, table: str, name: str, value: Any) -> Value:
        """Return the value of `name` in a table. Raises: MoeTheoryError."""
        right_table = self.table_of(name)
        if table != right_table:
            place = "the top level" if right_table == READING else f"the table {right_table}"
            raise DeclarationError(f"{name} does not belong in {table}. Move it to {place}.", name)
        return validated(self.fixed[table][name], value, name)


@functools.cache
def vocabulary_of(system: str) -> Vocabulary:
    """Return the vocabulary of a system. Raises: UnknownNameError if the system is not registered."""
    described = sweepable(system)
    hints = get_type_hints(described.dims)
    defaults = described.readings[described.default_reading].defaults._asdict()
    size = Annotated[Whole, Field(ge=0, le=LARGEST_SIZE)]
    types: dict[str, dict[str, Any]] = {
        "params": {name: _parameter_type(default) for name, default in defaults.items()},
        "dims": {name: Text if hints[name] is str else size for name in described.sizes},
        "choices": {name: Annotated[Text, one_of(name, names)] for name, names in described.choices.items()},
        READING: {READING: Annotated[Text, one_of(READING, described.readings)]},
    }
    fixed = {}
    for table, types_by_name in types.items():
        fixed[table] = {name: TypeAdapter(value_type) for name, value_type in types_by_name.items()}
    columns = {}
    for name, value_type in {**types["params"], **types["dims"], **types["choices"], **types[READING]}.items():
        is_whole = name in described.sizes or type(defaults.get(name)) is int  # not bool, which is a subclass
        expand = functools.partial(_expanded_column, is_whole)
        length = Field(min_length=1, max_length=MOST_VALUES)
        column: Any = Annotated[list[value_type], Strict(), length, BeforeValidator(expand), AfterValidator(tuple)]
        columns[name] = TypeAdapter(column)
    return Vocabulary(described, fixed, columns)


def _expanded_column(is_whole: bool, values: Any) -> Any:
    """Return a list of values, for a table with the values of its `Spacing`."""
    if not isinstance(values, Mapping):
        return to_python(values)
    numbers = Spacing.model_validate(values).values()
    if is_whole and all(map(math.isfinite, numbers)):
        return list(dict.fromkeys(map(round, numbers)))  # without repetitions
    return numbers


def _parameter_type(default: Any) -> Any:
    """Return the type of a parameter's values. Whole numbers may be written as 2.0."""
    if isinstance(default, bool):
        return Boolean
    if isinstance(default, int):
        return Annotated[Real, AfterValidator(_whole)]
    return Real
