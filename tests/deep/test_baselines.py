"""A baseline in the locality loss: catches one that is not the locality loss's own, and room that changes a run."""

import dataclasses

import numpy as np
import pytest
from refusals import refusal

import moe_theory as mt
from moe_theory import deep
from moe_theory.core import baseline
from moe_theory.core.errors import InvalidValueError
from moe_theory.deep import datasets

LABELS = np.arange(90) % 3
FEATURES = (np.random.default_rng(0).normal(size=(90, 5)) + 2 * np.eye(5)[LABELS]).astype(np.float32)
DATA = datasets.from_arrays("features", FEATURES, LABELS, FEATURES[:15], LABELS[:15])
DIMS = deep.Dims(1, 3, 6, num_samples=10, num_tests=6, num_epochs=20, batch_size=5)


def test_what_has_no_room_is_refused():
    system = deep.continual.system(DIMS, DATA, (0, 1, 2))
    params = deep.Params(num_experts=1, baseline_weight=1.0)
    refused = refusal(InvalidValueError, mt.simulate, system, mt.root_key(0), params, 6)
    assert refused.argument == "baseline_weight"


@pytest.mark.thorough
@pytest.mark.parametrize("paper", [deep.continual, deep.edge])
def test_the_baseline_of_a_preset_is_that_of_the_part(paper):
    """Would catch room that changes the printed run, and a weight that is another baseline than `locality=`."""
    dims = dataclasses.replace(DIMS, max_experts=3)
    params = deep.Params(num_experts=3, num_rounds=6, terminate=False, max_execution_delay=2, min_execution_delay=1)

    def gates(dims, weight, **parts):
        system = paper.system(dims, DATA, (0, 1, 2), **parts)
        return mt.simulate(system, mt.root_key(0), params._replace(baseline_weight=weight), 6)[0].gates

    room = dataclasses.replace(dims, compares=True)
    printed, against = gates(dims, 0.0), gates(dims, 0.0, locality=baseline.repaired)
    np.testing.assert_allclose(gates(room, 0.0), printed, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(gates(room, 1.0), against, rtol=1e-5, atol=1e-7)
    assert abs(printed - against).max() > 1e-4
