"""Loops in NumPy for the reduced models on the page on gates, written from the page and Algorithms 1 alone."""

import functools
from typing import NamedTuple

import jax
import numpy as np
import pytest

from moe_theory import continual, edge
from moe_theory.edge.params import INDEPENDENT, ORTHOGONAL

from .continual_loop import softmax

ROUNDS = 100
draw = jax.jit(edge.draw, static_argnums=(1, 5))


@functools.cache
def compiled(dims):
    system = edge.reduced.system(dims)
    return system.init, jax.jit(system.step)


class Case(NamedTuple):
    """A hypothesis; delays are the bounds of transfer, then of execution; `drops` says whether tasks get lost."""

    M: int
    N: int
    p: int
    s: int
    law: int
    tau: float
    lag: int
    delays: tuple[int, int, int, int]
    drops: bool
    extra: dict[str, float]


ONE = (0, 0, 1, 1)  # all tasks take one round
CASES = {  # of few sizes, each of which has a program
    "one-round": Case(5, 3, 8, 3, ORTHOGONAL, 0.0, 1, ONE, False, {}),
    "one-round-at-once": Case(4, 6, 9, 5, INDEPENDENT, 0.25, 0, ONE, False, {"min_strength": 0.3}),
    "one-sample": Case(4, 4, 6, 1, INDEPENDENT, 0.2, 1, (0, 1, 1, 2), False, {}),
    "one-sample-drops": Case(4, 4, 6, 1, ORTHOGONAL, 0.0, 0, (0, 4, 1, 3), True, {"learning_rate": 0.5}),
    "drops": Case(4, 6, 9, 5, INDEPENDENT, 0.0, 1, (0, 5, 1, 4), True, {"noise_scale": 0.4}),
    "drops-spread": Case(5, 5, 8, 7, ORTHOGONAL, 0.3, 1, (1, 5, 1, 4), True, {"learning_rate": 0.5}),
    "drops-spread-at-once": Case(7, 5, 6, 2, INDEPENDENT, 0.15, 0, (3, 9, 2, 6), True, {"learning_rate": 0.7}),
    "blind": Case(5, 3, 8, 3, ORTHOGONAL, 0.4, 1, (0, 3, 1, 2), False, {"perturbation_scale": 3.0}),
}


def share(p, s):
    """The page's c."""
    return (p - s) / (p - 1)


def learned(e, a, w, u, n, s, tau):
    """The page's cost, e and a (..., N) of a server that had e and a and gets a task of the kind n."""
    p, x = w.shape[1], a[n] - w[n] @ u[n]
    c, D = share(p, s), ((w[n] - w) ** 2).sum(1)
    cost = (x**2 + tau**2 + (1 - c) * (e[n] - x**2 + (p - 1) * tau**2)) ** 0.5
    new_e = D + c * (e - (a[n] - w @ u[n]) ** 2 - D + ((w[n] - w) @ u[n]) ** 2)
    return cost, new_e + p * tau**2 - c * (p - 1) * tau**2, a + (1 - c) * (u @ w[n] - a) - c * x * (u @ u[n])


def close(found, value):
    np.testing.assert_allclose(found, value, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_round_by_round(name):
    """Servers: route, e, a, gates, G of (20), after each of 100 rounds of `edge.reduced`, by its step.

    In G a task counts with e of its kind and p tau^2 for its own deviation, as if no model had seen it.
    """
    M, N, p, s, law, tau, lag, delays, drops, extra = CASES[name]
    low, high, least, most = delays
    params = edge.Params(num_experts=M, gate_lag=lag, cluster_spread=tau, signal_law=law, signal_scale=3.0)
    params = params._replace(min_transfer_delay=low, max_transfer_delay=high, **extra)
    params = params._replace(min_execution_delay=least, max_execution_delay=most)
    dims = edge.Dims(max_experts=M, num_tasks=N, num_features=p, num_samples=s)
    begin, step = compiled(dims)
    state = begin(jax.random.key(ord(name[-1])), params)
    pool, positions, execution = state.pool, state.positions, np.asarray(state.execution_delay)
    w, v = np.asarray(pool.truths, float), np.asarray(pool.signals, float)
    u = v / np.linalg.norm(v, axis=1, keepdims=True)
    assert law != ORTHOGONAL or abs(u @ u.T - np.eye(N)).max() < 1e-5
    e, a, had = np.tile((w**2).sum(1), (M, 1)), np.zeros((M, N)), np.zeros((M, N))
    gates, free, steps, lost, chosen = np.zeros((M, p)), np.zeros(M, int), {}, 0, 0
    for t in range(1, ROUNDS + 1):
        key = jax.random.fold_in(jax.random.key(t), N)
        arrival = jax.device_get(draw(key, dims, pool, positions, params, edge.delays.uniform))
        state, info = jax.device_get(step(key, state, params))
        gates = gates - steps.pop(t, 0)
        n, x = int(arrival.task), arrival.features.astype(float).sum(1)
        h, m = gates @ x, int(info.expert)
        idle = np.flatnonzero(free <= t)
        score = (h + arrival.perturbation)[idle]
        if len(idle):
            near_best = idle[score > score.max() - 1e-5]  # in float32 these are a tie
            assert m in near_best, t
            cost, e[m], a[m] = learned(e[m], a[m], w, u, n, s, tau)
            delay, q = arrival.transfer_delay[m] + execution[m], softmax(h)
            free[m], had[m, n], done = t + delay, had[m, n] + 1, t + delay + lag
            move = np.outer(q[m] * ((np.arange(M) == m) - q), cost * x)
            steps[done] = steps.get(done, 0) + params.learning_rate * move
            chosen += idle[score.argmax()] != idle[arrival.perturbation[idle].argmax()]
        else:
            assert m == edge.DROPPED, t
            lost += 1
        assert int(info.task) == n
        close(state.errors, e)
        close(state.projections, a)
        close(state.gates, gates)
        close(info.generalization_error_flushed, (had * e).sum() / had.sum() + p * tau**2)
    assert int(state.round) == ROUNDS
    assert (state.visits == had.sum(1)).all()
    assert (lost > 0) == drops
    assert 5 <= chosen < ROUNDS  # rounds in which gates, not chance, made the route


def test_round_by_round_of_experts():
    """The reduced model: e, a, costs and gate steps, over 60 rounds of one replicate of `continual.reduced`."""
    random, M, N, d, s = np.random.default_rng(11), 4, 4, 7, 4
    w, v = random.normal(size=(2, N, d))
    u = v / np.linalg.norm(v, axis=1, keepdims=True)
    params = continual.Params(num_experts=M, num_clusters=N, perturbation_scale=1.0, terminate=False)
    state = continual.reduced.system(continual.Dims(M, N, d, s)).init(jax.random.key(0), params)
    e, a, gates, had = np.tile((w**2).sum(1), (M, 1)), np.zeros((M, N)), np.zeros((M, d)), np.zeros(M)
    state = state._replace(pool=continual.Pool(w, v, np.arange(N)), errors=e.copy())
    learn = jax.jit(continual.reduced.learn)
    for t in range(1, 61):
        n, perturbation = random.integers(N), random.uniform(size=M)
        features = np.column_stack([v[n], 0.1 * random.normal(size=(d, s - 1))])
        x = features.sum(1)
        h = gates @ x
        m, q = int(np.argmax(h + perturbation)), softmax(h)
        cost, e[m], a[m] = learned(e[m], a[m], w, u, n, s, 0.0)
        had[m] += 1
        cost += params.balance_weight * M * had[m] / t / t
        gates -= params.learning_rate * np.outer(q * ((np.arange(M) == m) - q[m]), cost * x)
        state, info = learn(state, continual.Arrival(n, features), perturbation, params)
        assert int(info.expert) == m
    close(state.errors, e)
    close(state.projections, a)
    close(state.gates, gates)


def near(sample, value):
    """Of means over draws, six standard errors."""
    error = sample.std(0) / len(sample) ** 0.5
    assert (abs(sample.mean(0) - value) < 6 * error + 1e-9).all(), (sample.mean(0), value, error)


def tasks(random, w, u, s, tau, count):
    """The projections on what `count` tasks of kind 0 show, and their truths: strengths on (0, 1], noise of 0.3."""
    strength = 1 - random.random(count)
    columns = 0.3 * random.normal(size=(count, w.shape[1], s))
    columns[:, :, s // 2] = 2 * strength[:, None] * u[0]
    q = np.linalg.qr(columns)[0]
    return q @ q.transpose(0, 2, 1), w[0] + tau * random.normal(size=(count, w.shape[1]))


SETTINGS = [(5, 2, 0.0), (6, 5, 0.4), (9, 3, 0.15), (4, 1, 0.7), (3, 1, 0.0)]


@pytest.mark.parametrize(("p", "s", "tau"), SETTINGS)
@pytest.mark.parametrize("law", ["orthogonal", "independent"])
def test_formulas_for_a_known_model(p, s, tau, law):
    """The reduced model: cost squared, e and a, by draws of features and own truths; six errors."""
    random = np.random.default_rng(p)
    w, u, model = random.normal(size=(3, p)), random.normal(size=(p, 3)), random.normal(size=p)
    u = (np.linalg.qr(u)[0] if law == "orthogonal" else u / np.linalg.norm(u, axis=0)).T
    P, truths = tasks(random, w, u, s, tau, 40_000)
    move = np.einsum("rij,rj->ri", P, truths - model)
    new = model + move
    cost, e, a = learned(((model - w) ** 2).sum(1), u @ model, w, u, 0, s, tau)
    near((move**2).sum(1), cost**2)
    near(((new[:, None] - w) ** 2).sum(2), e)
    near(new @ u.T, a)
    assert np.isclose(p * tau**2 - share(p, s) * (p - 1) * tau**2, s * tau**2)


@pytest.mark.parametrize(("p", "s", "tau"), SETTINGS)
def test_means_for_values(p, s, tau):
    """Proof of the reduced model: of a random w, a is exact, and e is c Var w'u_n too large; six errors.

    So is the squared cost too small, by as much: x is a mean there as well. Without its root it has no other error.
    """
    random, count = np.random.default_rng(p), 40_000
    w, u = random.normal(size=(2, 3, p))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    models = random.normal(size=p) + 0.5 * random.normal(size=(2, p))[random.integers(2, size=count)]
    P, truths = tasks(random, w, u, s, tau, count)
    move = np.einsum("rij,rj->ri", P, truths - models)
    new, excess = models + move, share(p, s) * (models @ u[0]).var()
    e, a = ((models[:, None] - w) ** 2).sum(2).mean(0), (models @ u.T).mean(0)
    cost, e, a = learned(e, a, w, u, 0, s, tau)
    near((move**2).sum(1), cost**2 + excess)
    near(((new[:, None] - w) ** 2).sum(2), e - excess)
    near(new @ u.T, a)
