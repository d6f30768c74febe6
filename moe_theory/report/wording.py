"""What a report says, in words and numbers, and how it is arranged: the same for every page."""

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote

from moe_theory.verify.verdict import Report, Status, Stop, Verdict

MEANINGS: dict[Status, str] = {
    Status.SUPPORTED: "Shown to hold, within its margin. More than not having been refuted: the whole interval of "
    "observed − predicted lies where the claim allows it.",
    Status.REFUTED: "Shown to fail, by more than its margin. The card says how many replicates show it and which "
    "command shows it again.",
    Status.INCONCLUSIVE: "Neither shown to hold nor shown to fail with the replicates that were run.",
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
    Stop.REPLICATES: "replicate limit reached",
    Stop.BUDGET: "time budget spent",
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
        return "".join(part if isinstance(part, str) else number(part) for part in self.parts)


def number(value: float | int) -> str:
    """A count as it is, another number to four digits, a dash where there is none."""
    if isinstance(value, int):
        return str(value)
    return format(value, ".4g") if math.isfinite(value) else "–"


def status_word(status: Status) -> str:
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
    found = []
    for label, parts in _facts(verdict):
        numbers = [part for part in parts if not isinstance(part, str)]
        if not numbers or any(math.isfinite(part) for part in numbers):
            found.append(Fact(label, parts))
    return found


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
        # Nobody is to take an interval that is asymptotic for one that is exact.
        name = "exact interval" if verdict.is_exact else "asymptotic interval"
        yield name, ("[", low, ", ", high, f"] {about}")
    yield "tolerance" if verdict.kind == "identity" else "margin", (verdict.margin,)
    if verdict.status is Status.VACUOUS:
        yield "true anyway", (verdict.trivial,)
    yield "error of this verdict", (verdict.error,)
    power = " · would have been refuted with probability 0.9"
    if verdict.kind == "identity":
        chance = f"would have shown with probability 1 − {number(verdict.error)}"
        power = f" · a violation in that share of replicates {chance}"
    yield "power: smallest discrepancy", (verdict.smallest_discrepancy, power)
    looks = f" in {len(verdict.looks)} looks" if len(verdict.looks) > 1 else ""
    yield "replicates", (verdict.replicates, f"{looks}; stopped: {STOPS[verdict.stopped]}")


def _spread(verdict: Verdict) -> tuple[str | float, ...]:
    return (" ± ", verdict.standard_error, " (s.e.)") if math.isfinite(verdict.standard_error) else ()


_ENDS = {  # what can be said of claims over all readings, and of one
    "hold under every reading tried": "holds under every reading tried",
    "fail under every one": "fails under every one",
    "depend on the reading": "depends on the reading",
    "are undecided somewhere": "is undecided somewhere",
}
_HOLDS = {Status.SUPPORTED, Status.VACUOUS}


@dataclasses.dataclass(frozen=True)
class Entry:
    """A claim and its verdicts, each under readings of its own."""

    verdicts: list[Verdict]
    replaces: list[str]  # claims of the report that are refuted where this one is right

    @property
    def first(self) -> Verdict:
        return self.verdicts[0]

    @property
    def claim(self) -> str:
        return self.first.claim


@dataclasses.dataclass(frozen=True)
class Chapter:
    """A paper: its readings, and its claims in order."""

    paper: str
    readings: list[str]
    entries: list[Entry]

    def counts(self, reading: str | None = None) -> Counter[Status]:
        verdicts = (verdict for entry in self.entries for verdict in entry.verdicts)
        return Counter(verdict.status for verdict in verdicts if reading in (None, *verdict.settings))

    def verdict(self, entry: Entry, reading: str) -> Verdict | None:
        return next((verdict for verdict in entry.verdicts if reading in verdict.settings), None)


def arranged(report: Report) -> list[Chapter]:
    by_claim: dict[str, list[Verdict]] = {}
    for verdict in report.verdicts:
        by_claim.setdefault(verdict.claim, []).append(verdict)
    replaces: dict[str, list[str]] = {}
    for claim, verdicts in by_claim.items():
        replaces.setdefault(verdicts[0].replaced_by or "", []).append(claim)
    chapters = []
    for paper in dict.fromkeys(verdict.paper for verdict in report.verdicts):
        own = [verdicts for verdicts in by_claim.values() if verdicts[0].paper == paper]
        readings = list(dict.fromkeys(name for verdicts in own for verdict in verdicts for name in verdict.settings))
        entries = [Entry(verdicts, replaces.get(verdicts[0].claim, [])) for verdicts in own]
        chapters.append(Chapter(paper, readings, entries))
    return chapters


def claim_anchor(claim: str) -> str:
    return f"claim:{_safe(claim)}"


def verdict_anchor(verdict: Verdict) -> str:
    return f"verdict:{_safe(verdict.claim)}:{_safe(verdict.settings[0])}"


def summary(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(verdict.status for verdict in verdicts)
    return ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])


def gist(chapters: Sequence[Chapter]) -> str:
    """How many claims hold everywhere, fail everywhere, or neither, in one sentence."""
    entries = [entry for chapter in chapters for entry in chapter.entries]
    kinds = Counter(_everywhere({verdict.status for verdict in entry.verdicts}) for entry in entries)
    said = [f"{kinds[end]} {end if kinds[end] > 1 else one}" for end, one in _ENDS.items() if kinds[end]]
    return f"Of {len(entries)} {'claim' if len(entries) == 1 else 'claims'}, {_listed(said)}." if entries else ""


def error_words(report: Report) -> str:
    finite = {verdict.error for verdict in report.verdicts if math.isfinite(verdict.error)}
    errors = sorted({f"{error:.3g}" for error in finite}, key=float)
    count = len(report.verdicts)
    which = "the verdict" if count == 1 else f"any of the {count} verdicts"
    start = f"The probability that {which} is false is at most {report.error:.4g}"
    start += " (as replicates grow, where an interval is asymptotic)"
    if not errors:
        return f"{start}."
    if count == 1:
        return f"{start}, spent over its interim analyses."
    each = f"{errors[0]} each" if len(errors) == 1 else f"{errors[0]} to {errors[-1]} each"
    return f"{start}, split evenly over the verdicts of one run: {each}, each spent over its interim analyses."


def cut_short(report: Report) -> list[Verdict]:
    return [verdict for verdict in report.verdicts if verdict.stopped is Stop.BUDGET]


def _everywhere(statuses: set[Status]) -> str:
    tested = statuses - {Status.INAPPLICABLE}
    if tested and tested <= _HOLDS:
        return "hold under every reading tried"
    if tested == {Status.REFUTED}:
        return "fail under every one"
    if Status.REFUTED in tested and tested & _HOLDS:
        return "depend on the reading"
    return "are undecided somewhere"


def _listed(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _safe(name: str) -> str:
    """A name without characters that an address or an id would have to escape."""
    return quote(name, safe="", errors="backslashreplace").replace("%", "~")
