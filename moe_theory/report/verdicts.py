"""Statements, claims and verdicts in a terminal: tables, what a verification says at its end, and why."""

import dataclasses
import shlex
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from moe_theory.plot.document import Document, headed, ruled
from moe_theory.plot.symbols import plain
from moe_theory.report.document import written
from moe_theory.report.rendering import TERMINAL, card, rows_of
from moe_theory.report.standing import Standing
from moe_theory.report.wording import (
    claimed,
    cut_short,
    decisive,
    judged_statements,
    measured,
    sentence,
    statement_status,
    status_counts,
    status_json,
    summary,
    tested_statements,
)
from moe_theory.verification.premises import footings, premises_of
from moe_theory.verification.recorded import judged_statements as recorded
from moe_theory.verification.recorded import on_other_data
from moe_theory.verification.status import Judged, StatementStatus
from moe_theory.verification.verdict import Report, Statement, Status, Verdict

if TYPE_CHECKING:
    from moe_theory.verification.claim import Claim

_STYLES = {
    Status.SUPPORTED: "green",
    Status.REFUTED: "bold red",
    Status.INCONCLUSIVE: "yellow",
    Status.VACUOUS: "cyan",
    Status.INAPPLICABLE: "dim",
    Status.ERROR: "bold white on red",
}
STATUS_STYLES: dict[str, str] = {
    StatementStatus.HOLDS: "green",
    StatementStatus.AMENDED: "green",
    StatementStatus.FALSE: "bold red",
    StatementStatus.VACUOUS: "cyan",
    StatementStatus.OPEN: "yellow",
    StatementStatus.NOT_JUDGED: "dim",
    StatementStatus.NOT_TESTABLE: "dim",
}
MOST_SURPRISING = 4  # false statements named at the end
MOST_NAMED = 3  # experiments named for the time they took
_FRAME_LINES = 4  # of a table: its edges and its header
_FULL_WIDTH = 150  # columns of a terminal that takes the whole table
_TABLE_WIDTH = 120  # below it claims are a list
_COLUMNS = ("claim", "reading", "claimed", "measured ± s.e.", "verdict", "at")
_LEFT_OUT = ("at", "claimed", "reading", "measured ± s.e.")  # in this order, where there is no room


def live_table(verdicts: Sequence[Verdict], width: int, max_lines: int | None = None) -> Table:
    """The verdicts so far, as a table that grows; only the newest where there are too many for `max_lines` lines. In a
    terminal too narrow for all of it, ids lose the paper's name and columns go, so that no id is broken.
    """
    if max_lines is not None:
        verdicts = verdicts[-max(max_lines - _FRAME_LINES, 1) :]
    papers = {verdict.paper for verdict in verdicts}
    prefix = "" if width >= _FULL_WIDTH or len(papers) != 1 else f"{papers.pop()}."
    cells: dict[str, list[str]] = {name: [] for name in _COLUMNS}
    for verdict in verdicts:
        values = verdict.claim.removeprefix(prefix), verdict.setting, claimed(verdict), measured(verdict)
        for column, value in zip(cells.values(), (*values, verdict.status, verdict.at), strict=True):
            column.append(value)
    labels = {name: f"{name} ({prefix}*)" if name == "claim" and prefix else name for name in _COLUMNS}
    taken = {name: max(map(len, (labels[name], *column))) + 2 for name, column in cells.items()}
    for name in _LEFT_OUT:
        if sum(taken.values()) > width:
            del taken[name]
    columns: dict[str, Sequence[RenderableType]] = {labels[name]: cells[name] for name in taken}
    columns["verdict"] = [Text(verdict.status, _STYLES[verdict.status]) for verdict in verdicts]
    return ruled(columns, zip(*columns.values(), strict=True), ("claimed", "measured ± s.e."), whole=columns)


def verdicts_document(report: Report, paths: Sequence[Path], kept: Sequence[str] = ()) -> Document:
    """A verification that was written to these paths, statements first, with lines on the samples that are kept."""

    def parts(width: int) -> Iterator[RenderableType]:
        yield from statement_lines(_whole(tested_statements(report)), width)
        yield live_table(report.verdicts, width)
        yield from (*closing_lines(report, paths[-1].parent), *kept, f"numbers: {paths[-1]}")
        if len(paths) > 1:
            yield f"report: {paths[0]}"
        else:
            yield f"a page of them: moe-theory report {paths[-1].parent}"

    return Document(lambda: written(paths[-1]), parts)


def claims_document(claims: "Sequence[Claim]") -> Document:
    """Claims as a table, or as a list in a terminal that is narrow."""

    def parts(width: int) -> Iterator[RenderableType]:
        if width < _TABLE_WIDTH:
            yield from (part for claim in claims for part in _claim_lines(claim))
        else:
            rows = ((claim.id, plain(claim.where), claim.kind, plain(claim.statement)) for claim in claims)
            yield ruled(("claim", "source", "kind", "statement"), rows, whole=("claim",))

    fields = ("id", "paper", "where", "statement", "kind", "margin", "replaced_by")
    return Document(lambda: [{field: getattr(claim, field) for field in fields} for claim in claims], parts)


def statements_document(found: Sequence[Standing]) -> Document:
    """Statements, a line each, and how many have each status."""
    known = [each.known for each in found]
    counts = f"{len(known)} statement{'s' if len(known) != 1 else ''}: {status_counts(known)}"
    return Document(lambda: [*map(facts, found)], lambda width: (*statement_lines(known, width), counts))


def why_document(found: Sequence[Standing]) -> Document:
    """Why statements have their statuses, by their verdicts and by recorded ones on other data."""

    def body() -> list[dict[str, Any]]:
        decided = ((each, decisive(each.known, each.verdicts)) for each in found)
        return [facts(each) | {"found": sentence(verdict) if verdict else None} for each, verdict in decided]

    def parts(_: int) -> Iterator[Group]:
        others, failing = on_other_data(), failing_premises([each.known.statement for each in found])
        yield from (why_card(each, others, failing.get(each.known.statement.name, ())) for each in found)

    return Document(body, parts)


def facts(found: Standing) -> dict[str, Any]:
    """A statement with its status, for JSON."""
    source = None if found.folder is None else str(found.folder)
    return dataclasses.asdict(found.known.statement) | status_json(found.known) | {"from": source}


def _claim_lines(claim: "Claim") -> tuple[Text, Padding]:
    about = f"{plain(claim.where)} · {claim.kind.replace('_', ' ')}\n{plain(claim.statement)}"
    return Text(claim.id, "bold", no_wrap=True, overflow="ignore"), Padding(Text(about), (0, 0, 1, 2))


def statement_lines(found: Sequence[Judged], width: int) -> Iterator[Text]:
    """A line a statement: its status, with how it is known where there is room, its name and what it says, behind the
    statuses that it has by reading, cut where the terminal ends.
    """
    rows = [
        (
            each.finding.words if each.finding and width >= _TABLE_WIDTH else statement_status(each),
            each.statement.name,
            plain(" ".join(f"{_each_reading(each)}{each.statement.says}".split())),
        )
        for each in found
    ]
    first, second = (max((len(row[place]) for row in rows), default=0) for place in range(2))
    for each, (status, name, says) in zip(found, rows, strict=True):
        style = STATUS_STYLES.get(statement_status(each), "magenta")
        line = Text(f"{status:{first}}", style, no_wrap=True, overflow="ignore")
        line.append(f"  {name:{second}}  {says}", "default not bold not dim")
        line.truncate(width, overflow="ellipsis")
        yield line


def _each_reading(known: Judged) -> str:
    """ "holds / open: " of a statement whose status depends on the reading, else nothing."""
    found = {each.status for each in known.by_reading.values()}
    return f"{' / '.join(each for each in StatementStatus if each in found)}: " if len(found) > 1 else ""


def why_card(standing: Standing, others: Sequence[Verdict] = (), failing: Sequence[str] = ()) -> Group:
    """Output of `why` on a statement, under its name.

    Args:
        others: verdicts on other data.
        failing: what its proof uses and is false or vacuous.
    """
    known, verdicts, folder = standing
    of = known.statement
    lines = list(_by_data(known, verdicts, others))
    text = card(known, verdicts, folder, failing, lines, target=TERMINAL)
    rows = [(row.heading.lower() or "says", row.text) for row in rows_of(text)]
    return Group(Text(f"{of.where} ({of.name})", style="bold"), headed(rows, padding=(0, 2, 0, 0)))


def failing_premises(of: Sequence[Statement]) -> dict[str, tuple[str, ...]]:
    """What the proofs of statements use that is false or vacuous by the recorded runs, by the statements' names."""
    papers = dict.fromkeys(each.paper for each in of if premises_of(each.name))
    return {each.known.statement.name: each.failing for paper in papers for each in footings(recorded(paper))}


def _by_data(known: Judged, verdicts: Sequence[Verdict], others: Sequence[Verdict]) -> Iterator[str]:
    """A line for each claim that was judged on several data."""
    for id in known.statement.roles:
        if any(each.claim == id for each in others):
            every = [each for each in (*verdicts, *others) if each.claim == id]
            said = "; ".join(f"{each.status} under {each.setting} ({measured(each)})" for each in every)
            yield f"{id}: {said}"


def closing_lines(report: Report, folder: Path | None = None) -> list[str]:
    """Closing lines of a verification, written to `folder`: statuses, surprises, errors, time, and how to repeat any of
    it.
    """
    verdicts, known = report.verdicts, tested_statements(report)
    whole = _whole(known)
    failed = [verdict for verdict in verdicts if verdict.status is Status.ERROR]
    sure = f", any of them wrong with probability at most {report.error:.4g}"
    source = f" --from {shlex.quote(str(folder))}" if folder else ""
    parts = [status_counts(whole), f"{len(known) - len(whole)} judged in part" if len(whole) < len(known) else ""]
    false = [each for each in whole if each.finding and each.finding.status is StatementStatus.FALSE]
    lines = [
        *(f"ERROR in {verdict.claim} under {verdict.setting}: {verdict.reason}" for verdict in failed),
        f"statements, at the settings tested: {'; '.join(filter(None, parts))}" if known else "",
        f"claims: {summary(verdicts)}{sure if len(failed) < len(verdicts) else ''}",
        *(_false_line(each, verdicts) for each in false[:MOST_SURPRISING]),
        f"  and {len(false) - MOST_SURPRISING} more that are false" if len(false) > MOST_SURPRISING else "",
        *_time_budget(report),
        f"repeat any of it: {_again(verdicts)}" if verdicts else "",
        f"why a statement fails: moe-theory why STATEMENT{source}" if false else "",
    ]
    return [line for line in lines if line]


def _whole(known: Sequence[Judged]) -> list[Judged]:
    return [each for each in known if not each.missing and each.by_reading]


def counted(report: Report) -> tuple[str, str]:
    """How many of a report's statements, and of its verdicts, have each status."""
    return f"statements: {status_counts(judged_statements(report))}", f"claims: {summary(report.verdicts)}"


def samples_line(computed: Set[str], found: Set[str]) -> str:
    """Of how many claims under a reading samples were computed, and of how many those that were kept were enough."""
    return f"samples: {len(computed):,} computed, {len(found - computed):,} reused"


def _false_line(known: Judged, verdicts: Sequence[Verdict]) -> str:
    shown = decisive(known, verdicts)
    return f"  {known.statement.name} is false: {plain(sentence(shown) if shown else known.statement.why)}"


def _again(verdicts: Sequence[Verdict]) -> str:
    """One command of those that the report has of every verdict."""
    shown = next((each for each in verdicts if each.status is Status.REFUTED), verdicts[0])
    return shown.command


def _time_budget(report: Report) -> list[str]:
    if report.budget is None:
        return []
    stopped = cut_short(report)
    slowest = sorted(report.seconds.items(), key=lambda item: -item[1])[:MOST_NAMED]
    most = ", ".join(f"{name} ({seconds:.0f} s)" for name, seconds in slowest)
    lines = [f"budget: {report.budget:.0f} s, of which {sum(report.seconds.values()):.0f} s were used; most by {most}"]
    if stopped:
        lines.append(f"it ran out with {len(stopped)} undecided; the same command resumes them:")
    lines += [f"  {verdict.claim} under {verdict.setting}, {verdict.replicates} replicates" for verdict in stopped]
    return lines
