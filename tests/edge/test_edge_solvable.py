"""The theorems of solvable.md under delays, and servers reduced to their gates."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from examples import solvable
from moe_theory import edge
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.expected import taught
from moe_theory.core.routes import last_tasks, own_share
from moe_theory.edge import reduced
from tests.continual.designs import complement_basis, draw_pool, residual_projectors

M, ROUNDS, RUNS, SCALE = 4, 90, 4, 1e-3
SPEEDS = (1, 1, 3, 6)


@functools.cache
def run(name, num_samples=1, rounds=ROUNDS, lag=1):
    instance = solvable.INSTANCES[name](scale=SCALE)
    with jax.enable_x64(True):
        cell = solvable.edge_cell(instance, M, num_samples, execution_delay=SPEEDS, gate_lag=lag)
        state, info = mt.simulate_batch(cell.system, mt.root_key(4), RUNS, cell.params, rounds)
        return instance, cell.params, jax.tree.map(np.asarray, (state, info))


def completed(info, place):
    """The tasks that servers have completed at the end, in the order of their completion, and the servers."""
    routed = np.flatnonzero(info.expert[:, place] >= 0)
    done = routed + info.delay[routed, place]
    order = routed[np.argsort(done, kind="stable")]
    order = order[order + info.delay[order, place] < ROUNDS]  # completed at the start of round t + d <= T
    return info.task[order, place], info.expert[order, place]


@pytest.mark.parametrize(
    ("name", "num_samples", "models_of"),
    [
        pytest.param("opposite-truths", 3, solvable.last_truths, marks=pytest.mark.thorough),
        ("orthonormal-one-sample", 1, solvable.truths_met),
        pytest.param("unseen-part", 1, solvable.truths_met, marks=pytest.mark.thorough),
    ],
)
def test_models_are_those_of_the_completed_tasks(name, num_samples, models_of):
    """Theorems 4, 6 and 8."""
    instance, _, (state, info) = run(name, num_samples)
    for place in range(RUNS):
        models = models_of(instance, *completed(info, place), M)
        np.testing.assert_allclose(state.experts[..., place], models, atol=1e-9 * SCALE)


@pytest.mark.parametrize(
    ("name", "lag"),
    [
        *itertools.product(["orthonormal-one-sample"], [0, 1]),
        *(
            pytest.param(*pair, marks=pytest.mark.thorough)
            for pair in itertools.product(["opposite-truths", "three-directions"], [0, 1])
        ),
    ],
)
def test_settled_gates_are_minus_the_models(name, lag):
    """Theorem 2: within its constant, and only once the last step is taken."""
    instance, params, (state, _) = run(name, lag=lag)
    expected = solvable.telescoped_gates(state.experts, params.learning_rate)
    settled = state.gates - params.learning_rate * state.gate_step
    bound = solvable.gate_remainder(instance, M, params.learning_rate, min(ROUNDS, 3 * M if "one" in name else ROUNDS))
    assert 0 < np.linalg.norm(settled - expected, axis=1).max() <= bound < np.inf
    if lag == 0:
        np.testing.assert_array_equal(settled, state.gates)


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
    assert np.isnan(own_share(tasks[:4], experts[:4], np.array([[0], [1]]))[0])
