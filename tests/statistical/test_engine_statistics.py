"""Replicates of each paper by the engine against those of a plain `vmap` of a `scan`: catches an engine that runs
something else than the step.

Runs are chaotic, so a last bit may send a task elsewhere after some rounds: nearly all replicates agree within 1e-4,
and 90 % are demanded.
"""

from typing import Any

import jax
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual, edge

SEED, NUM_REPLICATES, NUM_ROUNDS = 2, 128, 60


LEARNING = continual.system(continual.Dims(10, 6, 10, 6))  # one program for both numbers of experts
CASES = {
    "continual-5": (LEARNING, continual.Params(num_experts=5)),
    "continual-10": (LEARNING, continual.Params(num_experts=10)),
    "edge-10": (edge.system(edge.Dims(10, 10, 15, 10, max_delay=10)), edge.Params(num_experts=10)),
}


def observe(state: Any, info: Any) -> dict[str, Any]:
    return {"task": info.task, "error": info.generalization_error}


@pytest.mark.parametrize("name", CASES)
def test_the_engine_s_replicates_are_those_of_a_plain_scan(name: str) -> None:
    """Would catch a round that is done twice, late or with another's draws, and sums that lose terms."""
    system, params = CASES[name]

    def records(plain: bool) -> dict[str, np.ndarray]:
        arguments = (mt.root_key(SEED), NUM_REPLICATES, params, NUM_ROUNDS)
        return jax.device_get(mt.simulate_batch(system, *arguments, observe=observe, plain=plain))[1]

    ours, plain = records(False), records(True)
    np.testing.assert_array_equal(ours["task"], plain["task"])
    apart = np.abs(ours["error"] - plain["error"])
    assert np.mean(apart[-1] <= 1e-4 * np.abs(plain["error"][-1])) >= 0.9
    assert len(set(plain["error"][-1])) > 0.9 * NUM_REPLICATES
    assert np.mean(apart[4] <= 1e-4 * (np.abs(plain["error"][4]) + 1e-3)) >= 0.99  # before a last bit can have grown
