"""Declaring claims: catches declarations that would be judged wrongly or not at all, and vague errors."""

import pytest

from moe_theory import continual
from moe_theory.core.errors import DeclarationError, InvalidValueError, UnknownNameError
from moe_theory.verification import registry

from .declarations import make


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"margin": -0.1}, "margin=-0.1"),
        ({"margin": float("nan")}, "margin=nan"),
        ({"margin": 0.0}, "an equality needs a margin"),
        ({"predict": None}, "needs a value"),
        ({"statement": ""}, "say in one sentence"),
        *(
            ({name: id}, f"{name}=.* must be of lower-case")
            for name in ("id", "replaced_by")
            for id in ("../../../x/own", "/x", "a/b", "a..b", ".a", "a.", "A", "a_b", "", "a\n", "a\0", "é", 121 * "a")
        ),
    ],
)
def test_an_incomplete_claim_is_refused(changes, message):
    with pytest.raises(DeclarationError, match=message):
        make(**changes)


def test_every_shipped_claim_names_a_replacement_that_exists():
    claims = registry.all_claims()
    assert len(claims) >= 20
    for one in claims.values():
        assert one.replaced_by is None or one.replaced_by in claims
        assert one.id.startswith(f"{one.paper}.")
        assert one.where


def test_selection_takes_ids_globs_and_papers():
    everything = [one.id for one in registry.select_claims(["*"])]
    assert {id.split(".")[0] for id in everything} >= {"continual", "edge"}
    assert [one.id for one in registry.select_claims(["edge"])] == [id for id in everything if id.startswith("edge.")]
    assert [one.id for one in registry.select_claims(["continual.lemma-4"])] == ["continual.lemma-4"]
    theorems = [id for id in everything if id.startswith("continual.theorem-")]
    chosen = registry.select_claims(["continual.theorem-*", "continual.theorem-1.*"])
    assert [one.id for one in chosen] == theorems
    with pytest.raises(UnknownNameError, match=r"Did you mean 'continual\.lemma-4'"):
        registry.select_claims(["continual.lema-4"])


def test_select_claims_of_a_number_takes_all_its_cases():
    ids = {claim.id for claim in registry.select_claims(["edge.lemma-9"])}
    assert ids >= {"edge.lemma-9.settled", "edge.lemma-9.history"}


def test_select_claims_of_a_statement_without_a_claim_says_why():
    with pytest.raises(InvalidValueError, match=r"merging\.equation-1 is not testable: A reduction"):
        registry.select_claims(["merging.equation-1"])


def test_readings_are_selected_by_name_with_the_nearest_suggested():
    assert [reading.name for reading in registry.select_readings("continual", None)] == [
        "unit-signal",
        "independent-signal",
        "orthogonal-signal",
        "strong-signal",
    ]
    assert len(registry.select_readings("continual", ["all"])) == len(continual.READINGS)
    with pytest.raises(UnknownNameError, match="Did you mean 'weak-signal'"):
        registry.select_readings("continual", ["week-signal"])
    with pytest.raises(UnknownNameError, match="unknown paper"):
        registry.select_readings("contnual", None)


def test_each_paper_takes_the_named_readings_that_it_has():
    """Would catch a reading of one paper refused because another, judged along with it, lacks it."""
    chosen = registry.readings_by_paper(["continual", "edge"], ["unit-signal", "independent-signal"])
    assert [reading.name for reading in chosen["continual"]] == ["unit-signal", "independent-signal"]
    assert [reading.name for reading in chosen["edge"]] == ["independent-signal"]
    with pytest.raises(UnknownNameError, match=r"Did you mean 'unit-signal'"):
        registry.readings_by_paper(["continual", "edge"], ["unit-sigal"])
    assert len(registry.readings_by_paper(["edge"], ["quick"])["edge"]) == 1
    assert next(iter(registry.all_claims())).startswith("continual.")


def test_a_tier_names_the_claims_of_a_paper_that_cost_about_the_same():
    exact = registry.select_claims(["generalization:exact"])
    learned = registry.select_claims(["generalization:learned"])
    assert exact
    assert learned
    assert {claim.experiment.tier for claim in exact} == {"exact"}
    together = {claim.id for claim in (*exact, *learned)}
    assert together == {claim.id for claim in registry.select_claims(["generalization"])}
    with pytest.raises(UnknownNameError, match="generalization:exact"):
        registry.select_claims(["generalization:exat"])


def test_a_paper_without_claims_is_told_apart_from_a_misspelt_one(monkeypatch):
    """Its name was said to be unknown, and suggested."""
    monkeypatch.setattr(registry, "declared_claims", dict)
    monkeypatch.setattr(registry, "all_claims", dict)
    with pytest.raises(UnknownNameError, match=r"paper 'edge' has no claim: .* begin with 'edge\.'"):
        registry.select_claims(["edge"])
