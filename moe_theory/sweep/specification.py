"""The specification of a sweep: a grid of cells times a range of replicates, as plain data.

It is checked as a whole, on the host, when it is made: a specification that exists can be run.
"""

import dataclasses
import functools
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Self, get_type_hints

from pydantic import AfterValidator, Field, TypeAdapter, create_model

from moe_theory.core.errors import InvalidSpecError, MoeTheoryError, about, shortened, unknown_name
from moe_theory.core.notebook import Shown
from moe_theory.sweep.grid import Fixed, Grid, GridAxis, build_grid, require_few_cells
from moe_theory.sweep.statistics import ONLY
from moe_theory.sweep.systems import sweepable
from moe_theory.sweep.vocabulary import (
    READING,
    List,
    Real,
    Table,
    Text,
    Value,
    Vocabulary,
    Whole,
    between,
    checked,
    distinct,
    one_of,
    vocabulary_of,
)

MOST_RECORDS = 100_000  # recorded rounds
RECORDS = 50  # recorded rounds unless `record_every` is given
# Words that label something else in the results, and so cannot name a zip.
RESERVED = ("replicate", "round", "quantile", "statistic", "cell", "observable")

ChunkWidth = Annotated[Whole, between(1, 2**20, "a chunk is computed as a whole")]
Level = Annotated[Real, between(0, 1, "it is a share of the replicates")]
Quantiles = Annotated[List[Level], Field(max_length=100), AfterValidator(distinct)]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Specification(Shown):
    """A sweep's request, complete and checked; equal specifications say the same in the same order of axes.

    Names on axes and in zips are parameters, static sizes, static choices (such as `policy`) or "reading". An axis is
    a list of values, or {"linspace": [a, b], "num": n} or {"logspace": [a, b], "num": n} where a and b are the end
    VALUES themselves, also of a logspace; for whole numbers they are rounded and repetitions dropped.

    What is None or left out gets its default when the specification is made, `chunk_width` excepted.

    Raises: InvalidSpecError, UnknownNameError, InvalidParamsError or InvalidDimsError for what cannot be run.
    """

    system: Annotated[Text, AfterValidator(lambda name: sweepable(name) and name)]  # a registered system, see `systems`
    rounds: Annotated[Whole, between(1, 2**31 - 1, "rounds are counted in 32 bits")]  # T, of every replicate
    axes: Table = dataclasses.field(default_factory=dict)  # name -> its values
    zips: Table = dataclasses.field(default_factory=dict)  # axis -> names that vary together, and their values
    params: Table = dataclasses.field(default_factory=dict)  # fixed
    dims: Table = dataclasses.field(default_factory=dict)  # static sizes other than the default
    choices: Table = dataclasses.field(default_factory=dict)  # static choices other than the default
    reading: Text | None = None  # None: the system's default, or an axis
    replicates: Annotated[Whole, between(1, 2**32 - 1, "replicates are counted in 32 bits")] = 256  # of every cell
    record_every: Whole | None = None  # rounds; None: about 50 records
    observables: List[Text] | None = None  # None: the system's defaults
    keep: Annotated[Text, one_of("keep", ("statistics", "replicates", ONLY))] = "statistics"
    quantiles: Quantiles = (0.1, 0.5, 0.9)  # over replicates
    chunk_width: ChunkWidth | None = None  # replicates a chunk; None: suits the system
    seed: Annotated[Whole, between(0, 2**32 - 1, "a seed has 32 bits")] = 0
    precision: Annotated[Text, one_of("precision", ("float32", "float64"))] = "float32"

    def row(self) -> dict[str, Any]:
        """Its facts by name, as a table of many has them."""
        shape = zip(self.grid.axes, self.grid.shape, strict=True)
        axes = ", ".join(f"{axis.name} {length}" for axis, length in shape)
        return {"system": self.system, "axes": axes, "rounds": self.rounds, "replicates": self.replicates}

    def __post_init__(self) -> None:
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name, value in _completed(dict(checked(_fields(), given))).items():
            object.__setattr__(self, name, value)
        _ = self.grid

    @functools.cached_property
    def grid(self) -> Grid:
        """The axes and the cells, C order. Raises: as the sweep itself, InvalidSpecError or UnknownNameError for what
        cannot be run.
        """
        vocabulary = vocabulary_of(self.system, self.precision)
        axes = [GridAxis(name, {name: values}) for name, values in self.axes.items()]
        axes += [GridAxis(name, members) for name, members in self.zips.items()]
        keys = {name: ("axes", name) for name in self.axes}
        keys |= {name: ("zips", along, name) for along, members in self.zips.items() for name in members}
        keys |= {name: (table, name) for table in ("params", "dims", "choices") for name in getattr(self, table)}
        keys |= {READING: (READING,)} if self.reading is not None else {}
        return build_grid(axes, Fixed(vocabulary, self.reading, self.dims, self.choices, self.params, keys))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """The specification in a TOML file. Raises: MoeTheoryError (InvalidSpecError, mostly) that names the file and
        the key.
        """
        return cls.from_toml(_text_of(path), _name_of(path))

    @classmethod
    def from_toml(cls, text: str, name: str = "spec") -> Self:
        """Return the specification that a TOML document says. `example()` is one that explains the keys.

        Raises: MoeTheoryError (InvalidSpecError, mostly) that begins with "NAME, KEY: ".
        """
        file = _name_of(name)
        try:
            document = tomllib.loads(text)
        except (RecursionError, ValueError) as error:  # too deep, or no TOML, which names its line
            raise InvalidSpecError(f"{file}: this is no TOML: {shortened(str(error))}. Correct it.") from None
        try:
            return cls._of(document)
        except MoeTheoryError as error:
            raise type(error)(f"{file}, {_dotted(error.key)}: {error}") from None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The specification that `to_json` wrote. Raises: MoeTheoryError (InvalidSpecError, mostly) for other data."""
        entries = dict(checked(_TABLE, data, "specification"))
        entries["axes"] = _unlisted("axes", "values", entries.get("axes", []))
        entries["zips"] = _unlisted("zips", "columns", entries.get("zips", []))
        return cls._of(entries)

    @classmethod
    def _of(cls, entries: Mapping[str, Any]) -> Self:
        fields = {field.name: field for field in dataclasses.fields(cls)}
        for name in entries:
            if name not in fields:
                with about(name):
                    raise unknown_name("key", name, fields)
        for name in ("system", "rounds"):
            if name not in entries:
                with about(name):
                    raise InvalidSpecError(f"{name} is missing: every specification says it. Add {name} = ...")
        return cls(**entries)

    def to_json(self) -> dict[str, Any]:
        """The specification as plain data, the same for equal ones: lists where the order counts."""
        data = {
            field.name: value for field in dataclasses.fields(self) if (value := getattr(self, field.name)) is not None
        }
        axes = [{"name": name, "values": list(values)} for name, values in self.axes.items()]
        zips = [
            {"name": name, "columns": {key: list(values) for key, values in members.items()}}
            for name, members in self.zips.items()
        ]
        tables = {name: dict(getattr(self, name)) for name in ("params", "dims", "choices")}
        lists = {name: list(getattr(self, name)) for name in ("observables", "quantiles")}
        return {**data, "axes": axes, "zips": zips, **tables, **lists}

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Specification) else NotImplemented

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_json(), sort_keys=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_json, (self.to_json(),)


def example() -> str:
    """A commented specification that runs in seconds, as TOML."""
    return resources.files("moe_theory.sweep").joinpath("example.toml").read_text(encoding="utf-8")


_TABLE = TypeAdapter(Table)
_ENTRIES = TypeAdapter(List[Table])
_DISTINCT = TypeAdapter(Annotated[Any, AfterValidator(distinct)])


@functools.cache
def _fields() -> TypeAdapter:
    kinds = get_type_hints(Specification, include_extras=True)
    return TypeAdapter(create_model("Fields", **{name: (kind, ...) for name, kind in kinds.items()}))  # pyright: ignore


def _completed(given: dict[str, Any]) -> dict[str, Any]:
    """Every field in its one plain form, with defaults in place of None; their types are checked already. Raises:
    InvalidSpecError, UnknownNameError or InvalidParamsError, whose `key` says which field is wrong.
    """
    vocabulary = vocabulary_of(given["system"], given["precision"])
    known = vocabulary.known
    zips = {along: checked(_TABLE, members, "zips", along) for along, members in given["zips"].items()}
    given = {**given, "zips": zips}
    _check_names(vocabulary, given)
    axes: dict[str, tuple[Value, ...]] = {}
    for name, values in given["axes"].items():
        axes[name] = checked(_DISTINCT, vocabulary.column(name, values, "axes", name), "axes", name)
    zips = {along: _zip(vocabulary, along, members) for along, members in zips.items()}
    with about("axes" if axes else "zips"):
        require_few_cells([*map(len, axes.values()), *(len(next(iter(members.values()))) for members in zips.values())])
    fixed = {
        table: {name: vocabulary.value(name, value) for name, value in given[table].items()}
        for table in ("params", "dims", "choices")
    }
    reading = None
    if READING not in axes and not any(READING in members for members in zips.values()):
        reading = known.default_reading if given[READING] is None else given[READING]
        reading = vocabulary.value(READING, reading, READING)
    names = known.default_observables if given["observables"] is None else given["observables"]
    each = Annotated[Text, one_of("observable", known.observables)]
    most = len(known.observables)
    kind: Any = Annotated[List[each], Field(min_length=1, max_length=most), AfterValidator(distinct)]
    if given["keep"] == ONLY and given["chunk_width"] is not None:
        with about("chunk_width"):
            raise InvalidSpecError(
                f"chunk_width={given['chunk_width']} is for sweeps that keep replicates: with keep = {ONLY!r} a cell "
                "is one chunk. Take it away."
            )
    return {
        **given,
        **fixed,
        "axes": axes,
        "zips": zips,
        READING: reading,
        "observables": checked(TypeAdapter(kind), names, "observables"),
        "record_every": _record_every(given["rounds"], given["record_every"]),
    }


def _record_every(rounds: int, every: int | None) -> int:
    every = -(-rounds // RECORDS) if every is None else every
    with about("record_every"):
        if not 1 <= every <= rounds:
            raise InvalidSpecError(
                f"record_every={shortened(every)} must be from 1 to {rounds}, the number of rounds. Change it."
            )
        if rounds / every > MOST_RECORDS:
            raise InvalidSpecError(
                f"record_every={every} keeps {-(-rounds // every)} rounds, above {MOST_RECORDS}. Raise record_every."
            )
    return every


def _zip(vocabulary: Vocabulary, along: str, members: Mapping[str, Any]) -> dict[str, tuple[Value, ...]]:
    zipped = {name: vocabulary.column(name, given, "zips", along, name) for name, given in members.items()}
    lengths = {name: len(column) for name, column in zipped.items()}
    with about("zips", along):
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} has {length} values" for name, length in lengths.items())
            raise InvalidSpecError(f"the names of the zip {along} vary together, but {listed}. Make them equally long.")
    checked(_DISTINCT, tuple(zip(*zipped.values(), strict=True)), "zips", along)
    return zipped


def _check_names(vocabulary: Vocabulary, given: Mapping[str, Any]) -> None:
    """Raise UnknownNameError or InvalidSpecError for a name that is unknown, misplaced, or set twice."""
    set_at: dict[str, str] = {} if given[READING] is None else {READING: "the top level"}

    def claim(name: str, *key: str) -> None:
        with about(*key):
            home = vocabulary.home(name)
            if key[0] in vocabulary.tables and key[0] != home:
                where = f"the table {home}" if home != READING else "the top level"
                raise InvalidSpecError(f"{name} does not belong in {key[0]}. Move it to {where}.")
            if name in set_at:
                raise InvalidSpecError(f"{name} is set twice, here and in {set_at[name]}. Take one away.")
            set_at[name] = _dotted(key[:-1])

    for table in ("params", "dims", "choices", "axes"):
        for name in given[table]:
            claim(name, table, name)
    for along, members in given["zips"].items():
        with about("zips", along):
            _check_zip_name(vocabulary, along)
            if not members:
                raise InvalidSpecError(f"the zip {along} has no names. Put in lists of equal length, or drop it.")
        for name in members:
            claim(name, "zips", along, name)


def _check_zip_name(vocabulary: Vocabulary, name: str) -> None:
    known = vocabulary.known
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,49}", name):
        raise InvalidSpecError(
            f"the zip {shortened(name)} labels an axis of the results: name it by a letter and up to 49 letters, "
            "digits and underscores."
        )
    own_axes = {axis for observable in known.observables.values() for axis in observable.axes}
    settable = {name for names in vocabulary.tables.values() for name in names}
    if name in settable.union(RESERVED, known.observables, own_axes):
        raise InvalidSpecError(f"the zip {name} has the name of something else in the results. Name it otherwise.")


def _unlisted(name: str, content: str, entries: Any) -> dict[str, Any]:
    """The axes or zips that `to_json` wrote as a list, by name."""
    found: dict[str, Any] = {}
    for entry in checked(_ENTRIES, entries, name):
        with about(name):
            if entry.keys() != {"name", content} or not isinstance(entry["name"], str) or entry["name"] in found:
                raise InvalidSpecError(
                    f"{name} has {shortened(entry)}, but each entry has a name of its own and {content}. Correct it."
                )
            found[entry["name"]] = entry[content]
    return found


def _dotted(key: Sequence[str]) -> str:
    """A key as TOML writes it: axes.num_experts."""
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]{1,60}", part) else shortened(part) for part in key)


def _name_of(path: str | os.PathLike[str]) -> str:
    """A path as messages show it: as it is, unless it has signs that break a line."""
    name = os.fspath(path)
    return name if isinstance(name, str) and name.isprintable() and len(name) <= 200 else shortened(name)


def _text_of(path: str | os.PathLike[str]) -> str:
    """The text of a specification's file. Raises: InvalidSpecError where there is none."""
    name = _name_of(path)
    try:
        return Path(path).read_text(encoding="utf-8-sig")  # some editors begin a file with a mark
    except UnicodeDecodeError as error:
        raise InvalidSpecError(
            f"{name}: the specification is not UTF-8 (byte {error.start}). Save it as UTF-8 text."
        ) from None
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        reason = "is a folder, not a file" if isinstance(error, IsADirectoryError) else "is not there"
        raise InvalidSpecError(f"{name}: the specification {reason}. Give the path of a TOML file.") from None
    except (OSError, ValueError) as error:  # a name with a null character
        reason = getattr(error, "strerror", None) or error
        raise InvalidSpecError(f"{name}: the specification cannot be read: {reason}. Change the path.") from None
