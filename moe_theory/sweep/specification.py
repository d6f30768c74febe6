"""The specification of a sweep, as plain data that is checked when it is made."""

import dataclasses
import functools
import itertools
import json
import math
import os
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast, get_type_hints

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, TypeAdapter

from moe_theory.core.errors import DeclarationError, MoeTheoryError, shortened, unknown_name
from moe_theory.sweep.grid import Columns, Grid, GridAxis, build_grid
from moe_theory.sweep.systems import Quantity, sweepable
from moe_theory.sweep.vocabulary import READING, Real, Table, Text, Whole, distinct, to_python, validated, vocabulary_of

MOST_CELLS = 1_000_000
MAX_RECORDS = 100_000  # recorded rounds
LONGEST_NAME = 50  # characters in a zip's name
RECORDS = 50  # recorded rounds if `record_every` is not given
# Names in the results besides those of axes and observables. Zips and observables must not have them.
RESERVED = ("replicate", "round", "quantile", "statistic", "cell", "observable")
TABLES = ("params", "dims", "choices")  # fields with fixed values by name

Level = Annotated[Real, Field(ge=0, le=1)]
Quantiles = Annotated[Sequence[Level], Field(max_length=100), BeforeValidator(to_python), AfterValidator(distinct)]
Names = Annotated[Sequence[Text], Field(min_length=1), BeforeValidator(to_python), AfterValidator(distinct)]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Specification:
    """A complete, checked request. Equal requests have equal data and the same order of axes.

    Axes and zips name parameters, static sizes, static choices (such as `policy`) or "reading". An axis is a list of
    values, or {"linspace": [a, b], "num": n}, or {"logspace": [a, b], "num": n}, where a and b are the first and last
    VALUE in both. If whole numbers are needed, values are rounded and repetitions dropped.

    A field that is None receives its default, except `chunk_width`.

    Raises: DeclarationError, UnknownNameError or InvalidValueError for an impossible sweep.
    """

    system: Annotated[Text, AfterValidator(lambda name: sweepable(name) and name)]  # `sweepable` raises for other names
    rounds: Annotated[Whole, Field(ge=1, le=2**31 - 1)]  # T
    axes: Table = dataclasses.field(default_factory=dict)  # values by name
    zips: dict[Text, Table] = dataclasses.field(default_factory=dict)  # values of names that vary together, by axis
    params: Table = dataclasses.field(default_factory=dict)  # fixed parameters
    dims: Table = dataclasses.field(default_factory=dict)  # static sizes that differ from the default
    choices: Table = dataclasses.field(default_factory=dict)  # static choices that differ from the default
    reading: Text | None = None  # by default the system's, unless it is an axis
    replicates: Annotated[Whole, Field(ge=1, le=2**32 - 1)] = 256  # per cell
    record_every: Whole | None = None  # rounds from record to record. By default there are about 50 records
    observables: Names | None = None  # including closed forms and FILE:NAME. By default the system's
    keep: Literal["statistics", "replicates"] = "statistics"
    quantiles: Quantiles = (0.1, 0.5, 0.9)  # quantiles over replicates
    # Replicates per chunk, by default to suit the device.
    chunk_width: Annotated[Whole, Field(ge=1, le=2**20)] | None = None
    seed: Annotated[Whole, Field(ge=0, le=2**32 - 1)] = 0
    precision: Literal["float32", "float64"] = "float32"

    def __post_init__(self) -> None:
        for name, adapter in _ADAPTERS.items():
            object.__setattr__(self, name, validated(adapter, getattr(self, name), name))  # the dataclass is frozen
        for name, value in self._completed().items():
            object.__setattr__(self, name, value)
        _ = self.grid  # refuses impossible cells, and is cached

    @property
    def stride(self) -> int:
        return cast(int, self.record_every)  # not None after `__post_init__`

    @functools.cached_property
    def grid(self) -> Grid:
        """Axes and cells, in C order. Raises: the errors of the sweep itself."""
        fixed = {**self.params, **self.dims, **self.choices}
        if self.reading is not None:
            fixed[READING] = self.reading
        return build_grid(_axes(self.axes, self.zips), fixed, sweepable(self.system), self.precision)

    @property
    def quantities(self) -> dict[str, Quantity]:
        """Observables and closed forms, by their names in the results."""
        return sweepable(self.system).quantities(self.observables or ())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Return the specification in a TOML file. Raises: MoeTheoryError (mostly DeclarationError) with the file."""
        path = Path(path)
        try:
            if path.exists() and not path.is_file():  # a folder, or a device without an end
                raise OSError("it is not a file")
            text = path.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise DeclarationError(f"{os.fspath(path)} cannot be read ({reason}). Name a TOML file in UTF-8.") from None
        return cls.from_toml(text, os.fspath(path))

    @classmethod
    def from_toml(cls, text: str, name: str = "spec") -> Self:
        """Return the specification in a TOML document (see `example`).

        Raises: MoeTheoryError (mostly DeclarationError), beginning with "NAME: ".
        """
        try:
            document = tomllib.loads(text)
        except (RecursionError, ValueError) as error:  # nested too deeply, or not TOML
            raise DeclarationError(f"{name}: this is not TOML: {shortened(str(error))}. Correct it.") from None
        try:
            return cls._from_entries(document)
        except MoeTheoryError as error:
            raise type(error)(f"{name}: {error}", error.argument) from None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the specification of `to_json`. Raises: MoeTheoryError for other data."""
        try:
            axes = {axis["name"]: axis["values"] for axis in data["axes"]}
            zips = {axis["name"]: axis["columns"] for axis in data["zips"]}
            return cls._from_entries({**data, "axes": axes, "zips": zips})
        except (LookupError, TypeError):
            raise DeclarationError(f"the specification {shortened(data)} is damaged. Run the sweep again.") from None

    @classmethod
    def _from_entries(cls, entries: Mapping[str, Any]) -> Self:
        for name in entries:
            if name not in cls.__dataclass_fields__:
                raise unknown_name("key", name, cls.__dataclass_fields__)
        for name in ("system", "rounds"):
            if name not in entries:
                raise DeclarationError(f"{name} is missing, but every specification needs it. Add {name} = ...", name)
        return cls(**entries)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the fields that are not None, by name. Axes and zips become lists, which keep their order."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        data = {name: value for name, value in values.items() if value is not None}
        data["axes"] = [{"name": name, "values": list(values)} for name, values in self.axes.items()]
        data["zips"] = []
        for name, columns in self.zips.items():
            lists = {member: list(values) for member, values in columns.items()}
            data["zips"].append({"name": name, "columns": lists})
        data |= {name: dict(data[name]) for name in TABLES}
        return data | {name: list(data[name]) for name in ("observables", "quantiles")}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specification) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_json(), sort_keys=True))

    def _completed(self) -> dict[str, Any]:
        """Return the fields that depend on the system, as plain data, with defaults. Raises: MoeTheoryError."""
        vocabulary = vocabulary_of(self.system)
        described = vocabulary.system
        fields: dict[str, Any] = {}
        for table in TABLES:
            values = getattr(self, table)
            fields[table] = {name: vocabulary.fixed_value(table, name, value) for name, value in values.items()}
        fields["axes"] = {name: vocabulary.column(name, values) for name, values in self.axes.items()}
        fields["zips"] = {}
        for axis, columns in self.zips.items():
            fields["zips"][axis] = {name: vocabulary.column(name, values) for name, values in columns.items()}
            self._check_zip(axis, fields["zips"][axis])
        axes = _axes(fields["axes"], fields["zips"])
        tables = [*(fields[table] for table in TABLES), *(axis.columns for axis in axes)]
        num_settings = Counter(itertools.chain.from_iterable(tables))  # how often each name is set
        if self.reading is not None:
            num_settings[READING] += 1
        for name, count in num_settings.items():
            if count > 1:
                raise DeclarationError(f"{name} is set twice. Remove one of the two.", name)
        for axis in axes:
            rows: list[Any] = list(zip(*axis.columns.values(), strict=True))
            if len(axis.columns) == 1:
                rows = [value for (value,) in rows]  # an error shows a value rather than a tuple
            validated(_DISTINCT, rows, axis.name)
        num_cells = math.prod(axis.num_values for axis in axes)
        if num_cells > MOST_CELLS:
            raise DeclarationError(f"the axes span {shortened(num_cells)} cells, more than {MOST_CELLS}. Shorten axes.")
        stride = self.record_every
        if stride is None:
            stride = math.ceil(self.rounds / RECORDS)
        least = math.ceil(self.rounds / MAX_RECORDS)
        if not least <= stride <= self.rounds:
            raise DeclarationError(
                f"record_every={shortened(stride)} must be from {least} to rounds={self.rounds}, because at most "
                f"{MAX_RECORDS} rounds are recorded. Change record_every.",
                "record_every",
            )
        fields["record_every"] = stride
        fields["observables"] = tuple(self.observables or described.default_observables or described.observables)
        for name, quantity in described.quantities(fields["observables"]).items():
            if name in {*self._labels, *self.zips}:
                raise DeclarationError(f"{quantity.name} is a name that the results already use. Rename it.")
        if self.reading is not None:
            fields[READING] = vocabulary.fixed_value(READING, READING, self.reading)
        elif READING not in num_settings:
            fields[READING] = described.default_reading
        return fields

    @property
    def _labels(self) -> set[str]:
        """Names in the results that no zip or observable may have."""
        vocabulary = vocabulary_of(self.system)
        dims = itertools.chain.from_iterable(observable.axes for observable in vocabulary.system.observables.values())
        return {*vocabulary.columns, *RESERVED, *dims}

    def _check_zip(self, name: str, columns: Columns) -> None:
        described = vocabulary_of(self.system).system
        closed_forms = {form.name for form in described.closed_forms}
        if not (name.isidentifier() and name.isascii() and len(name) <= LONGEST_NAME):
            raise DeclarationError(
                f"the zip {shortened(name)} labels an axis of the results. Its name must be a letter and up to 49 "
                "letters, digits and underscores."
            )
        if name in {*self._labels, *described.observables, *closed_forms}:
            raise DeclarationError(f"the zip {name} has a name that the results already use. Rename it.")
        lengths = [f"{member} has {len(values)} values" for member, values in columns.items()]
        if len(set(map(len, columns.values()))) != 1:
            raise DeclarationError(
                f"the zip {name} needs lists of equal length, but {', '.join(lengths) or 'has no list'}. Change the "
                "lists."
            )


def _axes(axes: Columns, zips: Mapping[str, Columns]) -> list[GridAxis]:
    plain_axes = [GridAxis(name, {name: values}) for name, values in axes.items()]
    zipped_axes = [GridAxis(name, columns) for name, columns in zips.items()]
    return plain_axes + zipped_axes


def example() -> str:
    return resources.files("moe_theory.sweep").joinpath("example.toml").read_text(encoding="utf-8")


_DISTINCT = TypeAdapter(Annotated[Any, AfterValidator(distinct)])
_HINTS = get_type_hints(Specification, include_extras=True)
_ADAPTERS: dict[str, TypeAdapter] = {name: TypeAdapter(hint) for name, hint in _HINTS.items()}  # by field
