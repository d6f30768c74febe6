"""What the proofs of statements rest on, as the papers have it: which fail by a fault of their own, which with others,
and which cannot be true together.

A paper declares it once, before its statements. Where a premise is false the proof fails; whether the statement does is
for its own verdicts. One that holds although a premise of its proof is false holds for another reason.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from moe_theory.core.errors import InvalidStatementError
from moe_theory.verify.status import Judged

_PREMISES: dict[str, tuple[str, ...]] = {}
_OWN_FAULTS: set[str] = set()
_CONFLICTS: dict[str, tuple["Conflict", ...]] = {}  # by paper


def rest_on(paper: str, premises: Mapping[str, str], own_faults: str = "") -> None:
    """Declare what the proofs of a paper's statements use.

    Args:
        premises: ids of statements, and of those that their proofs use, with spaces between; what matters most first.
        own_faults: ids of those that would fail even if all premises held: their proofs have a fault of their own.
    Raises: InvalidStatementError for statements that rest on one another in a circle.
    """
    table = {f"{paper}.{id}": tuple(f"{paper}.{other}" for other in text.split()) for id, text in premises.items()}
    _PREMISES.update(table)
    _OWN_FAULTS.update(f"{paper}.{id}" for id in own_faults.split())
    for name in table:
        if name in _below(name):
            raise InvalidStatementError(f"statement {name} rests on itself. Change what it rests on.")


class Conflict(NamedTuple):
    """Statements of one paper that cannot all be true where the hypotheses of all are met."""

    one: tuple[str, ...]  # names
    other: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return self.one + self.other


def contradict(paper: str, *pairs: tuple[str, str]) -> None:
    """Declare which of a paper's statements contradict one another: ids, with spaces between, against other ids."""
    sides = [[tuple(f"{paper}.{id}" for id in side.split()) for side in pair] for pair in pairs]
    _CONFLICTS[paper] = tuple(Conflict(*pair) for pair in sides)


def conflicts_of(paper: str) -> tuple[Conflict, ...]:
    """What a paper's statements declare to contradict one another."""
    return _CONFLICTS.get(paper, ())


def premises_of(name: str) -> tuple[str, ...]:
    """Names of the statements that the proof of a statement uses."""
    return _PREMISES.get(name, ())


@dataclasses.dataclass(frozen=True)
class Footing:
    """What a statement stands on."""

    known: Judged
    failing: tuple[str, ...]  # the premises of its proof that are false or vacuous

    @property
    def is_root(self) -> bool:
        """Whether it fails by a fault of its own."""
        return self.known.fails and (not self.failing or self.known.statement.name in _OWN_FAULTS)

    @property
    def follows(self) -> bool:
        """Whether it fails, and its proof has no other fault than to use what fails: the first of it above all."""
        return self.known.fails and not self.is_root

    @property
    def stands(self) -> bool:
        """Whether it does not fail although its proof uses what does."""
        return bool(self.failing) and not self.known.fails


def footings(known: Sequence[Judged]) -> list[Footing]:
    """Each statement with those of its premises among them that fail."""
    failing = {each.statement.name for each in known if each.fails}
    names = [each.statement.name for each in known]
    return [
        Footing(each, tuple(premise for premise in premises_of(name) if premise in failing))
        for name, each in zip(names, known, strict=True)
    ]


def _below(name: str) -> set[str]:
    """All that a statement rests on, directly or not."""
    found, ahead = set[str](), list(premises_of(name))
    while ahead:
        other = ahead.pop()
        if other not in found:
            found.add(other)
            ahead += premises_of(other)
    return found
