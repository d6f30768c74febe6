"""Loops in plain NumPy, written from `docs/pages/derivations` alone: what the pages derive against what is simulated.

Seeds are fixed, so that a tolerance of five standard errors is passed or failed once and for all.
"""

import jax
import numpy as np
import pytest

from moe_theory import continual
from moe_theory.continual import corrected, reduced, solvable, theory
from moe_theory.core.tasks import Arrival, Pool

N, D, S = 4, 7, 4


def learned(experts, columns, truths):
    """The nearest models that fit y = X'w, of a batch: experts (B, d), columns (B, d, s), truths (B, d)."""
    basis = np.linalg.qr(columns)[0]
    shown = np.einsum("bds,bd->bs", basis, truths - experts)
    return experts + np.einsum("bds,bs->bd", basis, shown)


def history(random, truths, columns_of, tasks, routes, num_experts):
    """G_t and F_t at the end of a history (T, B), of each replicate."""
    lanes, experts, own = np.arange(tasks.shape[1]), np.zeros((tasks.shape[1], num_experts, truths.shape[1])), []
    for task, route in zip(tasks, routes, strict=True):
        experts[lanes, route] = learned(experts[lanes, route], columns_of(random, task), truths[task])
        own.append(np.sum((experts[lanes, route] - truths[task]) ** 2, axis=1))
    errors = np.array([np.sum((experts[lanes, m] - truths[n]) ** 2, 1) for n, m in zip(tasks, routes, strict=True)])
    return errors.mean(axis=0), np.sum(errors[:-1] - np.array(own)[:-1], axis=0) / (len(tasks) - 1)


def assert_mean(samples, expected, error=5.0):
    assert abs(np.mean(samples) - expected) < error * np.std(samples) / np.sqrt(len(samples))


@pytest.mark.parametrize("num_experts", [1, 5])
def test_random_routing_with_gaussian_columns(num_experts):
    """`loads.md`: E[G_t] and E[F_t] where each task goes to any expert, 20 rounds of 3,000 replicates."""
    random = np.random.default_rng(num_experts)
    truths = random.normal(size=(N, D))
    tasks, routes = random.integers(N, size=(20, 3000)), random.integers(num_experts, size=(20, 3000))
    error, forgetting = history(
        random, truths, lambda random, task: random.normal(size=(len(task), D, S)), tasks, routes, num_experts
    )
    gaps = theory.gaps(Pool(truths, truths, np.arange(N)))
    expected = corrected.random_routing(gaps, 1 - S / D, num_experts, 20)
    assert_mean(error, expected.generalization_error)
    assert_mean(forgetting, expected.forgetting)


def test_the_moments_along_routes_with_a_signal_in_each_sample():
    """`loads.md`: three experts and one history of eight arrivals, the same in 6,000 replicates."""
    random = np.random.default_rng(7)
    truths, signals = random.normal(size=(2, N, D))
    tasks, routes = np.array([0, 1, 2, 0, 3, 1, 1, 0]), np.array([0, 0, 1, 2, 0, 1, 0, 0])

    def columns(random, task):
        noise = 0.1 * random.normal(size=(len(task), D, S - 1))
        return np.concatenate([noise, 3.0 * signals[task][:, :, None]], axis=2)

    everywhere = np.ones(6000, int)
    error, forgetting = history(random, truths, columns, np.outer(tasks, everywhere), np.outer(routes, everywhere), 3)
    pool = Pool(truths[..., None], signals[..., None], np.arange(N)[:, None])
    expected = corrected.given_routes(pool, S, tasks[:, None], routes[:, None])
    assert_mean(error, expected.generalization_error[-1, 0])
    assert_mean(forgetting, expected.forgetting[-1, 0])


def test_the_reduced_model_round_by_round():
    """`gates.md`: the page's recursion for e and a, its costs and gate steps, over 60 rounds of one replicate."""
    random, num_experts = np.random.default_rng(11), 4
    truths, signals = random.normal(size=(2, N, D))
    units = signals / np.linalg.norm(signals, axis=1, keepdims=True)
    params = continual.Params(num_experts=num_experts, num_clusters=N, perturbation_scale=1.0, terminate=False)
    state = reduced.system(continual.Dims(num_experts, N, D, S)).init(jax.random.key(0), params)
    state = state._replace(pool=Pool(truths, signals, np.arange(N)), errors=np.tile(np.sum(truths**2, 1), (4, 1)))
    learn, share = jax.jit(reduced.learn), (D - S) / (D - 1)
    e, a = np.tile(np.sum(truths**2, axis=1), (num_experts, 1)), np.zeros((num_experts, N))
    gates, had = np.zeros((num_experts, D)), np.zeros(num_experts)
    for time in range(1, 61):
        n, perturbation = random.integers(N), random.uniform(size=num_experts)
        columns = np.column_stack([signals[n], 0.1 * random.normal(size=(D, S - 1))])
        x = columns.sum(axis=1)
        outputs = gates @ x
        m = int(np.argmax(outputs + perturbation))
        weights = np.exp(outputs - outputs.max())
        weights /= weights.sum()
        seen = a[m, n] - truths[n] @ units[n]
        move = np.sqrt(seen**2 + (1 - share) * (e[m, n] - seen**2))
        for k in range(N):
            gap = np.sum((truths[n] - truths[k]) ** 2)
            inside = e[m, k] - (a[m, n] - truths[k] @ units[n]) ** 2
            inside += ((truths[n] - truths[k]) @ units[n]) ** 2 - gap
            e[m, k] = gap + share * inside
        a[m] += (1 - share) * (units @ truths[n] - a[m]) - share * seen * (units @ units[n])
        had[m] += 1
        cost = move + params.balance_weight * num_experts * had[m] / time / time
        gates -= params.learning_rate * np.outer(weights * ((np.arange(num_experts) == m) - weights[m]), cost * x)
        state, info = learn(state, Arrival(task=n, features=columns), perturbation, params)
        assert int(info.expert) == m
    np.testing.assert_allclose(state.errors, e, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(state.projections, a, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(state.gates, gates, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("corners", [2, 3])
def test_gates_are_minus_the_models_on_a_simplex(corners):
    """`solvable.md`: Theorems 1, 2 and 5 along one path of 80 rounds, and Theorem 4 for two opposite truths."""
    random, num_experts, scale, rate, weight = np.random.default_rng(corners), 4, 1e-3, 0.03, 1e-7
    signals = np.eye(corners) - 1 / corners
    signals /= np.linalg.norm(signals, axis=1, keepdims=True)
    reach, rounds = corners * scale, 80
    models, gates = np.zeros((2, num_experts, corners))
    had, last = np.zeros(num_experts), np.full(num_experts, -1)
    for time in range(1, rounds + 1):
        n, perturbation = random.integers(corners), random.uniform(0, scale**1.25, size=num_experts)
        outputs = gates @ signals[n]
        m = int(np.argmax(outputs + perturbation))
        weights = np.exp(outputs) / np.exp(outputs).sum()
        assert np.mean(scale - models[m] @ signals.T) == pytest.approx(scale)
        move = scale - models[m] @ signals[n]
        assert -1e-15 <= move <= reach + 1e-15
        models[m] += move * signals[n]
        had[m], last[m] = had[m] + 1, n
        cost = move + weight * num_experts * had[m] / time / time
        gates -= rate * np.outer(weights * ((np.arange(num_experts) == m) - weights[m]), cost * signals[n])
    left = np.linalg.norm(gates + rate / num_experts * (models - models.mean(axis=0)), axis=1).max()
    step = rate * reach / num_experts
    bound = 8 * step**2 * rounds + 2 * rate * weight * (1 + np.log(rounds))
    assert 4 * step <= 1
    assert 0 < left <= bound <= step / 2
    if corners == 2:
        np.testing.assert_allclose(models, scale * signals[last], atol=1e-15)
    pool = solvable.Solvable(Pool(scale * signals, signals, np.arange(corners)), scale, reach)
    assert solvable.gate_remainder(pool, num_experts, rate, rounds, weight) == pytest.approx(bound)
    expected = solvable.telescoped_gates(models, rate)
    np.testing.assert_allclose(
        gates - expected, gates + rate / num_experts * (models - models.mean(axis=0)), atol=1e-18
    )
