"""Verdicts: what is known of a claim under a reading, and how surely."""

import dataclasses
import enum
import math
from typing import Any


class Status(enum.StrEnum):
    """What a verdict says."""

    SUPPORTED = "SUPPORTED"  # shown within its margin; not merely "not refuted"
    REFUTED = "REFUTED"  # shown to fail by more than its margin
    INCONCLUSIVE = "INCONCLUSIVE"  # the replicates do not decide
    VACUOUS = "VACUOUS"  # holds, but lies above what is trivially true
    INAPPLICABLE = "INAPPLICABLE"  # a hypothesis of the statement fails here
    ERROR = "ERROR"  # the claim's own code failed


@dataclasses.dataclass(frozen=True)
class Curve:
    """All components of a claim, for plots: one entry a component."""

    labels: list[str]
    predicted: list[float]
    observed: list[float]
    standard_error: list[float]  # of observed - predicted
    abscissa: list[float] | None = None  # of a rate: x at the components


@dataclasses.dataclass(frozen=True)
class Verdict:
    """The answer to one claim under one reading, with all that is needed to doubt or repeat it.

    The numbers are those of the component `at`, the one that decides or comes nearest to deciding otherwise. Means
    are over `replicates`; the interval is of observed - predicted, simultaneous over components, at `error`.
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
    at: str = ""
    predicted: float = math.nan
    observed: float = math.nan
    standard_error: float = math.nan
    interval: tuple[float, float] = (math.nan, math.nan)
    interval_kind: str = ""
    margin: float = math.nan
    error: float = math.nan  # probability of a false verdict, as good as the kind of the interval
    # What would have been refuted with probability 0.9; of an identity, the frequency of violations that would have
    # shown one with probability 1 - error.
    smallest_discrepancy: float = math.nan
    replaced_by: str | None = None
    curve: Curve | None = None
    side: str | None = None  # of a probability or a rate: at_most or at_least what is claimed

    def to_json(self) -> dict[str, Any]:
        """A dictionary for JSON, where numbers that do not exist are null."""
        return _without_nan(dataclasses.asdict(self))


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nan(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
