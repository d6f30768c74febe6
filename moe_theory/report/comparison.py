"""An algorithm of one's own beside a paper's, by statement: what `verify --system` found and what is recorded.

Both statuses are compared by runs alone, since a proof is of the printed algorithm, and by those claims alone that
apply to both.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import RenderableType

from moe_theory.core.errors import DamagedError, unknown_name
from moe_theory.plot.document import Document, ruled
from moe_theory.plot.symbols import plain
from moe_theory.report.pages import read_reports
from moe_theory.report.verdicts import STATUS_STYLES
from moe_theory.report.wording import claimed, decisive, measured, statement_status, summary
from moe_theory.verify.catalog import matching
from moe_theory.verify.recorded import recorded_searches, recorded_verdicts
from moe_theory.verify.statement import declared
from moe_theory.verify.status import Judged, StatementStatus, deciding, judged
from moe_theory.verify.variant import Variant
from moe_theory.verify.verdict import OWN_SYSTEM, Report, Statement, Status, Verdict

SCHEMA = "moe-theory/system/1"
_UNDECIDED = {StatementStatus.OPEN, StatementStatus.NOT_JUDGED, StatementStatus.NOT_TESTABLE}


class StatementPair(NamedTuple):
    """A statement of the printed algorithm and of one's own."""

    recorded: Judged  # with its proofs, and over the region that was searched
    printed: Judged  # by the recorded runs alone
    own: Judged
    numbers: tuple[Verdict | None, Verdict | None]  # on one claim under one reading, printed and own
    apart: dict[str, str]  # claims that do not apply to one's own, each with why

    @property
    def name(self) -> str:
        return self.own.statement.name

    @property
    def differs(self) -> bool:
        """Whether both are decided under a reading, and otherwise."""
        return any(a is not b for a, b in self._statuses if not {a, b} & _UNDECIDED)

    @property
    def is_lost(self) -> bool:
        """Whether one's own is not decided under a reading where the printed one is."""
        return any(a not in _UNDECIDED and b in _UNDECIDED for a, b in self._statuses)

    @property
    def _statuses(self) -> list[tuple[StatementStatus, StatementStatus]]:
        """The printed one's and one's own, under each reading that both have one under."""
        printed = self.printed.by_reading
        return [(printed[each].status, own.status) for each, own in self.own.by_reading.items() if each in printed]

    @property
    def printed_words(self) -> str:
        """ "false (proved); by runs alone holds (simulated)"."""
        said, alone = (
            {name: each.status for name, each in of.by_reading.items()} for of in (self.recorded, self.printed)
        )
        return self.recorded.words if said == alone else f"{self.recorded.words}; by runs alone {self.printed.words}"

    @property
    def own_words(self) -> str:
        return self.own.words if self.own.by_reading or not self.apart else "does not apply"

    def to_json(self) -> dict[str, Any]:
        sides = {"printed": (self.printed, self.numbers[0]), "own": (self.own, self.numbers[1])}
        found = {
            side: {
                "status": statement_status(known) if known.by_reading else None,
                "status_by_reading": {reading: str(each.status) for reading, each in known.by_reading.items()},
                "verdict": None if verdict is None else verdict.to_json(),
            }
            for side, (known, verdict) in sides.items()
        }
        found["printed"]["recorded"] = self.printed_words
        return {"statement": self.name, "differs": self.differs, **found, "does_not_apply": self.apart}


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
    every, searches = recorded_verdicts(report.statements), recorded_searches(report.statements)
    whole = {each.name: each.plain for each in declared()}
    chosen = []
    for pattern in patterns:
        if not (found := matching(pattern, report.statements)):
            raise unknown_name("statement", pattern, [each.name for each in report.statements])
        chosen += found
    own = [dataclasses.replace(each, **_readings(each)) for each in report.verdicts]
    as_run = {id(each): verdict for each, verdict in zip(own, report.verdicts, strict=True)}
    settings = {setting for each in own for setting in each.settings}
    held = [each.held_for(settings) for each in every if settings & set(each.settings)]
    pairs = []
    for each in {each.name: each for each in chosen or report.statements}.values():
        mine = [verdict for verdict in own if verdict.claim in each.roles]
        apart = [verdict for verdict in mine if verdict.status is Status.INAPPLICABLE and not verdict.replicates]
        left = {verdict.claim for verdict in apart}
        known = [*apart, *(verdict for verdict in held if verdict.claim in each.roles and verdict.claim not in left)]
        its, on_own = whole.get(each.name, each), judged(each, mine)
        of_printed, of_own = _numbers(each, known, mine, decisive(on_own, mine))
        pairs.append(
            StatementPair(
                recorded=judged(its, held, searches.get(each.name)),
                printed=judged(each, known),
                own=on_own,
                numbers=(of_printed, of_own and as_run[id(of_own)]),
                apart={verdict.claim: verdict.reason.partition("(")[2].rstrip(")") for verdict in apart},
            )
        )
    return pairs


def _readings(verdict: Verdict) -> dict[str, Any]:
    """The readings of a verdict on an algorithm of one's own, as those on the printed one have them."""
    reading, *also = (each.partition(f", {OWN_SYSTEM}")[0] for each in (verdict.reading, *verdict.also))
    return {"reading": reading, "also": also}


def _numbers(
    of: Statement, known: Sequence[Verdict], mine: Sequence[Verdict], best: Verdict | None
) -> tuple[Verdict | None, Verdict | None]:
    """The verdicts on one claim under one reading that show a difference, or else how one's own is decided."""
    printed = {(each.claim, setting): each for each in known for setting in each.settings}
    pairs = [(printed.get((each.claim, each.setting)), each) for each in mine if each.claim in deciding(of)]

    def rank(pair: tuple[Verdict | None, Verdict]) -> tuple[bool, bool]:
        return {each.status for each in pair if each} != _OPPOSED, pair[1] is not best

    return min(pairs, key=rank, default=(None, None))


_OPPOSED = {Status.SUPPORTED, Status.REFUTED}


def comparison(report: Report, patterns: Sequence[str] = (), paths: Sequence[Path] = ()) -> Document:
    """An algorithm of one's own beside the printed ones: a line a statement, what does not apply, how many differ."""
    pairs = compared(report, patterns)
    differing = [each.name for each in pairs if each.differs]

    def body() -> dict[str, Any]:
        about = {"system": report.own_system, "command": report.command, "seed": report.seed, "error": report.error}
        rows = [each.to_json() for each in pairs]
        return {**about, "differ": differing, "statements": rows, "files": [*map(str, paths)]}

    def parts(width: int) -> Iterator[RenderableType]:
        del width
        own = report.own_system
        columns = ("statement", "printed", own, "measured: printed", f"measured: {own}")
        rows = [(each.name, each.printed_words, each.own_words, *map(numbers_of, each.numbers)) for each in pairs]
        styles = [
            STATUS_STYLES.get(statement_status(each.own)) if each.differs or each.is_lost else "dim" for each in pairs
        ]
        yield ruled(columns, rows, whole=("statement",), folded=columns[1:], styles=styles)
        yield from _apart(pairs)
        yield f"claims: {summary(report.verdicts)}, any of them wrong with probability at most {report.error:.4g}"
        yield from [f"report: {paths[0]}"] if paths else []
        yield _closing(pairs, own)

    return Document(body, parts, SCHEMA)


def numbers_of(verdict: Verdict | None) -> str:
    """What was measured, and what is claimed of it."""
    if verdict is None or not verdict.replicates:
        return ""
    return str(verdict.status) if math.isnan(verdict.observed) else f"{measured(verdict)}; {plain(claimed(verdict))}"


def _apart(pairs: Sequence[StatementPair]) -> Iterator[str]:
    """Which claims do not apply, by the reason."""
    by_reason: dict[str, dict[str, None]] = {}
    for id, why in (item for each in pairs for item in each.apart.items()):
        by_reason.setdefault(why, {})[id] = None
    for why, ids in by_reason.items():
        yield f"does not apply ({why}): {', '.join(ids)}"


def _closing(pairs: Sequence[StatementPair], own: str) -> str:
    """How many statements differ, are left open or have no status, by name where that is of the algorithm."""
    differing, lost = [each.name for each in pairs if each.differs], [each.name for each in pairs if each.is_lost]
    apart = [each.name for each in pairs if not each.own.by_reading]
    said = [f"{len(differing)} of {len(pairs)} statements differ from the printed algorithm's{_named(differing)}"]
    said += [f"decided there and not of {own}: {len(lost)}{_named(lost)}"] if lost else []
    said += [f"without a status of {own}: {len(apart)}"] if apart else []
    return "; ".join(said)


def _named(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""
