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
        return sum(each.fails for each in self.of)

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
    known = recorded.judged_statements(find_paper(paper).name)
    failing = [each for each in known if each.fails]
    sections = {
        "Not as printed": grouped(known, lambda of: of.disproof),
        "Says nothing": grouped(failing, lambda of: of.proof),
        "Holds": grouped([each for each in known if not each.fails], lambda of: of.proof),
        "What holds instead": grouped(known, lambda of: of.derivation),
    }
    if not any(sections.values()):
        raise DamagedError(f"no statement of {paper} has a proof.")
    entry = bibliography.entry_of(paper)
    return (
        templates()
        .get_template("proofs.html")
        .render(
            paper=paper,
            title=bibliography.title_of(paper) if entry else paper,
            sections={heading: found for heading, found in sections.items() if found},
            programs=list({each.name: each for found in sections.values() for each in found}.values()),
            failing=failing,
            unproved=[each for each in failing if not (each.statement.disproof or each.statement.proof)],
            counted=wording.counted_by_knowledge(failing),
            verdicts=recorded.recorded_verdicts(each.statement for each in known),
            versions=versions(),
        )
    )


def grouped(known: Iterable[Judged], proof_of: Callable[[Statement], Proof | None]) -> list[Proved]:
    """The proofs of statements, that by which most of them fail first."""
    found: dict[str, tuple[Proof, list[Judged]]] = {}
    for each in known:
        if (proof := proof_of(each.statement)) is not None:
            found.setdefault(proof.path, (proof, []))[1].append(each)
    return sorted((Proved(*each) for each in found.values()), key=lambda each: (-each.failing, -len(each.of)))
