"""Plain loops from the derivation pages alone, at settings that these do not use: five standard errors, or exact.

The package's formulas are those of the pages, exactly.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

from examples import solvable
from moe_theory.continual import Pool, corrected, theory


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


@pytest.mark.parametrize(("d", "s"), [(4, 2), (6, 4), (7, 3)])
def test_moments_of_a_step(d, s):
    """loads.md, Moments of a step."""
    rng, (D, p, k1, k2) = np.random.default_rng(d), factors(d, s)
    u, A = rng.normal(size=d), rng.normal(size=(d, d))
    S, A, Pi = leftover(rng, 20000, d, s, u), A + A.T, np.eye(d) - np.outer(u, u) / (u @ u)
    agree(S, p / D * Pi)
    agree(S @ A @ S, k1 * Pi @ A @ Pi + k2 * np.trace(Pi @ A) * Pi)
    agree((np.einsum("i,rij,j->r", Pi[0], S, Pi[0]) / Pi[0, 0]) ** 2, stats.beta(p / 2, (D - p) / 2).moment(2))


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


@pytest.mark.parametrize(("M", "d", "s"), [(2, 3, 2), (3, 4, 3), (4, 5, 4)])
def test_route_tilt(M, d, s):
    """loads.md, Given the routes: mean over spans of the total variation. No first order in the gates."""
    rng, sigma, spans, draws, tilts = np.random.default_rng(s), 0.3, 50, 200, []
    theta, offset, way = rng.normal(size=(M, d)), rng.normal(size=M) * 0.2, rng.normal(size=(draws, s - 1))
    base = np.linalg.qr(rng.normal(size=(spans, d - 1, s - 1)))[0]  # given it, the sum has a uniform direction in it
    way *= rng.chisquare(d - 1, size=(draws, 1)) ** 0.5 / np.linalg.norm(way, axis=1)[:, None]
    along = np.broadcast_to(rng.normal(size=(draws, 1)), (spans, draws, 1))
    nu = sigma * np.sqrt(s - 1) * np.concatenate([along, np.einsum("sij,nj->sni", base, way)], 2)
    for scale in (0.02, 0.01, 0.5):
        out = offset + np.stack([nu, -nu]) @ (scale * theta).T
        given = chances(out.reshape(-1, M), 1.0).reshape(2, spans, draws, M).mean((0, 2))
        tilts.append(np.abs(given - given.mean(0)).sum(1).mean() / 2)
        assert tilts[-1] <= M**2 * (s - 1) * sigma**2 * (scale**2 * theta**2).sum()
    assert 3.5 < tilts[0] / tilts[1] < 4.5


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


@pytest.mark.parametrize(("N", "d", "s"), [(2, 3, 2), (5, 6, 3), (4, 9, 2)])
def test_blind_limit(N, d, s):
    """loads.md, Blind routing: a single expert, 45 arrivals."""
    rng, (D, p, k1, k2), b, w = np.random.default_rng(N), factors(d, s), 1 - 1 / N, np.zeros((2000, d))
    for _ in range(45):
        own = np.eye(d)[rng.integers(N, size=2000)]
        w = own + np.einsum("rij,rj->ri", leftover(rng, 2000, d, s, own), w - own)
    R, m = b * (1 - k1) / ((1 - b * k1) * (1 - p / D) + b * k2), 1 / N / (1 - b * p / D)
    agree(((w[:, None] - np.eye(d)[:N]) ** 2).sum(2).mean(1), 2 + p / D * R - 2 * m)
    agree(w[:, :N].mean(1), m)
    agree((w[:, :N] ** 2).mean(1), 1 + p / D * R - R)


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


@pytest.mark.parametrize(("rho", "pick"), list(itertools.product([0.4, 0.8], [0, -1, None])))
def test_tree(rho, pick):
    """tree.md, The theorem and Its order: the shallowest, the newest, or any leaf."""
    rng, T, C, delta, nu, leaves, total = np.random.default_rng(8), 4000, 1.3, 0.1, 2.0, [[0, 0]], 0
    for t in range(1, T + 1):
        i = rng.integers(len(leaves)) if pick is None else pick
        h, total, leaves[i][1] = leaves[i][0], total + nu * rho ** leaves[i][0], leaves[i][1] + 1
        if leaves[i][1] >= C**2 / nu**2 * np.log(t / delta) * rho ** (-2 * h):
            leaves.pop(i)
            leaves += [[h + 1, 0], [h + 1, 0]]
    A, a = C**2 / nu**2 * np.log(T / delta), np.log(2 / rho) / np.log(2 / rho**2)
    room = [2**h * max(1, np.ceil(A * rho ** (-2 * h))) for h in range(40)]
    least = min(T * rho**H + sum(room[h] * (rho**h - rho**H) for h in range(H)) for H in range(40))
    assert total <= nu * least
    assert nu * T * rho ** (np.log(T / A) / np.log(2 / rho**2)) == pytest.approx(nu * T**a * A ** (1 - a))
    assert pick != 0 or total > 0.8 * nu * least  # the order is attained


@pytest.mark.parametrize(("M", "N", "omega"), [(4, 2, 0.7), (3, 3, 0.5), (5, 3, 0.3), (2, 3, 0.7), (3, 4, 1)])
def test_repaired(M, N, omega):
    """repaired.md: Theorem 1 (omega = 1), Theorem 2 at pi = 1/M and its corollaries, for experts that learn at once."""
    rng, eta, lam, last, mu, path, errors = np.random.default_rng(11), 0.3, 0.1, np.full(M, N), 0, [], []
    w, out, b = np.vstack([rng.normal(size=(N, 6)), np.zeros(6)]), np.zeros((M, N)), np.zeros(M)
    for t in range(1, 2001):
        n = rng.integers(N)
        m = np.argmax(out[:, n] + lam * rng.random(M))
        move = np.linalg.norm(w[n] - w[last[m]])
        out[:, n] -= eta * (move - omega * b[m] - (1 - omega) * mu) / M * ((np.arange(M) == m) - 1 / M)
        b[m], mu, last[m], path = move, mu + (move - mu) / t, n, [*path, (n, m)]
        settled = np.all((out < out.max(0) - lam) | (last[:, None] == np.arange(N)))
        assert omega < 1 or np.abs(out.sum(1) + eta / M * (b - b.mean())).max() < 1e-12
        assert not errors or settled
        assert not errors or move == 0
        if t == 2000 or (settled and not errors):
            errors.append(sum(((w[last[m]] - w[n]) ** 2).sum() for n, m in path))  # t G and (t - 1) F
    assert (len(errors) == 2) == (M >= N)
    assert errors[0] == pytest.approx(errors[-1])
