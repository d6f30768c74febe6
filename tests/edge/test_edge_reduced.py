"""Servers reduced to their gates, against complete enumeration."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory import edge
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.expected import taught
from moe_theory.core.routes import last_tasks, own_share
from moe_theory.edge import reduced
from tests.continual.designs import complement_basis, draw_pool, residual_projectors

P, S, N = 4, 2, 3


def test_a_task_with_a_truth_of_its_own_leaves_distances_as_expected():
    """Mean over the lines of a design and truths around the kind's, with mean 0 and covariance tau^2, from a known
    model that another task has left."""
    pool, spread = draw_pool(N, P, "independent"), 0.3
    units = pool.signals / np.linalg.norm(pool.signals, axis=1, keepdims=True)
    model, task = pool.truths[1] - 0.2, 2
    lines = residual_projectors(complement_basis(pool.signals[task]), P - S)
    truths = [
        pool.truths[task] + spread * np.sqrt(P) * sign * axis for sign, axis in itertools.product((1, -1), np.eye(P))
    ]
    after = np.array([truth + (model - truth) @ line for truth in truths for line in lines])
    before = np.sum((model - pool.truths) ** 2, axis=1), units @ model
    errors, projections, squared_move = taught(
        edge.Pool(*map(jnp.asarray, pool)), jnp.asarray(task), *map(jnp.asarray, before), (P - S) / (P - 1), spread
    )
    np.testing.assert_allclose(errors, np.mean(np.sum((after[:, None] - pool.truths) ** 2, axis=2), axis=0), rtol=2e-5)
    np.testing.assert_allclose(projections, np.mean(after @ units.T, axis=0), rtol=2e-5, atol=2e-6)
    assert float(squared_move) == pytest.approx(np.mean(np.sum((after - model) ** 2, axis=1)), rel=2e-5)


@pytest.mark.parametrize("choices", [{"max_capacity": 2}, {"when_busy": "soonest", "max_waiting": 3}])
def test_servers_that_hold_several_tasks_are_refused(choices):
    with pytest.raises(InvalidValueError, match="holds one task"):
        reduced.system(edge.Dims(4, N, P, S, **choices))


def test_own_tasks_are_counted_among_those_that_went_to_a_server():
    tasks, experts = np.array([[0, 1, 1, 0, 0, 1, 0, 1]]).T, np.array([[0, 1, 1, -1, 0, 0, 0, -1]]).T
    np.testing.assert_array_equal(last_tasks(tasks, experts)[:, 0], [-1, -1, 1, -1, 0, 0, 1, -1])
    assert own_share(tasks, experts, np.array([[0], [1]])).tolist() == [0.0]  # of the last two, one went to server 0
    assert own_share(tasks, experts, np.array([[7], [7]])).tolist() == [1.0]  # two tasks of one cluster
    first = np.array([[1, 1, 1, 1]]).T, np.array([[0, 0, 0, 1]]).T  # the last arrival is its expert's first
    assert own_share(*first, np.array([[0], [0]])).tolist() == [0.0]
    assert np.isnan(own_share(tasks[:4], experts[:4], np.array([[0], [1]]))[0])
