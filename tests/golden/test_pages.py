"""Loops in NumPy that know the pages of derivations alone agree with the package's formulas and reduced models."""

import functools
from typing import NamedTuple

import jax
import numpy as np
import pytest
from scipy.optimize import brentq

from moe_theory import continual, edge
from moe_theory.core.critical import critical_drive, lead_after_turns
from moe_theory.edge.params import INDEPENDENT, ORTHOGONAL

from .continual_loop import softmax


def pay(h, m, a):
    p = softmax(h)
    return h - len(h) * a * p[m] * ((np.arange(len(h)) == m) - p)


def lead(M, a, q=0.0, repeats=0):
    h, low = np.zeros(M, np.longdouble), np.inf
    for k in range(M + repeats):
        h = pay(h, min(k, M - 1), np.longdouble(a) * q ** max(0, k - M + 1))
        low = min(low, h[-1] - h[:-1].max()) if k >= M - 1 else low
    return low


@pytest.mark.parametrize(("M", "value"), [(4, 0.45), (6, 0.73), (12, 0.83), (20, 0.77)])
def test_critical(M, value):
    """Theorem B: kappa_c to the digits, and one change of sign."""
    root = brentq(lambda a: lead(M, a), 0.2, 2, xtol=1e-4)
    assert abs(root - value) < 0.005
    assert abs(root - critical_drive(M, 0)) < 2e-4
    for a in np.geomspace(0.02, 30, 100):
        assert (lead(M, a) > 0) == (a > root)
        assert abs(lead(M, a) - lead_after_turns(M, a)) < 1e-12 * a


def test_slow():
    """Theorem B: slow learners, d = 10, s = 6: a, q a, q^2 a, ... with the lead positive throughout; to the digits."""
    roots = [brentq(lambda a, M=M: lead(M, a, 2 / 3, 60), 0.3, 6, xtol=1e-4) for M in (2, 6, 12, 20)]
    ours = [critical_drive(2, 2 / 3, 0), *(critical_drive(M, 2 / 3) for M in (6, 12, 20))]
    assert np.allclose(ours, roots, rtol=0, atol=2e-4)
    assert all(abs(lead(M, a, 2 / 3, 60) - lead_after_turns(M, a, 2 / 3)) < 1e-9 for M in (3, 8) for a in (0.1, 2.0))


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
    "one-round-at-once": Case(4, 6, 9, 5, INDEPENDENT, 0.25, 0, ONE, False, {"min_strength": 0.3}),
    "one-sample-drops": Case(4, 4, 6, 1, ORTHOGONAL, 0.0, 0, (0, 4, 1, 3), True, {"learning_rate": 0.5}),
    "drops": Case(4, 6, 9, 5, ORTHOGONAL, 0.0, 1, (0, 5, 1, 4), True, {"noise_scale": 0.4}),
    "drops-spread-at-once": Case(7, 5, 6, 2, INDEPENDENT, 0.15, 0, (3, 9, 2, 6), True, {"learning_rate": 0.7}),
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


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.thorough] * ("sample" in name or "spread" in name)) for name in CASES],
)
def test_round_by_round(name):
    """Servers: route, e, a, gates, and G of (20), in which a task's own deviation counts as if no model had seen it."""
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
