"""Words, numbers and arrangement of a report: the same for every page."""

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote

from moe_theory.report.numbers import number, percentage, with_error
from moe_theory.verification.recorded import judged_with_searches
from moe_theory.verification.status import (
    CAVEATED,
    PROVED,
    Cause,
    Judged,
    StatementStatus,
    deciding,
    judged,
    listed,
)
from moe_theory.verification.verdict import LIMITS, SLOWEST_FALL, Report, Role, Statement, Status, Stop, Trend, Verdict

STATEMENT_MEANINGS: dict[str, str] = {
    StatementStatus.HOLDS: "In its most favourable reading, within the margins of the claims that decide it.",
    StatementStatus.AMENDED: "But for a slip, or a hypothesis that the paper leaves out: the card says which.",
    StatementStatus.FALSE: "Even in its most favourable reading. The card says why, and what holds instead.",
    StatementStatus.VACUOUS: "True of anything, implied by a trivial bound, or met by what lacks the thing it credits.",
    StatementStatus.OPEN: "Not decided by what was run.",
    StatementStatus.NOT_JUDGED: "A claim that decides it has no verdict: it was not run, or its code failed.",
    StatementStatus.NOT_TESTABLE: "No run can decide it; the card says why.",
    "by reading": "Papers leave choices open, and the status differs between the readings that fill them.",
}
KNOWN_BY = {  # how a status is known, as pages say it
    PROVED: "a proof",
    CAVEATED: "a proof with a caveat",
    "exact": "an exact computation",
    "simulated": "simulation",
}
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
_NAMES = {  # by kind, what is predicted and what is observed
    "equality": ("predicted mean", "observed mean"),
    "upper_bound": ("bound", "observed mean"),
    "lower_bound": ("bound", "observed mean"),
    "ordering": ("larger side, as claimed", "smaller side, as claimed"),
    "identity": ("predicted", "largest error observed"),
    "probability": ("probability claimed", "frequency observed"),
    "rate": ("exponent claimed", "slope observed"),
    "counterexample": ("frequency allowed", "frequency observed"),
    "limit_probability": ("probability in the limit", "frequency observed"),
    "limit_rate": ("exponent claimed", "slope observed"),
}


BY_READING = "by reading"  # the status of a statement that has another one under each
MOST_DIGITS = 6  # after the point
LOOSE = 10.0  # slack of a bound from which on a page says so
MOST_NEEDED = 1000.0  # times as many replicates as were run: beyond, no number is named


class Fact(NamedTuple):
    """One line of a card: numbers as they are, for each page to print, between words."""

    label: str
    parts: tuple[str | float | int, ...]

    def text(self) -> str:
        return "".join(part if isinstance(part, str) else number(part) for part in self.parts)


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


def claimed(verdict: Verdict) -> str:
    """The claimed value, with its relation and margin: "≤ 0.239 (+0.01)", "= 0.007 ± 0.065", "slope ≤ 0.5 (+0.1)"."""
    value = verdict.predicted
    if not math.isfinite(value) and verdict.kind != "identity":
        return "–"
    sides = {"upper_bound": "≤", "lower_bound": "≥", "at_most": "≤", "at_least": "≥", "equal": "="}
    match verdict.kind:
        case "equality":
            return f"= {number(value)}{_margin(verdict)}"
        case "identity":
            return f"= 0{_margin(verdict)}"
        case "ordering":
            return f"< {number(value)}{_margin(verdict)}"
        case "counterexample":
            return f"in ≤ {percentage(value)}{_margin(verdict, percentage)}" if value else "never violated"
        case "rate":
            return f"slope {sides[verdict.side or 'equal']} {number(value)}{_margin(verdict)}"
        case "limit_rate":
            return f"slope {sides[verdict.side or 'equal']} {number(value)}{_margin(verdict)} in the limit"
        case "limit_probability":
            return f"tends to {number(value)}{_margin(verdict, percentage)}"
        case "probability":
            return f"in {sides[verdict.side or 'at_most']} {percentage(value)}{_margin(verdict, percentage)}"
    return f"{sides[verdict.side or verdict.kind]} {number(value)}{_margin(verdict)}"


def _margin(verdict: Verdict, shown: Callable[[float], str] = number) -> str:
    """The margin, on the side on which the claimed value may be missed by it."""
    if not verdict.margin > 0:
        return ""
    is_below, is_above = allowed_sides(verdict)
    if verdict.kind == "identity" or not (is_below or is_above):
        return f" ± {shown(verdict.margin)}"
    return f" ({'+' if is_below else '−'}{shown(verdict.margin)})"


def _in_brackets(verdict: Verdict, shown: Callable[[float], str] = number) -> str:
    """The margin, as a sentence has it."""
    return f" (margin {shown(verdict.margin)})" if verdict.margin > 0 else ""


def measured(verdict: Verdict) -> str:
    """The measured value: "2.74 ± 0.07", "64 of 64"."""
    if verdict.kind in {"probability", "counterexample", "limit_probability"} and math.isfinite(verdict.observed):
        return f"{round(verdict.observed * verdict.replicates):,} of {verdict.replicates:,}"
    return with_error(verdict.observed, verdict.standard_error)


def tested(verdict: Verdict) -> str:
    """The claim's first sentence or two."""
    return " ".join(verdict.statement.partition("\n\n")[0].split())


def sentence(verdict: Verdict) -> str:
    """The finding, in a sentence with the numbers that decide."""
    match verdict.status:
        case Status.VACUOUS:
            side = "above" if verdict.kind == "lower_bound" or verdict.side == "at_least" else "below"
            if math.isfinite(verdict.trivial) and verdict.kind != "probability":
                return f"Holds, but so would any number {side} {number(verdict.trivial)}."
            return "Holds, but no outcome could contradict it here."
        case Status.INAPPLICABLE:
            return f"A hypothesis {verdict.reason.strip().rstrip('.')}."
        case Status.ERROR:
            return f"The claim's own code failed: {verdict.reason.strip()}"
        case Status.INCONCLUSIVE:
            return _open(verdict)
    at = "" if verdict.at in {"", "mean"} else f" ({verdict.at})"
    match verdict.kind:
        case "equality":
            start = "The mean is" if not at else f"At {verdict.at} the mean is"
            return f"{start} {measured(verdict)}; claimed {number(verdict.predicted)}{_in_brackets(verdict)}."
        case "upper_bound" | "lower_bound":
            slack = (
                verdict.predicted / verdict.observed if verdict.kind == "upper_bound" and verdict.observed > 0 else 1
            )
            loose = f", with slack {slack:.2g}" if slack > LOOSE and verdict.status is Status.SUPPORTED else ""
            return f"Measured {measured(verdict)}, bound {number(verdict.predicted)}{_in_brackets(verdict)}{loose}{at}."
        case "ordering":
            return f"Measured {measured(verdict)}, to be below {number(verdict.predicted)}{_in_brackets(verdict)}{at}."
        case "identity":
            if verdict.observed == 0:
                return "Never off."
            most = "at most " if verdict.status is Status.SUPPORTED else ""
            return f"Off by {most}{number(verdict.observed)}{at}."
        case "probability":
            claim = f"{_side(verdict)} {percentage(verdict.predicted)}{_in_brackets(verdict, percentage)}"
            return f"In {measured(verdict)} runs{at}; claimed: {claim}."
        case "counterexample":
            allowed = f"at most {percentage(verdict.predicted)} may" if verdict.predicted else "none may"
            return f"{measured(verdict)} instances violate it{at}; {allowed}."
        case "rate":
            low, high = (number(verdict.predicted + end) for end in verdict.interval)
            side = "" if verdict.side in {None, "equal"} else f"{_side(verdict)} "
            where = verdict.at if "end" in verdict.at else "slope"
            claim = f"claimed {side}{number(verdict.predicted)}{_in_brackets(verdict)}"
            return f"The {where} is {number(verdict.observed)} ({low} to {high}); {claim}."
    return f"{_begun(_limit(verdict, verdict.trend))}." if verdict.trend else _stored(verdict)


def _stored(verdict: Verdict) -> str:
    """The reason that a record keeps which has no numbers to make it from."""
    return f"{_begun(verdict.reason.strip().rstrip('.'))}."


def _begun(text: str) -> str:
    return text[:1].upper() + text[1:]


def _side(verdict: Verdict) -> str:
    return (verdict.side or "").replace("_", " ").replace("equal", "equal to")


def _limit(verdict: Verdict, before: Trend) -> str:
    """What was seen at the end of a limit and before it, and what is claimed."""
    low, high = verdict.interval
    if verdict.kind == "limit_probability":
        return _failures(verdict, before)
    slope = _rounded(verdict.observed, low + verdict.predicted, high + verdict.predicted, verdict.doubt)
    return (
        f"{verdict.at.removeprefix('slope ')} it goes like x^{slope}, claimed {_side(verdict)} "
        f"x^{verdict.predicted:g} (margin {verdict.margin:.3g}); the slope changes by "
        f"{_rounded(before.value, before.low, before.high, verdict.doubt)} from the decade before"
    )


def _failures(verdict: Verdict, before: Trend) -> str:
    """How often an event fails to have the probability that is claimed in a limit."""
    count, (low, high) = verdict.replicates, verdict.interval
    share, verb = verdict.observed, "happens"
    if verdict.side == "at_least":
        share, low, high = 1 - share, -high, -low
        verb = "fails to happen"
    words = (
        f"at {verdict.at} it {verb} in {share * count:,.0f} of {count:,} replicates ({percentage(low)} to "
        f"{percentage(high)}; up to {percentage(verdict.margin)} counts as small), at {before.at} in "
        f"{before.value * count:,.0f} ({percentage(before.low)} to {percentage(before.high)})"
    )
    if verdict.status is Status.REFUTED:
        words += f": it stays away from 0, and falls by less than the power {SLOWEST_FALL:g} of the distance"
    return words


def _rounded(value: float, low: float, high: float, doubt: str) -> str:
    """A value to two digits of its error, and its interval to the same place."""
    half = (high - low) / 2
    if not math.isfinite(half):
        return f"{value:.3g} (without an interval: {doubt})"
    if half <= 1e-4 * abs(value):
        return f"{value:.4g}"
    digits = min(max(0, 1 - math.floor(math.log10(half))), MOST_DIGITS)
    return f"{value:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def _open(verdict: Verdict) -> str:
    """The open question of an undecided verdict, and what would decide it."""
    low, high = verdict.interval
    runs = f"{verdict.replicates:,} runs leave it open"
    has_interval = math.isfinite(low) and math.isfinite(high)
    if verdict.kind == "counterexample":
        return f"{measured(verdict)} instances violate it, which decides nothing."
    if verdict.doubt and has_interval:
        return f"{runs}: {verdict.doubt}."
    if verdict.trend:
        words = f"{runs}: {_limit(verdict, verdict.trend)}"
        if verdict.kind == "limit_rate" and abs(verdict.trend.value) > verdict.margin:
            words += ", and while it bends a grid nearer to the limit is needed"
        return f"{words}."
    if verdict.kind == "identity" and math.isfinite(verdict.smallest_discrepancy):
        rare = percentage(verdict.smallest_discrepancy)
        return f"Off by at most {number(verdict.observed)}; a worse error is rarer than {rare} of replicates."
    is_share = verdict.kind == "probability"
    what = {"rate": verdict.at or "slope", "probability": "frequency"}.get(verdict.kind, "difference")
    shift = verdict.predicted if what != "difference" else 0.0
    at = f" at {verdict.at}" if verdict.at not in {"", "mean"} and verdict.kind != "rate" else ""
    if verdict.doubt:
        value = verdict.observed - verdict.predicted + shift
        return f"{runs}: the {what}{at} is {number(value)}, without a whole interval: {verdict.doubt}."
    if verdict.kind in {"identity", *LIMITS} or not (math.isfinite(verdict.observed) and has_interval):
        return _stored(verdict)
    shown = percentage if is_share else number
    words = f"{runs}: the {what}{at} is between {shown(low + shift)} and {shown(high + shift)}"
    if what == "difference":
        words += f", and {_allowed(verdict)} is claimed"
    needed = replicates_needed(verdict)
    return f"{words}; about {needed:,} would decide." if needed else f"{words}."


def _allowed(verdict: Verdict) -> str:
    is_below, is_above = allowed_sides(verdict)
    if is_below or is_above:
        return f"{'at most' if is_below else 'at least'} {number(verdict.margin if is_below else -verdict.margin)}"
    return f"at most {number(verdict.margin)} either way"


def replicates_needed(verdict: Verdict) -> int | None:
    """About how many replicates would decide, were the estimate to stay; None where no number would do."""
    low, high = verdict.interval
    estimate, half = verdict.observed - verdict.predicted, (high - low) / 2
    is_below, is_above = allowed_sides(verdict)
    edges = [edge for edge, is_free in ((-verdict.margin, is_below), (verdict.margin, is_above)) if not is_free]
    distance = min((abs(estimate - edge) for edge in edges), default=0.0)
    if not (distance > 0 and math.isfinite(half)):
        return None
    needed = verdict.replicates * (half / distance) ** 2
    if not verdict.replicates < needed < MOST_NEEDED * verdict.replicates:
        return None
    size = 10 ** math.floor(math.log10(needed))
    return math.ceil(needed / size) * size


def repeat_words(verdict: Verdict) -> str:
    """Words before the command under a verdict."""
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
    at = f" at {verdict.at}" if verdict.at and verdict.kind not in {"rate", "limit_rate"} else ""
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
    if math.isfinite(verdict.unseen):
        yield "may have been missed", (verdict.unseen, " of replicates: an event that rare, whatever it carries")
    yield "tolerance" if verdict.kind == "identity" else "margin", (verdict.margin,)
    if verdict.status is Status.VACUOUS:
        yield "true anyway", (verdict.trivial,)
    yield "error of this verdict", (verdict.error,)
    power = " · would have been refuted with probability 0.9"
    if verdict.kind == "identity":
        chance = f"would have shown with probability 1 − {number(verdict.error)}"
        power = f" · a violation in that share of replicates {chance}"
    yield "detectable error", (verdict.smallest_discrepancy, power)
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
class ClaimEntry:
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
    entries: list[ClaimEntry]
    statements: list[tuple[Judged, list[ClaimEntry]]]  # each with those of its claims that no statement before it has
    others: list[ClaimEntry]  # of no statement that the report has

    def counts(self, reading: str | None = None) -> Counter[Status]:
        verdicts = (verdict for entry in self.entries for verdict in entry.verdicts)
        return Counter(verdict.status for verdict in verdicts if reading in (None, *verdict.settings))

    def verdict(self, entry: ClaimEntry, reading: str) -> Verdict | None:
        return next((verdict for verdict in entry.verdicts if reading in verdict.settings), None)


def arranged(report: Report) -> list[Chapter]:
    by_claim: dict[str, list[Verdict]] = {}
    for verdict in report.verdicts:
        by_claim.setdefault(verdict.claim, []).append(verdict)
    replaces: dict[str, list[str]] = {}
    for claim, verdicts in by_claim.items():
        replaces.setdefault(verdicts[0].replaced_by or "", []).append(claim)
    chapters, waiting = [], judged_statements(report)
    for paper in dict.fromkeys(verdict.paper for verdict in report.verdicts):
        own = [verdicts for verdicts in by_claim.values() if verdicts[0].paper == paper]
        readings = list(dict.fromkeys(name for verdicts in own for verdict in verdicts for name in verdict.settings))
        entries = [ClaimEntry(verdicts, replaces.get(verdicts[0].claim, [])) for verdicts in own]
        left = {entry.claim: entry for entry in entries}
        found = []
        for known in [each for each in waiting if each.statement.roles.keys() & left.keys()]:
            found.append((known, [left.pop(id) for id in known.statement.roles if id in left]))
            waiting.remove(known)
        chapters.append(Chapter(paper, readings, entries, found, list(left.values())))
    return chapters


def judged_statements(report: Report) -> list[Judged]:
    """The report's statements with their statuses, over the regions that were searched."""
    return judged_with_searches(report.statements, report.verdicts)


def tested_statements(report: Report) -> list[Judged]:
    """The report's statements with their statuses at the settings tested: no recorded search is read."""
    return [judged(statement, report.verdicts) for statement in report.statements]


def statement_counts(known: Sequence[Judged]) -> dict[str, int]:
    """How many statements have each status that occurs; "by reading" are those of which it differs."""
    found = Counter(statement_status(each) for each in known)
    return {status: found[status] for status in (*StatementStatus, BY_READING) if found[status]}


def status_counts(known: Sequence[Judged]) -> str:
    """ "12 holds, 7 false, 2 by reading"."""
    return ", ".join(f"{count} {status}" for status, count in statement_counts(known).items())


def statement_status(known: Judged) -> str:
    """A statement's status in a word or two."""
    if known.finding:
        return str(known.finding.status)
    return BY_READING if known.by_reading else str(StatementStatus.NOT_JUDGED)


def counted_by_knowledge(known: Sequence[Judged]) -> str:
    """ "a proof (7), simulation (2)", of statements that have one status."""
    found = Counter(each.finding.known for each in known if each.finding)
    return ", ".join(f"{words} ({found[name]})" for name, words in KNOWN_BY.items() if found[name])


def urgency(known: Judged) -> int:
    """The place of a statement among those that a reader wants first: what fails, then what is not settled."""
    first = (StatementStatus.FALSE, StatementStatus.VACUOUS, StatementStatus.AMENDED, BY_READING, StatementStatus.OPEN)
    order = [*map(str, first), *map(str, StatementStatus)]
    return order.index(statement_status(known))


def status_json(known: Judged) -> dict[str, object]:
    """A statement's status as JSON has it."""
    by_reading = {reading: each.status for reading, each in known.by_reading.items()}
    return {
        "status": known.words,
        "status_by_reading": by_reading,
        "regions": [each._asdict() for each in known.regions],
    }


def decisive(known: Judged, verdicts: Sequence[Verdict]) -> Verdict | None:
    """The verdict that shows a statement's status best: one that decided it, else one on a claim that could."""
    ids = [id for each in known.by_reading.values() for id in each.decided_by] or deciding(known.statement)
    own = {(verdict.claim, verdict.setting): verdict for verdict in verdicts if verdict.claim in known.statement.roles}
    by_id = [verdict for id in ids for (claim, _), verdict in own.items() if claim == id]
    telling = (Status.REFUTED, Status.INCONCLUSIVE, Status.ERROR, *Status)
    return min(by_id, key=lambda verdict: telling.index(verdict.status), default=None)


def beside(known: Judged, verdicts: Sequence[Verdict]) -> list[tuple[str, str]]:
    """What stands beside a status: whether its cause is isolated, and how competitors do; heading and text."""
    without = [text for role in (Role.INTERVENTION, Role.SUSPECT) for text in _in_role(known, role, verdicts)]
    needs_word = known.cause not in {None, Cause.ISOLATED} and (without or known.cause is not Cause.EXHIBITED)
    parts = {
        "isolated": [f"{_begun(str(known.cause))}.", *without] if needs_word else without,
        "competitor": [*_in_role(known, Role.COMPETITOR, verdicts)],
    }
    return [(heading, " ".join(said)) for heading, said in parts.items() if said]


def _in_role(known: Judged, role: Role, verdicts: Sequence[Verdict]) -> Iterator[str]:
    """What a statement's claims in a role say and what was found, each under the reading that says most: where an
    intervention does not bring the statement back, or another does, and then where it is decided.
    """
    telling = {Role.INTERVENTION: Status.REFUTED}.get(role, Status.SUPPORTED)
    for id in [id for id, own in known.statement.roles.items() if own is role]:
        found = [each for each in verdicts if each.claim == id and each.status in _IN_A_WORD]
        found.sort(key=lambda each: (each.status is not telling, each.status is Status.INCONCLUSIVE))
        for each in found[:1]:
            of = "slope " if each.kind in {"rate", "limit_rate"} else ""
            yield f"{tested(each).rstrip('.')}: {_IN_A_WORD[each.status]} ({of}{measured(each)})."


_IN_A_WORD = {
    Status.SUPPORTED: "holds",
    Status.REFUTED: "fails",
    Status.INCONCLUSIVE: "open",
    Status.VACUOUS: "holds, and could not fail",
}


def unsaid(known: Judged) -> str:
    """Why a statement is open, or not judged, that does not say so itself."""
    of = known.statement
    if statement_status(known) == StatementStatus.NOT_JUDGED and not known.broken:
        ran = f"There is no verdict on {listed(known.missing)}." if known.missing else "A claim's code failed."
        return ran if deciding(of) else "No claim of it decides it."
    if statement_status(known) != StatementStatus.OPEN or of.why or of.note or of.untestable:
        return ""
    if all(of.roles[id] is Role.LITERAL for id in deciding(of)):
        return "Tested only with constants, grids or data of our choice, which can leave it open but not refute it."
    return "The replicates that were run do not decide it."


def script_options(of: Statement) -> dict[str, str]:
    """Options of `moe-theory why` that print each of a statement's programs, by kind."""
    return {kind: "--script" if kind == "witness" else f"--{kind}" for kind in of.scripts}


def claim_anchor(claim: str) -> str:
    return f"claim:{_safe(claim)}"


def statement_anchor(statement: Statement) -> str:
    return f"statement:{_safe(statement.name)}"


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
    return f"Of {len(entries)} {'claim' if len(entries) == 1 else 'claims'}, {listed(said)}." if entries else ""


def error_words(report: Report) -> str:
    found = [verdict.error for verdict in report.verdicts if verdict.status is not Status.ERROR]
    errors = sorted({f"{error:.3g}" for error in found if math.isfinite(error)}, key=float)
    count = len(found)
    if not found:
        return "No verdict was reached."
    which = "the verdict" if count == 1 else f"any of the {count} verdicts"
    start = f"The probability that {which} is false is at most {report.error:.4g}"
    start += " (as replicates grow, where an interval is asymptotic)"
    if not errors:
        return f"{start}."
    if count == 1:
        return f"{start}, spent over its interim analyses."
    each = f"{errors[0]} each" if len(errors) == 1 else f"{errors[0]} to {errors[-1]} each"
    return f"{start}: {each}, each spent over its interim analyses."


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


def _safe(name: str) -> str:
    """A name without characters that an address or an id would have to escape."""
    return quote(name, safe="", errors="backslashreplace").replace("%", "~")
