"""The theorems of `docs/pages/derivations/solvable.md` under delays: servers of different speed, tasks under way."""

import functools

import jax
import numpy as np
import pytest

import moe_theory as mt
from examples import solvable

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
        ("opposite-truths", 3, solvable.last_truths),
        ("orthonormal-one-sample", 1, solvable.truths_met),
        ("unseen-part", 1, solvable.truths_met),
    ],
)
def test_models_are_those_of_the_completed_tasks(name, num_samples, models_of):
    """Theorems 4, 6 and 8."""
    instance, _, (state, info) = run(name, num_samples)
    for place in range(RUNS):
        models = models_of(instance, *completed(info, place), M)
        np.testing.assert_allclose(state.experts[..., place], models, atol=1e-9 * SCALE)


@pytest.mark.parametrize("name", ["opposite-truths", "three-directions", "orthonormal-one-sample"])
@pytest.mark.parametrize("lag", [0, 1])
def test_settled_gates_are_minus_the_models(name, lag):
    """Theorem 2: within its constant, and only once the last step is taken."""
    instance, params, (state, _) = run(name, lag=lag)
    expected = solvable.telescoped_gates(state.experts, params.learning_rate)
    settled = state.gates - params.learning_rate * state.gate_step
    bound = solvable.gate_remainder(instance, M, params.learning_rate, min(ROUNDS, 3 * M if "one" in name else ROUNDS))
    assert 0 < np.linalg.norm(settled - expected, axis=1).max() <= bound < np.inf
    if lag == 0:
        np.testing.assert_array_equal(settled, state.gates)


def test_every_server_meets_every_kind():
    """Theorem 7: G ends at what one expert has, and an idle server that is new to a kind has the largest output."""
    instance, _, (_, info) = run("orthonormal-one-sample", rounds=400)
    np.testing.assert_allclose(info.generalization_error_flushed[-1], solvable.limit_error(instance), rtol=1e-9)
    for place in range(RUNS):
        fresh = np.ones((3, M), bool)
        for task, route, outputs in zip(
            info.task[:, place], info.expert[:, place], info.gate_outputs[..., place], strict=True
        ):
            if fresh[task].any():
                np.testing.assert_allclose(outputs[fresh[task]], outputs.max(), rtol=1e-12, atol=1e-18)
            if route >= 0:
                fresh[task, route] = False
