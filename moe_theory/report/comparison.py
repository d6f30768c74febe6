"""An algorithm of one's own beside a paper's, by statement: what `verify --system` found and what is recorded.

Statuses are compared by runs alone, since a proof is of the printed algorithm, and by claims that apply to both.
"""

import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from moe_theory.core.errors import DamagedError, unknown_name
from moe_theory.plot.document import Document
from moe_theory.plot.symbols import plain
from moe_theory.report.pages import read_reports
from moe_theory.report.rendering import document_text
from moe_theory.report.wording import claimed, decisive, measured
from moe_theory.verification.catalog import matching
from moe_theory.verification.recorded import recorded_searches, recorded_verdicts
from moe_theory.verification.statement import declared
from moe_theory.verification.status import Judged, StatementStatus, deciding, judged
from moe_theory.verification.variant import Variant
from moe_theory.verification.verdict import AS_RECORDED, OWN_SYSTEM, Report, Statement, Status, Verdict

SCHEMA = "moe-theory/system/2"
_UNDECIDED = {StatementStatus.OPEN, StatementStatus.NOT_JUDGED, StatementStatus.NOT_TESTABLE}


class StatementPair(NamedTuple):
    """A statement of the printed algorithm and of one's own."""

    name: str
    printed: str  # its status
    own: str
    differs: bool  # whether both are decided under a reading, and otherwise
    verdicts: tuple[Verdict | None, Verdict | None]  # on one claim under one reading, printed and own
    inapplicable: dict[str, str]  # claims that do not apply to one's own, each with why

    def to_json(self) -> dict[str, Any]:
        printed, own = (verdict and verdict.to_json() for verdict in self.verdicts)
        return {
            "statement": self.name,
            "differs": self.differs,
            "printed": {"status": self.printed, "verdict": printed},
            "own": {"status": self.own, "verdict": own},
            "does_not_apply": self.inapplicable,
        }


def read_own(folder: Path, variant: Variant) -> Report:
    """The run in a folder of an algorithm of one's own. Raises: DamagedError where it is of another one."""
    way_out = f"Run `moe-theory verify --system {variant.place} --out {folder}` first."
    if not folder.exists():
        raise DamagedError(f"{folder} does not exist. {way_out}")
    report = read_reports([folder])
    if report.own_system != variant.name:
        raise DamagedError(f"{folder} is of {report.own_system or 'the printed algorithm'}. {way_out}")
    return report


def compared(report: Report, patterns: Sequence[str] = ()) -> list[StatementPair]:
    """The statements of a run of an algorithm of one's own, or those whose names match, beside what is recorded.

    Raises: UnknownNameError for a pattern that matches none of them.
    """
    chosen: dict[str, Statement] = {}
    for pattern in patterns or ["*"]:
        matched = matching(pattern, report.statements)
        if not matched:
            raise unknown_name("statement", pattern, [of.name for of in report.statements])
        chosen |= {of.name: of for of in matched}
    recorded = recorded_verdicts(chosen.values())
    return [_pair(of, recorded, report.verdicts) for of in chosen.values()]


def _pair(of: Statement, recorded: Sequence[Verdict], run: Sequence[Verdict]) -> StatementPair:
    as_run = [verdict for verdict in run if verdict.claim in of.roles]
    own = [_as_printed(verdict) for verdict in as_run]
    settings = {setting for verdict in own for setting in verdict.settings}
    printed = [verdict.held_for(settings) for verdict in recorded if settings & set(verdict.settings)]
    inapplicable = [verdict for verdict in own if verdict.status is Status.INAPPLICABLE and not verdict.replicates]
    reasons = {verdict.claim: verdict.reason.partition("(")[2].rstrip(")") for verdict in inapplicable}
    both = [verdict for verdict in printed if verdict.claim in of.roles and verdict.claim not in reasons]
    whole = next((known.plain for known in declared() if known.name == of.name), of)
    with_proofs = judged(whole, printed, recorded_searches([of]).get(of.name))
    by_runs, of_own = judged(of, [*inapplicable, *both]), judged(of, own)
    first, second = _verdicts(of, both, own, of_own)
    return StatementPair(
        of.name,
        _printed_words(with_proofs, by_runs),
        of_own.words if of_own.by_reading or not reasons else "does not apply",
        _differs(by_runs, of_own),
        (first, as_run[own.index(second)] if second else None),
        reasons,
    )


def _as_printed(verdict: Verdict) -> Verdict:
    """A verdict on an algorithm of one's own under the readings of the printed one."""
    reading, *also = (name.partition(f", {OWN_SYSTEM}")[0] for name in (verdict.reading, *verdict.also))
    return dataclasses.replace(verdict, reading=reading, also=also)


def _printed_words(with_proofs: Judged, by_runs: Judged) -> str:
    """ "false (proved); by runs alone holds (simulated)"."""
    statuses = [{name: each.status for name, each in of.by_reading.items()} for of in (with_proofs, by_runs)]
    return with_proofs.words if statuses[0] == statuses[1] else f"{with_proofs.words}; by runs alone {by_runs.words}"


def _differs(printed: Judged, own: Judged) -> bool:
    readings = printed.by_reading.keys() & own.by_reading.keys()
    statuses = [{printed.by_reading[name].status, own.by_reading[name].status} for name in readings]
    return any(len(pair) > 1 and not pair & _UNDECIDED for pair in statuses)


def _verdicts(
    of: Statement, printed: Sequence[Verdict], own: Sequence[Verdict], known: Judged
) -> tuple[Verdict | None, Verdict | None]:
    """The verdicts on one claim under one reading that show a difference, or else how one's own is decided."""
    best = decisive(known, own)
    by_setting = {(verdict.claim, setting): verdict for verdict in printed for setting in verdict.settings}
    pairs = [(by_setting.get((each.claim, each.setting)), each) for each in own if each.claim in deciding(of)]

    def rank(pair: tuple[Verdict | None, Verdict]) -> tuple[bool, bool]:
        statuses = {verdict.status for verdict in pair if verdict}
        return statuses != {Status.SUPPORTED, Status.REFUTED}, pair[1] is not best

    return min(pairs, key=rank, default=(None, None))


def comparison(report: Report, patterns: Sequence[str] = (), paths: Sequence[Path] = ()) -> Document:
    """An algorithm of one's own beside the printed ones: a line a statement, what does not apply, how many differ."""
    pairs = compared(report, patterns)
    differing = [pair.name for pair in pairs if pair.differs]

    def body() -> dict[str, Any]:
        about = {"system": report.own_system, "command": report.command, "seed": report.seed, "error": report.error}
        rows = [pair.to_json() for pair in pairs]
        return {**about, "differ": differing, "statements": rows, "files": [*map(str, paths)]}

    def text(_: int) -> str:
        inapplicable: dict[str, list[str]] = {}  # claims by why they do not apply
        for pair in pairs:
            for id, why in pair.inapplicable.items():
                inapplicable.setdefault(why, []).append(id)
        rows = [(pair.name, pair.printed, pair.own, *map(numbers_of, pair.verdicts)) for pair in pairs]
        published = [verdict for verdict in report.verdicts if verdict.reason.endswith(AS_RECORDED)]
        return document_text(
            "comparison.md",
            rows=rows,
            inapplicable=inapplicable,
            report=report,
            published_error=sum(verdict.error for verdict in published),
            own=report.own_system,
            paths=paths,
            differing=differing,
        )

    return Document(body, text, SCHEMA)


def numbers_of(verdict: Verdict | None) -> str:
    """What was measured, and what is claimed of it."""
    if verdict is None or not verdict.replicates:
        return ""
    return str(verdict.status) if math.isnan(verdict.observed) else f"{measured(verdict)}; {plain(claimed(verdict))}"
