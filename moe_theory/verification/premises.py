"""Premises of proofs, as listed in `paper.toml`.

If a premise is false the proof fails, but the statement may hold for another reason.
"""

from collections.abc import Sequence

from moe_theory.core.papers import declaration_of, paper_names, paper_package
from moe_theory.verification.status import Judged
from moe_theory.verification.texts import PaperTexts, paper_texts


def premises_of(name: str) -> tuple[str, ...]:
    """Return the names of the statements that a statement's proof uses."""
    paper, _, id = name.partition(".")
    return tuple(f"{paper}.{premise}" for premise in texts_of(paper).premises.get(id, ()))


def failing_premises(judgements: Sequence[Judged]) -> dict[str, tuple[str, ...]]:
    """Return the premises of each statement's proof that are false or vacuous, by the statement's name."""
    names = [judgement.statement.name for judgement in judgements]
    failing = {judgement.statement.name for judgement in judgements if judgement.fails}
    return {name: tuple(filter(failing.__contains__, premises_of(name))) for name in names}


def texts_of(paper: str) -> PaperTexts:
    if paper not in paper_names():
        return PaperTexts()
    return paper_texts(declaration_of(paper).get("statements") or paper_package(paper))
