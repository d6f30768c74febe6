"""What was measured: kept as JSON, read again, and compared with an earlier run."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moe_theory.bench.measure import Ratio, ratio
from moe_theory.bench.setting import Setting
from moe_theory.core.errors import InvalidReportError
from moe_theory.runs.files import write_whole

SCHEMA = "moe-theory/bench/1"
# What JAX's persistent cache does while compiling: it is off, it is empty and keeps what is compiled, it has it all.
COLD, FILLING, KEPT = "cold", "filling", "kept"


@dataclasses.dataclass(frozen=True)
class Measurement:
    """The times of one contender at one setting."""

    part: str  # "peers", "precision", "grid", or "scaling M" and so on
    group: str  # what was timed in turn with it
    contender: str
    setting: Setting
    cores: str  # "one" or "all"
    replicates: int  # that ran at once, on all threads together
    first_seconds: float = 0.0  # of the first call, which compiles
    seconds: tuple[float, ...] = ()  # of a call, in each pass
    yardstick: tuple[float, ...] = ()  # seconds of the yardstick, in each pass
    is_automatic: bool = False  # whether the batch is what sweeps would choose
    skipped: str = ""  # why it was not measured

    @property
    def id(self) -> str:
        """What names it in every run; rounds count only where they are what is varied."""
        s = self.setting
        sizes = f"M={s.num_experts},N={s.num_tasks},d={s.num_features},s={s.num_samples},batch={s.batch}"
        rounds = f",T={s.num_rounds}" if self.part == "scaling T" else ""
        return "/".join((self.part, self.group, sizes + rounds, s.precision, self.cores, self.contender))

    @property
    def costs(self) -> tuple[float, ...]:
        """Nanoseconds a replicate-round, in each pass."""
        return tuple(1e9 * seconds / (self.replicates * self.setting.num_rounds) for seconds in self.seconds)

    @property
    def nanoseconds(self) -> float:
        """Nanoseconds a replicate-round in the quickest pass."""
        return min(self.costs)

    @property
    def compile_seconds(self) -> float:
        """What the first call took beyond the others."""
        return max(self.first_seconds - min(self.seconds), 0.0)


@dataclasses.dataclass(frozen=True)
class Compilation:
    """Compiling a program in a process of its own: tracing, lowering and compiling, imports not counted."""

    program: str
    cache: str  # COLD, FILLING or KEPT
    cores: str
    seconds: float
    yardstick: tuple[float, ...] = ()

    @property
    def id(self) -> str:
        """What names it in every run."""
        return f"compile/{self.program}/{self.cache}/{self.cores}"


@dataclasses.dataclass(frozen=True)
class OnAccelerator:
    """A wide batch on an accelerator."""

    setting: Setting
    device: str
    seconds: tuple[float, ...] = ()  # of a call, in each pass
    bytes_a_round: int = 0  # the state of all replicates, read and written once: the least that a round moves
    copy_bandwidth: float = 0.0  # bytes a second, read and written, of a large copy on the device
    skipped: str = ""

    @property
    def rate(self) -> float:
        """Replicate-rounds a second in the quickest pass."""
        return self.setting.batch * self.setting.num_rounds / min(self.seconds)

    @property
    def bandwidth_share(self) -> float:
        """The state's own traffic over what a copy reaches: 1 were a round as quick as copying the state."""
        return self.bytes_a_round * self.setting.num_rounds / min(self.seconds) / self.copy_bandwidth


@dataclasses.dataclass
class Record:
    """One run of the benchmarks; grows while it runs."""

    time: str  # ISO 8601, UTC
    command: str
    provenance: dict[str, Any] = dataclasses.field(default_factory=dict)
    is_complete: bool = False
    measurements: list[Measurement] = dataclasses.field(default_factory=list)
    compilations: list[Compilation] = dataclasses.field(default_factory=list)
    accelerator: list[OnAccelerator] = dataclasses.field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was measured."""
        return not (self.measurements or self.compilations or self.accelerator)


class Change(NamedTuple):
    """A cost now over the cost then, each counted in yardsticks of its own run."""

    id: str
    ratio: Ratio

    @property
    def is_clear(self) -> bool:
        """Whether all passes of one run are on one side of all passes of the other."""
        return not self.ratio.low <= 1 <= self.ratio.high


def compare(now: Record, then: Record) -> list[Change]:
    """What both runs measured, in the order of this run."""
    before = _relative_costs(then)
    return [
        Change(name, Ratio(new.median / before[name].median, new.low / before[name].high, new.high / before[name].low))
        for name, new in _relative_costs(now).items()
        if name in before
    ]


def _relative_costs(record: Record) -> dict[str, Ratio]:
    """Costs in yardsticks, by the names of what was measured."""
    costs = {each.id: ratio(each.costs, each.yardstick) for each in record.measurements if not each.skipped}
    compiled = {each.id: [each.seconds / passed for passed in each.yardstick] for each in record.compilations}
    return costs | {
        name: Ratio(float(np.median(each)), min(each), max(each)) for name, each in compiled.items() if each
    }


def to_json(record: Record) -> dict[str, Any]:
    """The record as a dictionary for JSON."""
    document = dataclasses.asdict(record)
    return {"schema": SCHEMA, "time": document.pop("time"), "complete": document.pop("is_complete"), **document}


def write(record: Record, path: Path) -> Path:
    """Write a record as JSON, whole or not at all. Raises: OutputError."""
    write_whole(path, (json.dumps(to_json(record), indent=1) + "\n").encode())
    return path


def read(path: Path) -> Record:
    """Read what `write` has written.

    Raises: InvalidReportError for what is not there, damaged, or of another schema.
    """
    try:
        document = json.loads(path.read_bytes())
    except OSError as failure:
        raise InvalidReportError(f"{path} cannot be read ({failure.strerror}). Name another file.") from None
    except ValueError:
        raise InvalidReportError(f"{path} is damaged: it is no JSON. Measure again.") from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if schema != SCHEMA:
        raise InvalidReportError(f"{path} has schema {schema!r}, and {SCHEMA!r} can be read. Measure again.")
    try:
        return Record(
            time=document["time"],
            command=document["command"],
            provenance=dict(document["provenance"]),
            is_complete=document["complete"],
            measurements=[measurement(each) for each in document["measurements"]],
            compilations=[Compilation(**_tuples(each)) for each in document["compilations"]],
            accelerator=[on_accelerator(each) for each in document["accelerator"]],
        )
    except (KeyError, TypeError, ValueError) as failure:
        raise InvalidReportError(f"{path} is damaged: {type(failure).__name__} {failure}. Measure again.") from None


def measurement(document: dict[str, Any]) -> Measurement:
    """A measurement from a dictionary."""
    return Measurement(**{**_tuples(document), "setting": Setting(**document["setting"])})


def on_accelerator(document: dict[str, Any]) -> OnAccelerator:
    """A measurement on an accelerator from a dictionary."""
    return OnAccelerator(**{**_tuples(document), "setting": Setting(**document["setting"])})


def _tuples(document: dict[str, Any]) -> dict[str, Any]:
    return {
        name: tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
        for name, value in document.items()
    }
