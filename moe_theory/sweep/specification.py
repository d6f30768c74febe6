"""The specification of a sweep, as plain data, checked when it is made."""

import dataclasses
import functools
import itertools
import json
import math
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self, cast, get_type_hints

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, create_model

from moe_theory.core.errors import DeclarationError, MoeTheoryError, about, shortened, unknown_name
from moe_theory.core.notebook import Shown
from moe_theory.sweep import vocabulary
from moe_theory.sweep.grid import Grid, GridAxis, build_grid
from moe_theory.sweep.systems import Quantity, Sweepable, sweepable
from moe_theory.sweep.vocabulary import READING, Real, Table, Text, Whole, checked, distinct, plain

MOST_CELLS = 1_000_000
MAX_RECORDS = 100_000  # recorded rounds
RECORDS = 50  # recorded rounds unless `record_every` is given
# Words that label something else in the results, and so cannot name a zip.
RESERVED = ("replicate", "round", "quantile", "statistic", "cell", "observable")
TABLES = ("params", "dims", "choices")  # of fixed values

Level = Annotated[Real, Field(ge=0, le=1)]
Quantiles = Annotated[Sequence[Level], Field(max_length=100), BeforeValidator(plain), AfterValidator(distinct)]
Names = Annotated[Sequence[Text], Field(min_length=1), BeforeValidator(plain), AfterValidator(distinct)]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Specification(Shown):
    """A complete, checked request, with the same data and order of axes for equal ones.

    Names on axes and in zips are parameters, static sizes, static choices (such as `policy`) or "reading". An axis is a
    list of values, or {"linspace": [a, b], "num": n} or {"logspace": [a, b], "num": n} with the end VALUES a and b. For
    whole numbers they are rounded without repetitions.

    Fields that are None get defaults, except `chunk_width`.

    Raises: DeclarationError, UnknownNameError or InvalidValueError for an impossible sweep.
    """

    system: Annotated[Text, AfterValidator(lambda name: sweepable(name) and name)]  # a registered system, see `systems`
    rounds: Annotated[Whole, Field(ge=1, le=2**31 - 1)]  # T, of every replicate
    axes: Table = dataclasses.field(default_factory=dict)  # name -> its values
    zips: dict[Text, Table] = dataclasses.field(default_factory=dict)  # axis -> names that vary together, their values
    params: Table = dataclasses.field(default_factory=dict)  # fixed
    dims: Table = dataclasses.field(default_factory=dict)  # static sizes other than the default
    choices: Table = dataclasses.field(default_factory=dict)  # static choices other than the default
    reading: Text | None = None  # None: the system's default, or an axis
    replicates: Annotated[Whole, Field(ge=1, le=2**32 - 1)] = 256  # of every cell
    record_every: Whole | None = None  # rounds; None: about 50 records
    observables: Names | None = None  # also closed forms and FILE:NAME; None: the system's defaults
    keep: Literal["statistics", "replicates"] = "statistics"
    quantiles: Quantiles = (0.1, 0.5, 0.9)  # over replicates
    chunk_width: Annotated[Whole, Field(ge=1, le=2**20)] | None = None  # replicates a chunk; None: suits the system
    seed: Annotated[Whole, Field(ge=0, le=2**32 - 1)] = 0
    precision: Literal["float32", "float64"] = "float32"

    def __post_init__(self) -> None:
        for name, value in checked(_FIELDS, dict(vars(self))):
            object.__setattr__(self, name, value)
        for name, value in self._completed().items():
            object.__setattr__(self, name, value)
        _ = self.grid

    def row(self) -> dict[str, Any]:
        shape = zip(self.grid.axes, self.grid.shape, strict=True)
        axes = ", ".join(f"{axis.name} {length}" for axis, length in shape)
        return {"system": self.system, "axes": axes, "rounds": self.rounds, "replicates": self.replicates}

    @property
    def stride(self) -> int:
        return cast(int, self.record_every)  # set when a specification is made

    @functools.cached_property
    def grid(self) -> Grid:
        """Axes and cells, in C order. Raises: as the sweep itself."""
        axes = [GridAxis(name, {name: values}) for name, values in self.axes.items()]
        axes += [GridAxis(name, columns) for name, columns in self.zips.items()]
        fixed: dict[str, dict[str, Any]] = {table: getattr(self, table) for table in TABLES}
        fixed[READING] = {} if self.reading is None else {READING: self.reading}
        keys = {key[-1]: key for key, _ in self._settings()}
        return build_grid(axes, fixed, self._vocabulary, keys)

    @property
    def quantities(self) -> dict[str, Quantity]:
        """Observables and closed forms, by their names in results."""
        return sweepable(self.system).quantities(self.observables or ())

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Return the specification in a TOML file.

        Raises: MoeTheoryError (DeclarationError, mostly) with the file and the key.
        """
        try:
            text = Path(path).read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise DeclarationError(f"{_one_line(path)} cannot be read ({reason}). Name a TOML file in UTF-8.") from None
        return cls.from_toml(text, _one_line(path))

    @classmethod
    def from_toml(cls, text: str, name: str = "spec") -> Self:
        """Return the specification in a TOML document (see `example`).

        Raises: MoeTheoryError (DeclarationError, mostly) that begins with "NAME, KEY: ".
        """
        try:
            document = tomllib.loads(text)
        except (RecursionError, ValueError) as error:  # too deep, or no TOML, which names its line
            raise DeclarationError(f"{name}: this is no TOML: {shortened(str(error))}. Correct it.") from None
        try:
            return cls._of(document)
        except MoeTheoryError as error:
            raise type(error)(f"{name}, {_dotted(error.key)}: {error}") from None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the specification of `to_json`. Raises: MoeTheoryError for other data."""
        tables: dict[str, dict[str, Any]] = {}
        try:
            for table, field in (("axes", "values"), ("zips", "columns")):
                tables[table] = {axis["name"]: axis[field] for axis in data[table]}
            return cls._of({**data, **tables})
        except (LookupError, TypeError):
            raise DeclarationError(f"the specification {shortened(data)} is damaged. Run the sweep again.") from None

    @classmethod
    def _of(cls, entries: Mapping[str, Any]) -> Self:
        for name in entries:
            if name not in cls.__dataclass_fields__:
                with about(name):
                    raise unknown_name("key", name, cls.__dataclass_fields__)
        for name in ("system", "rounds"):
            if name not in entries:
                with about(name):
                    raise DeclarationError(f"{name} is missing: every specification says it. Add {name} = ...")
        return cls(**entries)

    def to_json(self) -> dict[str, Any]:
        """Return the specification as plain data."""
        data = {name: getattr(self, name) for name in self.__dataclass_fields__ if getattr(self, name) is not None}
        data["axes"] = [{"name": name, "values": list(values)} for name, values in self.axes.items()]
        data["zips"] = [
            {"name": name, "columns": {member: list(values) for member, values in columns.items()}}
            for name, columns in self.zips.items()
        ]
        data |= {name: dict(data[name]) for name in TABLES}
        return data | {name: list(data[name]) for name in ("observables", "quantiles")}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specification) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_json(), sort_keys=True))

    @property
    def _vocabulary(self) -> vocabulary.Vocabulary:
        return vocabulary.vocabulary_of(self.system, self.precision)

    def _settings(self) -> Iterator[tuple[tuple[str, ...], Any]]:
        if self.reading is not None:
            yield (READING,), self.reading
        for table in (*TABLES, "axes"):
            for name, value in getattr(self, table).items():
                yield (table, name), value
        for axis, columns in self.zips.items():
            for name, values in columns.items():
                yield ("zips", axis, name), values

    def _completed(self) -> dict[str, Any]:
        """Return fields that depend on the system, plain and with defaults. Raises: MoeTheoryError."""
        system_kind = self._vocabulary.known
        fields: dict[str, Any] = {table: {} for table in (*TABLES, "axes")}
        fields["zips"] = {name: {} for name in self.zips}
        tables: dict[str, str] = {}  # where each name is set
        for key, value in self._settings():
            *path, name = key
            with about(*key):
                kind = self._vocabulary.kind(key[0], name)
                if name in tables:
                    raise DeclarationError(f"{name} is set twice, here and in {tables[name]}. Take one away.")
            tables[name] = _dotted(path) or "the top level"
            place = functools.reduce(dict.__getitem__, path, fields)
            place[name] = checked(kind, value, *key)
        for name, values in fields["axes"].items():
            fields["axes"][name] = checked(_DISTINCT, values, "axes", name)
        lengths = [len(values) for values in fields["axes"].values()]
        for name, columns in fields["zips"].items():
            with about("zips", name):
                self._check_zip(name, columns)
            checked(_DISTINCT, list(zip(*columns.values(), strict=True)), "zips", name)
            lengths.append(len(next(iter(columns.values()))))
        with about("axes" if self.axes else "zips"):
            if math.prod(lengths) > MOST_CELLS:
                raise DeclarationError(
                    f"the axes span {shortened(math.prod(lengths))} cells, above {MOST_CELLS}. Shorten or zip axes, or "
                    "split the sweep."
                )
        stride = self.record_every
        if stride is None:
            stride = math.ceil(self.rounds / RECORDS)
        with about("record_every"):
            least = math.ceil(self.rounds / MAX_RECORDS)
            if not least <= stride <= self.rounds:
                raise DeclarationError(
                    f"record_every={shortened(stride)} must be from {least} to {self.rounds}, the "
                    f"number of rounds, of which at most {MAX_RECORDS} are recorded. Change it."
                )
        fields["record_every"] = stride
        fields["observables"] = tuple(self.observables or system_kind.default_observables)
        with about("observables"):
            self._check_quantities(system_kind.quantities(fields["observables"]))
        fields[READING] = system_kind.default_reading
        if READING in tables:
            fields[READING] = self.reading
        return fields

    def _check_quantities(self, quantities: Mapping[str, Quantity]) -> None:
        for name, quantity in quantities.items():
            if name in {*self._vocabulary.columns, *RESERVED, *self.zips, *_dims_of(self._vocabulary.known)}:
                raise DeclarationError(f"{quantity.about} has the name of something else in the results. Rename it.")

    def _check_zip(self, name: str, columns: Mapping[str, Sequence[Any]]) -> None:
        kind = self._vocabulary.known
        closed_forms = {form.name for form in kind.closed_forms}
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,49}", name):
            raise DeclarationError(
                f"the zip {shortened(name)} labels an axis of the results: name it by a letter and up to 49 letters, "
                "digits and underscores."
            )
        if name in {*self._vocabulary.columns, *RESERVED, *kind.observables, *closed_forms, *_dims_of(kind)}:
            raise DeclarationError(f"the zip {name} has the name of something else in the results. Rename it.")
        if not columns:
            raise DeclarationError(f"the zip {name} has no names. Put in lists of equal length, or drop it.")
        lengths = [f"{member} has {len(values)} values" for member, values in columns.items()]
        if len(set(map(len, columns.values()))) > 1:
            raise DeclarationError(
                f"the names of the zip {name} vary together, but {', '.join(lengths)}. Make them equally long."
            )


def example() -> str:
    """Return a commented specification, as TOML."""
    return resources.files("moe_theory.sweep").joinpath("example.toml").read_text(encoding="utf-8")


_DISTINCT = TypeAdapter(Annotated[Any, AfterValidator(distinct)])
_HINTS = get_type_hints(Specification, include_extras=True)
_KINDS: dict[str, Any] = {name: (kind, ...) for name, kind in _HINTS.items()}
_FIELDS = TypeAdapter(create_model("Fields", **_KINDS))


def _dims_of(kind: Sweepable) -> set[str]:
    return set(itertools.chain.from_iterable(observable.axes for observable in kind.observables.values()))


def _dotted(key: Sequence[str]) -> str:
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]{1,60}", part) else shortened(part) for part in key)


def _one_line(path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    if isinstance(name, str) and name.isprintable() and len(name) <= 200:
        return name
    return shortened(name)
