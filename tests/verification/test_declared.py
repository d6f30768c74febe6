"""What a claim declares of its values is checked: catches support from values that have not shown what they can be.

A declared range that values leave, a constant that differs, and a claim that is declared exact and reads random numbers
are errors; replicates that are all the same support nothing.
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from judging import judge
from refusals import refusal

from moe_theory.core.errors import DeclarationError
from moe_theory.core.papers import Reading
from moe_theory.core.system import System
from moe_theory.runs import Run
from moe_theory.verification import Status, session
from moe_theory.verification.claim import registered
from moe_theory.verification.evidence import random_cells
from moe_theory.verification.ranges import Range, constant, range_of, ranged
from moe_theory.verification.request import resolve
from moe_theory.verification.settings import Group
from moe_theory.verification.statement import bound, equality, ordering, statement

from .declarations import experiment, make

COUNT = 400
DRAWN = np.random.default_rng(41).random(COUNT)


class Params(NamedTuple):
    rarity: float = 1e-3


class State(NamedTuple):
    round: jax.Array
    cost: jax.Array
    total: jax.Array  # in which no key has a part


def init(key, params):
    is_rare = jax.random.uniform(key) < params.rarity
    return State(jnp.int32(0), jnp.where(is_rare, 1 / params.rarity, 0.0), jnp.float32(0))


def step(key, state, params):
    del key
    return State(state.round + 1, state.cost, state.total + 1), ()


READING = Reading("rare", "as it is", Params())
RUNS = {
    field: experiment(
        name=field,
        system=System(init, step),
        cells={"M=1": {}},
        record_every=2,
        observe=lambda state, info, field=field: getattr(state, field),
        keeps_state=False,
        replicates=1024,
    )
    for field in ("cost", "total")
}


def judged(field="cost", seed=0, **changes):
    """The verdict on a claim about a field of the state, whose mean is 1 for the cost and 2 for the total."""
    own = {
        "kind": "upper_bound",
        "margin": 0.0,
        "observe": lambda runs: runs["M=1"].records[-1],
        "predict": lambda runs: 0.5,
        "ranges": {"predicted": Range(is_constant=True)},
    }
    claim = make(experiment=RUNS[field], **{**own, **changes})
    request = resolve([Group(claim.experiment, READING, [claim])], None, seed, 0.01, None)
    return session.carry_out(request).verdicts[0]


@pytest.mark.parametrize("kind", ["upper_bound", "equality", "ordering"])
def test_replicates_that_are_all_the_same_decide_nothing(kind):
    """Catches a cost of 1,000 in one run of 1,000 that is taken for none, however the claim is put."""
    margin = 0.4 if kind == "equality" else 0.0
    predicted = {"equality": 0.1, "ordering": 0.5, "upper_bound": 0.5}[kind]
    for seed in range(3):
        verdict = judged(kind=kind, seed=seed, margin=margin, predict=lambda runs: predicted, scale=lambda runs: 1.0)
        assert verdict.status is Status.INCONCLUSIVE
        assert verdict.replicates == 1024
        assert "replicates are equal" in verdict.doubt or "take 2 values" in verdict.doubt
        assert verdict.unseen == pytest.approx(1 - 0.01 ** (1 / 1024))


def test_a_declared_range_bounds_what_may_have_been_missed():
    """Of costs up to 1,000 a thousand replicates without one say that the mean is at most 15, and no less."""
    within = {"observed": Range(0, 1000), "predicted": Range(is_constant=True)}
    assert judged(ranges=within, seed=1).status is Status.INCONCLUSIVE
    few = judged(ranges=within, seed=1, predict=lambda runs: 40.0)
    assert (few.status, few.is_exact) == (Status.SUPPORTED, True)
    assert "betting" in few.interval_kind
    assert np.isnan(few.unseen)


def test_a_claim_that_is_declared_exact_may_read_nothing_random():
    """By the program and not by the samples, which are all the same."""
    random = judged(is_computed=True)
    assert random.status is Status.ERROR
    assert "it is declared exact, but reads random records of 'M=1'" in random.reason
    free = judged("total", is_computed=True)
    assert (free.status, free.is_exact, free.replicates) == (Status.REFUTED, True, 64)
    assert free.interval == (1.5, 1.5)
    assert "computed without randomness" in free.interval_kind
    assert judged("total").status is Status.INCONCLUSIVE  # as nobody has said that it is exact
    begun = dataclasses.replace(RUNS["total"], start=lambda key, replicates, params: None)
    exact = make(experiment=begun, is_computed=True)
    assert random_cells(begun, begun.cells_under(READING), [exact]) == {"M=1"}  # for all that is known


def on_samples(observed, predicted=0.5, **changes):
    own = {"kind": "upper_bound", "margin": 0.0, "observe": lambda runs: observed, "predict": lambda runs: predicted}
    runs = {"M=1": Run(Params(), np.array([1]), np.arange(len(observed)), None, None)}
    return judge(make(**{**own, **changes}), "rare", runs, seed=0, error=0.01)


@pytest.mark.parametrize(
    ("observed", "predicted", "ranges", "message"),
    [
        (DRAWN, 0.9, {"observed": Range(0, 0.5)}, "observed value is declared to be in [0, 0.5], but is outside"),
        (DRAWN - 0.01, 0.9, {"observed": Range(0)}, "observed value is declared to be in [0, inf], but is outside"),
        (DRAWN, 2 * DRAWN, {"predicted": Range(0, 1)}, "predicted value is declared to be in [0, 1], but is outside"),
        (DRAWN, 1 + DRAWN, {"predicted": Range(is_constant=True)}, "the predicted value is declared equal"),
    ],
)
def test_what_values_are_declared_to_be_they_are(observed, predicted, ranges, message):
    """Catches values that are clipped to a range, or believed."""
    verdict = on_samples(observed, predicted, ranges=ranges)
    assert verdict.status is Status.ERROR
    assert message in verdict.reason
    assert "declared exact" in on_samples(observed, predicted, is_computed=True).reason


def test_one_bound_makes_one_end_exact():
    """A mean of what is never negative has an exact lower end, and no upper one before t is to be trusted."""
    ranges = {"observed": Range(0), "predicted": Range(is_constant=True)}
    refuted = on_samples(DRAWN[:64], 0.1, ranges=ranges)
    assert (refuted.status, refuted.is_exact) == (Status.REFUTED, True)
    still_open = on_samples(DRAWN[:64], 0.9, ranges=ranges)
    assert still_open.status is Status.INCONCLUSIVE
    assert "64 replicates are fewer than 256" in still_open.doubt
    assert (on_samples(DRAWN, 0.9, ranges=ranges).status, still_open.is_exact) == (Status.SUPPORTED, False)


@pytest.mark.parametrize("scale", [None, 2.0])
def test_the_margin_is_part_of_what_is_bounded(scale):
    """Catches an interval that is exact although what is allowed is as random as the rest."""
    ranges = {"observed": Range(0, 1), "predicted": Range(is_constant=True), "scale": Range(is_constant=True)}
    of = None if scale is None else lambda runs: scale
    equal = on_samples(DRAWN, 0.5, kind="equality", margin=0.4, scale=of, ranges=ranges)
    assert (equal.status, equal.is_exact, equal.margin) == (Status.SUPPORTED, True, 0.4 * (scale or 0.5))
    unknown = {name: each for name, each in ranges.items() if name != "scale"}
    wide = on_samples(DRAWN, 0.5, kind="equality", margin=0.4, scale=lambda runs: 1 + DRAWN, ranges=unknown)
    assert not wide.is_exact
    own = on_samples(
        DRAWN, DRAWN[::-1], kind="equality", margin=0.4, ranges={n: Range(0, 1) for n in ("observed", "predicted")}
    )
    assert own.is_exact  # |predicted| is in [0, 1] too


@pytest.mark.usefixtures("forgotten")
def test_a_range_stands_beside_its_function():
    """Catches a range that is lost on the way from a function to its claim, or a number's that is not seen."""
    share, fixed = ranged(0, 1)(lambda run: DRAWN), constant(lambda run: 0.9)
    of = statement("declared", paper="continual", where="here", claim="Shares are small.")
    found = {}
    for name, criterion in {
        "number": bound(at_most=0.9),
        "function": bound(at_most=fixed),
        "share": ordering(below=share),
        "scaled": equality(0.5, margin=0.1, scale=share),
        "unknown": bound(at_most=lambda run: 0.9),
    }.items():
        of.ours(f"declared.{name}", RUNS["cost"].at("M=1"), criterion, says="It is.")(share)
        found[name] = registered()[f"declared.{name}"].ranges
    assert {name: set(each) for name, each in found.items()} == {
        "number": {"observed", "predicted"},
        "function": {"observed", "predicted"},
        "share": {"observed", "predicted"},
        "scaled": {"observed", "predicted", "scale"},
        "unknown": {"observed"},
    }
    assert found["share"]["predicted"] == Range(0, 1) == found["scaled"]["scale"]
    assert found["number"]["predicted"].is_constant
    assert range_of(lambda run: 0.0) is None
    for ends in ((1, 1), (1, 0), (-np.inf, np.inf)):
        refusal(DeclarationError, ranged, *ends)


def test_dependent_replicates_decide_nothing():
    """Catches copies of a few replicates that count as many; in a claim with a range too."""
    copies = np.repeat(DRAWN[: COUNT // 8], 8)
    for ranges in ({}, {"observed": Range(0, 1), "predicted": Range(is_constant=True)}):
        verdict = on_samples(copies, 0.95, ranges=ranges)
        assert verdict.status is Status.INCONCLUSIVE
        assert "depend on one another" in verdict.doubt
        assert on_samples(DRAWN, 0.95, ranges=ranges).status is Status.SUPPORTED
