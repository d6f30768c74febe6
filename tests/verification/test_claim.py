"""Declaring claims: catches declarations that would be judged wrongly or not at all, and vague errors."""

import pytest
from refusals import refusal

from moe_theory import continual
from moe_theory.core.errors import DeclarationError, InvalidValueError, UnknownNameError
from moe_theory.verification import registry

from .declarations import make


def test_an_incomplete_claim_is_refused():
    names = ("../../../x/own", "/x", "a/b", "a..b", ".a", "a.", "A", "a_b", "", "a\n", "a\0", "é", 121 * "a")
    for changes in (
        {"margin": -0.1},
        {"margin": float("nan")},
        {"margin": 0.0},
        {"predict": None},
        {"statement": ""},
        *({field: name} for field in ("id", "replaced_by") for name in names),
    ):
        refusal(DeclarationError, make, **changes)


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
    assert refusal(UnknownNameError, registry.select_claims, ["continual.lema-4"]).argument == "claim"


def test_select_claims_of_a_statement_without_a_claim_says_why():
    with pytest.raises(InvalidValueError, match=r"merging\.equation-1 has no deciding test: no claim"):
        registry.select_claims(["merging.equation-1"])


def test_readings_are_selected_by_name_with_the_nearest_suggested():
    assert [reading.name for reading in registry.select_readings("continual", None)] == [
        "unit-signal",
        "independent-signal",
        "orthogonal-signal",
        "strong-signal",
    ]
    assert len(registry.select_readings("continual", ["all"])) == len(continual.READINGS)
    assert refusal(UnknownNameError, registry.select_readings, "continual", ["week-signal"]).argument == "reading"
    assert refusal(UnknownNameError, registry.select_readings, "contnual", None).argument == "paper"


def test_each_paper_takes_the_named_readings_that_it_has():
    """Would catch a reading of one paper refused because another, judged along with it, lacks it."""
    chosen = registry.readings_by_paper(["continual", "edge"], ["unit-signal", "independent-signal"])
    assert [reading.name for reading in chosen["continual"]] == ["unit-signal", "independent-signal"]
    assert [reading.name for reading in chosen["edge"]] == ["independent-signal"]
    refusal(UnknownNameError, registry.readings_by_paper, ["continual", "edge"], ["unit-sigal"])
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
    assert refusal(UnknownNameError, registry.select_claims, ["generalization:exat"]).argument == "claim"
