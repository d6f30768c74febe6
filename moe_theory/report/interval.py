"""Where observed - predicted lies against what a claim allows, as a number line: its geometry and its words."""

import math
from typing import NamedTuple

from moe_theory.report.words import allowed_sides, number
from moe_theory.verify.verdict import Verdict

WIDTH, INSET = 320.0, 12.0  # of the picture, in its own units
_LABEL_ROOM = 34.0  # what a number takes on it
_ROOM = 0.08  # of the span, beyond the outermost number


class NumberLine(NamedTuple):
    """Places on the picture of one verdict, from left to right in [0, WIDTH]."""

    zero: float
    estimate: float
    low: float
    high: float
    is_open_low: bool  # no end on that side: an arrow
    is_open_high: bool
    allowed: tuple[float, float]
    limits: list[tuple[float, str]]  # the ends of what is allowed, with their numbers where these have room
    label: str  # of the estimate
    words: str


def number_line(verdict: Verdict) -> NumberLine | None:
    """The picture of a verdict's interval; None where it has no estimate."""
    is_identity = verdict.kind == "identity"
    estimate = verdict.observed if is_identity else verdict.observed - verdict.predicted
    if not math.isfinite(estimate):
        return None
    low, high = (estimate, estimate) if is_identity else verdict.interval
    has_interval = math.isfinite(low) or math.isfinite(high)
    if not has_interval:
        low, high = estimate, estimate
    margin = verdict.margin if math.isfinite(verdict.margin) else 0.0
    is_below, is_above = allowed_sides(verdict)
    limits = [limit for limit, is_free in ((-margin, is_below), (margin, is_above)) if not is_free]
    shown = [value for value in (0.0, estimate, low, high, *limits) if math.isfinite(value)]
    start, stop = min(shown), max(shown)
    room = _ROOM * (stop - start) or 1.0
    start, stop = start - room, stop + room

    def place(value: float) -> float:
        return round(INSET + (WIDTH - 2 * INSET) * (value - start) / (stop - start), 2)

    return NumberLine(
        zero=place(0.0),
        estimate=place(estimate),
        low=place(low) if math.isfinite(low) else 0.0,
        high=place(high) if math.isfinite(high) else WIDTH,
        is_open_low=not math.isfinite(low),
        is_open_high=not math.isfinite(high),
        allowed=(0.0 if is_below else place(-margin), WIDTH if is_above else place(margin)),
        limits=[
            (place(limit), number(limit) if abs(place(limit) - place(0.0)) > _LABEL_ROOM else "")
            for limit in limits
            if limit != 0
        ],
        label=number(estimate),
        words=_words(verdict, estimate, margin, has_interval and not is_identity),
    )


def _words(verdict: Verdict, estimate: float, margin: float, has_interval: bool) -> str:
    is_below, is_above = allowed_sides(verdict)
    if verdict.kind == "identity":
        return f"The largest error is {number(estimate)}; errors up to {number(margin)} are allowed."
    if is_below or is_above:
        allowed = f"{'below' if is_below else 'above'} {number(margin if is_below else -margin)}"
    else:
        allowed = f"between {number(-margin)} and {number(margin)}"
    low, high = verdict.interval
    kind = "exact" if verdict.is_exact else "asymptotic"
    interval = f", {kind} interval from {number(low)} to {number(high)}" if has_interval else ""
    return f"Observed − predicted is {number(estimate)}{interval}; the claim allows it {allowed}."
