"""Documents about statements, claims and verdicts."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup
from rich.text import Text

from moe_theory.core.errors import enclosed, plural
from moe_theory.plot.document import Document, read_written
from moe_theory.plot.markdown import code, paragraphs, shell_path, table, table_width
from moe_theory.plot.symbols import plain
from moe_theory.report.cards import LABELS, label, label_counts
from moe_theory.report.rendering import TERMINAL, WHOLE, Target, card, document_text
from moe_theory.report.standing import Standing
from moe_theory.report.wording import (
    claimed,
    claimed_briefly,
    deciding_verdict,
    measured,
    measured_briefly,
    sentence,
    statement_status,
    status_json,
    tested_statements,
)
from moe_theory.verification.challenged import Challenge
from moe_theory.verification.recorded import judged_statements as recorded
from moe_theory.verification.status import Judged, StatementStatus, premises_of
from moe_theory.verification.status import failing_premises as failing_of
from moe_theory.verification.verdict import Report, Statement, Status, Verdict

if TYPE_CHECKING:
    from moe_theory.verification.claim import Claim

MOST_SURPRISING = 4  # false statements named at the end
_FRAME_WIDTH = 6  # characters around and between three columns
_LEAST_ROOM = 28  # characters for a statement's sentence
_FIRST_LOOK_WIDTH = 100  # characters in a line that has room for all columns of a first look
_LEFT_OUT = ("at", "claimed", "reading", "measured")  # columns to omit in this order if there is no room


def verdict_table(verdicts: Sequence[Verdict], width: int) -> Markup:
    """Return a table of verdicts. A narrow one has fewer columns and shorter numbers."""
    columns: dict[str, list[str]] = {
        "claim": [verdict.claim for verdict in verdicts],
        "reading": [verdict.setting for verdict in verdicts],
        "claimed": [claimed(verdict) for verdict in verdicts],
        "measured": [measured(verdict) for verdict in verdicts],
        "verdict": [verdict.status for verdict in verdicts],
        "at": [verdict.at for verdict in verdicts],
    }
    if table_width(columns) > width:
        columns["claimed"] = [claimed_briefly(verdict) for verdict in verdicts]
        columns["measured"] = [measured_briefly(verdict) for verdict in verdicts]
    for name in _LEFT_OUT:
        if table_width(columns) > width:
            del columns[name]
    return table(list(columns), zip(*columns.values(), strict=True), ("claimed", "measured"))


def verdicts_document(report: Report, paths: Sequence[Path], samples: Sequence[str]) -> Document:
    folder = paths[-1].parent
    page = f"report: {code(str(paths[0]))}"
    if len(paths) == 1:
        page = f"to write a page: {code(f'moe-theory report {shell_path(folder)}')}"

    def text(width: int) -> str:
        complete = _complete(tested_statements(report))
        parts = [statement_table(complete, width)] if complete else []
        numbers = Markup(f"numbers: {code(str(paths[-1]))}")
        verdicts = Markup(verdicts_text(report, width, folder))
        return paragraphs([*parts, verdicts, *samples, numbers, Markup(page)])

    return Document(lambda: read_written(paths[-1]), text)


def verdicts_text(report: Report, width: int, folder: Path | None = None) -> str:
    """Return a table of verdicts, and lines on statuses, surprises, errors, time and commands."""
    judgements = tested_statements(report)
    complete = _complete(judgements)
    lines = document_text(
        "verdicts.md",
        report=report,
        judgements=judgements,
        complete=complete,
        failing=[judgement for judgement in complete if statement_status(judgement) == StatementStatus.FALSE],
        source=enclosed(" --from ", folder and shell_path(folder)),
        MOST_SURPRISING=MOST_SURPRISING,
    )
    return f"{verdict_table(report.verdicts, width)}\n\n{lines}"


def first_look_document(report: Report, paths: Sequence[Path], claims: Mapping[str, str]) -> Document:
    """Return an introduction to all papers: a row for each of the `claims` (sentences by id), statuses, next steps."""
    statement_of_claim: dict[str, Statement] = {}
    for statement in reversed(report.statements):  # a claim of several statements belongs to the first
        statement_of_claim |= dict.fromkeys(statement.roles, statement)
    rows = []
    for verdict in report.verdicts:
        statement = statement_of_claim[verdict.claim]
        place = re.split(r",|(?<!Eq\.) \(| and | of | on ", statement.where)[0]  # "Lemma 1" of "Lemma 1, Eq. (2)"
        row = {"statement": f"{statement.paper}, {place}", "what it says": claims[verdict.claim]}
        row |= {"claimed": claimed_briefly(verdict), "measured": measured_briefly(verdict), "verdict": verdict.status}
        rows.append(row)
    refuted = [
        statement_of_claim[verdict.claim].name for verdict in report.verdicts if verdict.status is Status.REFUTED
    ]

    def text(width: int) -> str:
        columns = [name for name in rows[0] if name != "claimed" or width >= _FIRST_LOOK_WIDTH]
        return document_text(
            "first_look.md",
            verdicts=table(columns, [[row[name] for name in columns] for row in rows]),
            report=report,
            published=recorded(),
            page=next(iter(paths[:-1]), None),  # the last path is that of the numbers
            folder=shell_path(paths[-1].parent),
            example=next(iter(refuted), report.statements[0].name),
        )

    return Document(lambda: read_written(paths[-1]), text)


def claims_document(claims: "Sequence[Claim]") -> Document:
    fields = ("id", "paper", "where", "statement", "kind", "margin", "replaced_by")
    return Document(
        lambda: [{field: getattr(claim, field) for field in fields} for claim in claims],
        lambda _: document_text("claims.md", claims=claims),
    )


def statements_document(standings: Sequence[Standing]) -> Document:
    judgements = [standing.known for standing in standings]
    counts = f"{len(judgements)} {plural(len(judgements), 'statement')}: {label_counts(judgements)}"
    rows = list(map(facts, standings))
    return Document(lambda: rows, lambda width: paragraphs([statement_table(judgements, width), counts]))


def why_document(standings: Sequence[Standing], *, is_short: bool = True) -> Document:
    def body() -> list[dict[str, object]]:
        rows = []
        for standing in standings:
            verdict = deciding_verdict(standing.known, standing.verdicts)
            found = None if verdict is None else sentence(verdict)
            rows.append(facts(standing) | {"found": found})
        return rows

    def text(_: int) -> str:
        premises = failing_premises([standing.known.statement for standing in standings])
        target = TERMINAL if is_short else WHOLE
        cards = []
        for standing in standings:
            failing = premises.get(standing.known.statement.name, ())
            cards.append(why_card(standing, failing, target=target))
        if len(cards) > 1:
            counts = label_counts([standing.known for standing in standings])
            cards.insert(0, paragraphs([f"{len(standings)} statements: {counts}"]))
        return "\n\n".join(cards)

    return Document(body, text)


def searches_document(searches: Sequence[Challenge]) -> Document:
    return Document(
        lambda: [search.to_json() for search in searches], lambda _: document_text("challenge.md", searches=searches)
    )


def facts(standing: Standing) -> dict[str, object]:
    source = None if standing.folder is None else str(standing.folder)
    return dataclasses.asdict(standing.known.statement) | status_json(standing.known) | {"from": source}


def statement_table(judgements: Sequence[Judged], width: int) -> Markup:
    """Return each statement's status, name and shortened sentence, in one line, or in two lines if `width` is small."""
    statuses = [label(judgement) for judgement in judgements]
    names = [judgement.statement.name for judgement in judgements]
    room = width - max(map(len, ["status", *statuses])) - _FRAME_WIDTH
    is_narrow = room - max(map(len, ["", *names])) < _LEAST_ROOM
    rows = []
    for status, name, judgement in zip(statuses, names, judgements, strict=True):
        words = judgement.statement.says
        found_statuses = {finding.status for finding in judgement.by_reading.values()}
        if len(found_statuses) > 1:
            labels = [LABELS[member] for member in StatementStatus if member in found_statuses]
            words = f"{' / '.join(labels)}: {words}"
        says = Text(plain(" ".join(words.split())))
        if is_narrow:
            says.truncate(room, overflow="ellipsis")
            rows += [(status, name), ("", says)]
        else:
            says.truncate(room - max(map(len, names)), overflow="ellipsis")
            rows.append((status, name, says))
    header = ["status", "statement"] if is_narrow else ["status", "statement", "claim"]
    return table(header, rows)


def why_card(standing: Standing, failing: Sequence[str] = (), *, target: Target = TERMINAL) -> str:
    """Return a statement's card below its name. It names the `failing` statements of the proof."""
    statement = standing.known.statement
    heading = f"{statement.where} ({statement.name})"
    text = card(standing.known, standing.verdicts, standing.folder, failing, shown_claim=standing.claim, target=target)
    return f"# {paragraphs([heading])}\n\n{text}"


def failing_premises(statements: Sequence[Statement]) -> dict[str, tuple[str, ...]]:
    premises: dict[str, tuple[str, ...]] = {}
    for paper in dict.fromkeys(statement.paper for statement in statements if premises_of(statement.name)):
        premises |= failing_of(recorded(paper))
    return premises


def _complete(judgements: Sequence[Judged]) -> list[Judged]:
    return [judgement for judgement in judgements if not judgement.missing and judgement.by_reading]
