"""Declaring claims, and `mt.check`: catches declarations that would be judged wrongly or not at all, vague errors."""

import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual
from moe_theory.core import engine
from moe_theory.core.errors import DeclarationError, InvalidValueError, UnknownNameError
from moe_theory.verification import claim as claim_module
from moe_theory.verification import registry
from moe_theory.verification import statement as statements
from moe_theory.verification.statement import Hypothesis, bound, rate

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


DIMS = continual.Dims(max_experts=3, num_tasks=2, num_features=4, num_samples=2)
CELLS = {"one": {"num_experts": 1}, "three": {"num_experts": 3}}


def experiment(observe=lambda state, info: {"error": info.error, "loads": state.visits}):
    return mt.Experiment("checked", DIMS, continual.system(DIMS), CELLS, 6, 2, observe, replicates=64)


@pytest.fixture
def declared(monkeypatch):
    """A statement whose claims are forgotten after the test."""
    monkeypatch.setattr(claim_module, "_REGISTERED", claim_module.registered())
    monkeypatch.setattr(statements, "_DECLARED", dict(statements._DECLARED))
    never = Hypothesis("there are no experts", lambda dims, run: run.params.num_experts == 0)
    return mt.statement("checked", paper="continual", where="here", claim="Something.", hypotheses=[never])


def test_it_shows_shapes_names_of_runs_and_means(declared):
    runs = experiment()

    @declared.claim(
        "mine.checked",
        runs.together("one", "three"),
        bound(at_most=2.0),
        role="ours",
        labels=["a", "b"],
        says="Something.",
    )
    def measured(one, three):
        return np.stack([one.records["loads"][-1, 0], three.records["loads"][-1].sum(axis=0)])

    found = mt.check("mine.checked", reading="weak-signal", replicates=5)
    assert (found.reading, found.labels, found.observed, found.predicted) == ("weak-signal", ["a", "b"], [6, 6], [2, 2])
    assert found.broken == ["there are no experts"]
    for run in CELLS:
        assert found.shapes[run]["records.loads"] == (3, 3, 5)
        assert found.shapes[run]["state.experts"] == (3, 4, 5)
    assert "runs 'one', 'three'" in repr(found)
    assert "component 'b': 6, compared with 2" in repr(found)
    assert "breaks: there are no experts" in repr(found)


def test_a_rate_is_compared_with_its_exponent(declared):
    @declared.claim(
        "mine.rate", experiment().over({"one": 1.0, "three": 3.0}), rate(at_most=-1), role="ours", says="Something."
    )
    def measured(run):
        return run.records["loads"][-1, 0] + 1.0

    found = mt.check("mine.rate")
    assert found.predicted == [-1.0]
    assert repr(found).count("compared with -1") == 2


def test_faults_of_the_claim_are_told_with_their_line(declared, monkeypatch):
    @declared.claim("mine.wrong", experiment().at("one"), bound(at_most=2.0), role="ours", says="Something.")
    def measured(run):
        return run.records["loads"].mean(axis=-1)  # not one number a replicate

    @declared.claim("mine.missing", experiment().at("one"), bound(at_most=2.0), role="ours", says="Something.")
    def missing(run):
        return run.records["lods"]

    with pytest.raises(DeclarationError, match="replicates"):
        mt.check("mine.wrong")
    with pytest.raises(DeclarationError, match=r"claim mine.missing: KeyError: 'lods' .*test_claim.py, line \d+"):
        mt.check("mine.missing")

    @declared.claim(
        "mine.never",
        experiment(lambda state, info: jnp.dot(info.error, state.gates, 1, 2, 3)).at("one"),
        bound(at_most=2.0),
        role="ours",
        says="Something.",
    )
    def never(run):
        """Something."""

    monkeypatch.setattr(engine, "run", lambda *arguments, **options: pytest.fail("ran"))
    with pytest.raises(DeclarationError, match=r"claim mine.never: .*test_claim.py, line \d+"):
        mt.check("mine.never")


def test_what_is_no_claim_is_refused():
    with pytest.raises(UnknownNameError, match=r"continual.lemma-44.*continual.lemma-4"):
        mt.check("continual.lemma-44")
    with pytest.raises(InvalidValueError, match=r"names .* claims, and this is of one"):
        mt.check("continual.lemma-*")
    with pytest.raises(UnknownNameError, match=r"unit-signal"):
        mt.check("continual.lemma-4", reading="unit-signl")
