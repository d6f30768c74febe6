"""The words, numbers and order of a report."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple
from urllib.parse import quote

from moe_theory.core.errors import enclosed
from moe_theory.report.numbers import number, percentage, with_error
from moe_theory.verification.recorded import judged_with_searches
from moe_theory.verification.status import Judged, StatementStatus, deciding, judged, listed
from moe_theory.verification.verdict import LIMITS, SLOWEST_FALL, Report, Statement, Status, Stop, Trend, Verdict

BY_READING = "by reading"  # status of a statement whose status differs between readings
LEAST_SHARE = 1e-5  # a lower end below this is written as 0
LOOSE = 10.0  # a bound is loose if it is more than this many times the observed mean
STATEMENT_MEANINGS: dict[str, str] = {
    StatementStatus.HOLDS: "It is confirmed in its strongest defensible form.",
    StatementStatus.AMENDED: "It is true after a small correction or with an extra hypothesis, which the card states.",
    StatementStatus.FALSE: "It is violated even in its strongest defensible form.",
    StatementStatus.VACUOUS: "Every algorithm satisfies it, so it says nothing about this one.",
    StatementStatus.OPEN: "The tests that we ran do not decide it.",
    StatementStatus.NOT_JUDGED: "A test that it needs was not run, or its code failed.",
    StatementStatus.NOT_TESTABLE: "No computation can decide it. The card says why.",
    BY_READING: "The paper leaves a choice open, and the answer depends on it.",
}
MEANINGS: dict[Status, str] = {  # of verdicts
    Status.SUPPORTED: "The whole confidence interval lies within the margin.",
    Status.REFUTED: "At least one confidence interval lies entirely beyond its margin.",
    Status.INCONCLUSIVE: "The interval overlaps the edge of the margin.",
    Status.VACUOUS: "No outcome of this test could contradict the claim.",
    Status.INAPPLICABLE: "A hypothesis of the statement is not met under this reading.",
    Status.ERROR: "The code of the claim failed.",
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
_WRITERS = {"probability": percentage}  # functions that write numbers in sentences, by kind. The default is `number`
_CLAIM_WRITERS = {**_WRITERS, "counterexample": percentage, "limit_probability": percentage}  # of margins in tables
NAMES = {  # names of the predicted and the observed value, by kind
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


def status_word(status: Status) -> str:
    return f"{SYMBOLS[status]} {status}"


def kind_words(verdict: Verdict) -> str:
    return verdict.kind.replace("_", " ") + enclosed(" (", side_words(verdict), ")")


def allowed_sides(verdict: Verdict) -> tuple[bool, bool]:
    """Return whether observed - predicted may be arbitrarily low, and whether it may be arbitrarily high."""
    side = verdict.side or verdict.kind
    may_be_low = side in {"upper_bound", "ordering", "identity", "at_most", "counterexample"}
    may_be_high = side in {"lower_bound", "at_least"}
    return may_be_low, may_be_high


def allowed_words(verdict: Verdict, margin: float) -> str:
    """Return the allowed range of observed - predicted at this margin."""
    may_be_low, may_be_high = allowed_sides(verdict)
    if may_be_low:
        return f"below {number(margin)}"
    if may_be_high:
        return f"above {number(-margin)}"
    return f"between {number(-margin)} and {number(margin)}"


def claimed_value(verdict: Verdict) -> str:
    """Return the claimed value with its relation, such as "≤ 0.239", or a dash."""
    value = verdict.predicted
    if verdict.kind == "identity":
        return "= 0"
    if not math.isfinite(value):
        return "–"
    if verdict.kind == "counterexample" and value == 0:
        return "never violated"
    if verdict.kind == "limit_probability":
        return f"tends to {number(value)}"
    sign = _SIGNS[verdict.side or verdict.kind]
    if verdict.kind in {"probability", "counterexample"}:
        return f"in {sign} {percentage(value)}"
    quantity = {"rate": "slope ", "limit_rate": "limit slope "}.get(verdict.kind, "")
    return f"{quantity}{sign} {number(value)}"


def claimed(verdict: Verdict) -> str:
    """Return the claimed value with relation and margin, such as "≤ 0.239 (+0.01)" or "slope ≤ 0.5 (+0.1)"."""
    value = claimed_value(verdict)
    if value in {"–", "never violated"}:
        return value
    write = _CLAIM_WRITERS.get(verdict.kind, number)
    return f"{value}{_margin(verdict, write)}"


def claimed_briefly(verdict: Verdict) -> str:
    """Return the claimed value without margin, or the tolerance of an identity."""
    if verdict.kind == "identity":
        if verdict.margin > 0:
            return f"error ≤ {number(verdict.margin)}"
        return "error = 0"
    return claimed_value(verdict).removeprefix("limit ")


_SIGNS = {  # by side, or by kind if there is no side
    **dict.fromkeys(("equality", "equal", "rate", "limit_rate"), "="),
    **dict.fromkeys(("upper_bound", "at_most", "probability", "counterexample"), "≤"),
    **dict.fromkeys(("lower_bound", "at_least"), "≥"),
    "ordering": "<",
}


def _margin(verdict: Verdict, write: Callable[[float], str] = number) -> str:
    if not verdict.margin > 0:  # also if it is NaN
        return ""
    margin = write(verdict.margin)
    may_be_low, may_be_high = allowed_sides(verdict)
    if verdict.kind == "identity" or not (may_be_low or may_be_high):
        return f" ± {margin}"
    return f" (+{margin})" if may_be_low else f" (−{margin})"


def measured(verdict: Verdict) -> str:
    """Return the measured value, such as "2.74 ± 0.07" or "64 of 64"."""
    if verdict.kind in {"probability", "counterexample", "limit_probability"} and math.isfinite(verdict.observed):
        return f"{round(verdict.observed * verdict.replicates):,} of {verdict.replicates:,}"
    return with_error(verdict.observed, verdict.standard_error)


def measured_briefly(verdict: Verdict) -> str:
    return measured(verdict).partition(" ± ")[0]


def tested(verdict: Verdict) -> str:
    """Return the first paragraph of the claim's text, in one line."""
    return " ".join(verdict.statement.partition("\n\n")[0].split())


def sentence(verdict: Verdict) -> str:
    match verdict.status:
        case Status.VACUOUS:
            side = "above" if verdict.kind == "lower_bound" or verdict.side == "at_least" else "below"
            if math.isfinite(verdict.trivial) and verdict.kind != "probability":
                return f"It holds, but so would any bound {side} {number(verdict.trivial)}."
            return "It holds, but no outcome could contradict it here."
        case Status.INAPPLICABLE:
            return f"A hypothesis {verdict.reason.strip().rstrip('.')}."
        case Status.ERROR:
            return f"The code of the claim failed: {verdict.reason.strip()}"
        case Status.INCONCLUSIVE:
            return _open_question(verdict)
    place = "" if verdict.at in {"", "mean"} else f" ({verdict.at})"
    write = _WRITERS.get(verdict.kind, number)
    margin = f" (margin {write(verdict.margin)})" if verdict.margin > 0 else ""
    match verdict.kind:
        case "equality":
            subject = f"At {verdict.at} the mean" if place else "The mean"
            return f"{subject} is {measured(verdict)}. The claim is {number(verdict.predicted)}{margin}."
        case "upper_bound" | "lower_bound":
            slack = verdict.predicted / verdict.observed if verdict.observed > 0 else 0.0
            slack_words = ""
            if verdict.kind == "upper_bound" and verdict.status is Status.SUPPORTED and slack > LOOSE:
                slack_words = f" It is {slack:.2g} times as large."
            bound = f"{number(verdict.predicted)}{margin}"
            return f"The mean{place} is {measured(verdict)}. The bound is {bound}.{slack_words}"
        case "ordering":
            larger = f"{number(verdict.predicted)}{margin}"
            return f"The side that must be smaller{place} is {measured(verdict)}. The other side is {larger}."
        case "identity":
            if verdict.observed == 0:
                return "No violation in any run."
            return f"The largest error{place} is {number(verdict.observed)}."
        case "probability":
            claim = f"{_side(verdict)} {percentage(verdict.predicted)}{margin}"
            return f"It happens in {measured(verdict)} runs{place}. The claim is {claim}."
        case "counterexample":
            if verdict.predicted == 0:
                return f"{measured(verdict)} examples violate it{place}. None may."
            return f"{measured(verdict)} examples violate it{place}. At most {percentage(verdict.predicted)} may."
        case "rate":
            side = enclosed("", side_words(verdict).removeprefix("equal"), " ")
            # A rate's place is "slope", "slope at the small end" or "slope at the large end".
            quantity = verdict.at.replace("slope", "log-log slope") if "end" in verdict.at else "exponent"
            return f"The {quantity} is {_slope_words(verdict)}. The claim is {side}{number(verdict.predicted)}{margin}."
    if verdict.trend:  # a claim about a limit
        return f"{_capitalize(_limit_words(verdict, verdict.trend))}."
    return _recorded_reason(verdict)


def _recorded_reason(verdict: Verdict) -> str:
    return f"{_capitalize(verdict.reason.strip().rstrip('.'))}."


def _capitalize(text: str) -> str:
    return text[:1].upper() + text[1:]


def side_words(verdict: Verdict) -> str:
    return (verdict.side or "").replace("_", " ")


def _side(verdict: Verdict) -> str:
    return side_words(verdict).replace("equal", "equal to")


def _slope_words(verdict: Verdict) -> str:
    low, high = verdict.interval
    return _with_interval(verdict.observed, verdict.predicted + low, verdict.predicted + high)


def _with_interval(value: float, low: float, high: float) -> str:
    if number(low) == number(high):  # the value is exact, or there is no interval
        return number(value)
    return f"{number(value)} (interval {number(low)} to {number(high)})"


def _limit_words(verdict: Verdict, trend: Trend) -> str:
    if verdict.kind == "limit_probability":
        return _failure_words(verdict, before=trend)
    place = verdict.at.removeprefix("slope ")
    return (
        f"{place} the exponent is {_slope_words(verdict)}. The claim is {_side(verdict)} {verdict.predicted:g} (margin "
        f"{verdict.margin:.3g}). It changes by {_with_interval(trend.value, trend.low, trend.high)} per decade"
    )


def _failure_words(verdict: Verdict, before: Trend) -> str:
    count = verdict.replicates
    share = verdict.observed
    low, high = verdict.interval
    verb = "happens"
    if verdict.side == "at_least":  # the event is a success, so its absence must become rare
        share = 1 - share
        low = -verdict.interval[1]
        high = -verdict.interval[0]
        verb = "fails to happen"
    words = (
        f"at {verdict.at} it {verb} in {share * count:,.0f} of {count:,} replicates (interval {_shares(low, high)}, "
        f"up to {percentage(verdict.margin)} counts as small). At {before.at} it does "
        f"so in {before.value * count:,.0f} (interval {_shares(before.low, before.high)})"
    )
    if verdict.status is Status.REFUTED:
        words += f". It stays away from 0, and falls with an exponent below {SLOWEST_FALL:g}"
    return words


def _shares(low: float, high: float) -> str:
    lowest = low if low > LEAST_SHARE else 0.0  # the end of an exact interval can be as small as 1e-10
    return f"{percentage(lowest)} to {percentage(high)}"


def _open_question(verdict: Verdict) -> str:
    low, high = verdict.interval
    runs = f"{verdict.replicates:,} runs do not decide it"
    if verdict.kind == "counterexample":
        return f"{measured(verdict)} examples violate it, which decides nothing."
    if verdict.doubt and not verdict.trend:
        return f"{runs}: {verdict.doubt}."
    if verdict.trend:
        advice = ""
        if verdict.kind == "limit_rate" and abs(verdict.trend.value) > verdict.margin:
            advice = ". While it bends, a grid nearer to the limit is needed"
        words = _limit_words(verdict, verdict.trend)
        if verdict.doubt:
            words = f"{verdict.doubt}. {_capitalize(words)}"
        return f"{runs}: {words}{advice}."
    if verdict.kind == "identity" and math.isfinite(verdict.smallest_discrepancy):
        share = percentage(verdict.smallest_discrepancy)
        return (
            f"The largest error is {number(verdict.observed)}. A larger one occurs in less than {share} of replicates."
        )
    if verdict.kind in {"identity", *LIMITS} or not math.isfinite(high - low):
        return _recorded_reason(verdict)
    quantity = {"rate": verdict.at or "exponent", "probability": "frequency"}.get(verdict.kind, "difference")
    shift = verdict.predicted if quantity != "difference" else 0.0  # the interval is of observed - predicted
    place = ""
    if verdict.at not in {"", "mean"} and verdict.kind != "rate":  # `at` is a rate's quantity
        place = f" at {verdict.at}"
    write = _WRITERS.get(verdict.kind, number)
    words = f"{runs}: the {quantity}{place} is between {write(low + shift)} and {write(high + shift)}"
    if quantity == "difference":
        words += f", allowed {allowed_words(verdict, verdict.margin)}"
    return f"{words}."


class Chapter(NamedTuple):
    paper: str
    statements: list[tuple[Judged, list[list[Verdict]]]]  # each with a list of verdicts per claim not shown before
    others: list[list[Verdict]]  # a list of verdicts per claim without a statement in the report


def arrange_chapters(report: Report) -> list[Chapter]:
    judgements = judged_statements(report)
    chapters = []
    for paper in dict.fromkeys(verdict.paper for verdict in report.verdicts):
        unplaced: dict[str, list[Verdict]] = {}
        for verdict in report.verdicts:
            if verdict.paper == paper:
                unplaced.setdefault(verdict.claim, []).append(verdict)
        statements = []
        for judgement in [candidate for candidate in judgements if candidate.statement.roles.keys() & unplaced.keys()]:
            ids = [id for id in judgement.statement.roles if id in unplaced]
            statements.append((judgement, [unplaced.pop(id) for id in ids]))
            judgements.remove(judgement)  # a statement is in the chapter of one paper only
        chapters.append(Chapter(paper, statements, list(unplaced.values())))
    return chapters


def judged_statements(report: Report) -> list[Judged]:
    return judged_with_searches(report.statements, report.verdicts)


def tested_statements(report: Report) -> list[Judged]:
    return [judged(statement, report.verdicts) for statement in report.statements]


def statement_counts(judgements: Sequence[Judged]) -> dict[str, int]:
    """Return the number of statements by status, which is "by reading" if readings differ."""
    counts = Counter(map(statement_status, judgements))
    return {status: counts[status] for status in (*StatementStatus, BY_READING) if counts[status]}


def statement_status(judgement: Judged) -> str:
    if judgement.finding:
        return str(judgement.finding.status)
    if judgement.by_reading:
        return BY_READING
    return str(StatementStatus.NOT_JUDGED)


def urgency(judgement: Judged) -> int:
    """Return a statement's rank. Failures come first, then open questions, then all others in the order of statuses."""
    failing = (StatementStatus.FALSE, StatementStatus.VACUOUS, StatementStatus.AMENDED)
    order = [*failing, BY_READING, StatementStatus.OPEN, *StatementStatus]
    return list(map(str, order)).index(statement_status(judgement))


def status_json(judgement: Judged) -> dict[str, object]:
    by_reading = {reading: finding.status for reading, finding in judgement.by_reading.items()}
    return {"status": judgement.words, "status_by_reading": by_reading}


def deciding_verdict(judgement: Judged, verdicts: Sequence[Verdict]) -> Verdict | None:
    ids: list[str] = []
    for finding in judgement.by_reading.values():
        ids += finding.decided_by
    last = {(verdict.claim, verdict.setting): verdict for verdict in verdicts}  # later ones replace earlier ones
    candidates: list[Verdict] = []
    for id in ids or deciding(judgement.statement):
        candidates += [verdict for verdict in last.values() if verdict.claim == id]
    order = (Status.REFUTED, Status.INCONCLUSIVE, Status.ERROR, *Status)  # `index` takes a status' first place
    return min(candidates, key=lambda verdict: order.index(verdict.status), default=None)


def missing_reason(judgement: Judged) -> str:
    """Return why a statement is open or has no verdict, if its own texts do not say it."""
    statement = judgement.statement
    status = statement_status(judgement)
    if status == StatementStatus.NOT_JUDGED and not judgement.broken:
        if not deciding(statement):
            return "None of its claims decides it."
        if judgement.missing:
            return f"There is no verdict on {listed(judgement.missing)}."
        return "A claim's code failed."
    if status != StatementStatus.OPEN or statement.why or statement.undecided:
        return ""
    return "The tests that were run do not decide it."


def script_options(statement: Statement) -> dict[str, str]:
    return {kind: "--script" if kind == "witness" else f"--{kind}" for kind in statement.scripts}


def anchor(*names: str) -> str:
    """Return the anchor on the page for a kind and a name, such as "claim" and its id."""
    return ":".join(quote(name, safe="", errors="backslashreplace").replace("%", "~") for name in names)


def verdict_anchor(verdict: Verdict) -> str:
    return anchor("verdict", verdict.claim, verdict.settings[0])


def summary(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(verdict.status for verdict in verdicts)
    return ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])


def error_words(report: Report) -> str:
    errors = [verdict.error for verdict in report.verdicts if verdict.status is not Status.ERROR]
    if not errors:
        return "No verdict was reached."
    verdicts = "the verdict" if len(errors) == 1 else f"any of the {len(errors)} verdicts"
    bound = f"at most {report.error:.4g} (as replicates grow, where an interval is asymptotic)"
    start = f"The probability that {verdicts} is false is {bound}"
    ends = sorted(share for share in {min(errors), max(errors)} if math.isfinite(share))
    shares = [f"{share:.3g}" for share in ends]
    if len(errors) > 1 and shares:
        return f"{start}: {' to '.join(shares)} each, each split over its interim analyses."
    return f"{start}, split over its interim analyses."


def cut_short(report: Report) -> list[Verdict]:
    return [verdict for verdict in report.verdicts if verdict.stopped is Stop.BUDGET]
