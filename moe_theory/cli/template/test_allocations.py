"""Promises of allocations.py, on few replicates."""

import allocations

import moe_theory as mt


def test_every_task_goes_to_an_expert():
    state, _ = mt.simulate(allocations.system(allocations.Dims()), mt.root_key(0), allocations.Params(), 100)
    assert state.loads.sum() == state.round == 100


def test_a_choice_of_two_keeps_loads_small():
    verdicts = mt.verify("allocations.*", readings="best-of-2", replicates=256)
    assert [verdict.status for verdict in verdicts] == [mt.Status.SUPPORTED, mt.Status.SUPPORTED]
