"""Exact content-blind routing against clouds of points with the same moments, and numerical integrals.

Against Monte Carlo it is tested in tests/statistical.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import qmc

from moe_theory.continual import exact as continual_exact
from moe_theory.core import single_expert
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.tasks import Pool
from moe_theory.edge import corrected, theory


def draw_pool(num_features, num_tasks, scale=1.0, seed=0):
    rng = np.random.default_rng([seed, num_features, num_tasks])
    truths, signals = scale * rng.normal(size=(2, num_tasks, num_features))
    return Pool(truths, signals, np.arange(num_tasks))


@pytest.mark.parametrize("follows_truth", [False, True])
def test_without_spread_it_is_the_continual_papers_exact_error(follows_truth):
    """Catches a recursion that changes where own truths are the task's, and a g that is shifted by a round."""
    pool = draw_pool(6, 4)
    signals = pool.truths if follows_truth else pool.signals
    expected = continual_exact.single_expert(pool._replace(signals=signals), 4, 30).generalization_error
    computed = corrected.generalization_error(pool, 4, 30, 0.0, follows_truth)
    assert computed[0] == 0
    np.testing.assert_allclose(computed[1:], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("num_samples", [1, 3, 4])
def test_fixed_signals_see_only_the_covariance_of_own_truths(num_samples):
    """Catches a misplaced tau^2: points w_n +- tau sqrt(d) e_i, as tasks of their own, have the same two moments."""
    pool, spread = draw_pool(5, 3), 0.8
    offsets = spread * np.sqrt(5) * np.concatenate([np.eye(5), -np.eye(5)])
    points = (pool.truths[:, None] + offsets).reshape(-1, 5)
    signals = np.repeat(pool.signals, 10, axis=0)
    expected = single_expert.single_expert(points, signals, num_samples, 25)
    computed = single_expert.single_expert(pool.truths, pool.signals, num_samples, 25, spread)
    np.testing.assert_allclose(computed, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("spread", [0.1, 0.7, 3.0])
def test_signals_along_truths_are_the_limit_of_many_tasks(spread):
    """Catches a wrong mean over own truths, against a symmetric Sobol cloud of 2 x 4096 tasks with fixed signals."""
    pool = draw_pool(5, 2)
    cloud = qmc.MultivariateNormalQMC(np.zeros(5), rng=np.random.default_rng(3)).random(4096)
    cloud = np.concatenate([cloud, -cloud])
    cloud = cloud @ np.linalg.inv(np.linalg.cholesky(cloud.T @ cloud / len(cloud))).T
    points = (pool.truths[:, None] + spread * cloud).reshape(-1, 5)
    expected = single_expert.single_expert(points, points, 3, 100)
    computed = single_expert.learn_arrivals(single_expert.signals_along_truths(pool.truths, spread), 3, 100)
    np.testing.assert_allclose(computed, expected, rtol=1e-3, atol=1e-12)


def axial_integrals(length, spread, num_features):
    """E[cos^2], E[cos^4] and E[R cos^3] of a normal vector at angle theta to its mean, in polar coordinates."""
    nodes, weights = np.polynomial.legendre.leggauss(400)
    radii = (length + 12 * spread) * (nodes + 1) / 2
    angles = np.pi * (nodes + 1) / 2
    radius, cosine = radii[:, None], np.cos(angles)
    exponents = -(radius**2 - 2 * radius * length * cosine + length**2) / (2 * spread**2)
    density = radius ** (num_features - 1) * np.sin(angles) ** (num_features - 2) * np.exp(exponents)
    density *= weights[:, None] * weights
    means = [cosine**2, cosine**4, radius * cosine**3]
    return [np.sum(density * mean) / np.sum(density) for mean in means]


@pytest.mark.parametrize(("length", "spread"), [(0.0, 0.7), (0.3, 1.0), (1.5, 0.4), (2.0, 0.15)])
@pytest.mark.parametrize("num_features", [2, 3, 7])
def test_moments_along_the_axis_are_the_numerical_integrals(num_features, length, spread):
    """Catches a wrong Poisson or Beta moment, free of the recursion around it."""
    axis = np.eye(num_features)[0]
    arrivals = single_expert.signals_along_truths(length * axis[None], spread)
    second, fourth, third = axial_integrals(length, spread, num_features)
    own_fourth = arrivals.axis_weights[0] + 6 * arrivals.signal_mixed[0, 0] + 3 * arrivals.signal_free
    tolerance = {"rel": 1e-10, "abs": 1e-12}
    assert arrivals.signal_outer[0, 0] == pytest.approx(second, **tolerance)
    assert np.trace(arrivals.signal_outer) == pytest.approx(1.0)
    assert arrivals.truth_coupling[0, 0, 0] == pytest.approx(length - third, **tolerance)
    np.testing.assert_allclose(np.einsum("iik->k", arrivals.truth_coupling), (num_features - 1) * length * axis)
    if length > 0:
        assert own_fourth == pytest.approx(fourth, **tolerance)


def test_a_vanishing_spread_is_continuous():
    """Catches a jump between the Poisson sum, its limit for large means, and the case without spread."""
    pool = draw_pool(6, 3)
    length = np.max(np.linalg.norm(pool.truths, axis=1))
    edge_of_sum = length / np.sqrt(2 * single_expert.CERTAIN_POISSON_MEAN)

    def errors(spread):
        return corrected.generalization_error(pool, 4, 30, spread, follows_truth=True)

    np.testing.assert_allclose(errors(edge_of_sum * 0.999999), errors(edge_of_sum * 1.000001), rtol=1e-7, atol=1e-9)
    for spread in (1e-9, 1e-200):
        np.testing.assert_allclose(errors(spread), errors(0.0), rtol=1e-6, atol=1e-12)


def test_centres_without_length_are_learned_in_both_forms():
    """Catches a division by the length of a truth that is 0."""
    pool = draw_pool(4, 2)._replace(truths=np.zeros((2, 4)))
    first = corrected.generalization_error(pool, 2, 1, 0.5, follows_truth=True)[1]
    assert first == pytest.approx(0, abs=1e-15), "a signal along the own truth is learned at once"
    # Of 4 coordinates of variance 1/4, the fixed signal's is learned and 2 of the other 3 stay.
    second = corrected.generalization_error(pool, 2, 1, 0.5, follows_truth=False)[1]
    assert second == pytest.approx(2.0 * 0.25)


def test_loads_weigh_the_errors_literally():
    """Catches a sum over experts in place of tasks, padding that counts, and an empty network that divides by 0."""
    errors = np.array([0.0, 5.0, 3.0, 2.0])
    assert corrected.by_loads(errors, np.array([3, 1, 0])) == pytest.approx((3 * 2.0 + 5.0) / 4)
    assert corrected.by_loads(errors, np.array([0, 0])) == 0
    stacked = corrected.by_loads(errors, np.array([[3, 1, 0], [2.0, 2.0, 1.0]]))
    np.testing.assert_allclose(stacked, [11 / 4, (6 + 6 + 5) / 5])
    loads = jnp.array([[3, 1, 0], [4, 0, 0]])
    for traced in (corrected.by_loads, lambda _, loads: corrected.by_loads(errors, loads)):  # and a table of NumPy
        np.testing.assert_allclose(jax.jit(traced)(jnp.asarray(errors), loads), [11 / 4, np.nan], rtol=1e-6)


def test_what_cannot_be_computed_is_refused():
    """Catches loads beyond g that silently take its last value, and settings that give nan."""
    pool = draw_pool(5, 3)
    for loads in (np.array([4, 0]), np.array([-1, 2])):
        with pytest.raises(InvalidValueError, match="max_load"):
            corrected.by_loads(np.zeros(4), loads)
    with pytest.raises(InvalidValueError, match="max_load=0"):
        corrected.generalization_error(pool, 2, 0, 0.1, follows_truth=False)
    for follows_truth, spread in itertools.product((False, True), (-0.1, np.nan, np.inf)):
        with pytest.raises(InvalidValueError, match="own_spread="):
            corrected.generalization_error(pool, 2, 5, spread, follows_truth)
    for num_samples in (0, 5):
        with pytest.raises(InvalidValueError, match="num_samples"):
            corrected.generalization_error(pool, num_samples, 5, 0.1, follows_truth=True)
    zero = pool._replace(truths=0 * pool.truths, signals=0 * pool.signals)
    with pytest.raises(InvalidValueError, match=r"signals\[0\]"):
        corrected.generalization_error(zero, 2, 5, 0.1, follows_truth=False)
    with pytest.raises(InvalidValueError, match="is zero"):
        corrected.generalization_error(zero, 2, 5, 0.0, follows_truth=True)


def test_theorem_1_with_early_tasks_is_its_sum_over_tasks():
    """Would catch an early task that fades, or a late one that keeps the error of blind routing."""
    gaps = theory.Gaps(np.float64(5.0), np.float64(9.0), np.float64(0.5), np.float64(9.0))
    loads, explored, ratio = np.array([7.0, 3.0, 0.0]), np.array([2.0, 3.0, 0.0]), 1 / 3
    expected = 0.0
    for load, early in zip(loads, explored, strict=True):
        for arrival in range(int(load)):
            if arrival < early:
                expected += ratio**load * 5.0 + (1 - ratio**load) * 9.0
            else:
                expected += 0.5 + ratio ** (load - early) * 9.0
    bound = corrected.theorem_1(gaps, ratio, loads, explored, 10, 0.5)
    assert bound == pytest.approx(expected / 10)


def test_along_routes_a_task_that_nobody_gets_counts_nowhere():
    """Guards what holds in place of Theorem 1, whose exact moments `tests/continual/test_corrected.py` has: catches own
    truths or signals of another arrival, and a dropped task that is learned or counted."""
    random = np.random.default_rng(2)
    tasks, experts = random.integers(3, size=(2, 8, 5))
    pools = [draw_pool(4, 3, seed=seed) for seed in range(5)]
    truths, signals = (np.stack([getattr(pool, name) for pool in pools], axis=-1) for name in ("truths", "signals"))
    own = np.moveaxis(truths, 1, 0)[:, tasks, np.arange(5)].swapaxes(0, 1)
    assert own.shape == (8, 4, 5)
    for follows_truth in (False, True):
        stacked = Pool(truths, truths if follows_truth else signals, np.tile(np.arange(3)[:, None], 5))
        expected = continual_exact.given_routes(stacked, 2, tasks, experts).generalization_error
        computed = corrected.given_routes(own, signals, 2, tasks, experts, follows_truth)
        np.testing.assert_allclose(computed, expected, rtol=1e-12)
        with_dropped = [np.insert(part, 3, filler, axis=0) for part, filler in ((own, 7.0), (tasks, 1), (experts, -1))]
        more = corrected.given_routes(with_dropped[0], signals, 2, *with_dropped[1:], follows_truth)
        np.testing.assert_array_equal(np.delete(more, 3, axis=0), computed)
        np.testing.assert_array_equal(more[3], more[2])
