"""What a report says of a verdict, in words and numbers: the same for every page that prints them."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from moe_theory.verify.verdict import Status, Stop, Verdict

MEANINGS: dict[Status, str] = {
    Status.SUPPORTED: "Shown to hold, within its margin. More than not having been refuted: the whole interval of "
    "observed − predicted lies where the claim allows it.",
    Status.REFUTED: "Shown to fail, by more than its margin. The card says how many replicates show it and which "
    "command shows it again.",
    Status.INCONCLUSIVE: "Neither shown to hold nor shown to fail by as many replicates as were taken.",
    Status.VACUOUS: "Holds, but says no more than what is true anyway, such as a probability being at most 1.",
    Status.INAPPLICABLE: "A hypothesis of the statement does not hold under this reading, so nothing was tested.",
    Status.ERROR: "The claim's own code failed; its message is on the card.",
}
SYMBOLS: dict[Status, str] = {
    Status.SUPPORTED: "✓",
    Status.REFUTED: "✗",
    Status.INCONCLUSIVE: "?",
    Status.VACUOUS: "○",
    Status.INAPPLICABLE: "–",
    Status.ERROR: "!",
}
STOPS: dict[Stop, str] = {
    Stop.DECIDED: "decided",
    Stop.REPLICATES: "as many as were to be taken at most",
    Stop.BUDGET: "the time was spent",
    Stop.FAILED: "the claim's own code failed",
}
ABOUT_MEANS = (
    "Every replicate draws a pool of tasks of its own. A verdict is of the mean over pools, and single pools may "
    "differ from it."
)
ABOUT_ERROR = (
    "The error is the probability that a verdict is false: that of the whole report is split evenly over its verdicts, "
    "and that of a verdict is spent over all looks at its data there could have been. It is exact where the interval "
    "is exact; where the interval is asymptotic, it is approached as replicates grow."
)
ABOUT_POWER = (
    "The smallest discrepancy is the power: a departure from the claim that large would have been refuted with "
    "probability 0.9. Where it is large, a claim that was not refuted may still be wrong by less."
)
ABOUT_INTERVALS = (
    "An interval is of observed − predicted, simultaneous over all components of a claim, such as the rounds recorded. "
    "The numbers of a card are those of the component that decides, or that comes nearest to deciding otherwise."
)
_NAMES = {  # by kind, what is predicted and what is observed
    "equality": ("predicted mean", "observed mean"),
    "upper_bound": ("bound", "observed mean"),
    "lower_bound": ("bound", "observed mean"),
    "ordering": ("larger side, as claimed", "smaller side, as claimed"),
    "identity": ("predicted", "largest error observed"),
    "probability": ("probability claimed", "frequency observed"),
    "rate": ("exponent claimed", "slope observed"),
    "counterexample": ("frequency allowed", "frequency observed"),
}


class Fact(NamedTuple):
    """One line of a card: numbers as they are, for each page to print, between words."""

    label: str
    parts: tuple[str | float | int, ...]

    def text(self) -> str:
        """The line's numbers and words as one text."""
        return "".join(part if isinstance(part, str) else number(part) for part in self.parts)


def number(value: float | int) -> str:
    """A count as it is, another number to four digits, a dash where there is none."""
    if isinstance(value, int):
        return str(value)
    return format(value, ".4g") if math.isfinite(value) else "–"


def status_word(status: Status) -> str:
    """The status with its symbol."""
    return f"{SYMBOLS[status]} {status}"


def kind_words(verdict: Verdict) -> str:
    """The kind of the claim, and its side where it has one."""
    side = f" ({verdict.side.replace('_', ' ')})" if verdict.side else ""
    return verdict.kind.replace("_", " ") + side


def allowed_sides(verdict: Verdict) -> tuple[bool, bool]:
    """Whether observed - predicted may be as far below 0 as it likes, and as far above."""
    side = verdict.side or verdict.kind
    is_below = side in {"upper_bound", "ordering", "identity", "at_most", "counterexample"}
    return is_below, side in {"lower_bound", "at_least"}


def interval_word(verdict: Verdict) -> str:
    """What the interval is to be called, so that nobody takes one that is asymptotic for one that is exact."""
    return "exact interval" if verdict.is_exact else "asymptotic interval"


def headline(verdict: Verdict) -> str:
    """What decided, with what the status asks for: the trivial value, the hypothesis that failed, the message."""
    reason = verdict.reason.strip().rstrip(".")
    if verdict.status is Status.VACUOUS and math.isfinite(verdict.trivial):
        return f"{reason}. True anyway: {number(verdict.trivial)}."
    if verdict.status is Status.INAPPLICABLE:
        return f"The hypothesis that failed: {reason}."
    if verdict.status is Status.ERROR:
        return f"Its message: {verdict.reason.strip()}"
    return f"{reason}."


def repeat_words(verdict: Verdict) -> str:
    """What the command under a verdict is for."""
    if verdict.status is Status.REFUTED:
        return f"See it fail, with {verdict.replicates} replicates:"
    return "Repeat it:"


def facts(verdict: Verdict) -> list[Fact]:
    """The numbers of a verdict, line by line; lines whose number does not exist are left out."""
    return [Fact(label, parts) for label, parts in _facts(verdict) if _has_numbers(parts)]


def _has_numbers(parts: tuple[str | float, ...]) -> bool:
    numbers = [part for part in parts if not isinstance(part, str)]
    return not numbers or any(math.isfinite(part) for part in numbers)


def _facts(verdict: Verdict) -> Iterator[tuple[str, tuple[str | float, ...]]]:
    predicted, observed = _NAMES.get(verdict.kind, ("predicted", "observed"))
    at = f" at {verdict.at}" if verdict.at and verdict.kind != "rate" else ""
    side = f", {verdict.side.replace('_', ' ')}" if verdict.side else ""
    if verdict.kind != "identity":
        yield f"{predicted}{side}", (verdict.predicted, at)
    yield observed, (verdict.observed, at)
    if verdict.kind != "identity":
        yield "observed − predicted", (verdict.observed - verdict.predicted, *_spread(verdict))
    if any(math.isfinite(end) for end in verdict.interval):
        low, high = verdict.interval
        about = verdict.interval_kind.removeprefix("exact ").removeprefix("asymptotic ")
        yield interval_word(verdict), ("[", low, ", ", high, f"] {about}")
    yield "tolerance" if verdict.kind == "identity" else "margin", (verdict.margin,)
    if verdict.status is Status.VACUOUS:
        yield "true anyway", (verdict.trivial,)
    yield "error of this verdict", (verdict.error,)
    yield "power: smallest discrepancy", _power(verdict)
    looks = f" in {len(verdict.looks)} looks" if len(verdict.looks) > 1 else ""
    yield "replicates", (verdict.replicates, f"{looks}; stopped: {STOPS[verdict.stopped]}")


def _spread(verdict: Verdict) -> tuple[str | float, ...]:
    return (" ± ", verdict.standard_error, " (s.e.)") if math.isfinite(verdict.standard_error) else ()


def _power(verdict: Verdict) -> tuple[str | float, ...]:
    if verdict.kind == "identity":
        chance = f"would have shown with probability 1 − {number(verdict.error)}"
        return (verdict.smallest_discrepancy, f" · a violation in that share of replicates {chance}")
    return (verdict.smallest_discrepancy, " · would have been refuted with probability 0.9")
