"""A paper's proofs on one page, for a screen and for paper: what one sends to an author."""

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from moe_theory.core.errors import DamagedError
from moe_theory.core.papers import find_paper
from moe_theory.report import bibliography, wording
from moe_theory.report.rendering import templates
from moe_theory.runs.files import prepare_folder, write_together
from moe_theory.runs.provenance import versions
from moe_theory.verification import recorded
from moe_theory.verification.status import Judged
from moe_theory.verification.verdict import Proof, Statement, source_of

PAGE = "proofs.html"


@dataclasses.dataclass(frozen=True)
class Proved:
    """A proof, with the statements that it is of."""

    proof: Proof
    of: Sequence[Judged]

    @property
    def name(self) -> str:
        """Of its file."""
        return self.proof.path.rpartition("/")[2]

    @property
    def failing(self) -> int:
        """How many of the statements are false or vacuous."""
        return sum(judgement.fails for judgement in self.of)

    @property
    def program(self) -> str:
        return source_of(self.proof.path)


def write_page(paper: str, folder: Path) -> list[Path]:
    """Write the page of a paper's proofs; its path. Raises: UnknownNameError, OutputError, or DamagedError for a
    paper without proofs.
    """
    page = to_html(paper)
    return write_together(prepare_folder(folder, (PAGE,)), {PAGE: page})


def to_html(paper: str) -> str:
    """Disproofs, those by which most statements fail first, then proofs of what holds, and of what holds instead."""
    judgements = recorded.judged_statements(find_paper(paper).name)
    failing = [judgement for judgement in judgements if judgement.fails]
    holding = [judgement for judgement in judgements if not judgement.fails]
    sections = {
        "Not as printed": grouped(judgements, lambda statement: statement.disproof),
        "Says nothing": grouped(failing, lambda statement: statement.proof),
        "Holds": grouped(holding, lambda statement: statement.proof),
        "What holds instead": grouped(judgements, lambda statement: statement.derivation),
    }
    programs: dict[str, Proved] = {}
    for proofs in sections.values():
        programs |= {proof.name: proof for proof in proofs}
    if not any(sections.values()):
        raise DamagedError(f"no statement of {paper} has a proof.")
    entry = bibliography.entry_of(paper)
    return (
        templates()
        .get_template("proofs.html")
        .render(
            paper=paper,
            title=bibliography.title_of(paper) if entry else paper,
            sections={heading: proofs for heading, proofs in sections.items() if proofs},
            programs=list(programs.values()),
            failing=failing,
            unproved=[fault for fault in failing if not (fault.statement.disproof or fault.statement.proof)],
            counted=wording.counted_by_knowledge(failing),
            verdicts=recorded.recorded_verdicts(judgement.statement for judgement in judgements),
            versions=versions(),
        )
    )


def grouped(judgements: Iterable[Judged], proof_of: Callable[[Statement], Proof | None]) -> list[Proved]:
    """The proofs of statements, that by which most of them fail first."""
    by_path: dict[str, tuple[Proof, list[Judged]]] = {}
    for judgement in judgements:
        proof = proof_of(judgement.statement)
        if proof is not None:
            by_path.setdefault(proof.path, (proof, []))[1].append(judgement)
    proofs = [Proved(*pair) for pair in by_path.values()]
    return sorted(proofs, key=lambda proof: (-proof.failing, -len(proof.of)))
