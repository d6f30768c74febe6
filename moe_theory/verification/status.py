"""The status of a statement, derived from the verdicts on its claims by role.

Under one reading, the deciding claims are `charitable` and `figure`. The status is

1. false, if any is REFUTED,
2. not judged, if any has no verdict or its code failed,
3. open, if any is undecided, or if all `competitor` claims hold. A competitor lacks the property that the statement
   credits, so the tests then cannot tell,
4. vacuous, if all applicable claims are VACUOUS,
5. holds amended, if they hold but a `literal` claim is REFUTED,
6. holds, if they hold and at least one is not vacuous.

If a statement has only `literal` claims, it is false if all of them are REFUTED, and open if only some are. Other
roles, and counterexamples that do not refute, decide nothing. A reading that violates the hypotheses of all deciding
claims gives no status, and readings that disagree give separate statuses. A statement without deciding claims and
without a disproof is not testable if computation cannot decide it, and otherwise open. Both need a declared reason.

A statement with a `disproof` is false unless a clause restores it, and amended if one does. This holds even if it has
no claims or its claims are undecided, and without a clause also under untested readings.

A search extends the status to the free parameters. A statement that holds at the recorded setting but fails elsewhere
is amended if a declared or found clause excludes all failures, and otherwise false. A statement that is false at the
recorded setting is amended if the search found a clause and settings where it holds. A disproof needs a declared one.

A status is proved if a disproof or proof agrees with the claims, with a caveat if the proof assumes more than the
paper. It is exact if the deciding claims have no randomness or a single instance refutes. Others are simulated.

An `intervention` removes the cause of a false statement, and a `suspect` removes another possible cause. The cause is
isolated if every intervention restores the statement and no suspect does. A disproof exhibits the failing line. A
REFUTED intervention shows that the cause is different.
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
_INSTANCES = {"identity", "counterexample"}  # kinds that a single instance can refute
_MET = {Status.SUPPORTED, Status.VACUOUS}  # statuses of claims that hold


class StatementStatus(enum.StrEnum):
    HOLDS = "holds"
    AMENDED = "holds amended"  # true with a correction or an extra hypothesis
    FALSE = "false"
    VACUOUS = "vacuous"  # trivially true
    OPEN = "open"  # the runs do not decide
    NOT_JUDGED = "not judged"  # a deciding claim has no verdict
    NOT_TESTABLE = "not testable"


class Cause(enum.StrEnum):
    """Evidence for the cause in a statement's `why`, from the strongest to the weakest."""

    REFUTED = "not the cause"  # without it the statement still fails
    ISOLATED = "isolated"  # without it the statement holds, but not without other causes
    EXHIBITED = "exhibited by the disproof"
    NOT_ISOLATED = "not isolated"


@dataclasses.dataclass(frozen=True)
class Finding:
    status: StatementStatus
    known: str = ""  # proved, exact or simulated. Empty if it is open, not judged or not testable
    decided_by: tuple[str, ...] = ()  # ids of the claims
    judged: tuple[str, ...] = ()  # ids of its claims with a verdict
    cause: Cause | None = None  # cause of a false statement

    @property
    def words(self) -> str:
        if self.known:
            return f"{self.status} ({self.known})"
        return str(self.status)


PROVED = "proved"
CAVEATED = "proved, with a caveat"
_TRUE = {StatementStatus.HOLDS, StatementStatus.AMENDED}  # statuses of statements that hold, if amended


@dataclasses.dataclass(frozen=True)
class Judged:
    statement: Statement
    by_reading: dict[str, Finding]  # by the setting of its verdicts. Empty if it has no verdicts
    broken: tuple[str, ...] = ()  # settings in which its hypotheses fail
    search: Challenge | None = None  # search of its free parameters, if there is one

    @property
    def fails(self) -> bool:
        return self.finding is not None and self.finding.status in {StatementStatus.FALSE, StatementStatus.VACUOUS}

    @property
    def missing(self) -> list[str]:
        """Ids of deciding claims without a verdict."""
        judged = set(itertools.chain.from_iterable(finding.judged for finding in self.by_reading.values()))
        return [id for id in deciding(self.statement) if id not in judged]

    @property
    def finding(self) -> Finding | None:
        """The common finding of all readings, or None if they differ or violate the hypotheses."""
        findings = list(self.by_reading.values())
        if not findings:
            if self.broken and not (self.statement.untestable or self.statement.undecided):
                return None
            status = _status_without_claims(self.statement)
            return _with_proof(self.statement, Finding(status))
        if len({finding.status for finding in findings}) > 1:
            return None
        evidence = {finding.known for finding in findings}
        ids = dict.fromkeys(itertools.chain.from_iterable(finding.decided_by for finding in findings))
        known = evidence.pop() if len(evidence) == 1 else "simulated"  # the weakest
        return Finding(findings[0].status, known, decided_by=tuple(ids))

    @property
    def cause(self) -> Cause | None:
        """The strongest evidence of any reading on the cause of a false statement."""
        causes = {finding.cause for finding in self.by_reading.values()}
        return next((cause for cause in Cause if cause in causes), None)

    @property
    def words(self) -> str:
        """The status in words, such as "false (exact)" or "false under unit-signal, holds under strong-signal"."""
        if self.finding is not None:
            parts = [self.finding.words]
        else:
            parts = []
            for status in StatementStatus:
                readings = [reading for reading, finding in self.by_reading.items() if finding.status is status]
                if readings:
                    parts.append(f"{status} under {listed(readings)}")
        if self.broken:
            parts.append(f"not applicable under {listed(list(self.broken))}")
        return ", ".join(parts)


def judged(statement: Statement, verdicts: Iterable[Verdict], search: Challenge | None = None) -> Judged:
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
    """Return the ids of the deciding claims, which are the charitable and figure claims or else the literal ones."""
    ids = [id for id, role in statement.roles.items() if role in DECIDING]
    return ids or [id for id, role in statement.roles.items() if role is Role.LITERAL]


def find(
    statement: Statement, verdicts: Mapping[str, Verdict], search: Challenge | None = None, reading: str = ""
) -> Finding | None:
    """Return the status under a reading, or None if its hypotheses fail."""
    finding = _finding_of_claims(statement, verdicts)
    if finding is not None and search is not None and search.flips_under(reading):
        is_restored = search.restores(reading)
        if search.sought == "rescue" and finding.status is StatementStatus.FALSE and is_restored:
            finding = dataclasses.replace(finding, status=StatementStatus.AMENDED, known="simulated")
        elif search.sought == "break" and finding.status in _TRUE:
            status = StatementStatus.AMENDED if is_restored or statement.amendment else StatementStatus.FALSE
            finding = dataclasses.replace(finding, status=status, known="simulated")
    finding = _with_disproof(statement, finding)
    if finding is None:
        return None
    finding = _with_proof(statement, finding)
    cause = _cause(statement, verdicts) if finding.status is StatementStatus.FALSE else None
    return dataclasses.replace(finding, judged=tuple(verdicts), cause=cause)


def _with_disproof(statement: Statement, finding: Finding | None) -> Finding | None:
    """Return the finding, which a disproof changes if the claims leave the statement open or support it."""
    if not statement.disproof:
        return finding
    if finding is None:
        return None if statement.amendment else Finding(StatementStatus.FALSE)
    if finding.status not in {*_TRUE, StatementStatus.OPEN}:
        return finding
    status = StatementStatus.AMENDED if statement.amendment else StatementStatus.FALSE
    return dataclasses.replace(finding, status=status)


def _with_proof(statement: Statement, finding: Finding) -> Finding:
    proof = None
    if finding.status is StatementStatus.FALSE:
        proof = statement.disproof
    elif finding.status in {*_TRUE, StatementStatus.VACUOUS}:
        proof = statement.proof
    if proof is None:
        return finding
    known = CAVEATED if proof.caveat else PROVED
    return dataclasses.replace(finding, known=known)


def _status_without_claims(statement: Statement) -> StatementStatus:
    if statement.disproof and not deciding(statement):
        return StatementStatus.AMENDED if statement.amendment else StatementStatus.FALSE
    if statement.untestable:
        return StatementStatus.NOT_TESTABLE
    if statement.undecided:
        return StatementStatus.OPEN
    return StatementStatus.NOT_JUDGED


def _finding_of_claims(statement: Statement, verdicts: Mapping[str, Verdict]) -> Finding | None:
    ids = deciding(statement)
    if not ids:
        return Finding(_status_without_claims(statement))
    papers = {id.partition(".")[0] for id in verdicts}  # claims of another paper have other readings
    missing = [id for id in ids if id not in verdicts and id.partition(".")[0] in papers]
    deciding_verdicts = [verdicts[id] for id in ids if id in verdicts]
    telling = []  # verdicts that show something
    for verdict in deciding_verdicts:
        shows_nothing = verdict.kind == "counterexample" and verdict.status is Status.INCONCLUSIVE
        if verdict.status is not Status.INAPPLICABLE and not shows_nothing:
            telling.append(verdict)
    refuted = [verdict for verdict in telling if verdict.status is Status.REFUTED]
    is_all_refuted = bool(refuted) and not missing and len(refuted) == len(telling)
    one_suffices = statement.roles[ids[0]] in DECIDING  # but literal claims must all be refuted
    if is_all_refuted or (refuted and one_suffices):
        return _finding_from(StatementStatus.FALSE, refuted, quantifier=any)
    if missing or any(verdict.status is Status.ERROR for verdict in telling):
        return Finding(StatementStatus.NOT_JUDGED)
    if not all(verdict.status in _MET for verdict in telling):
        return Finding(StatementStatus.OPEN)
    if not telling:
        if deciding_verdicts and all(verdict.status is Status.INAPPLICABLE for verdict in deciding_verdicts):
            return None  # the hypotheses fail
        return Finding(StatementStatus.OPEN)
    if all(verdict.status is Status.VACUOUS for verdict in telling):
        return _finding_from(StatementStatus.VACUOUS, telling, quantifier=all)
    num_competitors = list(statement.roles.values()).count(Role.COMPETITOR)
    competitors = _in_role(statement, Role.COMPETITOR, verdicts)
    holding = [verdict for verdict in competitors if verdict.status in _MET]
    if num_competitors and len(holding) == num_competitors:
        return Finding(StatementStatus.OPEN)  # the tests cannot tell
    literal = _in_role(statement, Role.LITERAL, verdicts)
    refuted_literal = [verdict for verdict in literal if verdict.status is Status.REFUTED]
    status = StatementStatus.AMENDED if refuted_literal else StatementStatus.HOLDS
    return _finding_from(status, [*telling, *refuted_literal], quantifier=all)


def _in_role(statement: Statement, role: Role, verdicts: Mapping[str, Verdict]) -> list[Verdict]:
    """Return the verdicts on claims in this role, except INAPPLICABLE ones."""
    in_role = [verdicts[id] for id, claim_role in statement.roles.items() if claim_role is role and id in verdicts]
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


def _finding_from(status: StatementStatus, verdicts: Sequence[Verdict], quantifier: Callable[..., bool]) -> Finding:
    """Return the finding of these verdicts. It is exact if all or any of them are, as the `quantifier` says."""
    is_exact = quantifier(
        verdict.is_computed or (verdict.status is Status.REFUTED and verdict.kind in _INSTANCES) for verdict in verdicts
    )
    known = "exact" if is_exact else "simulated"
    return Finding(status, known, decided_by=tuple(verdict.claim for verdict in verdicts))


def listed(words: Sequence[str]) -> str:
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def premises_of(name: str) -> tuple[str, ...]:
    paper, _, id = name.partition(".")
    return tuple(f"{paper}.{premise}" for premise in texts_of(paper).premises.get(id, ()))


def failing_premises(judgements: Sequence[Judged]) -> dict[str, tuple[str, ...]]:
    """Return by statement's name the premises of its proof that are false or vacuous.

    If there are any, the proof fails, but the statement may still hold for another reason.
    """
    names = [judgement.statement.name for judgement in judgements]
    failing = {judgement.statement.name for judgement in judgements if judgement.fails}
    return {name: tuple(premise for premise in premises_of(name) if premise in failing) for name in names}


def texts_of(paper: str) -> PaperTexts:
    if paper not in paper_names():
        return PaperTexts()
    return paper_texts(declaration_of(paper).get("statements") or paper_package(paper))
