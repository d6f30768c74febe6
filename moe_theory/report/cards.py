"""The words of a statement's card, which are verdict, certainty, evidence and commands."""

import functools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from moe_theory.core.errors import enclosed
from moe_theory.core.papers import paper_names
from moe_theory.report import challenge
from moe_theory.report.wording import (
    BY_READING,
    deciding_verdict,
    measured,
    missing_reason,
    script_options,
    sentence,
    statement_counts,
    statement_status,
    tested,
)
from moe_theory.verification.catalog import statements
from moe_theory.verification.recorded import judged_statements
from moe_theory.verification.status import CAVEATED, PROVED, Cause, Judged, StatementStatus, listed
from moe_theory.verification.verdict import Proof, Role, Statement, Status, Verdict

_PRINTED_FAILS = (StatementStatus.FALSE, StatementStatus.AMENDED)

LABELS: dict[str, str] = {  # what readers see for a status. JSON has the status itself
    StatementStatus.HOLDS: "TRUE",
    StatementStatus.AMENDED: "FALSE AS PRINTED",
    StatementStatus.FALSE: "FALSE",
    StatementStatus.VACUOUS: "VACUOUS",
    StatementStatus.OPEN: "UNDECIDED",
    StatementStatus.NOT_JUDGED: "NOT RUN",
    StatementStatus.NOT_TESTABLE: "NOT TESTABLE",
    BY_READING: "DEPENDS",
}
REASONS = {  # headings above the reasons
    StatementStatus.HOLDS: "Why it holds",
    StatementStatus.AMENDED: "Why it fails as printed",
    StatementStatus.FALSE: "Why it fails",
    StatementStatus.VACUOUS: "Why it says nothing",
    StatementStatus.OPEN: "Why it is undecided",
    StatementStatus.NOT_JUDGED: "Why there is no verdict",
    StatementStatus.NOT_TESTABLE: "Why no test decides it",
    BY_READING: "Why it depends",
}
_PROGRAMS = {  # purposes of a statement's scripts, by kind
    "witness": "A counterexample in NumPy",
    "disproof": "The exact counterexample",
    "proof": "The proof",
    "derivation": "The proof of the correction",
}
_OUTCOMES = {  # of ablations and baselines
    Status.SUPPORTED: "holds",
    Status.REFUTED: "fails",
    Status.INCONCLUSIVE: "is undecided",
    Status.VACUOUS: "holds, and could not fail",
}
_END_OF_SENTENCE = re.compile(r"(?<!App|Sec|Fig)(?<!Eq)\. (?=[A-Z])")
_CAUSES = {
    Cause.REFUTED: "The failure has another cause.",
    Cause.NOT_ISOLATED: "No ablation isolates the cause.",
    Cause.EXHIBITED: "The counterexample shows the cause directly.",
}


class Evidence(NamedTuple):
    heading: str
    text: str


def label(judgement: Judged) -> str:
    return LABELS[statement_status(judgement)]


def label_counts(judgements: Sequence[Judged]) -> str:
    """Return the counts of labels, such as "12 TRUE, 7 FALSE"."""
    counts = statement_counts(judgements)
    return ", ".join(f"{count} {LABELS[status]}" for status, count in counts.items())


def condition(judgement: Judged) -> str:
    """Return the words after the label, which are a condition or the statuses by reading."""
    status = statement_status(judgement)
    if status == BY_READING:
        outcomes = []
        for outcome in StatementStatus:
            readings = [reading for reading, finding in judgement.by_reading.items() if finding.status is outcome]
            if readings:
                clause = judgement.statement.amendment if outcome is StatementStatus.AMENDED else ""
                condition_words = enclosed(" (true if ", clause, ")")
                outcomes.append(f"{LABELS[outcome]} under {listed(readings)}{condition_words}")
        return f"{', '.join(outcomes)}."
    if status == StatementStatus.VACUOUS:
        return "It says nothing about this algorithm in particular."
    if status != StatementStatus.AMENDED:
        return ""
    if judgement.statement.amendment:
        return f"True if {judgement.statement.amendment.rstrip('.')}."
    if judgement.search and judgement.search.clause:
        return f"True for {judgement.search.clause.words}."
    return "True after a small correction."


def given_words(statement: Statement, *, is_short: bool) -> str:
    hypotheses = list(statement.hypotheses)
    if is_short and statement.paper in paper_names():
        all_statements = statements(statement.paper)
        counts: Counter[str] = Counter()
        for statement_of_paper in all_statements:
            counts.update(statement_of_paper.hypotheses)
        # Hypotheses of at least half of the paper's statements are its general assumptions.
        hypotheses = [text for text in hypotheses if 2 * counts[text] < len(all_statements)]
    sentences = [f"{text[:1].upper()}{text[1:].rstrip('.')}." for text in hypotheses]
    if len(hypotheses) < len(statement.hypotheses):
        sentences.append("The paper's assumptions hold.")
    return " ".join(sentences)


def reasons(judgement: Judged) -> list[str]:
    status = statement_status(judgement)
    statement = judgement.statement
    recorded_words = []
    if status in (StatementStatus.NOT_JUDGED, StatementStatus.OPEN):
        recorded_label = _recorded_labels(statement.paper).get(statement.name, label(judgement))
        if recorded_label != label(judgement):
            recorded_words = [f"In the published results it is {recorded_label}."]
    if status == StatementStatus.NOT_JUDGED:
        return [missing_reason(judgement), *recorded_words]
    if recorded_words:  # the statement's own reasons explain its recorded status
        return ["The tests of this run do not decide it.", *recorded_words]
    paragraphs = [statement.why, statement.untestable, statement.undecided]
    if not any(paragraphs):
        paragraphs = [missing_reason(judgement)]
    if status == StatementStatus.OPEN:
        paragraphs.append(statement.note)
    return [paragraph for paragraph in paragraphs if paragraph]


@functools.cache
def _recorded_labels(paper: str) -> dict[str, str]:
    if paper not in paper_names():
        return {}
    judgements = judged_statements(paper)
    return {judgement.statement.name: label(judgement) for judgement in judgements if judgement.by_reading}


def certainty(judgement: Judged, verdicts: Sequence[Verdict], folder: Path | None, failing: Sequence[str]) -> str:
    sentences = [*_known_by(judgement, verdicts), challenge.search_sentence(judgement)]
    if failing:
        names = listed([name.partition(".")[2] for name in failing])
        sentences.append(f"The paper's proof uses false or vacuous statements: {names}.")
    if judgement.broken:
        sentences.append(f"Its hypotheses fail under {listed(list(judgement.broken))}.")
    if folder is not None:
        sentences.append(f"From the run in {folder}.")
    return " ".join(part for part in sentences if part)


def _known_by(judgement: Judged, verdicts: Sequence[Verdict]) -> list[str]:
    statement = judgement.statement
    status = statement_status(judgement)
    sentences = []
    if status == StatementStatus.AMENDED and statement.disproof:
        sentences.append("An exact counterexample refutes the printed form.")
    proof = _deciding_proof(judgement)
    if proof is not None:
        argument = "Shown by an exact proof."
        if proof is statement.disproof:
            argument = "Shown by an exact counterexample."
        elif status == StatementStatus.AMENDED:
            argument = "Proved under the condition."
        sentences.append(f"{argument} {_caveat_words(proof)}".strip())
    elif any(finding.known == "exact" for finding in judgement.by_reading.values()):
        sentences.append("Shown by exact computation.")
    verdict = deciding_verdict(judgement, verdicts)
    if verdict and not verdict.is_computed and verdict.status in (Status.SUPPORTED, Status.REFUTED):
        runs = f"{verdict.replicates:,} runs"
        sentences.append(f"Simulated in {runs} (the verdict is wrong with probability at most {verdict.error:.2g}).")
        if "±" in sentence(verdict):
            sentences.append("± is one standard error.")
    return sentences


def _deciding_proof(judgement: Judged) -> Proof | None:
    statement = judgement.statement
    for finding in judgement.by_reading.values():
        if finding.known in {PROVED, CAVEATED}:
            if finding.status is StatementStatus.FALSE:
                return statement.disproof
            return statement.proof
    return None


def _caveat_words(proof: Proof) -> str:
    first_sentence = _END_OF_SENTENCE.split(proof.caveat)[0].rstrip(".")
    return enclosed("Caveat: ", first_sentence, ".")


def evidence(judgement: Judged, verdicts: Sequence[Verdict], verdict: Verdict | None) -> list[Evidence]:
    """Return the test of this verdict, followed by ablations and baselines."""
    paragraphs = []
    if verdict:
        heading = "Exact computation" if verdict.is_computed else "Simulation"
        source = f"[{verdict.claim}, reading {verdict.setting}]"
        text = f"Tested: {tested(verdict)} Result: {sentence(verdict)} {source}"
        if verdict.status is Status.SUPPORTED and statement_status(judgement) in _PRINTED_FAILS:
            text += " This test passes."
        paragraphs.append(Evidence(heading, text))
        passing = _passing(judgement, verdict, verdicts)
        if passing is not None:
            text = f"The test passes under {passing.setting}. {sentence(passing)}"
            paragraphs.append(Evidence("Other reading", text))
    removals = [
        *_sentences_in_role(judgement, Role.INTERVENTION, verdicts),
        *_sentences_in_role(judgement, Role.SUSPECT, verdicts),
    ]
    cause = judgement.cause
    if cause is not None and cause in _CAUSES and (removals or cause is not Cause.EXHIBITED):
        removals.insert(0, _CAUSES[cause])
    baselines = _sentences_in_role(judgement, Role.COMPETITOR, verdicts)
    for heading, sentences in (("Ablation", removals), ("Baseline", baselines)):
        if sentences:
            paragraphs.append(Evidence(heading, " ".join(sentences)))
    return paragraphs


def _passing(judgement: Judged, verdict: Verdict, verdicts: Sequence[Verdict]) -> Verdict | None:
    """Return a verdict where a failing claim passes, if the status depends on readings for this reason."""
    if statement_status(judgement) != BY_READING or verdict.status is not Status.REFUTED:
        return None
    same_claim = (candidate for candidate in verdicts if candidate.claim == verdict.claim)
    return next((candidate for candidate in same_claim if candidate.status is Status.SUPPORTED), None)


def _sentences_in_role(judgement: Judged, role: Role, verdicts: Sequence[Verdict]) -> list[str]:
    # A single reading with this outcome settles whether the claim shows the cause.
    telling = Status.REFUTED if role is Role.INTERVENTION else Status.SUPPORTED
    sentences = []
    for id in [id for id, claim_role in judgement.statement.roles.items() if claim_role is role]:
        candidates = [verdict for verdict in verdicts if verdict.claim == id and verdict.status in _OUTCOMES]
        candidates.sort(key=lambda verdict: (verdict.status is not telling, verdict.status is Status.INCONCLUSIVE))
        if candidates:
            verdict = candidates[0]
            quantity = "exponent " if verdict.kind in {"rate", "limit_rate"} else ""
            outcome = f"{_OUTCOMES[verdict.status]} ({quantity}{measured(verdict)})"
            sentences.append(f"Tested: {tested(verdict)} Result: {outcome}.")
    return sentences


def brief_argument(judgement: Judged, proof: Proof) -> str:
    """Return an exact argument in words, with its caveat unless the card's certainty has it."""
    if proof is _deciding_proof(judgement):
        return proof.title
    return f"{proof.title} {_caveat_words(proof)}".strip()


def commands(statement: Statement, verdict: Verdict | None, *, is_short: bool) -> list[tuple[str, str]]:
    options = script_options(statement)
    rows = [(f"moe-theory why {statement.name} {option}", _PROGRAMS[kind]) for kind, option in options.items()]
    if is_short and len(rows) > 1:
        command, purpose = rows[0]
        further_options = " and ".join(list(options.values())[1:])
        rows = [(command, f"{purpose} (also {further_options})")]
    if verdict is not None:
        repeat = verdict.command
        if is_short:
            repeat = f"moe-theory verify {verdict.claim} --reading {verdict.settings[0]} --seed 1"
        rows.append((repeat, "Repeat the test"))
    if is_short:
        rows.append((f"moe-theory why {statement.name} --all", "The whole card"))
    return rows
