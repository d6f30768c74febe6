"""Comparison of a user's algorithm with a paper's, statement by statement."""

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from moe_theory.plot.document import Document
from moe_theory.report.rendering import document_text
from moe_theory.verification.recorded import recorded_searches, recorded_verdicts
from moe_theory.verification.statement import declared
from moe_theory.verification.status import Judged, StatementStatus, judged
from moe_theory.verification.verdict import AS_RECORDED, OWN_SYSTEM, Report, Statement, Status, Verdict

SCHEMA = "moe-theory/system/2"
_UNDECIDED = {StatementStatus.OPEN, StatementStatus.NOT_JUDGED, StatementStatus.NOT_TESTABLE}


class StatementPair(NamedTuple):
    name: str
    printed: str  # status of the printed algorithm
    own: str
    differs: bool  # whether both statuses are decided and different under some reading
    inapplicable: dict[str, str]  # claims that do not apply to the user's algorithm, with reasons

    def to_json(self) -> dict[str, object]:
        return {
            "statement": self.name,
            "differs": self.differs,
            "printed": {"status": self.printed},
            "own": {"status": self.own},
            "does_not_apply": self.inapplicable,
        }


def compared(report: Report) -> list[StatementPair]:
    """Return the statements of a run of a user's algorithm, compared with their recorded statuses."""
    recorded = recorded_verdicts(report.statements)
    return [_pair(statement, recorded, report.verdicts) for statement in report.statements]


def _pair(statement: Statement, recorded: Sequence[Verdict], run: Sequence[Verdict]) -> StatementPair:
    own_verdicts = []
    for verdict in run:
        if verdict.claim in statement.roles:  # the printed algorithm has the same readings without `OWN_SYSTEM`
            readings = [name.partition(f", {OWN_SYSTEM}")[0] for name in (verdict.reading, *verdict.also)]
            own_verdicts.append(dataclasses.replace(verdict, reading=readings[0], also=readings[1:]))
    settings = set(itertools.chain.from_iterable(verdict.settings for verdict in own_verdicts))
    printed = [verdict.held_for(settings) for verdict in recorded if settings & set(verdict.settings)]
    # Claims that no run was needed to find inapplicable. Brackets in the verdict's reason say why.
    inapplicable = [
        verdict for verdict in own_verdicts if verdict.status is Status.INAPPLICABLE and not verdict.replicates
    ]
    reasons = {verdict.claim: verdict.reason.partition("(")[2].rstrip(")") for verdict in inapplicable}
    shared = [verdict for verdict in printed if verdict.claim in statement.roles and verdict.claim not in reasons]
    declaration = next((source.plain for source in declared() if source.name == statement.name), statement)
    with_proofs = judged(declaration, printed, recorded_searches([statement]).get(statement.name))
    by_runs = judged(statement, [*inapplicable, *shared])
    own_judgement = judged(statement, own_verdicts)
    is_inapplicable = reasons and not own_judgement.by_reading
    own_statuses = _statuses(own_judgement)
    printed_statuses = _statuses(by_runs)
    pairs = [{printed_statuses[reading], own_statuses[reading]} for reading in printed_statuses.keys() & own_statuses]
    printed_words = with_proofs.words
    if _statuses(with_proofs) != printed_statuses:
        printed_words = f"{with_proofs.words}; by runs alone {by_runs.words}"
    return StatementPair(
        name=statement.name,
        printed=printed_words,
        own="does not apply" if is_inapplicable else own_judgement.words,
        differs=any(len(pair) > 1 and not pair & _UNDECIDED for pair in pairs),
        inapplicable=reasons,
    )


def _statuses(judgement: Judged) -> dict[str, StatementStatus]:
    return {reading: finding.status for reading, finding in judgement.by_reading.items()}


def comparison(report: Report, paths: Sequence[Path] = ()) -> Document:
    """Return a line for each statement, the inapplicable claims, and the number of differences."""
    pairs = compared(report)
    differing = [pair.name for pair in pairs if pair.differs]

    def body() -> dict[str, object]:
        run = {"system": report.own_system, "command": report.command, "seed": report.seed, "error": report.error}
        rows = [pair.to_json() for pair in pairs]
        return run | {"differ": differing, "statements": rows, "files": [*map(str, paths)]}

    def text(_: int) -> str:
        reasons: dict[str, str] = {}
        for pair in pairs:
            reasons |= pair.inapplicable
        return document_text(
            "comparison.md",
            rows=[(pair.name, pair.printed, pair.own) for pair in pairs],
            inapplicable=reasons,
            report=report,
            published_error=sum(verdict.error for verdict in report.verdicts if verdict.reason.endswith(AS_RECORDED)),
            paths=paths,
            differing=differing,
        )

    return Document(body, text, SCHEMA)
