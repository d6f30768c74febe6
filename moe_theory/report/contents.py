"""A report arranged for reading: its papers, their claims, the verdicts on each, and how they are counted."""

import dataclasses
import math
from collections import Counter
from collections.abc import Sequence
from urllib.parse import quote

from moe_theory.verify.verdict import Report, Status, Stop, Verdict

_ENDS = {  # what can be said of claims over all readings, and of one
    "hold under every reading tried": "holds under every reading tried",
    "fail under every one": "fails under every one",
    "depend on the reading": "depends on the reading",
    "are undecided somewhere": "is undecided somewhere",
}
_HOLDS = {Status.SUPPORTED, Status.VACUOUS}


@dataclasses.dataclass(frozen=True)
class Entry:
    """A claim and its verdicts, a reading each."""

    verdicts: list[Verdict]
    replaces: list[str]  # claims of the report that are refuted where this one is right

    @property
    def first(self) -> Verdict:
        """The verdict that stands for what all of them share."""
        return self.verdicts[0]

    @property
    def claim(self) -> str:
        """The claim's id."""
        return self.first.claim


@dataclasses.dataclass(frozen=True)
class Chapter:
    """A paper: its readings, and its claims in order."""

    paper: str
    readings: list[str]
    entries: list[Entry]

    def counts(self, reading: str | None = None) -> Counter[Status]:
        """How many verdicts of each status, under one reading or all."""
        verdicts = (verdict for entry in self.entries for verdict in entry.verdicts)
        return Counter(verdict.status for verdict in verdicts if reading in (None, verdict.setting))

    def verdict(self, entry: Entry, reading: str) -> Verdict | None:
        """The verdict on a claim under a reading, if there is one."""
        return next((verdict for verdict in entry.verdicts if verdict.setting == reading), None)


def arranged(report: Report) -> list[Chapter]:
    """The verdicts of a report by paper and claim, each in the order in which it first comes."""
    by_claim: dict[str, list[Verdict]] = {}
    for verdict in report.verdicts:
        by_claim.setdefault(verdict.claim, []).append(verdict)
    replaces: dict[str, list[str]] = {}
    for claim, verdicts in by_claim.items():
        replaces.setdefault(verdicts[0].replaced_by or "", []).append(claim)
    chapters = []
    for paper in dict.fromkeys(verdict.paper for verdict in report.verdicts):
        own = [verdicts for verdicts in by_claim.values() if verdicts[0].paper == paper]
        readings = list(dict.fromkeys(verdict.setting for verdicts in own for verdict in verdicts))
        entries = [Entry(verdicts, replaces.get(verdicts[0].claim, [])) for verdicts in own]
        chapters.append(Chapter(paper, readings, entries))
    return chapters


def claim_anchor(claim: str) -> str:
    """The id of a claim's card on a page."""
    return f"claim:{_safe(claim)}"


def verdict_anchor(verdict: Verdict) -> str:
    """The id of a verdict on a page."""
    return f"verdict:{_safe(verdict.claim)}:{_safe(verdict.setting)}"


def summary(verdicts: Sequence[Verdict]) -> str:
    """How many verdicts of each status, in one line."""
    counts = Counter(verdict.status for verdict in verdicts)
    return ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])


def gist(chapters: Sequence[Chapter]) -> str:
    """How many claims hold everywhere, fail everywhere, or neither, in one sentence."""
    entries = [entry for chapter in chapters for entry in chapter.entries]
    kinds = Counter(_everywhere({verdict.status for verdict in entry.verdicts}) for entry in entries)
    said = [f"{kinds[end]} {end if kinds[end] > 1 else one}" for end, one in _ENDS.items() if kinds[end]]
    return f"Of {len(entries)} {'claim' if len(entries) == 1 else 'claims'}, {_listed(said)}." if entries else ""


def error_words(report: Report) -> str:
    """The family-wise error and how it is split."""
    finite = {verdict.error for verdict in report.verdicts if math.isfinite(verdict.error)}
    errors = sorted({f"{error:.3g}" for error in finite}, key=float)
    count = len(report.verdicts)
    which = "the verdict" if count == 1 else f"any of the {count} verdicts"
    start = f"The probability that {which} is false is at most {report.error:.4g}"
    start += " (as replicates grow, where an interval is asymptotic)"
    if not errors:
        return f"{start}."
    if count == 1:
        return f"{start}, spent over the looks at its data."
    each = f"{errors[0]} each" if len(errors) == 1 else f"{errors[0]} to {errors[-1]} each"
    return f"{start}, split evenly over the verdicts of one run: {each}, spent over the looks of each at its data."


def cut_short(report: Report) -> list[Verdict]:
    """The verdicts for which the budget of time was spent."""
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
    return quote(name, safe="").replace("%", "~")
