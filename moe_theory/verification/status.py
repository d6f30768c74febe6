"""The status of a statement, derived from the verdicts on its claims by their roles.

Under one reading, from the verdicts of the claims that decide, `charitable` and `figure`:

1. false, where one is REFUTED;
2. not judged, where one has no verdict or its code failed;
3. open, where one is undecided;
4. vacuous, where all that apply are VACUOUS, or where all `competitor` claims are met: by something that lacks what
   the statement credits;
5. holds amended, where they hold and a `literal` claim is REFUTED: a slip, or a hypothesis that is left out;
6. holds, where they hold, one of them not vacuously.

A statement of which only `literal` claims can decide holds where they hold, and is open where they do not: a constant
of ours does not refute an O(). Claims of the other roles decide nothing. A counterexample that does not refute shows
nothing and is passed over. Under a reading that breaks the hypotheses of all deciding claims there is no status.
Readings that agree give the statement its one status; where they differ it has each of theirs. A statement that no
claim can decide, with the reason declared, is not testable.

A statement with a `disproof` is violated as printed: where its claims hold it is amended if it declares the clause
that restores it, and false if there is none, also under a reading that no claim is tested under. Where they do not
decide, it stays open which of the two it is.

Where the region that a statement leaves free was searched, its status is of the region. One that holds where it is
recorded and breaks elsewhere is amended if the search has found the clause under which it does not, or the statement
declares it, and false if there is none. One that is false where it is recorded is amended if the search has rescued it
and found such a clause, unless a disproof stands against it whose clause it does not declare.

What is known is proved where a proof says the same as the claims: the disproof of a false statement, the proof of one
that holds, holds amended or is vacuous; with a caveat where the proof supposes what the paper does not. It is exact
where nothing random enters the deciding claims, and where a single instance refutes; all else is simulated.

The cause of a false statement is isolated where every `intervention`, which takes the cause away, brings the statement
back, and no `suspect`, which takes another one away instead, does; or where a disproof exhibits the line that fails. An
intervention that is REFUTED shows that the named cause is not the cause.
"""

import dataclasses
import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from moe_theory.verification.challenged import Challenge, placed
from moe_theory.verification.verdict import Role, Statement, Status, Verdict

DECIDING = {Role.CHARITABLE, Role.FIGURE}
_INSTANCES = {"identity", "counterexample"}  # kinds that one instance refutes
_MET = {Status.SUPPORTED, Status.VACUOUS}


class StatementStatus(enum.StrEnum):
    """Status of a statement."""

    HOLDS = "holds"
    AMENDED = "holds amended"  # but for a slip, or a hypothesis that the paper leaves out
    FALSE = "false"
    VACUOUS = "vacuous"  # true of anything
    OPEN = "open"  # not decided by what was run
    NOT_JUDGED = "not judged"  # a claim that decides it was not run to a verdict
    NOT_TESTABLE = "not testable"


class Cause(enum.StrEnum):
    """What is known of the cause that a false statement's `why` names."""

    REFUTED = "not the cause"  # without it the statement fails as well
    ISOLATED = "isolated"  # without it the statement holds, and without others it does not
    EXHIBITED = "exhibited by the disproof"
    NOT_ISOLATED = "not isolated"


@dataclasses.dataclass(frozen=True)
class Finding:
    """The status of a statement under a reading."""

    status: StatementStatus
    known: str = ""  # proved, exact or simulated; nothing where it is open, not judged or not testable
    decided_by: tuple[str, ...] = ()  # ids of the claims
    judged: tuple[str, ...] = ()  # those of the statement that have a verdict
    cause: "Cause | None" = None  # of a false statement

    @property
    def words(self) -> str:
        """ "false (proved)"."""
        return f"{self.status} ({self.known})" if self.known else str(self.status)


RECORDED = "as recorded"


class Region(NamedTuple):
    """A part of what a statement leaves free, and its status there."""

    reading: str
    where: str
    status: str
    known: str


@dataclasses.dataclass(frozen=True)
class Judged:
    """A statement with what is known of it."""

    statement: Statement
    by_reading: dict[str, Finding]  # by the setting of its verdicts; none where no claim of it was judged
    broken: tuple[str, ...] = ()  # settings in which its hypotheses fail
    search: Challenge | None = None  # of its region, where it was searched
    recorded: dict[str, Finding] = dataclasses.field(default_factory=dict)  # at the recorded settings, by setting

    @property
    def regions(self) -> list["Region"]:
        """Where of what it leaves free it has which status: as recorded, at each setting that flips, and under the
        clause; the first alone where its region was not searched.
        """
        found = [Region(reading, RECORDED, str(each.status), each.known) for reading, each in self.recorded.items()]
        search = self.search
        if search is None:
            return found
        status = StatementStatus.FALSE if search.sought == "break" else StatementStatus.HOLDS
        for reading in self.recorded:
            flips = search.flips_under(reading)
            found += [Region(reading, placed(flip.setting), str(status), "simulated") for flip in flips]
            if flips and search.clause and search.restores(reading):
                found.append(Region(reading, search.clause.words, str(StatementStatus.HOLDS), "searched"))
        return found

    @property
    def fails(self) -> bool:
        """Whether it is false or vacuous, under every reading."""
        return self.finding is not None and self.finding.status in {StatementStatus.FALSE, StatementStatus.VACUOUS}

    @property
    def missing(self) -> list[str]:
        """The claims that decide and that were not judged under any reading."""
        judged = {id for each in self.by_reading.values() for id in each.judged}
        return [id for id in deciding(self.statement) if id not in judged]

    @property
    def finding(self) -> Finding | None:
        """The one finding of all readings; None where they differ, or where all of them break its hypotheses."""
        found = list(self.by_reading.values())
        if not found:
            if self.statement.untestable:
                return Finding(StatementStatus.NOT_TESTABLE)
            return None if self.broken else Finding(StatementStatus.NOT_JUDGED)
        if len({each.status for each in found}) > 1:
            return None
        known = {each.known for each in found}
        ids = dict.fromkeys(id for each in found for id in each.decided_by)
        return Finding(found[0].status, known.pop() if len(known) == 1 else "simulated", tuple(ids))

    @property
    def cause(self) -> Cause | None:
        """What is known of its cause where it is false, under the reading that says most."""
        found = {each.cause for each in self.by_reading.values()}
        return next((each for each in Cause if each in found), None)

    @property
    def words(self) -> str:
        """ "false (exact)", or "false under unit-signal, holds under strong-signal"."""
        named = {
            status: [name for name, each in self.by_reading.items() if each.status is status]
            for status in StatementStatus
        }
        said = [f"{status} under {listed(names)}" for status, names in named.items() if names]
        if self.finding is not None:
            said = [self.finding.words]
        return ", ".join([*said, *([f"not applicable under {listed(list(self.broken))}"] if self.broken else [])])


def judged(statement: Statement, verdicts: Iterable[Verdict], search: Challenge | None = None) -> Judged:
    """The statement's status by reading, from those of the verdicts that are on its claims, and over the region that
    was searched.
    """
    by_reading: dict[str, dict[str, Verdict]] = {}
    for verdict in verdicts:
        for setting in verdict.settings if verdict.claim in statement.roles else ():
            by_reading.setdefault(setting, {})[verdict.claim] = verdict
    point = {reading: find(statement, own) for reading, own in by_reading.items()}
    found = point
    if search is not None:
        found = {reading: find(statement, own, search, reading) for reading, own in by_reading.items()}
    known, point = ({name: each for name, each in of.items() if each is not None} for of in (found, point))
    return Judged(statement, known, tuple(reading for reading in found if reading not in known), search, point)


def deciding(statement: Statement) -> list[str]:
    """Ids of the claims that decide a statement: its charitable ones and sentences about figures, else literal ones."""
    chosen = [id for id, role in statement.roles.items() if role in DECIDING]
    return chosen or [id for id, role in statement.roles.items() if role is Role.LITERAL]


def find(
    statement: Statement, verdicts: Mapping[str, Verdict], search: Challenge | None = None, reading: str = ""
) -> Finding | None:
    """The status under one reading, from its verdicts by claim, and over the region that a search looked at under it;
    None where the hypotheses fail.
    """
    found = _find(statement, verdicts)
    if found is not None and search is not None:
        found = _over_region(found, search, reading, search.restores(reading) or bool(statement.amendment))
    found = _broken(statement, found)
    if found is None:
        return None
    cause = _cause(statement, verdicts) if found.status is StatementStatus.FALSE else None
    return dataclasses.replace(_proved(statement, found), judged=tuple(verdicts), cause=cause)


def _over_region(found: Finding, search: Challenge, reading: str, is_restored: bool) -> Finding:
    """The finding at the recorded point, once what the search has flipped under the reading is known."""
    is_flipped = bool(search.flips_under(reading))
    if search.sought == "break" and found.status in _STANDS and is_flipped:
        status = StatementStatus.AMENDED if is_restored else StatementStatus.FALSE
        return dataclasses.replace(found, status=status, known="simulated")
    if search.sought == "rescue" and found.status is StatementStatus.FALSE and is_flipped and search.restores(reading):
        return dataclasses.replace(found, status=StatementStatus.AMENDED, known="simulated")
    return found


_STANDS = {StatementStatus.HOLDS, StatementStatus.AMENDED}
PROVED, CAVEATED = "proved", "proved, with a caveat"


def _broken(statement: Statement, found: Finding | None) -> Finding | None:
    """The finding where a disproof breaks what is printed: false, or amended where a clause restores it."""
    if not statement.disproof or (found is not None and found.status not in _STANDS):
        return found
    if not statement.amendment:
        return dataclasses.replace(found or Finding(StatementStatus.FALSE), status=StatementStatus.FALSE)
    return found and dataclasses.replace(found, status=StatementStatus.AMENDED)


def _proved(statement: Statement, found: Finding) -> Finding:
    """The finding, known by a proof where there is one of its status."""
    shown = {
        StatementStatus.FALSE: statement.disproof,
        StatementStatus.HOLDS: statement.proof,
        StatementStatus.AMENDED: statement.proof,
        StatementStatus.VACUOUS: statement.proof,
    }.get(found.status)
    return found if shown is None else dataclasses.replace(found, known=CAVEATED if shown.caveat else PROVED)


def _find(statement: Statement, verdicts: Mapping[str, Verdict]) -> Finding | None:
    asked = deciding(statement)
    if statement.untestable or not asked:
        return Finding(StatementStatus.NOT_TESTABLE if statement.untestable else StatementStatus.NOT_JUDGED)
    papers = {id.partition(".")[0] for id in verdicts}  # another paper's claims have other readings
    missing = [id for id in asked if id not in verdicts and id.partition(".")[0] in papers]
    found = [verdicts[id] for id in asked if id in verdicts]
    known = [each for each in found if each.status is not Status.INAPPLICABLE and not _shows_nothing(each)]
    refuted = [each for each in known if each.status is Status.REFUTED]
    if refuted and statement.roles[asked[0]] in DECIDING:
        return _finding(StatementStatus.FALSE, refuted, any)
    if missing or any(each.status is Status.ERROR for each in known):
        return Finding(StatementStatus.NOT_JUDGED)
    if not all(each.status in _MET for each in known):
        return Finding(StatementStatus.OPEN)
    if not known:
        is_broken = found and all(each.status is Status.INAPPLICABLE for each in found)
        return None if is_broken else Finding(StatementStatus.OPEN)
    if all(each.status is Status.VACUOUS for each in known):
        return _finding(StatementStatus.VACUOUS, known, all)
    asked = [id for id, role in statement.roles.items() if role is Role.COMPETITOR]
    rivals = _in_role(statement, Role.COMPETITOR, verdicts)
    if asked and len(rivals) == len(asked) and all(each.status in _MET for each in rivals):
        return _finding(StatementStatus.VACUOUS, [*known, *rivals], all)
    literal = [verdicts[id] for id, role in statement.roles.items() if role is Role.LITERAL and id in verdicts]
    slips = [each for each in literal if each.status is Status.REFUTED]
    return _finding(StatementStatus.AMENDED if slips else StatementStatus.HOLDS, [*known, *slips], all)


def _in_role(statement: Statement, role: Role, verdicts: Mapping[str, Verdict]) -> list[Verdict]:
    """The verdicts of a statement's claims in a role that apply, in the order of declaration."""
    found = [verdicts[id] for id, own in statement.roles.items() if own is role and id in verdicts]
    return [each for each in found if each.status is not Status.INAPPLICABLE]


def _cause(statement: Statement, verdicts: Mapping[str, Verdict]) -> Cause:
    without, others = (_in_role(statement, role, verdicts) for role in (Role.INTERVENTION, Role.SUSPECT))
    if any(each.status is Status.REFUTED for each in without):
        return Cause.REFUTED
    is_back = without and all(each.status is Status.SUPPORTED for each in without)
    if is_back and not any(each.status is Status.SUPPORTED for each in others):
        return Cause.ISOLATED
    return Cause.EXHIBITED if statement.disproof else Cause.NOT_ISOLATED


def _finding(status: StatementStatus, verdicts: Sequence[Verdict], quantifier: Callable[..., bool]) -> Finding:
    is_exact = quantifier(_is_exact(verdict) for verdict in verdicts)
    return Finding(status, "exact" if is_exact else "simulated", tuple(verdict.claim for verdict in verdicts))


def _is_exact(verdict: Verdict) -> bool:
    return verdict.is_computed or (verdict.status is Status.REFUTED and verdict.kind in _INSTANCES)


def _shows_nothing(verdict: Verdict) -> bool:
    return verdict.kind == "counterexample" and verdict.status is Status.INCONCLUSIVE


def listed(words: Sequence[str]) -> str:
    """ "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
