"""Loops in NumPy for the page on gates, written from the page alone; the package's critical drives are theirs."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq

from moe_theory.core.critical import critical_drive, lead_after_turns

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


@each("M", [2, 3, 6])
def test_contention(M):
    """Contention: exponents of sigma_0; P = 1/M + Mh/((M-1) lambda), by quadrature (5e-8); a lambda/4 (1e-4)."""
    eta, alpha, lam, v = 0.5, 0.5, 1.25, []
    assert eta + alpha == 1
    assert eta + 1 == 1.5
    assert (eta + 1 + lam) / 2 == 1.375
    assert eta + 1 - lam == 0.25
    assert (1.75 + lam) / 2 == 1.5
    assert lam - eta == 0.75
    h, r = 1e-5 * np.random.default_rng(M).normal(size=M), (np.arange(400000) + 0.5) / 400000 * 0.6
    for m in range(M):
        others = np.prod([np.clip((h[m] - h[j] + r) / 0.6, 0, 1) for j in range(M) if j != m], 0)
        assert abs(others.mean() - 1 / M - M * (h[m] - h.mean()) / (M - 1) / 0.6) < 5e-8
    for x in (4e-5, 1e-5):  # the walk's detailed balance at a = x lambda, extrapolated in sqrt(x)
        k = np.arange(int(12 / x**0.5))
        rise = 0.5 * (1 - np.minimum(k * x, 1)) ** 2
        p = np.exp(np.append(0, np.cumsum(np.log(rise[:-1] / (1 - rise[1:]))))) * np.where(k == 0, 0.5, 1)
        v.append(p @ k**2 / p.sum() * x * 4)
    assert abs(2 * v[1] - v[0] - 1) < 1e-4


@each("M,N", [(3, 1), long(5, 1), long(8, 1), (2, 4), (3, 3), long(5, 4), long(4, 7)])
def test_variance(M, N):
    """Contention (N = 1), blind phase: the variances, extrapolated in sqrt(x), x = .08, .02; five standard errors."""
    v, page = [], (1 - 1 / N) ** 2 + 1 / N  # of a lambda (M-1)/M^2 for differences, 2M/(M-1) of an output's
    for x in (0.08, 0.02):
        tau = int(4 * M / x if N == 1 else 2 * (M - 1) * N / x / (1 - 2 / N))
        h2 = blind(M, N, x, 3000 if N == 1 else 1000, tau, 2 * tau, M + N)[0] * 2 * M / (M - 1)
        v.append(h2 / (x / M * (M - 1) / M**2 * page))
    assert near(2 * v[1] - v[0], 1)


@each("M,N", [(2, 3), (4, 5), (7, 4)])
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
    """A task is taken off: u and P(repeat) at x = .05, five standard errors (of about 0.5 and 4 %)."""
    x, tau = 0.05, int((M - 1) * N / 0.05 / (1 - 2 / N))
    _, u, again, _ = blind(M, N, x, 6000, 2 * tau, 1600, N)
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
    "M,N,r,spread", [(2, 2, 0.53, 0), (2, 3, 3.3, 0), (3, 2, 10.1, 0), (5, 4, 0.11, 0), (6, 3, 31, 0), (4, 3, 2, 0.5)]
)
def test_theorem_a(M, N, r, spread):
    """Theorem A: no run is ever safe at pi = 1/M, leads are below lambda + a_max; also for costs that differ; exact."""
    out = safe(M, N, 1.0, 1 / r, 400, 1000, True, spread)
    assert out[0] == 0
    assert out[2] < 1 / r + 1 + spread


@each("M,value", [(4, 0.45), (6, 0.73), (12, 0.83), (20, 0.77), (100, 0.63), long(1500, 0.57)])
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


@each("M,N,a", [(3, 2, 0.3), (7, 3, 0.9), (12, 5, 2.0)])
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
