"""How statements stand: by the recorded runs, by a run in a folder, or by the last run where nothing is recorded."""

import contextlib
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from moe_theory.core.errors import DamagedError, UnknownNameError, unknown_name
from moe_theory.report.pages import NUMBERS, read_printed, read_reports
from moe_theory.verification.catalog import matching, statements
from moe_theory.verification.recorded import judged_with_searches, recorded_verdicts
from moe_theory.verification.status import Judged
from moe_theory.verification.verdict import Report, Statement, Verdict


class Standing(NamedTuple):
    """A statement with its status and the verdicts that it follows from."""

    known: Judged
    verdicts: list[Verdict]
    folder: Path | None = None  # of the run that judged it; None for the recorded ones


def standing(
    patterns: Sequence[str] = (), last: Path | None = None, folder: Path | None = None, module: Path | None = None
) -> list[Standing]:
    """How the statements stand whose names match, each once, as `verify.statements` matches them.

    Args:
        patterns: all statements by default, or those of `module`.
        last: the folder of a run that decides what the recorded ones have fewer verdicts on; it need not be there.
        folder: that of the run to go by, and no other.
        module: a Python file that declares claims of one's own.
    Raises: UnknownNameError for a pattern that matches nothing, with the nearest name suggested; DamagedError for
        a folder without a run; DeclarationError for a module that cannot be used.
    """
    declared = _of_module(module) if module else []
    find = functools.partial(_in_folder, folder) if folder else functools.partial(_anywhere, declared, last)
    by_name: dict[str, Standing] = {}
    for pattern in patterns or [statement.name for statement in declared] or ["*"]:
        by_name |= {match.known.statement.name: match for match in find(pattern)}
    return list(by_name.values())


def _of_module(module: Path) -> list[Statement]:
    from moe_theory.verification.registry import load_claims  # whose claims need JAX
    from moe_theory.verification.statement import bearing

    return bearing(load_claims(module))


def _in_folder(folder: Path, pattern: str) -> list[Standing]:
    report = read_printed([folder])
    matches = matching(pattern, report.statements)
    if not matches:
        raise unknown_name("statement", pattern, [statement.name for statement in report.statements])
    return _standings(matches, report.verdicts, folder)


def _anywhere(declared: Sequence[Statement], last: Path | None, pattern: str) -> list[Standing]:
    @functools.cache
    def run() -> Report | None:
        report = read_reports([last]) if last and (last / NUMBERS).is_file() else None
        return report if report and not report.own_system else None

    matches: Sequence[Statement] = matching(pattern, declared)
    try:
        matches = matches or statements(pattern)
    except UnknownNameError as unknown:  # of a module that is not named: its run has its words
        with contextlib.suppress(DamagedError):
            report = run()
            matches = matching(pattern, report.statements) if report else []
        if not matches:
            raise unknown
    recorded = _standings(matches, recorded_verdicts(matches))
    if last is None or not any(standing.known.missing for standing in recorded):
        return recorded
    report = run()
    if report is None:
        return recorded
    newer = _standings(matches, report.verdicts, last)
    pairs = zip(recorded, newer, strict=True)
    return [min(pair, key=lambda standing: len(standing.known.missing)) for pair in pairs]


def _standings(matches: Sequence[Statement], verdicts: list[Verdict], folder: Path | None = None) -> list[Standing]:
    return [Standing(judgement, verdicts, folder) for judgement in judged_with_searches(matches, verdicts)]
