"""Statuses of statements, from the recorded runs or a run in a folder."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from moe_theory.core.errors import unknown_name
from moe_theory.report.pages import read_printed
from moe_theory.verification.catalog import matching, statements
from moe_theory.verification.recorded import judged_with_searches, recorded_verdicts
from moe_theory.verification.status import Judged
from moe_theory.verification.verdict import Statement, Verdict


class Standing(NamedTuple):
    known: Judged
    verdicts: list[Verdict]
    folder: Path | None = None  # folder of the run that decided the status, or None for recorded runs
    claim: str = ""  # the claim whose test the card shows, by default the deciding one


def standing(patterns: Sequence[str] = (), folder: Path | None = None) -> list[Standing]:
    """Return the matching statements without repetition, each with its status."""
    report = None if folder is None else read_printed([folder])
    by_name: dict[str, Statement] = {}
    for pattern in patterns or ["*"]:
        matches = statements(pattern) if report is None else matching(pattern, report.statements)
        if report is not None and not matches:  # without a report `statements` raises
            raise unknown_name("statement", pattern, [statement.name for statement in report.statements])
        by_name |= {statement.name: statement for statement in matches}
    verdicts = recorded_verdicts(by_name.values()) if report is None else report.verdicts
    judgements = judged_with_searches(list(by_name.values()), verdicts)
    standings = []
    for judgement in judgements:
        claim = next((pattern for pattern in patterns if pattern in judgement.statement.roles), "")
        standings.append(Standing(judgement, verdicts, folder, claim))
    return standings
