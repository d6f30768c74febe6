"""The lists of numbered statements: catches one that no claim answers for, a claim that answers for none, and typos."""

import dataclasses
import fnmatch
import re
from collections.abc import Collection, Sequence

import pytest
from latex2mathml.converter import convert

from moe_theory.core.errors import InvalidStatementError, UnknownNameError
from moe_theory.core.papers import all_papers
from moe_theory.verify import registry
from moe_theory.verify import statement as lists
from moe_theory.verify.claim import KINDS
from moe_theory.verify.statement import Statement, statements


def each_by_itself(**counts: int) -> list[str]:
    """Ids where a paper numbers every kind of statement from 1 on."""
    return [f"{kind}-{number + 1}" for kind, count in counts.items() for number in range(count)]


# What the papers number, counted by hand. The third numbers all kinds in one row.
NUMBERED = {
    "continual": each_by_itself(lemma=16, corollary=1, proposition=4, theorem=2),
    "edge": each_by_itself(lemma=9, proposition=4, theorem=1),
    "generalization": ["theorem-1", "lemma-2", "lemma-3", "corollary-4", *(f"lemma-{place}" for place in range(5, 11))],
    "merging": each_by_itself(lemma=4, theorem=1),
}
FIGURES = {
    "continual": ("2", "8", "9"),
    "edge": ("3",),
    "generalization": (),
    "merging": ("2", "3", "4", "5", "6", "7"),
}
# What else a paper may be taken to state: sentences about figures and tables, steps of proofs, remarks.
UNNUMBERED = r"figure-\d+|table-\d+|equation-\d+|assumption-\d+|remark|regret|abstract"
LISTED = [name for name, paper in all_papers().items() if paper.statements]
SHARED = [name for name, paper in all_papers().items() if paper.answers_for]
SHIPPED = [claim for claim in registry.claims() if registry.is_of_a_paper(claim)]


def made_up(**changes) -> Statement:
    plain = Statement("lemma-8", "continual", "Lemma 8", "rate", "Something falls.", claims=("continual.lemma-8*",))
    return dataclasses.replace(plain, **changes)


def uncovered(statements: Sequence[Statement], claim_ids: Collection[str]) -> list[str]:
    """What keeps `statements` from being answered, a sentence each. A statement is answered if each of its globs
    matches a claim, or if it says why it cannot be tested, not both.
    """
    problems = []
    for statement in statements:
        name = f"{statement.paper} {statement.id}"
        if bool(statement.claims) == bool(statement.untestable.strip()):
            problems.append(f"{name} must name its claims or say why it cannot be tested, and not both.")
        problems += [
            f"{name}: no claim matches {glob}." for glob in statement.claims if not fnmatch.filter(claim_ids, glob)
        ]
    return problems


def unreached(statements: Sequence[Statement], claim_ids: Collection[str]) -> list[str]:
    """Those of `claim_ids` that answer for none of `statements`."""
    globs = [glob for statement in statements for glob in statement.claims]
    return [id for id in claim_ids if not any(fnmatch.fnmatchcase(id, glob) for glob in globs)]


@pytest.mark.parametrize("paper", LISTED)
def test_every_statement_has_its_claims_or_a_reason(paper):
    assert uncovered(statements(paper), [claim.id for claim in SHIPPED]) == []


@pytest.mark.parametrize("paper", LISTED)
def test_every_claim_answers_for_a_statement(paper):
    ours = [claim.id for claim in SHIPPED if claim.paper == paper and not claim.where.startswith("replaces")]
    assert unreached(statements(paper), ours) == []


def test_every_claim_of_the_deep_experiments_answers_for_a_statement():
    entries = [statement for paper in LISTED for statement in statements(paper)]
    ours = [claim.id for claim in SHIPPED if claim.paper in SHARED]
    assert ours
    assert unreached(entries, ours) == []


@pytest.mark.parametrize("paper", LISTED)
def test_no_numbered_statement_is_left_out(paper):
    ids = [statement.id for statement in statements(paper)]
    expected = NUMBERED[paper] + [f"figure-{number}" for number in FIGURES[paper]]
    missing = [name for name in expected if not any(id == name or id.startswith(f"{name}-") for id in ids)]
    assert missing == []
    beyond = [id for id in ids if not re.match(rf"({'|'.join(expected)}|{UNNUMBERED})(-|$)", id)]
    assert beyond == []


@pytest.mark.parametrize("paper", LISTED)
def test_entries_are_well_formed(paper):
    entries = statements(paper)
    ids = [statement.id for statement in entries]
    assert len(set(ids)) == len(ids)
    for statement in entries:
        assert statement.paper == paper
        assert statement.kind in KINDS
        assert statement.paraphrase.endswith(".")
        assert statement.paraphrase.count(". ") == 0, f"{statement.id}: one sentence"
        homes = (f"{paper}.", *(f"{shared}." for shared in SHARED))
        assert all(glob.startswith(homes) for glob in statement.claims), f"{statement.id}: claims of its paper"


@pytest.mark.parametrize(
    "statement",
    [
        made_up(claims=("continual.lemma-8*", "continual.lemma-9*")),
        made_up(claims=("continual.lemma-1.*",)),
        made_up(claims=()),
        made_up(claims=(), untestable=" "),
        made_up(untestable="it cannot be run"),
    ],
    ids=["one glob of two", "a longer number", "no claims", "a blank reason", "both"],
)
def test_a_missing_claim_is_noticed(statement):
    problems = uncovered([made_up(), statement], ["continual.lemma-8", "continual.lemma-10.close"])
    assert len(problems) == 1
    assert "lemma-8" in problems[0]
    assert unreached([made_up()], ["continual.lemma-8", "continual.lemma-9"]) == ["continual.lemma-9"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('id = "a"\nsource = "b"\nkind = "rate"', "paraphrase"),
        ('id = "a"\nsource = "b"\nkind = "slope"\nparaphrase = "c"', "slope"),
        ('id = "a"\nsource = "b"\nkind = "rate"\nparaphrase = "c"\nclaim = ["d"]', "claim"),
    ],
    ids=["missing", "no kind", "a misspelt field"],
)
def test_a_malformed_entry_is_named(text, names, tmp_path, monkeypatch):
    (tmp_path / "statements.toml").write_text(f"[[statement]]\n{text}\n")
    monkeypatch.setattr(lists.resources, "files", lambda package: tmp_path)
    with pytest.raises(InvalidStatementError, match=names):
        statements("edge")


def test_another_paper_has_no_statements():
    with pytest.raises(UnknownNameError, match="edge"):
        statements("egde")


@pytest.mark.parametrize("claim", SHIPPED, ids=lambda claim: claim.id)
def test_formulas_are_complete_and_convert(claim):
    assert claim.formula.strip()
    assert claim.formula.count("{") == claim.formula.count("}")
    # A command that the converter does not know stays in its output, with its backslash.
    assert "\\" not in convert(claim.formula, display="block")
