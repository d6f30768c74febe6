"""The specification of a sweep: a grid of cells times a range of replicates, as plain data.

It is checked as a whole, on the host, when it is made: a `Sweep` that exists can be run.
"""

import dataclasses
import functools
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from moe_theory.core.errors import InvalidSpecError, MoeTheoryError, about, shortened, unknown_name
from moe_theory.runs.progress import Progress, quiet
from moe_theory.sweep import formulas, locate
from moe_theory.sweep.columns import READING, Vocabulary, listed, table, text
from moe_theory.sweep.grid import Fixed, Grid, GridAxis, build_grid, formula_names
from moe_theory.sweep.settle import settled
from moe_theory.sweep.systems import sweepable

if TYPE_CHECKING:
    from moe_theory.sweep.results import Results

LARGEST_FILE = 1_000_000  # bytes of a specification


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Sweep:
    """What to run, complete and checked; equal specifications say the same in the same order of axes.

    Names on axes and in zips are parameters, static sizes, static choices (such as `policy`) or "reading". An axis is
    a list of values, or {"linspace": [a, b], "num": n} or {"logspace": [a, b], "num": n} where a and b are the end
    VALUES themselves, also of a logspace; for whole numbers they are rounded and repetitions dropped.

    What is None or left out is settled when the sweep is made, `chunk_width` excepted: read it from the fields.

    Raises: InvalidSpecError, UnknownNameError, InvalidParamsError or InvalidDimsError for what cannot be run.

    Examples:
        >>> import moe_theory as mt
        >>> axes = {"num_experts": [1, 2]}
        >>> sweep = mt.Sweep(system="continual", rounds=4, axes=axes, replicates=64, record_every=2)
        >>> results = sweep.run("runs/example")
        >>> results.rounds.tolist(), results.coverage.is_complete, results.to_xarray()["forgetting"].dims
        ([2, 4], True, ('num_experts', 'round', 'statistic'))
    """

    system: str  # a registered system, see `systems`
    rounds: int  # T, of every replicate
    axes: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # name -> its values
    zips: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)  # axis -> names that go together
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # fixed; a text is a formula of other names
    dims: Mapping[str, int | str] = dataclasses.field(default_factory=dict)  # static sizes other than the default
    choices: Mapping[str, str] = dataclasses.field(default_factory=dict)  # static choices other than the default
    reading: str | None = None  # None: the system's default, or an axis
    replicates: int = 256  # of every cell
    record_every: int | None = None  # rounds; None: about 50 records
    observables: Sequence[str] | None = None  # None: the system's defaults
    keep: str = "statistics"  # or every one of the "replicates"
    quantiles: Sequence[float] = (0.1, 0.5, 0.9)  # over replicates
    chunk_width: int | None = None  # replicates a chunk; None: whatever suits the system
    seed: int = 0
    precision: str = "float32"  # or "float64"

    def __post_init__(self) -> None:
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name, value in settled(given).items():
            object.__setattr__(self, name, value)
        _ = self.grid

    @functools.cached_property
    def grid(self) -> Grid:
        """The axes and the cells, C order.

        Raises: as the sweep itself, InvalidSpecError or UnknownNameError for what cannot be run.
        """
        vocabulary = Vocabulary(sweepable(self.system), self.precision)
        axes = [GridAxis(name, {name: values}) for name, values in self.axes.items()]
        axes += [GridAxis(name, members) for name, members in self.zips.items()]
        known = formula_names(vocabulary, axes, self.dims)
        parsed = {}
        for name, value in self.params.items():
            if isinstance(value, str):
                with about("params", name):
                    parsed[name] = formulas.parse(value, known)
        numbers = {name: value for name, value in self.params.items() if name not in parsed}
        in_order = formulas.in_order(parsed)
        fixed = Fixed(vocabulary, self.reading, self.dims, self.choices, numbers, in_order)
        return build_grid(axes, fixed, _keys(self))

    def run(
        self,
        path: str | os.PathLike[str],
        *,
        executor: Executor | None = None,
        dask: str | None = None,
        devices: int | None = None,
        progress: Progress = quiet,
    ) -> "Results":
        """Compute what is missing of this sweep in the folder `path`; the results.

        Args:
            executor: any `concurrent.futures.Executor` whose workers can import this package; it is left open.
            dask: or a Dask cluster: the address of its scheduler, or "local:N" for N processes.
            devices: or so many devices of this machine; all of them unless given.
        Raises: OutputError, InvalidRunError, UnknownNameError or ExecutorLostError; what was finished before is kept.
        """
        from moe_theory.sweep import results, runner

        done = runner.run(self, path, pool=runner.pool_of(executor, dask, devices), progress=progress)
        return results.Results(done.plan, done.store)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """The specification in a TOML file.

        Raises: MoeTheoryError (InvalidSpecError, mostly) that names the file, the line and the key.
        """
        return cls.from_toml(_text_of(path), _name_of(path))

    @classmethod
    def from_toml(cls, text: str, name: str = "spec") -> Self:
        """The specification that a TOML document says; `example()` is one that explains the keys.

        Raises: MoeTheoryError (InvalidSpecError, mostly) that begins with "NAME, line N, KEY: ".
        """
        document = locate.parse(text, _name_of(name))
        try:
            return cls._of(document)
        except MoeTheoryError as error:
            place = f"{_name_of(name)}, line {locate.line_of(text, error.key)}, {locate.dotted(error.key)}"
            raise type(error)(f"{place}: {error}") from None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The specification that `to_json` wrote. Raises: MoeTheoryError (InvalidSpecError, mostly) for other data."""
        entries = dict(table("specification", data))
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

    def to_toml(self) -> str:
        """The specification as a TOML document, which `from_toml` reads as an equal one."""
        data = self.to_json()
        tables = {name: data.pop(name) for name in ("params", "dims", "choices")}
        data |= {"axes": None, "zips": None}
        tables["axes"] = self.axes
        tables |= {f"zips.{name}": members for name, members in self.zips.items()}
        lines = [f"{name} = {_toml(value)}" for name, value in data.items() if value is not None]
        for heading, entries in tables.items():
            if entries:
                lines += ["", f"[{heading}]", *(f"{name} = {_toml(value)}" for name, value in entries.items())]
        return "\n".join(lines) + "\n"

    def __eq__(self, other: object) -> bool:
        return self.to_json() == other.to_json() if isinstance(other, Sweep) else NotImplemented

    def __hash__(self) -> int:
        return hash(json.dumps(self.to_json(), sort_keys=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return Sweep.from_json, (self.to_json(),)


def example() -> str:
    """A commented specification that runs in seconds, as TOML."""
    return resources.files("moe_theory.sweep").joinpath("example.toml").read_text(encoding="utf-8")


def _keys(sweep: Sweep) -> dict[str, tuple[str, ...]]:
    """Where the specification sets each name."""
    keys = {name: ("axes", name) for name in sweep.axes}
    keys |= {name: ("zips", along, name) for along, members in sweep.zips.items() for name in members}
    keys |= {name: (table, name) for table in ("params", "dims", "choices") for name in getattr(sweep, table)}
    return keys | ({READING: (READING,)} if sweep.reading is not None else {})


def _unlisted(name: str, content: str, entries: Any) -> dict[str, Any]:
    """The axes or zips that `to_json` wrote as a list, by name."""
    found: dict[str, Any] = {}
    for entry in listed(name, entries):
        with about(name):
            entry = table(f"an entry of {name}", entry)
            if entry.keys() != {"name", content} or text("name", entry["name"]) in found:
                raise InvalidSpecError(
                    f"{name} has {shortened(entry)}, but each entry has a name of its own and {content}. Write it anew."
                )
            found[entry["name"]] = entry[content]
    return found


def _toml(value: Any) -> str:
    """A value as TOML. Names, formulas and choices are plain ASCII, which JSON quotes just so."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_toml, value))}]"
    return repr(value) if isinstance(value, float) else json.dumps(value)


def _name_of(path: str | os.PathLike[str]) -> str:
    """A path as messages show it: as it is, unless it has signs that break a line."""
    name = os.fspath(path)
    return name if isinstance(name, str) and name.isprintable() and len(name) <= 200 else shortened(name)


def _text_of(path: str | os.PathLike[str]) -> str:
    """The text of a specification's file. Raises: InvalidSpecError where there is none."""
    name = _name_of(path)
    try:
        if not Path(path).is_file():
            reason = "is a folder, not a file" if Path(path).is_dir() else "is not there, or is no file"
            raise InvalidSpecError(f"{name}: the specification {reason}. Give the path of a TOML file.")
        with open(path, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
        if len(data) > LARGEST_FILE:
            raise InvalidSpecError(
                f"{name}: the specification is larger than {LARGEST_FILE} bytes. Write long axes as linspace or "
                "logspace, or split the sweep."
            )
        return data.decode("utf-8-sig")  # some editors begin a file with a mark
    except UnicodeDecodeError as error:
        raise InvalidSpecError(
            f"{name}: the specification is not UTF-8 (byte {error.start}). Save it as UTF-8 text."
        ) from None
    except MoeTheoryError:
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InvalidSpecError(f"{name}: the specification cannot be read: {reason}. Change the path.") from None
