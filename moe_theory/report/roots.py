"""What fails with what, as a tree in a terminal: statements by their own faults, and those whose proofs use them."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.text import Text
from rich.tree import Tree

from moe_theory.plot.document import Document
from moe_theory.report.standing import Standing
from moe_theory.report.verdicts import STATUS_STYLES, facts
from moe_theory.report.wording import statement_status
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

    def parts(_: int) -> Iterator[RenderableType]:
        shown = _with_what_they_fail_with(asked, footed)
        for paper in dict.fromkeys(each.known.statement.paper for each in shown):
            yield _tree(paper, [each for each in shown if each.known.statement.paper == paper])
        yield counted_roots(asked)

    def body() -> list[dict[str, Any]]:
        return [facts(each) | _footing(by) for each, by in zip(found, asked, strict=True)]

    return Document(body, parts)


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


def _tree(paper: str, known: Sequence[Footing]) -> Tree:
    tree = Tree(Text(paper, "bold"), guide_style="dim")

    def grow(branch: Tree, name: str) -> None:
        for each in known:
            if each.known.fails and _above(each) == name:
                grow(branch.add(_line(each, name)), each.known.statement.name)

    grow(tree, "")
    if standing := [each for each in known if each.stands]:
        branch = tree.add(Text("do not fail, though their proofs use what does", "dim"))
        for each in standing:
            branch.add(_line(each, ""))
    shown = {each.known.statement.name for each in known}
    if conflicts := [each for each in conflicts_of(paper) if shown & set(each.names)]:
        branch = tree.add(Text("cannot be true together", "dim"))
        for each in conflicts:
            one, other = (listed([name.partition(".")[2] for name in side]) for side in each)
            branch.add(Text(f"{one} against {other}"))
    return tree


def _line(each: Footing, above: str) -> Text:
    of, style = each.known.statement, STATUS_STYLES.get(statement_status(each.known), "magenta")
    others = [name.partition(".")[2] for name in each.failing if name != above]
    line = Text.assemble((of.id, "default"), "  ", (each.known.words, style))
    return line.append(f"  {'also ' if above else ''}uses {', '.join(others)}" if others else "", "dim")


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
