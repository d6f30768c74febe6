"""Loops in NumPy that know the pages of derivations alone: their numbers are those of Algorithm 1 and of the formulas.

Gates, servers that are busy, and the other pages. The package's formulas are those of the pages, exactly.
"""

import functools
import itertools
from itertools import product
from typing import NamedTuple

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from examples import solvable
from moe_theory import continual, edge
from moe_theory.continual import Pool, corrected, theory
from moe_theory.core.critical import critical_drive, lead_after_turns
from moe_theory.edge.params import INDEPENDENT, ORTHOGONAL

from .continual_loop import softmax

each = pytest.mark.parametrize


def long(*values):
    return pytest.param(*values, marks=pytest.mark.thorough)


def pay(h, m, a):
    p = softmax(h)
    return h - len(h) * a * p[m] * ((np.arange(len(h)) == m) - p)


def lead(M, a, q=0.0, repeats=0):
    h, low = np.zeros(M, np.longdouble), np.inf
    for k in range(M + repeats):
        h = pay(h, min(k, M - 1), np.longdouble(a) * q ** max(0, k - M + 1))
        low = min(low, h[-1] - h[:-1].max()) if k >= M - 1 else low
    return low


def blind(M, N, x, R, burn, rounds, seed):
    """Level softmax, uniform perturbations, lambda = 1; N = 1: every arrival pays. Means of h^2, u, repeats; and h."""
    g, a, i = np.random.default_rng(seed), x / M, np.arange(R)
    h, last, out = np.zeros((R, M, N)), np.full((R, M), -1), np.zeros((3, R))
    for t, n in enumerate(g.integers(N, size=(burn + rounds, R))):
        m = (h[i, :, n] + g.random((R, M))).argmax(1)
        new = (last[i, m] != n) | (N == 1)
        h[i, :, n] += (a / M * new)[:, None]
        h[i, m, n] -= a * new
        last[i, m] = n
        out[2] += ~new / rounds * (t >= burn)
        if t >= burn and t % 10 == 0:
            own = np.take_along_axis(h, np.maximum(last, 0)[:, :, None], 2)[:, :, 0] - h.mean(2)
            out[:2] += np.array([(h**2).mean((1, 2)), own.mean(1)]) * 10 / rounds
    return *out, h


def near(sample, value):
    return abs(sample.mean() - value) < 5 * sample.std() / len(sample) ** 0.5


@each("M,N,d,s,alpha", [(3, 2, 5, 2, 0.5), (5, 4, 6, 3, 0.1), (8, 3, 7, 6, 1.0)])
def test_steps_sizes_favourites(M, N, d, s, alpha):
    """Model, size of gates, two tasks have experts: gradient (1e-8), sum 0, bound, favourites at all times, exact."""
    g, eta, lam, e = np.random.default_rng(M), 0.1, 0.01, 1e-6 * np.eye(M)
    th, w, had, v, truth = np.zeros((M, d)), np.zeros((M, d)), np.zeros(M), *g.normal(size=(2, N, d))
    top = far = total = 0
    for t in range(1, int(M / eta) + 1):
        n = g.integers(N)
        X = np.column_stack([v[n], 0.3 * g.normal(size=(d, s - 1))])
        x, o = X.sum(1), th @ X.sum(1)
        m = (o + lam * g.random(M)).argmax()
        dw = X @ np.linalg.solve(X.T @ X, X.T @ (truth[n] - w[m])) / 5
        had[m], p, total = had[m] + 1, softmax(o), total + 1 / t
        c = np.linalg.norm(dw) + alpha * M * had[m] / t / t
        step = p * ((np.arange(M) == m) - p[m])
        assert abs(step - (softmax(o + e) - softmax(o - e))[:, m] / 2e-6).max() < 1e-8
        th, w[m] = th - eta * step[:, None] * c * x, w[m] + dw
        top, far = max(top, np.linalg.norm(x)), max(far, np.linalg.norm(dw))
        assert abs(th.sum(0)).max() < 1e-12
        assert len(set((th @ v.T).argmax(1))) >= 2
        assert np.linalg.norm(th, axis=1).max() <= eta * top * (t * far + alpha * M * total)
    h = np.array([[-(M - 1), M - 1]] + [[1, -1]] * (M - 1))
    assert not h.sum(0).any()
    assert set(h.argmax(1)) == {0, 1}
    assert np.allclose(np.delete(pay(h[:, 0] * 0.0, 1, 0.2), 1) - pay(h[:, 0] * 0.0, 1, 0.2)[1], 0.2)


@each("M,N", [(3, 1), long(5, 1), long(8, 1), (2, 4), long(3, 3), long(5, 4), long(4, 7)])
def test_variance(M, N):
    """Contention (N = 1), blind phase: the variances, extrapolated in sqrt(x), x = .08, .02; five standard errors."""
    v, page = [], (1 - 1 / N) ** 2 + 1 / N  # of a lambda (M-1)/M^2 for differences, 2M/(M-1) of an output's
    for x in (0.08, 0.02):
        tau = int(4 * M / x if N == 1 else 2 * (M - 1) * N / x / (1 - 2 / N))
        h2 = blind(M, N, x, 3000 if N == 1 else 1000, tau, 2 * tau, M + N)[0] * 2 * M / (M - 1)
        v.append(h2 / (x / M * (M - 1) / M**2 * page))
    assert near(2 * v[1] - v[0], 1)


@each("M,N", [(2, 3), long(4, 5), long(7, 4)])
def test_payments(M, N):
    """Blind phase: the chance to pay (first order, 1e-9), covariances, modes, rounds (five errors)."""
    e, p, C = 1e-5 * np.random.default_rng(N).normal(size=N), 1 / N, np.zeros((N, N))
    P, mu = (1 + e) / M, p * (1 - p)
    exact = [sum(P[n] * p * P[k] / P.sum() for k in range(N) if k != n) for n in range(N)]
    assert abs(exact - (1 - p + (1 - 2 * p) * e + e.mean() * p) * p / M).max() < 1e-9
    for b, i, j in product(range(N), repeat=3):
        C[i, i] += (b != i) * p**3
        C[[i, j], [j, i]] += (b != i != j) * p**3
    C -= 3 * mu**2
    assert np.allclose(np.diag(C), mu - 3 * mu**2)
    assert np.isclose(C[0, 1], 2 * p * p * (1 - p) - 3 * mu**2)
    assert np.allclose(np.linalg.eigvalsh(C + mu**2), [mu * (1 - 2 * p)] * (N - 1) + [mu])
    h = blind(M, N, 1e-9, 3000, 0, 1500, M)[3] / (1e-9 / M)
    contrast = ((h - h.mean(2, keepdims=True)) ** 2).sum((1, 2)) / (M * (N - 1))
    assert near(contrast / 1500, (M - 1) / M**2 * mu * (1 - 2 * p))
    assert near((h.sum(2) ** 2).mean(1) / N / 1500, (M - 1) / M**2 * mu)


@each("M,N", [(3, 3), long(3, 5), long(5, 4)])
def test_repeats(M, N):
    """A task is taken off: u and P(repeat) at x = .05, five standard errors (of about 0.7 and 6 %)."""
    x, tau = 0.05, int((M - 1) * N / 0.05 / (1 - 2 / N))
    _, u, again, _ = blind(M, N, x, 3000, 2 * tau, 1600, N)
    assert near(u, -x / M * (1 - 1 / N) ** 2 * (M - 1) / 2 / M)
    assert near((1 - N * again) / x, (1 - 1 / N) ** 2 / 2)


@each("M,rho,lam", [(2, 0.0, 0.7), (3, 0.6, 0.05), (5, -0.8, 4.0), (4, 0.95, 0.3)])
def test_conserved(M, rho, lam):
    """Two tasks: d1 + d2 spans 2(1-rho)a over pairs and runs, exactly; no noise, and first moves cost the same."""
    g, a, full = np.random.default_rng(M), 0.2, 0
    for _run in range(20):
        h, last, seen = np.zeros((M, 2)), np.full(M, -1), []
        for n in g.integers(2, size=300):
            m = (h[:, n] + lam * g.random(M)).argmax()
            h += (last[m] != n) * np.outer(pay(np.zeros(M), m, a), np.where(np.arange(2) == n, 1, rho))
            last[m], z = n, h[:, 0] - h[:, 1]
            seen.append(z[:, None] - z)
        full = max(full, np.ptp(seen, axis=0).max())
    assert np.isclose(full, 2 * (1 - rho) * a)


def safe(M, N, a, lam, R, T, level, spread=0.0):
    """Shares of runs that were ever safe, and are at the end; the largest lead over anyone."""
    g, i = np.random.default_rng(M), np.arange(R)
    h, last, ever, top = np.zeros((R, M, N)), np.full((R, M), -1), np.zeros(R, bool), 0
    for n in g.integers(N, size=(T, R)):
        m = (h[i, :, n] + lam * g.random((R, M))).argmax(1)
        c, p = (last[i, m] != n) * a * (1 + spread * g.random(R)), softmax(h[i, :, n] * (not level))
        h[i, :, n] -= M * (c * p[i, m])[:, None] * ((np.arange(M) == m[:, None]) - p)
        last[i, m], s = n, np.sort(h, 1)
        own = np.take_along_axis(last, h.argmax(1), 1) == np.arange(N)
        now = ((s[:, -1] - s[:, -2] >= lam + a * spread) & own).sum(1) >= 2
        ever, top = ever | now, max(top, np.ptp(h, axis=1).max())
    return ever.mean(), now.mean(), top


@each(
    "M,N,r,spread",
    [(2, 2, 0.53, 0), long(2, 3, 3.3, 0), long(3, 2, 10.1, 0), long(5, 4, 0.11, 0), long(6, 3, 31, 0), (4, 3, 2, 0.5)],
)
def test_theorem_a(M, N, r, spread):
    """Theorem A: no run is ever safe at pi = 1/M, leads are below lambda + a_max; also for costs that differ; exact."""
    out = safe(M, N, 1.0, 1 / r, 400, 1000, True, spread)
    assert out[0] == 0
    assert out[2] < 1 / r + 1 + spread


@each("M,value", [(4, 0.45), (6, 0.73), (12, 0.83), (20, 0.77), long(100, 0.63), long(1500, 0.57)])
def test_critical(M, value):
    """Theorem B: kappa_c to the digits ('very many': .01), one change of sign; the lead at small a, M = 2, M = 3."""
    root = brentq(lambda a: lead(M, a), 0.2, 2, xtol=1e-4)
    assert abs(root - value) < (0.005 if M < 1000 else 0.01)
    assert abs(root - critical_drive(M, 0)) < 2e-4
    for a in np.geomspace(0.02, 30, 100 if M < 1000 else 5):
        assert (lead(M, a) > 0) == (a > root)
        assert abs(lead(M, a) - lead_after_turns(M, a)) < 1e-12 * a
    cubic = 2 * lead(M, 5e-4) / np.longdouble(5e-4) ** 3 - lead(M, 1e-3) / np.longdouble(1e-3) ** 3
    assert M > 1000 or abs(cubic + (M - 2) * (M - 3) / 2 / M**2) < 1e-4
    assert all(np.isclose(float(lead(2, a)), a * np.tanh(a / 2) ** 2, rtol=1e-9) for a in (0.1, 0.7, 3.0, 9.0))
    assert all(abs(lead(3, a) / a**4 - 1 / 6) < 0.2 * a and lead(3, 50 * a) > 0 for a in (0.01, 0.02, 0.05))


def test_slow():
    """Theorem B: slow learners, d = 10, s = 6: a, q a, q^2 a, ... with the lead positive throughout; to the digits."""
    roots = [brentq(lambda a, M=M: lead(M, a, 2 / 3, 60), 0.3, 6, xtol=1e-4) for M in (2, 6, 12, 20)]
    assert (abs(np.array(roots) - [3.3, 1.55, 1.04, 0.86]) <= [0.05, 0.005, 0.005, 0.005]).all()
    ours = [critical_drive(2, 2 / 3, 0), *(critical_drive(M, 2 / 3) for M in (6, 12, 20))]
    assert np.allclose(ours, roots, rtol=0, atol=2e-4)
    assert all(abs(lead(M, a, 2 / 3, 60) - lead_after_turns(M, a, 2 / 3)) < 1e-9 for M in (3, 8) for a in (0.1, 2.0))


@each("M,N,a", [(3, 2, 0.3), (7, 3, 0.9), long(12, 5, 2.0)])
def test_first_arrivals(M, N, a):
    """Theorem B: the first M arrivals go to M experts, the last ahead before; safe ends at a = 1.2, not .5."""
    g, h, had = np.random.default_rng(M), np.zeros((M, N)), [[] for _ in range(N)]
    for n in g.permutation(np.repeat(np.arange(N), M)):
        m = (h[:, n] + 1e-9 * g.random(M)).argmax()
        ahead = h[m, n] > np.delete(h[:, n], m).max() + 1e-6
        assert m not in had[n]
        assert ahead or len(had[n]) < M - 1
        h[:, n], had[n] = pay(h[:, n], m, a), had[n] + [m]
    above, below = (safe(M, N, b, 0.01, 200, 700, False) for b in (1.2, 0.5))
    assert M == 3 or (above[1] > 0.5 and below[0] == 0)


@each("M", [5, 13, 60])
def test_coupons(M):
    """When the gates are fixed: M(1 + 1/2 + ... + 1/M) rounds, by draws (five errors); M(ln M + .58) to 7 %."""
    exact = M * (1 / np.arange(1, M + 1)).sum()
    k = np.random.default_rng(M).integers(M, size=(2000, int(6 * exact)))
    last = np.max([(k == m).argmax(1) for m in range(M)], 0) + 1
    assert near(last, exact)
    assert abs(exact / (M * (np.log(M) + 0.58)) - 1) < 0.07


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
    "drops": Case(4, 6, 9, 5, ORTHOGONAL, 0.0, 1, (0, 5, 1, 4), True, {"noise_scale": 0.4}),
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


QUICK = ("one-round-at-once", "drops")  # one program


@each("name", [name if name in QUICK else long(name) for name in CASES])
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


def require_near(sample, value):
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
    require_near((move**2).sum(1), cost**2 + excess)
    require_near(((new[:, None] - w) ** 2).sum(2), e - excess)
    require_near(new @ u.T, a)


def agree(samples, value):
    """Mean of samples within five standard errors of value, in every entry."""
    assert np.all(np.abs(samples.mean(0) - value) <= 5 * samples.std(0) / np.sqrt(len(samples)) + 1e-12)


def leftover(rng, runs, d, s, u=None):
    X = rng.normal(size=(runs, d, s))
    X[:, :, 0] = X[:, :, 0] if u is None else 3 * u
    Q = np.linalg.qr(X)[0]
    return np.eye(d) - Q @ Q.transpose(0, 2, 1)


def factors(d, s):
    D, p = d - 1, d - s
    return D, p, p * (D * p + D - 2) / (D * (D - 1) * (D + 2)), p * (D - p) / (D * (D - 1) * (D + 2))


def chances(outputs, lam):
    """Chance of each expert to lead with noise uniform on [0, lam]: exact, a polynomial between the kinks."""
    (nodes, weights), found = np.polynomial.legendre.leggauss(outputs.shape[1]), []
    for m in range(outputs.shape[1]):
        a = (outputs[:, [m]] - np.delete(outputs, m, 1)) / lam
        cuts = np.sort(np.clip(np.hstack([0 * a[:, :1], 1 + 0 * a[:, :1], -a, 1 - a]), 0, 1), 1)
        half, mid = np.diff(cuts)[:, :, None] / 2, (cuts[:, 1:] + cuts[:, :-1])[:, :, None] / 2
        wins = np.clip((mid + half * nodes)[..., None] + a[:, None, None], 0, 1).prod(-1)
        found.append((wins * weights * half).sum((1, 2)))
    return np.array(found).T


def test_errors_given_routes():
    """loads.md, Given the routes: signals neither orthogonal nor along the truths."""
    rng, d, s, (D, p, k1, k2) = np.random.default_rng(1), 5, 3, factors(5, 3)
    w, u, tasks, routes = *rng.normal(size=(2, 4, d)), np.array([0, 1, 1, 2, 3, 0, 2, 1]), [0, 1] * 4
    model, one, two, after, expected = np.zeros((8000, 2, d)), np.zeros((2, d)), np.zeros((2, d, d)), 0, 0
    for n, m in zip(tasks, routes, strict=True):
        e, cross, Pi = one[m] - w[n], np.outer(one[m], w[n]), np.eye(d) - np.outer(u[n], u[n]) / (u[n] @ u[n])
        ee = Pi @ (two[m] - cross - cross.T + np.outer(w[n], w[n])) @ Pi
        e, ee = p / D * Pi @ e, k1 * ee + k2 * np.trace(ee) * Pi
        one[m], two[m] = w[n] + e, ee + np.outer(e, w[n]) + np.outer(w[n], e) + np.outer(w[n], w[n])
        left = np.einsum("rij,rj->ri", leftover(rng, 8000, d, s, u[n]), model[:, m] - w[n])
        model[:, m], after, expected = w[n] + left, after + (left**2).sum(1), expected + np.trace(ee)
    errors = ((model[:, routes] - w[tasks]) ** 2).sum((1, 2))
    G = sum(4 * np.trace(two[m]) - 2 * one[m] @ w[tasks[m::2]].sum(0) for m in range(2)) + (w[tasks] ** 2).sum()
    agree(errors, G)
    agree(errors - after, G - expected)
    pool, routes = Pool(w[..., None], u[..., None], np.arange(4)[:, None]), np.array(routes)
    ours = corrected.given_routes(pool, s, tasks[:, None], routes[:, None])
    assert ours.generalization_error[-1, 0] == pytest.approx(G / 8)
    assert ours.forgetting[-1, 0] == pytest.approx((G - expected) / 7)


@pytest.mark.parametrize("M", [2, 3, 5])
def test_curvature_of_chances(M):
    """loads.md, Given the routes: the first order cancels, the second is bounded; solvable.md, proof of Theorem 3."""
    rng, lam, D = np.random.default_rng(M), 0.7, 0.2
    h, g = rng.normal(size=(4000, M)) * 0.4, rng.normal(size=(4000, M)) * 10 ** rng.uniform(-3, 0, size=(4000, 1))
    k, lead = np.abs(g[:, :, None] - g[:, None]).sum(2), D * np.eye(M)[:1]
    assert np.all(np.abs(chances(h + g, lam) + chances(h - g, lam) - 2 * chances(h, lam)) <= 2 * k**2 / lam**2)
    assert chances(-lead, lam)[0, 0] == pytest.approx((1 - D / lam) ** M / M)
    assert chances(lead, lam)[0, 0] == pytest.approx(D / lam + (1 - (D / lam) ** M) / M)


@pytest.mark.parametrize(("d", "s", "L", "M"), [(5, 2, 4, 1), (4, 3, 3, 3), (6, 1, 6, 7)])
def test_errors_given_loads(d, s, L, M):
    """loads.md, Given the loads: one expert, tasks of unequal length; then random routing from it."""
    rng, r, q, (w, after) = np.random.default_rng(L), 1 - s / d, 1 - s / d / M, np.zeros((2, 8000, d))
    truths, n = rng.normal(size=(3, d)) * [[0.3], [1], [2]], rng.integers(3, size=(L, 8000))
    W, gap = (truths**2).sum(1).mean(), ((truths[:, None] - truths) ** 2).sum(2).mean()
    k, x = np.arange(1, L + 1), r ** np.arange(L + 1) * (W - gap) + gap
    for j in range(L):
        w = truths[n[j]] + np.einsum("rij,rj->ri", leftover(rng, 8000, d, s), w - truths[n[j]])
        after = after + ((w - truths[n[j]]) ** 2).sum(1)[:, None] / d
        agree(((w[:, None] - truths) ** 2).sum(2).mean(1), x[j + 1])
    G, F, errors = np.zeros(31), np.zeros(31), ((w - truths[n]) ** 2).sum(2)
    for i in range(31):
        G[i] = i * r**i * W + (1 - r**i) * (i - 1) * gap
        F[i] = sum(r**j - r**i for j in range(1, i + 1)) * (gap - W) + ((1 - r) * (i - 1) - r + r**i) * gap
    agree(errors.T, r ** (L - k) * r * x[:-1] + (1 - r ** (L - k)) * gap)
    agree(errors.sum(0), G[L])
    agree(errors.sum(0) - after.sum(1), F[L])
    law, least = stats.binom(30, 1 / M).pmf(np.arange(31)), M * (1 - q**29) / (1 - r) - 29 * q**29
    forgotten = (1 - r) * 29 * gap - M * q * (1 - q**29) * gap - r * (W - gap) * least
    assert M * law @ G / 30 == pytest.approx(gap + r * q**29 * (W - gap) - M * gap * (1 - q**30) / 30, abs=1e-12)
    assert M * law @ F == pytest.approx(forgotten, abs=1e-11)
    ours = corrected.random_routing(theory.gaps(Pool(truths, truths, np.arange(3))), r, M, 30)
    assert ours == pytest.approx((forgotten / 29, M * law @ G / 30), abs=1e-12)


def play(rng, w, v, M, T, eta=0.1, lam=0.05, alpha=0.0, beta=1.0, s=1, path=None):
    """The algorithm of solvable.md and gates.md; yields task, expert, move, models, gates."""
    model, theta, had = np.zeros((M, w.shape[1])), np.zeros((M, w.shape[1])), np.zeros(M)
    for t in range(1, T + 1):
        n, m = (rng.integers(len(w)), None) if path is None else path[t - 1]
        X = np.column_stack([beta * v[n], rng.normal(size=(w.shape[1], s - 1))])
        out = theta @ X.sum(1)
        m, pi = np.argmax(out + lam * rng.random(M)) if m is None else m, np.exp(out) / np.exp(out).sum()
        move = X @ np.linalg.solve(X.T @ X, X.T @ (w[n] - model[m]))
        model[m], had[m] = model[m] + move, had[m] + 1
        cost = np.linalg.norm(move) + alpha * M * had[m] / t / t
        theta -= eta * cost * np.outer(pi * ((np.arange(M) == m) - pi[m]), X.sum(1))
        yield n, m, move, model, theta


@pytest.mark.parametrize("turn", [None, 1, 9, 999])
@pytest.mark.parametrize(("N", "alpha", "simplex"), [(3, 0.0, 1), (4, 1e-4, 1), (3, 0, 0)])
def test_gates_telescope(N, alpha, simplex, turn):
    """solvable.md, Theorems 1, 2, 3, 5: on chosen paths, too; a part unseen; orthonormal signals' bound for ever."""
    rng, M, eta, sigma, lam, before = np.random.default_rng(2), 4, 0.05, 0.02, 0.02, np.zeros((4, N))
    v, A = ((np.eye(N) - 1 / N) * np.sqrt(N / (N - 1)), N * sigma) if simplex else (np.eye(N), sigma)
    v, w = np.hstack([v, np.zeros((N, 1))]), np.hstack([sigma * v, np.full((N, 1), 0.3)])
    path = None if turn is None else [(rng.integers(N), t // turn % M) for t in range(300)]
    instance = solvable.Solvable(Pool(w, v, np.arange(N)), sigma, A)
    for t, (n, m, move, model, theta) in enumerate(play(rng, w, v, M, 300, eta, lam, alpha, path=path), 1):
        R = 8 * A**2 * eta**2 / M**2 * (t if simplex else min(t, N)) + 2 * eta * alpha * (1 + np.log(t))
        assert np.abs(move - (sigma - before[m, n]) * v[n]).max() < 1e-12
        before = model @ v.T
        assert before.max() <= sigma + 1e-12
        assert not simplex or np.abs((sigma - before).mean(1) - sigma).max() < 1e-12
        bound = solvable.gate_remainder(instance, M, eta, t if simplex else min(t, N), alpha)
        assert bound == pytest.approx(R if eta * A / (2 * M) >= R else np.inf)
        assert np.linalg.norm(theta - solvable.telescoped_gates(model, eta), axis=1).max() <= bound
        assert eta * A / (2 * M) < R or np.abs(chances(v @ theta.T, lam) - 1 / M).max() <= 2 * eta * A / (lam * M)


@pytest.mark.parametrize(("N", "M"), [(2, 3), (3, 2)])
def test_uniform_routes(N, M):
    """solvable.md, Theorems 4, 6, 8: all histories of four rounds; opposite truths in noise, or a part unseen."""
    rng, T, sigma, after, G, t = np.random.default_rng(3), 4, 0.3, [], [], np.arange(1, 5)
    v = np.eye(4)[:3] if N == 3 else np.eye(4)[[0, 0]] * [[1], [-1]]
    w, q, g = sigma * v + (N == 3) * 0.7 * np.eye(4)[3], 1 - 1 / M, 1 - 1 / (N * M)
    for path in itertools.product(itertools.product(range(N), range(M)), repeat=T):
        for n, m, _, model, _ in play(rng, w, v, M, T, beta=0.4, s=7 - 2 * N, path=path):
            after.append(((model[m] - w[n]) ** 2).sum())
        G.append(np.mean([((model[m] - w[n]) ** 2).sum() for n, m in path]))
    forgotten, error = 2 * sigma**2 * (1 - q ** (T - t)).sum() * np.array([1 / (T - 1), 1 / T])
    if N == 3:
        forgotten = 2 * sigma**2 / (T - 1) * (g ** (t - 1) - g ** (T - 1)).sum()
        error = 2 * sigma**2 * (1 - g ** (T - 1)) + 0.7**2
    assert np.mean(G) == pytest.approx(error, abs=1e-12)
    assert (np.mean(G) - np.mean(after)) * T / (T - 1) == pytest.approx(forgotten, abs=1e-12)
