"""Algorithm 1 against a baseline: its rounds as a plain loop has them, what it conserves, and where it stays."""

import jax
import numpy as np
import pytest

from moe_theory import continual, reinforced
from moe_theory.continual import baseline
from moe_theory.continual.interventions import whole_truth
from moe_theory.core.baseline import LOCALITIES
from moe_theory.edge.sweeps import SWEEPABLE
from moe_theory.reinforced import experiments
from moe_theory.runs import run_cells
from tests.continual.cases import refuse

NUM_TASKS, NUM_FEATURES, NUM_SAMPLES = 3, 8, 3


def loop(arrivals, truths, num_experts, learning_rate, own):
    """Models, gates, routes of Algorithm 1 without auxiliary loss and end; (6) has |dw| - own b_m - (1 - own) mean."""
    w = np.zeros((num_experts, truths.shape[1]))
    theta, b, moves, routes = np.zeros_like(w), np.zeros(num_experts), [], []
    for n, X, r in arrivals:
        x = X.sum(axis=1)
        h = theta @ x
        m = int(np.argmax(h + r))
        pi = np.exp(h) / np.exp(h).sum()
        change = X @ np.linalg.pinv(X.T @ X) @ X.T @ (truths[n] - w[m])
        w[m] += change
        length = np.linalg.norm(change)
        cost = length - own * b[m] - (1 - own) * (np.mean(moves) if moves else 0)
        for j in range(num_experts):
            theta[j] -= learning_rate * cost * pi[m] * ((j == m) - pi[j]) * x
        b[m] = length
        moves.append(length)
        routes.append(m)
    return w, theta, routes


@pytest.mark.parametrize("own", [baseline.OWN_WEIGHT, 1.0, 0.0])
def test_rounds_are_those_of_a_plain_loop(own):
    """Would catch a baseline of the wrong expert or the wrong round, and a mean that forgets or counts twice."""
    rng, num_experts, num_rounds = np.random.default_rng(4), 4, 60
    truths = rng.normal(size=(NUM_TASKS, NUM_FEATURES))
    arrivals = [
        (int(rng.integers(NUM_TASKS)), rng.normal(size=(NUM_FEATURES, NUM_SAMPLES)), 0.3 * rng.random(num_experts))
        for _ in range(num_rounds)
    ]
    w, theta, routes = loop(arrivals, truths, num_experts, 0.05, own)
    dims = continual.Dims(num_experts, NUM_TASKS, NUM_FEATURES, NUM_SAMPLES)
    params = continual.Params(num_experts=num_experts, learning_rate=0.05, balance_weight=0.0, terminate=False)
    with jax.enable_x64(True):
        locality = baseline.compared(own)
        learn = jax.jit(lambda *given: continual.learn(*given, params, locality=locality))
        pool = continual.Pool(truths, truths, np.arange(NUM_TASKS))
        state, found = continual.begin(dims, params, pool, locality=locality), []
        for n, X, r in arrivals:
            state, info = learn(state, continual.Arrival(n, X), r)
            found.append(int(info.expert))
    assert found == routes
    assert len(set(routes)) == num_experts
    np.testing.assert_allclose(state.experts, w, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(state.gates, theta, rtol=1e-8, atol=1e-9)


def test_whole_truth_moves_a_model_to_the_truth():
    models, truth = np.arange(6.0).reshape(2, 3), np.array([1.0, -2.0, 4.0])
    np.testing.assert_allclose(
        models + whole_truth(models, continual.Arrival(0, np.ones((3, 2)), truth), None), [truth] * 2
    )


def test_a_share_is_between_0_and_1():
    refuse("own", baseline.compared, 1.5)


def test_experts_specialise_against_a_baseline_and_not_as_printed():
    """Slow learners with noise: with the printed loss tasks go on to change experts."""
    names = [experiments.cell_name(variant, 0.01) for variant in ("repaired", "printed")]
    cells = experiments.BESIDE_PRINTED.cells_under(reinforced.reading("as-stated"))
    runs = run_cells([cell for cell in cells if cell.name in names], 64, seed=0)
    against_baseline, printed = (experiments.relative_error(runs[name]) for name in names)
    assert np.quantile(against_baseline, 0.9) < 0.3
    assert np.quantile(printed, 0.1) > 0.6


def test_servers_have_the_losses_of_experts_and_the_printed_one_without_a_memory():
    losses = SWEEPABLE.choices["locality"]
    assert losses["printed"] is None
    assert losses["repaired"] is baseline.repaired
    assert losses.keys() == LOCALITIES.keys()
