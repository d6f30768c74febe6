"""Premises of proofs, and statements that cannot be true together, as listed in `paper.toml`.

If a premise is false the proof fails, but the statement may hold for another reason.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from moe_theory.core.papers import declaration_of, paper_names, paper_package
from moe_theory.verification.status import Judged
from moe_theory.verification.texts import PaperTexts, paper_texts


class Conflict(NamedTuple):
    """Statements that cannot all be true under the hypotheses of all."""

    one: tuple[str, ...]  # names
    other: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.one + self.other


def conflicts_of(paper: str) -> tuple[Conflict, ...]:
    conflicts = _texts(paper).conflicts
    return tuple(Conflict(_names(paper, conflict.one), _names(paper, conflict.other)) for conflict in conflicts)


def premises_of(name: str) -> tuple[str, ...]:
    paper, _, id = name.partition(".")
    return _names(paper, _texts(paper).premises.get(id, ()))


def _names(paper: str, ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{paper}.{id}" for id in ids)


def _texts(paper: str) -> PaperTexts:
    if paper not in paper_names():
        return PaperTexts()
    return paper_texts(declaration_of(paper).get("statements") or paper_package(paper))


@dataclasses.dataclass(frozen=True)
class Footing:
    known: Judged
    failing: tuple[str, ...]  # the premises of its proof that are false or vacuous

    @property
    def is_root(self) -> bool:
        statement = self.known.statement
        return self.known.fails and (not self.failing or statement.id in _texts(statement.paper).own_faults)

    @property
    def follows(self) -> bool:
        """True if its proof's only error is the use of failing statements."""
        return self.known.fails and not self.is_root

    @property
    def stands(self) -> bool:
        """True if it holds although its proof uses failing statements."""
        return bool(self.failing) and not self.known.fails


def footings(known: Sequence[Judged]) -> list[Footing]:
    failing = {judgement.statement.name for judgement in known if judgement.fails}
    return [
        Footing(judgement, tuple(filter(failing.__contains__, premises_of(judgement.statement.name))))
        for judgement in known
    ]
