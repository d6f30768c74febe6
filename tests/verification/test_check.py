"""`mt.check`: what a claim's function gets and makes of it, before anything is judged; its faults in one line."""

import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual
from moe_theory.core import engine
from moe_theory.core.errors import DeclarationError, InvalidValueError, UnknownNameError
from moe_theory.verification import claim as claim_module
from moe_theory.verification import statement as statements
from moe_theory.verification.statement import Hypothesis, bound, rate

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
    with pytest.raises(DeclarationError, match=r"claim mine.missing: KeyError: 'lods' .*test_check.py, line \d+"):
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
    with pytest.raises(DeclarationError, match=r"claim mine.never: .*test_check.py, line \d+"):
        mt.check("mine.never")


def test_what_is_no_claim_is_refused():
    with pytest.raises(UnknownNameError, match=r"continual.lemma-44.*continual.lemma-4"):
        mt.check("continual.lemma-44")
    with pytest.raises(InvalidValueError, match=r"names .* claims, and this is of one"):
        mt.check("continual.lemma-*")
    with pytest.raises(UnknownNameError, match=r"unit-signal"):
        mt.check("continual.lemma-4", reading="unit-signl")
