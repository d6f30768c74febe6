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
    own = _of_module(module) if module else []
    find = functools.partial(_in_folder, folder) if folder else functools.partial(_anywhere, own, last)
    asked = patterns or [each.name for each in own] or ["*"]
    return list({each.known.statement.name: each for pattern in asked for each in find(pattern)}.values())


def _of_module(module: Path) -> list[Statement]:
    from moe_theory.verification.registry import load_claims  # whose claims need JAX
    from moe_theory.verification.statement import bearing

    return bearing(load_claims(module))


def _in_folder(folder: Path, pattern: str) -> list[Standing]:
    report = read_printed([folder])
    chosen = matching(pattern, report.statements)
    if not chosen:
        raise unknown_name("statement", pattern, [each.name for each in report.statements])
    return _standing(chosen, report.verdicts, folder)


def _anywhere(own: Sequence[Statement], last: Path | None, pattern: str) -> list[Standing]:
    @functools.cache
    def run() -> Report | None:
        report = read_reports([last]) if last and (last / NUMBERS).is_file() else None
        return report if report and not report.own_system else None

    chosen: Sequence[Statement] = matching(pattern, own)
    try:
        chosen = chosen or statements(pattern)
    except UnknownNameError as unknown:  # of a module that is not named: its run has its words
        with contextlib.suppress(DamagedError):
            chosen = matching(pattern, report.statements) if (report := run()) else []
        if not chosen:
            raise unknown
    found = _standing(chosen, recorded_verdicts(chosen))
    if last is None or not any(each.known.missing for each in found) or (report := run()) is None:
        return found
    newer = _standing(chosen, report.verdicts, last)
    return [min(pair, key=lambda each: len(each.known.missing)) for pair in zip(found, newer, strict=True)]


def _standing(of: Sequence[Statement], verdicts: list[Verdict], folder: Path | None = None) -> list[Standing]:
    return [Standing(known, verdicts, folder) for known in judged_with_searches(of, verdicts)]
