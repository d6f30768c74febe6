"""What fails with what: statements by their own faults, and below them those whose proofs use them."""

from collections.abc import Iterator, Sequence
from typing import Any

from moe_theory.plot.document import Document
from moe_theory.plot.markdown import words
from moe_theory.report.standing import Standing
from moe_theory.report.verdicts import facts
from moe_theory.verification.premises import Footing, conflicts_of, footings, premises_of
from moe_theory.verification.recorded import judged_statements
from moe_theory.verification.status import Judged, listed


def tree_document(standings: Sequence[Standing]) -> Document:
    """Those of the statements that fail, each below the first that its proof uses and that fails. What is at the left
    has a fault of its own.
    """
    statements = [standing.known.statement for standing in standings]
    judgements: dict[str, Judged] = {}
    for paper in dict.fromkeys(statement.paper for statement in statements if premises_of(statement.name)):
        judgements |= {judgement.statement.name: judgement for judgement in judged_statements(paper)}
    judgements |= {standing.known.statement.name: standing.known for standing in standings}
    by_name = {footing.known.statement.name: footing for footing in footings(list(judgements.values()))}
    selected = [by_name[statement.name] for statement in statements]

    def text(_: int) -> str:
        nodes = _with_what_they_fail_with(selected, by_name)
        lines: list[str] = []
        for paper in dict.fromkeys(node.known.statement.paper for node in nodes):
            lines += [f"# {paper}", "", *_tree(paper, nodes), ""]
        return "\n".join([*lines, words(counted_roots(selected))])

    def body() -> list[dict[str, Any]]:
        pairs = zip(standings, selected, strict=True)
        return [facts(standing) | _footing_json(footing) for standing, footing in pairs]

    return Document(body, text)


def counted_roots(selected: Sequence[Footing]) -> str:
    """How many statements have a fault of their own, and how many fail with others."""
    roots = sum(footing.is_root for footing in selected)
    following = sum(footing.follows for footing in selected)
    failing = f"{roots + following} statements are false or vacuous"
    return f"{failing}: {roots} have a fault of their own, {following} fail with what their proofs use"


def _with_what_they_fail_with(selected: Sequence[Footing], by_name: dict[str, Footing]) -> list[Footing]:
    names = {footing.known.statement.name for footing in selected if footing.known.fails or footing.stands}
    for footing in selected:
        while parent := _parent(footing):
            names.add(parent)
            footing = by_name[parent]
    return [footing for name, footing in by_name.items() if name in names]


def _parent(footing: Footing) -> str:
    """The name of what a statement fails with."""
    return footing.failing[0] if footing.follows else ""


def _tree(paper: str, nodes: Sequence[Footing]) -> Iterator[str]:
    """Yield the items of a list: statements below what they fail with, those that stand, and conflicts."""
    nodes = [node for node in nodes if node.known.statement.paper == paper]
    yield from _branches(nodes, "", "")
    standing = [node for node in nodes if node.stands]
    if standing:
        yield "- do not fail, though their proofs use what does"
        yield from (_line(node, "", "  ") for node in standing)
    names = {node.known.statement.name for node in nodes}
    conflicts = [conflict for conflict in conflicts_of(paper) if names & set(conflict.names)]
    if conflicts:
        yield "- cannot be true together"
    for conflict in conflicts:
        first, second = (listed([name.partition(".")[2] for name in side]) for side in conflict)
        yield f"  - {words(f'{first} against {second}')}"


def _branches(nodes: Sequence[Footing], parent: str, indent: str) -> Iterator[str]:
    for node in nodes:
        if node.known.fails and _parent(node) == parent:
            yield _line(node, parent, indent)
            yield from _branches(nodes, node.known.statement.name, f"{indent}  ")


def _line(node: Footing, parent: str, indent: str) -> str:
    text = f"{node.known.statement.id}: {node.known.words}"
    premises = [name.partition(".")[2] for name in node.failing if name != parent]
    if premises:
        verb = "also uses" if parent else "uses"
        text += f", {verb} {', '.join(premises)}"
    return f"{indent}- {words(text)}"


def _footing_json(footing: Footing) -> dict[str, Any]:
    statement = footing.known.statement
    rivals: set[str] = set()
    for conflict in conflicts_of(statement.paper):
        if statement.name in conflict.one:
            rivals.update(conflict.other)
        if statement.name in conflict.other:
            rivals.update(conflict.one)
    return {
        "rests_on": list(premises_of(statement.name)),
        "failing": list(footing.failing),
        "is_root": footing.is_root,
        "contradicts": sorted(rivals),
    }
