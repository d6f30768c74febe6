"""Verdicts: the answer to a claim under a reading with its evidence, and reports of verdicts, as plain data."""

import dataclasses
import enum
import math
import types
import typing
from collections.abc import Mapping
from typing import Any


class Status(enum.StrEnum):
    """What a verdict says."""

    SUPPORTED = "SUPPORTED"  # shown within its margin; not merely "not refuted"
    REFUTED = "REFUTED"  # shown to fail by more than its margin
    INCONCLUSIVE = "INCONCLUSIVE"  # the replicates do not decide
    VACUOUS = "VACUOUS"  # holds, but lies above what is trivially true
    INAPPLICABLE = "INAPPLICABLE"  # an assumption of the statement does not hold in this setting
    ERROR = "ERROR"  # the claim's own code failed


class Stop(enum.StrEnum):
    """Why no more replicates were taken."""

    DECIDED = "decided"
    REPLICATES = "replicates"  # the replicate limit was reached
    BUDGET = "budget"  # the time was up
    FAILED = "failed"  # the claim's own code


@dataclasses.dataclass(frozen=True)
class Curve:
    """All components of a claim, for plots: one entry a component."""

    labels: list[str]
    predicted: list[float]
    observed: list[float]
    low: list[float]  # simultaneous interval of observed - predicted
    high: list[float]
    margin: list[float]  # what observed - predicted may exceed 0 by, in its own unit
    abscissa: list[float] | None = None  # of a rate: x at the components


@dataclasses.dataclass(frozen=True)
class Look:
    """One look of a sequential test, at its own share of the error."""

    replicates: int
    at: str  # the component that decides, or comes nearest to deciding otherwise
    estimate: float  # of observed - predicted there
    low: float
    high: float
    error: float


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The answer to one claim under one reading, with all that is needed to check and repeat it.

    The numbers are those of the component `at`, the one that decides or comes nearest to deciding otherwise. Means
    are over `replicates`; the interval is of observed - predicted, simultaneous over components, at the error of the
    last look. `error` is that of the verdict, spent over all looks there could have been.
    """

    claim: str
    paper: str
    where: str
    statement: str
    kind: str
    reading: str
    status: Status
    reason: str  # in words, what decided
    replicates: int
    command: str  # reproduces this verdict
    formula: str = ""  # LaTeX
    at: str = ""
    predicted: float = math.nan
    observed: float = math.nan
    standard_error: float = math.nan
    interval: tuple[float, float] = (math.nan, math.nan)
    interval_kind: str = ""  # in words, the method and its caveats
    is_exact: bool = False  # whether the interval is exact, or asymptotic
    margin: float = math.nan
    error: float = math.nan  # probability of a false verdict; asymptotic where the interval is
    # What would have been refuted with probability 0.9 at the last look; of an identity, the frequency of violations
    # that would have shown one with probability 1 - error.
    smallest_discrepancy: float = math.nan
    trivial: float = math.nan  # where it is VACUOUS, the bound that holds anyway
    stopped: Stop = Stop.REPLICATES
    looks: list[Look] = dataclasses.field(default_factory=list)
    replaced_by: str | None = None
    curve: Curve | None = None
    side: str | None = None  # of a probability or a rate: at_most, at_least or, of a rate, equal
    data: str = ""  # the data set that the runs are on, where it is not drawn by the package

    @property
    def setting(self) -> str:
        """What it holds for, as reports say it: the reading, and the data set where there is one."""
        return f"{self.reading} on {self.data}" if self.data else self.reading

    def to_json(self) -> dict[str, Any]:
        """A dictionary for JSON, where numbers that do not exist are null."""
        return _without_nan(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Verdict":
        """The verdict that `to_json` wrote. Raises: TypeError, KeyError or ValueError for anything else."""
        return _made(cls, document)


@dataclasses.dataclass(frozen=True)
class Report:
    """Verdicts that share one error budget, and how they came about."""

    verdicts: list[Verdict]
    command: str
    seed: int
    error: float  # family-wise: probability that any verdict is false, split evenly over them
    versions: dict[str, str]  # of the package, Python and the libraries that compute
    is_x64: bool  # whether runs were in double precision
    readings: dict[str, str]  # summaries by "paper.reading"
    budget: float | None = None  # seconds, if the time was limited
    finished: str = ""  # when, UTC
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)  # spent, by experiment and reading

    def to_json(self) -> dict[str, Any]:
        return {**_without_nan(dataclasses.asdict(self)), "verdicts": [each.to_json() for each in self.verdicts]}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "Report":
        """The report that `to_json` wrote. Raises: TypeError, KeyError or ValueError for anything else."""
        return _made(cls, document)


def _made(cls: Any, document: Mapping[str, Any]) -> Any:
    hints = typing.get_type_hints(cls)
    return cls(**{field.name: _parsed(hints[field.name], document[field.name]) for field in dataclasses.fields(cls)})


def _parsed(hint: Any, value: Any) -> Any:
    """A JSON value as what the type hint of a field says."""
    kind, parts = typing.get_origin(hint), typing.get_args(hint)
    if kind in (typing.Union, types.UnionType):
        return None if value is None else _parsed(next(part for part in parts if part is not type(None)), value)
    if dataclasses.is_dataclass(hint):
        return _made(hint, value)
    if kind is list:
        return [_parsed(parts[0], part) for part in value]
    if kind is tuple:
        return tuple(_parsed(part, each) for part, each in zip(parts, value, strict=True))
    if hint is float:
        return math.nan if value is None else float(value)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return hint(value)
    return value


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
