"""Planted claims, true and false, are judged as any claim is, and errors and power are counted.

A row says how often one decision was made on claims of one condition. Where the decision is false, its share is a size
and must not lie significantly above what the verdict's error allows, half of the error for each way of being wrong.
Where it is right, it is a power and must lie within 5 points of what the law of the samples predicts. Of laws that are
skewed, heavy-tailed, rare, tied or shared by replicates, and of values with a declared range, only sizes are measured.
"""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal

import numpy as np

from moe_theory.verification.criteria import Side
from moe_theory.verification.intervals import clopper_pearson
from moe_theory.verification.verdict import LIMITS, Status

from .planted import BOUNDED, LAWS, LEAST_REPLICATES, NORMAL, REPLICATES, UNSEEN, Law, Planted, Shares, expected_shares

ERROR = 0.1  # of a planted verdict: large enough for its size to be seen
REPORT_ERROR = 1e-5  # a verdict's share of a report's, unless its paper declares another
TOLERANCE = 0.05  # of a power
CONFIDENCE = 0.999  # of a row's interval
DEVIATIONS = 3.5  # of a measured power within the tolerance
LEAST, EDGE, COSTLY_EDGE, QUOTED, MOST = 200, 600, 300, 400, 1250  # claims a condition
POWER = 0.9  # at which a verdict says what discrepancy it could have seen
PILOTS, FIRST_PILOT = 50, 1 << 20  # verdicts whose discrepancies are averaged, and the first one's index
SMALLEST = "smallest discrepancy"  # the condition at that discrepancy, in a single look
CONDITIONS = {"true": 0.0, "half": 0.5, "edge": 1.0, "false by 1": 2.0, "false by 2": 3.0, "false by 4": 5.0}
OUTRIGHT = ("true", "edge", "false by 1", "false by 2", "false by 4")

# Margins are such that powers lie between a fifth and 1, near 1 where a claim takes long to judge.
MARGINS: dict[tuple[str, Side | None], float] = {
    ("equality", None): 0.175,
    ("upper_bound", None): 0.15,
    ("lower_bound", None): 0.115,
    ("ordering", None): 0.2,
    ("identity", None): 0.001,
    ("probability", "at_most"): 0.015,
    ("probability", "at_least"): 0.075,
    ("rate", "at_most"): 0.21,
    ("rate", "at_least"): 0.21,
    ("rate", "equal"): 0.225,
    ("counterexample", None): 0.03,
}
SEVERAL: tuple[tuple[str, Side | None, int, float], ...] = (
    ("upper_bound", None, 8, 0.15),
    ("equality", None, 4, 0.25),
    ("probability", "at_least", 4, 0.075),
)
STRICT: tuple[tuple[str, Side | None, float], ...] = (  # at the error of a report
    ("equality", None, 0.3),
    ("upper_bound", None, 0.225),
    ("probability", "at_least", 0.13),
)
# Of limits, how far they are from what is stated, and where the grid is on its way there: at the edge of where a slope
# bends by too much to decide, and falling as slowly as counts as falling.
APPROACHES: dict[str, dict[str, tuple[float, tuple[float, ...]]]] = {
    "limit_probability": {
        "true": (0.0, (6.0, 3.0, 1.2, 0.4)),
        "small all along": (0.3, ()),
        "edge": (1.0, (6.0, 3.0, 1.5, 1.0)),
        "false by 5": (6.0, ()),
        "falls to a floor": (6.0, (6.6, 6.06, 6.006, 6.0006)),
        "falls slowly": (0.0, tuple(6.6 * 10 ** (-0.05 * decade) for decade in range(4))),
    },
    "limit_rate": {
        "true": (0.0, ()),
        "edge": (1.0, ()),
        "false by 1": (2.0, ()),
        "bends to true": (0.0, (7.0, 6.0, 5.0)),
        "bends to false": (2.0, (-2.0, -1.0, 0.0)),
    },
}
IN_LIMITS: tuple[tuple[str, Side | None, float, tuple[str, ...]], ...] = (  # with the conditions, all unless named
    ("limit_probability", "at_most", 0.15, ()),
    ("limit_probability", "at_least", 0.15, ("edge", "falls to a floor", "falls slowly")),
    ("limit_rate", "at_most", 0.38, ()),
    ("limit_rate", "at_least", 0.38, ("edge", "bends to true")),
    ("limit_rate", "equal", 0.38, ("edge", "false by 1", "bends to false")),
)
HOSTILE = (*BOUNDED, *(law for law in LAWS if law != NORMAL))
SIDES: tuple[str, ...] = ("upper_bound", "lower_bound")  # of which a skewed law is hostile to one
SIZES = (REPLICATES, 4096)  # replicates at most, of hostile laws
FEW = 400  # claims on them


@dataclasses.dataclass(frozen=True)
class PlantedRow:
    """Frequency of one decision on planted claims of one condition."""

    kind: str
    side: Side | None
    law: Law
    num_components: int
    condition: str
    distance: float  # of the truth from what is claimed, in margins; 1 is the edge
    error: float  # of a verdict
    replicates: int  # at most
    measure: Literal["size", "power"]
    decision: Status
    num_claims: int
    measured: float
    low: float  # interval of `measured`, exact
    high: float
    expected: float  # of a size what is allowed, of a power what is predicted
    is_ok: bool


@dataclasses.dataclass(frozen=True)
class Decisions:
    """Results of planted claims."""

    rows: list[PlantedRow]
    seed: int
    tolerance: float = TOLERANCE

    @property
    def passed(self) -> bool:
        """Whether no size is too large and no power off."""
        return all(row.is_ok for row in self.rows)


def count_decisions(
    planted: Iterable[Planted], *, seed: int = 0, most_claims: int = MOST, tolerance: float = TOLERANCE
) -> Decisions:
    """Judge planted claims, at least 200 of every condition, and count the decisions; `tolerance` has to be wider where
    `most_claims` of a condition are fewer.
    """
    rows: list[PlantedRow] = []
    for condition in (_placed(each, seed) for each in planted):
        has_power = condition.law == NORMAL and condition.condition != SMALLEST
        shares = expected_shares(condition) if has_power else Shares(0.5, 0.5)
        number = min(_needed(condition, shares), most_claims)
        counts = Counter(condition.judge(seed, index).status for index in range(number))
        rows += _rows(condition, counts, shares, tolerance)
    return Decisions(rows, seed, tolerance)


def planted_conditions() -> Iterator[Planted]:
    for (kind, side), margin in MARGINS.items():
        for condition, distance in CONDITIONS.items():
            if kind != "rate" or condition != "half":  # a rate takes ten times as long as a mean
                yield Planted(kind, side, margin, distance, ERROR, condition)
        if kind != "rate" or side == "equal":
            yield Planted(kind, side, margin, 1.0, ERROR, SMALLEST, is_single_look=True)
    for kind, side, num_components, margin in SEVERAL:
        for condition in OUTRIGHT:
            yield Planted(kind, side, margin, CONDITIONS[condition], ERROR, condition, num_components)
        yield Planted(kind, side, margin, 1.0, ERROR, "edge of one", num_components, is_one_distant=True)
    for kind, side, margin in STRICT:
        for condition in OUTRIGHT:
            yield Planted(kind, side, margin, CONDITIONS[condition], REPORT_ERROR, condition)
    for kind, side, margin, names in IN_LIMITS:
        for condition, (distance, profile) in APPROACHES[kind].items():
            if condition in (names or APPROACHES[kind]):
                yield Planted(kind, side, margin, distance, ERROR, condition, profile=profile)
        if not names:
            yield Planted(kind, side, margin, 1.0, ERROR, SMALLEST, is_single_look=True)
    for law in HOSTILE:
        for kind in SIDES:
            for replicates in SIZES:
                yield Planted(kind, None, MARGINS[kind, None], 1.0, ERROR, "edge", law=law, replicates=replicates)


def _placed(planted: Planted, seed: int) -> Planted:
    """At the smallest discrepancy that single looks report, if that is the condition."""
    if planted.condition != SMALLEST:
        return planted
    seen = np.mean([planted.judge(seed, FIRST_PILOT + index).smallest_discrepancy for index in range(PILOTS)])
    if planted.kind in {"identity", "counterexample"}:  # counted from the edge
        return dataclasses.replace(planted, distance=float(1 + seen / planted.margin))
    return dataclasses.replace(planted, distance=float(seen / planted.claim().margin))


def _needed(planted: Planted, shares: Shares) -> int:
    """Number of claims that measure a power within the tolerance, or a size."""
    if planted.condition == SMALLEST:
        return QUOTED
    if planted.law != NORMAL:
        return FEW
    if planted.distance == 1 and planted.kind != "identity" and planted.error == ERROR:
        return COSTLY_EDGE if planted.kind in {"rate", *LIMITS} or planted.num_components > 1 else EDGE
    variance = max(share * (1 - share) for share in shares)
    return max(LEAST, math.ceil(variance * (DEVIATIONS / TOLERANCE) ** 2))


def _rows(planted: Planted, counts: Counter[Status], shares: Shares, tolerance: float) -> Iterator[PlantedRow]:
    """Sizes of the decisions that are false here, and the power of the one that is right."""
    for decision, share in ((Status.REFUTED, shares.refuted), (Status.SUPPORTED, shares.supported)):
        is_false = planted.distance <= 1 if decision is Status.REFUTED else planted.distance >= 1
        if planted.kind == "identity" and planted.distance <= 1:
            is_false = decision is Status.REFUTED  # whose edge is within
        if planted.kind == "counterexample" and decision is Status.SUPPORTED:
            continue  # never said
        if is_false:
            allowed = _allowed(planted, decision)
            if allowed is not None:
                yield _row(planted, "size", decision, counts, allowed)
        elif planted.law == NORMAL:
            expected = share
            if planted.condition == SMALLEST:
                expected = 1 - planted.error if planted.kind == "identity" else POWER
            yield _row(planted, "power", decision, counts, expected, tolerance)


def _allowed(planted: Planted, decision: Status) -> float | None:
    """Probability of a false decision that the error allows. Each way of being wrong has half of it, and both all of
    it where values have a range. An identity is never refuted where it holds, and supported wrongly with the error at
    the frequency that it says it would have seen; of rarer violations it says nothing. Nor does a mean without a range
    of an event that none of its first replicates shows.
    """
    if planted.kind == "identity":
        if decision is Status.REFUTED:
            return 0.0
        return planted.error if planted.condition == SMALLEST else None
    if planted.has_range:
        return planted.error
    missed = (1 - UNSEEN[planted.law]) ** LEAST_REPLICATES if planted.law in UNSEEN else 0.0
    return planted.error / 2 + missed


def _row(
    planted: Planted,
    measure: Literal["size", "power"],
    decision: Status,
    counts: Counter[Status],
    expected: float,
    tolerance: float = 0.0,
) -> PlantedRow:
    """One row; a claim whose own code fails counts as a false verdict."""
    number = counts.total()
    hits = counts[decision] + (counts[Status.ERROR] if measure == "size" else 0)
    low, high = (float(end[0]) for end in clopper_pearson(np.asarray([hits]), number, 1 - CONFIDENCE))
    share = hits / number
    shared = ("kind", "side", "law", "num_components", "condition", "distance", "error", "replicates")
    return PlantedRow(
        **{name: getattr(planted, name) for name in shared},
        measure=measure,
        decision=decision,
        num_claims=number,
        measured=share,
        low=low,
        high=high,
        expected=expected,
        is_ok=low <= expected if measure == "size" else abs(share - expected) <= tolerance,
    )
