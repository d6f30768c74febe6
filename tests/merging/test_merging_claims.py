"""Claims whose runs take minutes, on numbers made up here: catches one that raises, mixes up its sides, or looks away.

The exact ones are judged by tests/statistical/test_seeds.py, on their own runs.
"""

import functools

import numpy as np
import pytest
from written_down import check_written_down

from moe_theory.core.system import recorded_rounds
from moe_theory.merging import policies, reading
from moe_theory.merging.costs import ChoiceCosts, MethodCosts, StepCosts
from moe_theory.merging.evaluation import SlotAccuracy
from moe_theory.merging.experiments import (
    CLOCKS_TIER,
    LAST_SLOTS,
    MONITORED,
    ROUTED,
    STEP_TIMES,
    STEPPED,
    SURFACES_TIER,
    TESTBED_TIER,
    TESTBEDS,
    TIMED,
    Record,
    final_accuracy,
)
from moe_theory.merging.serving.methods import MERGED
from moe_theory.runs import Run
from moe_theory.verification import Status, registry
from moe_theory.verification.session import judge

REPLICATES = 64
TIERS = (SURFACES_TIER, TESTBED_TIER, CLOCKS_TIER)
OUT_OF_REACH = {"merging.lemma-3.distance"}  # what they suppose of the width


def surface_records(name, cell, rng, rounds):
    """Regret that grows like the square root, by another constant for each policy."""
    level = {policies.TANBR: 1.0, policies.NUCB: 2.0}.get(cell, 3.0)
    steps = 0.1 * level * np.sqrt(rounds)[:, None] * rng.normal(1, 0.05, (1, REPLICATES))
    blank = np.zeros_like(steps)
    values = blank + rounds[:, None] * (1 - level / 10) + rng.normal(0, 0.01, (1, REPLICATES))
    lost = np.diff(steps, axis=0, prepend=0) if len(rounds) == rounds[-1] else blank + 0.01  # of every slot, or of one
    made = dict.fromkeys(Record._fields, blank) | {"cumulative_regret": steps, "total_value": values}
    return Record(**made | {"num_leaves": blank + level, "log_determinant": blank + 30.0, "regret": lost})


def slot_records(name, cell, rng, rounds):
    level = 0.6 if cell == policies.TANBR else 0.4
    return SlotAccuracy(
        rng.normal(level, 0.02, (len(rounds), REPLICATES)), np.full((len(rounds), 8, REPLICATES), 1 / 8)
    )


def clock_records(name, cell, rng, rounds):
    if cell in ROUTED:
        number, _ = ROUTED[cell]
        return ChoiceCosts(number * 1e-6 * rng.uniform(0.9, 1.1, (1, REPLICATES)))
    made, methods = (StepCosts, STEPPED) if name == STEP_TIMES.name else (MethodCosts, TIMED)
    levels = {MERGED: 1.0} | dict.fromkeys(methods, 2.5)
    drawn = lambda field: rng.uniform(0.9, 1.1, (1, 1 if field.endswith("bytes") else REPLICATES))  # noqa: E731
    return {
        method: made(*(np.broadcast_to(level * drawn(field), (1, REPLICATES)) for field in made._fields))
        for method, level in levels.items()
    }


MADE_UP = {SURFACES_TIER: surface_records, TESTBED_TIER: slot_records, CLOCKS_TIER: clock_records}


@functools.cache
def judged(tier):
    under, verdicts = reading("random-split"), {}
    for claim in registry.select_claims([f"merging:{tier}"]):
        experiment = claim.experiment
        rounds = recorded_rounds(experiment.num_rounds, experiment.record_every)
        runs = {}
        for number, (cell, overrides) in enumerate(experiment.cells.items()):
            records = MADE_UP[tier](experiment.name, cell, np.random.default_rng(number), rounds)
            runs[cell] = Run(under.params(**overrides), rounds, np.arange(REPLICATES), None, records)
        verdicts[claim.id] = judge(claim, under.name, runs, 0, 1e-3)
    return verdicts


@pytest.mark.usefixtures("much_room")
@pytest.mark.parametrize("tier", TIERS)
def test_every_claim_is_judged_and_written_down(tier):
    applicable = [id for id in judged(tier) if id not in OUT_OF_REACH]
    claims = [claim for claim in registry.select_claims([f"merging:{tier}"]) if claim.id in applicable]
    check_written_down([judged(tier)[id] for id in applicable], claims)


def test_what_supposes_a_width_out_of_reach_does_not_apply():
    assert {judged(SURFACES_TIER)[id].status for id in OUT_OF_REACH} == {Status.INAPPLICABLE}


def test_orders_are_the_right_way_round():
    """Tanbr has the least regret and the best accuracy here, and one merged expert takes 1/2.5 of the time."""
    verdicts = judged(SURFACES_TIER) | judged(TESTBED_TIER) | judged(CLOCKS_TIER)
    expected = {
        "merging.figure-4.peaked": Status.SUPPORTED,
        "merging.figure-4.beside-flat": Status.SUPPORTED,
        "merging.abstract.sublinear": Status.SUPPORTED,
        "merging.abstract.sublinear-root": Status.SUPPORTED,
        "merging.remark.own-picks": Status.REFUTED,  # made up to stay at the root
        "merging.lemma-3.distance-at-64": Status.SUPPORTED,
        "merging.theorem-1.regret": Status.VACUOUS,
        "merging.table-2.fixed": Status.SUPPORTED,
        "merging.figure-4.testbed": Status.SUPPORTED,
        "merging.figure-5.gain": Status.SUPPORTED,
        "merging.figure-3.faster": Status.SUPPORTED,
        "merging.abstract.latency-token-top-1-capacity": Status.SUPPORTED,
        "merging.figure-3.latency-token-top-1-capacity": Status.REFUTED,
        "merging.figure-6.routing-time": Status.SUPPORTED,
        "merging.figure-6.routing-grows": Status.SUPPORTED,
        "merging.abstract.memory-loaded": Status.SUPPORTED,
        "merging.abstract.memory-loaded-at-most": Status.REFUTED,
        "merging.figure-7.conservative": Status.REFUTED,  # made up to be alike
    }
    assert {id: verdicts[id].status for id in expected} == expected


def test_accuracy_is_that_of_the_last_slots():
    """Would catch a claim that averages over the slots in which a learner has not learned."""
    rounds = recorded_rounds(TESTBEDS["fixed"].num_rounds, 1)
    accuracy = np.where(rounds[:, None] > rounds[-1] - LAST_SLOTS, 1.0, 0.0) * np.ones(3)
    run = Run(None, rounds, np.arange(3), None, SlotAccuracy(accuracy, np.zeros((len(rounds), 8, 3))))
    np.testing.assert_array_equal(final_accuracy(run), [1, 1, 1])


def test_every_method_of_the_testbed_has_its_claims():
    claims = registry.select_claims([f"merging:{TESTBED_TIER}"])
    compared = {mix: set() for mix in TESTBEDS}
    for claim in claims:
        mix = next(mix for mix, experiment in TESTBEDS.items() if experiment.name == claim.experiment.name)
        compared[mix] |= set(claim.labels({}))
        compared[mix] |= {policies.MIX, policies.UNIFORM} & set(claim.id.split("."))  # as competitors
        compared[mix] |= {MONITORED} if claim.id.endswith(".monitored") else set()
    assert compared == {mix: set(experiment.cells) - {policies.TANBR} for mix, experiment in TESTBEDS.items()}
    assert min(experiment.num_rounds for experiment in TESTBEDS.values()) >= 512
