"""The status of a statement, derived from its claims' verdicts by role.

Under one reading, from the deciding claims, `charitable` and `figure`:

1. false, if any is REFUTED,
2. not judged, if any has no verdict or its code failed,
3. open, if any is undecided, or if all `competitor` claims are met, by a system without the property that the
   statement credits, so that the tests cannot tell,
4. vacuous, if all applicable claims are VACUOUS,
5. holds amended, if they hold and a `literal` claim is REFUTED,
6. holds, if they hold, one of them not vacuously.

A statement with only `literal` claims is false if all of them are REFUTED, and open if only some are. Other roles, and
counterexamples that do not refute, decide nothing. A reading that breaks all deciding claims' hypotheses gives no
status, and disagreeing readings give one each. A statement without deciding claims is not testable if no
computation can decide it, and open if one can, each with a declared reason.

A statement with a `disproof` is false without a clause that restores it, also if its claims are undecided and under
untested readings. With such a clause it is amended, also if its claims are undecided.

A search extends the status to the free region. A statement that holds as recorded and breaks elsewhere is amended with
a declared or found clause without breaks, and else false. A statement that is false as recorded is amended if the
search has rescued it and found such a clause, unless it has a disproof and declares no clause.

A status is proved if a disproof or proof agrees with the claims. It has a caveat if the proof assumes more than the
paper. It is exact if the deciding claims have no randomness, or if a single instance refutes. All others are simulated.

The cause of a false statement is isolated if every `intervention`, which removes the cause, restores the statement, and
no `suspect`, which removes another cause, does. A disproof exhibits the failing line, and a REFUTED intervention shows
that the cause is another.
"""

import dataclasses
import enum
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence

from moe_theory.core.papers import declaration_of, paper_names, paper_package
from moe_theory.verification.challenged import Challenge
from moe_theory.verification.texts import PaperTexts, paper_texts
from moe_theory.verification.verdict import Role, Statement, Status, Verdict

DECIDING = {Role.CHARITABLE, Role.FIGURE}
_INSTANCES = {"identity", "counterexample"}  # kinds that one instance refutes
_MET = {Status.SUPPORTED, Status.VACUOUS}


class StatementStatus(enum.StrEnum):
    HOLDS = "holds"
    AMENDED = "holds amended"  # with a correction, or a hypothesis that the paper leaves out
    FALSE = "false"
    VACUOUS = "vacuous"  # true of anything
    OPEN = "open"  # not decided by the runs
    NOT_JUDGED = "not judged"  # a claim that decides it was not run to a verdict
    NOT_TESTABLE = "not testable"


class Cause(enum.StrEnum):
    """Evidence for the cause in a statement's `why`, the strongest first."""

    REFUTED = "not the cause"  # without it the statement fails as well
    ISOLATED = "isolated"  # without it the statement holds, and without others it does not
    EXHIBITED = "exhibited by the disproof"
    NOT_ISOLATED = "not isolated"


@dataclasses.dataclass(frozen=True)
class Finding:
    status: StatementStatus
    known: str = ""  # proved, exact or simulated; nothing where it is open, not judged or not testable
    decided_by: tuple[str, ...] = ()  # ids of the claims
    judged: tuple[str, ...] = ()  # ids of its claims that have a verdict
    cause: Cause | None = None  # of a false statement

    @property
    def words(self) -> str:
        if self.known:
            return f"{self.status} ({self.known})"
        return str(self.status)


PROVED = "proved"
CAVEATED = "proved, with a caveat"
_TRUE = {StatementStatus.HOLDS, StatementStatus.AMENDED}


@dataclasses.dataclass(frozen=True)
class Judged:
    statement: Statement
    by_reading: dict[str, Finding]  # by the setting of its verdicts; none where no claim of it was judged
    broken: tuple[str, ...] = ()  # settings in which its hypotheses fail
    search: Challenge | None = None  # of its region, where it was searched

    @property
    def fails(self) -> bool:
        """True if it is false or vacuous, under every reading."""
        return self.finding is not None and self.finding.status in {StatementStatus.FALSE, StatementStatus.VACUOUS}

    @property
    def missing(self) -> list[str]:
        """Deciding claims without any test."""
        judged = set(itertools.chain.from_iterable(finding.judged for finding in self.by_reading.values()))
        return [id for id in deciding(self.statement) if id not in judged]

    @property
    def finding(self) -> Finding | None:
        """Common finding of all readings, or None if they differ or break the hypotheses."""
        findings = list(self.by_reading.values())
        if not findings:
            if self.broken and not (self.statement.untestable or self.statement.undecided):
                return None
            return Finding(_status_without_claims(self.statement))
        if len({finding.status for finding in findings}) > 1:
            return None
        evidence = {finding.known for finding in findings}
        ids = dict.fromkeys(itertools.chain.from_iterable(finding.decided_by for finding in findings))
        return Finding(findings[0].status, evidence.pop() if len(evidence) == 1 else "simulated", tuple(ids))

    @property
    def cause(self) -> Cause | None:
        """Evidence on the cause of a false statement, under the reading with the strongest."""
        causes = {finding.cause for finding in self.by_reading.values()}
        return next((cause for cause in Cause if cause in causes), None)

    @property
    def words(self) -> str:
        """ "false (exact)", or "false under unit-signal, holds under strong-signal"."""
        parts = [] if self.finding is None else [self.finding.words]
        for status in () if parts else StatementStatus:
            readings = [reading for reading, finding in self.by_reading.items() if finding.status is status]
            if readings:
                parts.append(f"{status} under {listed(readings)}")
        if self.broken:
            parts.append(f"not applicable under {listed(list(self.broken))}")
        return ", ".join(parts)


def judged(statement: Statement, verdicts: Iterable[Verdict], search: Challenge | None = None) -> Judged:
    """Return the statement's status by reading, from verdicts and a search."""
    by_reading: dict[str, dict[str, Verdict]] = {}
    for verdict in verdicts:
        if verdict.claim in statement.roles:
            for setting in verdict.settings:
                by_reading.setdefault(setting, {})[verdict.claim] = verdict
    findings = {reading: find(statement, by_claim, search, reading) for reading, by_claim in by_reading.items()}
    broken = tuple(reading for reading, finding in findings.items() if finding is None)
    applicable = {reading: finding for reading, finding in findings.items() if finding is not None}
    return Judged(statement, applicable, broken, search)


def deciding(statement: Statement) -> list[str]:
    """Return the ids of the deciding claims: charitable and figure, else literal."""
    ids = [id for id, role in statement.roles.items() if role in DECIDING]
    return ids or [id for id, role in statement.roles.items() if role is Role.LITERAL]


def find(
    statement: Statement, verdicts: Mapping[str, Verdict], search: Challenge | None = None, reading: str = ""
) -> Finding | None:
    """Return the status under a reading, or None if hypotheses fail."""
    finding = _find(statement, verdicts)
    if finding is not None and search is not None and search.flips_under(reading):
        is_restored = search.restores(reading)
        if search.sought == "rescue" and finding.status is StatementStatus.FALSE and is_restored:
            finding = dataclasses.replace(finding, status=StatementStatus.AMENDED, known="simulated")
        elif search.sought == "break" and finding.status in _TRUE:
            status = StatementStatus.AMENDED if is_restored or statement.amendment else StatementStatus.FALSE
            finding = dataclasses.replace(finding, status=status, known="simulated")
    finding = _broken(statement, finding)
    if finding is None:
        return None
    proofs = {StatementStatus.FALSE: statement.disproof}
    proofs |= dict.fromkeys((*_TRUE, StatementStatus.VACUOUS), statement.proof)
    proof = proofs.get(finding.status)
    if proof is not None:
        finding = dataclasses.replace(finding, known=CAVEATED if proof.caveat else PROVED)
    cause = _cause(statement, verdicts) if finding.status is StatementStatus.FALSE else None
    return dataclasses.replace(finding, judged=tuple(verdicts), cause=cause)


def _broken(statement: Statement, finding: Finding | None) -> Finding | None:
    if not statement.disproof or (finding is not None and finding.status not in {*_TRUE, StatementStatus.OPEN}):
        return finding
    if not statement.amendment:
        finding = finding or Finding(StatementStatus.FALSE)
        return dataclasses.replace(finding, status=StatementStatus.FALSE)
    if finding is None:
        return finding
    return dataclasses.replace(finding, status=StatementStatus.AMENDED)


def _status_without_claims(statement: Statement) -> StatementStatus:
    """Return the status of a statement that no verdict decides."""
    if statement.untestable:
        return StatementStatus.NOT_TESTABLE
    if statement.undecided:
        return StatementStatus.OPEN
    return StatementStatus.NOT_JUDGED


def _find(statement: Statement, verdicts: Mapping[str, Verdict]) -> Finding | None:
    ids = deciding(statement)
    if not ids:
        return Finding(_status_without_claims(statement))
    papers = {id.partition(".")[0] for id in verdicts}  # another paper's claims have other readings
    missing = [id for id in ids if id not in verdicts and id.partition(".")[0] in papers]
    deciders = [verdicts[id] for id in ids if id in verdicts]
    telling = []
    for verdict in deciders:
        shows_nothing = verdict.kind == "counterexample" and verdict.status is Status.INCONCLUSIVE
        if verdict.status is not Status.INAPPLICABLE and not shows_nothing:
            telling.append(verdict)
    refuted = [verdict for verdict in telling if verdict.status is Status.REFUTED]
    is_all_refuted = bool(refuted) and not missing and len(refuted) == len(telling)
    if is_all_refuted or (refuted and statement.roles[ids[0]] in DECIDING):
        return _finding(StatementStatus.FALSE, refuted, any)
    if missing or any(verdict.status is Status.ERROR for verdict in telling):
        return Finding(StatementStatus.NOT_JUDGED)
    if not all(verdict.status in _MET for verdict in telling):
        return Finding(StatementStatus.OPEN)
    if not telling:
        if deciders and all(verdict.status is Status.INAPPLICABLE for verdict in deciders):
            return None
        return Finding(StatementStatus.OPEN)
    if all(verdict.status is Status.VACUOUS for verdict in telling):
        return _finding(StatementStatus.VACUOUS, telling, all)
    competitors = [id for id, role in statement.roles.items() if role is Role.COMPETITOR]
    rivals = _in_role(statement, Role.COMPETITOR, verdicts)
    if competitors and len(rivals) == len(competitors) and all(verdict.status in _MET for verdict in rivals):
        return Finding(StatementStatus.OPEN)  # the tests cannot tell
    literal = [verdicts[id] for id, role in statement.roles.items() if role is Role.LITERAL and id in verdicts]
    slips = [verdict for verdict in literal if verdict.status is Status.REFUTED]
    return _finding(StatementStatus.AMENDED if slips else StatementStatus.HOLDS, [*telling, *slips], all)


def _in_role(statement: Statement, role: Role, verdicts: Mapping[str, Verdict]) -> list[Verdict]:
    in_role = [verdicts[id] for id, own_role in statement.roles.items() if own_role is role and id in verdicts]
    return [verdict for verdict in in_role if verdict.status is not Status.INAPPLICABLE]


def _cause(statement: Statement, verdicts: Mapping[str, Verdict]) -> Cause:
    interventions = _in_role(statement, Role.INTERVENTION, verdicts)
    suspects = _in_role(statement, Role.SUSPECT, verdicts)
    if any(verdict.status is Status.REFUTED for verdict in interventions):
        return Cause.REFUTED
    is_restored = interventions and all(verdict.status is Status.SUPPORTED for verdict in interventions)
    if is_restored and not any(verdict.status is Status.SUPPORTED for verdict in suspects):
        return Cause.ISOLATED
    if statement.disproof:
        return Cause.EXHIBITED
    return Cause.NOT_ISOLATED


def _finding(status: StatementStatus, verdicts: Sequence[Verdict], quantifier: Callable[..., bool]) -> Finding:
    is_exact = quantifier(
        verdict.is_computed or (verdict.status is Status.REFUTED and verdict.kind in _INSTANCES) for verdict in verdicts
    )
    return Finding(status, "exact" if is_exact else "simulated", tuple(verdict.claim for verdict in verdicts))


def listed(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def premises_of(name: str) -> tuple[str, ...]:
    """Return the names of the statements that a statement's proof uses."""
    paper, _, id = name.partition(".")
    return tuple(f"{paper}.{premise}" for premise in texts_of(paper).premises.get(id, ()))


def failing_premises(judgements: Sequence[Judged]) -> dict[str, tuple[str, ...]]:
    """Return the premises of each statement's proof that are false or vacuous, by the statement's name.

    The proof then fails, but the statement may hold for another reason.
    """
    names = [judgement.statement.name for judgement in judgements]
    failing = {judgement.statement.name for judgement in judgements if judgement.fails}
    return {name: tuple(filter(failing.__contains__, premises_of(name))) for name in names}


def texts_of(paper: str) -> PaperTexts:
    if paper not in paper_names():
        return PaperTexts()
    return paper_texts(declaration_of(paper).get("statements") or paper_package(paper))
