"""What proofs rest on: catches a premise that is no statement, and a root that is taken for what follows."""

import re

import pytest

from moe_theory.core.papers import paper_names
from moe_theory.verification import premises
from moe_theory.verification.premises import conflicts_of, footings, premises_of
from moe_theory.verification.recorded import judged_statements
from moe_theory.verification.status import Finding, Judged, StatementStatus
from moe_theory.verification.texts import PaperTexts
from moe_theory.verification.verdict import Statement


def known(**statuses: str) -> list[Judged]:
    about = {id: Statement(id, "p", "", "") for id in statuses}
    return [Judged(about[id], {"a": Finding(StatementStatus(status))}) for id, status in statuses.items()]


def test_what_fails_by_itself_is_told_from_what_fails_with_another(monkeypatch):
    premises_by_id = {"b": ["a"], "c": ["b"], "d": ["a"], "e": ["a", "b"], "f": ["e"]}
    texts = PaperTexts(premises=premises_by_id, own_faults=["d"])
    monkeypatch.setattr(premises, "_texts", {"p": texts}.__getitem__)
    found = footings(known(a="false", b="false", c="holds", d="false", e="vacuous", f="holds amended"))
    assert [each.is_root for each in found] == [True, False, False, True, False, False]
    assert [each.follows for each in found] == [False, True, False, False, True, False]
    assert [each.stands for each in found] == [False, False, True, False, False, True]
    assert found[4].failing == ("p.a", "p.b")


def test_the_papers_name_statements_and_faults_of_what_fails_with_others():
    """Guards the tree of what fails: no root is counted twice, and none is hidden."""
    every = judged_statements()
    names = {each.statement.name for each in every}
    own_faults = []
    for paper in paper_names():
        texts = premises._texts(paper)
        ids = {*texts.premises, *(id for premise_ids in texts.premises.values() for id in premise_ids)}
        assert {f"{paper}.{id}" for id in ids} <= names
        own_faults += [f"{paper}.{id}" for id in texts.own_faults]
    by_name = {each.known.statement.name: each for each in footings(every)}
    for name in own_faults:
        assert by_name[name].known.fails, name
        assert by_name[name].failing, f"{name} rests on nothing that fails: it is a root anyway"
    roots = [each for each in by_name.values() if each.is_root]
    following = [each for each in by_name.values() if each.follows]
    assert len(roots) + len(following) == sum(each.fails for each in every)


@pytest.mark.parametrize("paper", ["continual", "edge"])
def test_of_what_contradicts_one_another_something_is_not_as_printed(paper):
    """Would catch statuses that cannot all be right, and a contradiction of what is no statement."""
    as_printed = {each.statement.name for each in judged_statements(paper) if each.words.startswith("holds (")}
    names = {each.statement.name for each in judged_statements(paper)}
    assert conflicts_of(paper)
    for each in conflicts_of(paper):
        assert set(each.names) <= names
        assert not set(each.names) <= as_printed, each


def test_what_its_why_says_a_statement_rests_on_is_declared():
    """Of those that fail: "It rests on Lemma 3" or "fails as Theorem 1 does" in the words, and nothing in the table."""
    for each in judged_statements():
        said = re.findall(r"rests on (Lemma|Proposition|Theorem) (\d+)", each.statement.why) if each.fails else []
        for kind, number in said:
            start = f"{each.statement.paper}.{kind.lower()}-{number}"
            assert any(f"{name}-".startswith(f"{start}-") for name in below(each.statement.name)), each.statement.name


def below(name: str) -> set[str]:
    """All that the proof of a statement rests on, directly or not."""
    return {name for premise in premises_of(name) for name in (premise, *below(premise))}
