"""What fails with what: statements by their own faults, and below them those whose proofs use them."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from moe_theory.plot.document import Document
from moe_theory.plot.markdown import words
from moe_theory.report.standing import Standing
from moe_theory.report.verdicts import facts
from moe_theory.verification.premises import Footing, conflicts_of, footings, premises_of
from moe_theory.verification.recorded import judged_statements
from moe_theory.verification.status import listed


def tree_document(found: Sequence[Standing]) -> Document:
    """Those of the statements that fail, each below the first that its proof uses and that fails. What is at the left
    has a fault of its own.
    """
    resting = [each.known.statement for each in found if premises_of(each.known.statement.name)]
    papers = dict.fromkeys(each.paper for each in resting)
    known = {each.statement.name: each for paper in papers for each in judged_statements(paper)}
    known |= {each.known.statement.name: each.known for each in found}
    footed = {each.known.statement.name: each for each in footings(list(known.values()))}
    asked = [footed[each.known.statement.name] for each in found]

    def text(_: int) -> str:
        shown = _with_what_they_fail_with(asked, footed)
        lines: list[str] = []
        for paper in dict.fromkeys(each.known.statement.paper for each in shown):
            lines += [f"# {paper}", "", *_tree(paper, shown), ""]
        return "\n".join([*lines, words(counted_roots(asked))])

    def body() -> list[dict[str, Any]]:
        return [facts(each) | _footing(by) for each, by in zip(found, asked, strict=True)]

    return Document(body, text)


def counted_roots(known: Sequence[Footing]) -> str:
    """How many statements have a fault of their own, and how many fail with others."""
    roots, following = (sum(getattr(each, name) for each in known) for name in ("is_root", "follows"))
    failing = f"{roots + following} statements are false or vacuous"
    return f"{failing}: {roots} have a fault of their own, {following} fail with what their proofs use"


def _with_what_they_fail_with(asked: Sequence[Footing], footed: dict[str, Footing]) -> list[Footing]:
    names = {each.known.statement.name for each in asked if each.known.fails or each.stands}
    for each in asked:
        while above := _above(each):
            names.add(above)
            each = footed[above]
    return [each for name, each in footed.items() if name in names]


def _above(each: Footing) -> str:
    """The name of what a statement fails with."""
    return each.failing[0] if each.follows else ""


def _tree(paper: str, shown: Sequence[Footing]) -> Iterator[str]:
    """Yield the items of a list: statements below what they fail with, those that stand, and conflicts."""
    here = [each for each in shown if each.known.statement.paper == paper]
    yield from _branches(here, "", "")
    standing = [each for each in here if each.stands]
    if standing:
        yield "- do not fail, though their proofs use what does"
        yield from (_item(each, "", "  ") for each in standing)
    names = {each.known.statement.name for each in here}
    conflicts = [each for each in conflicts_of(paper) if names & set(each.names)]
    if conflicts:
        yield "- cannot be true together"
    for conflict in conflicts:
        one, other = (listed([name.partition(".")[2] for name in side]) for side in conflict)
        yield f"  - {words(f'{one} against {other}')}"


def _branches(shown: Sequence[Footing], above: str, indent: str) -> Iterator[str]:
    for each in shown:
        if each.known.fails and _above(each) == above:
            yield _item(each, above, indent)
            yield from _branches(shown, each.known.statement.name, f"{indent}  ")


def _item(each: Footing, above: str, indent: str) -> str:
    others = [name.partition(".")[2] for name in each.failing if name != above]
    uses = f", {'also ' if above else ''}uses {', '.join(others)}" if others else ""
    return f"{indent}- {words(f'{each.known.statement.id}: {each.known.words}{uses}')}"


def _footing(each: Footing) -> dict[str, Any]:
    premises = list(premises_of(each.known.statement.name))
    of = each.known.statement
    against = {
        name
        for pair in conflicts_of(of.paper)
        for side, other in itertools.permutations(pair)
        if of.name in side
        for name in other
    }
    return {
        "rests_on": premises,
        "failing": list(each.failing),
        "is_root": each.is_root,
        "contradicts": sorted(against),
    }
