"""Intervals of means: catches critical values of another law, and tails that the intervals are too short for.

Monte Carlo here is seeded; thresholds lie at least five of its standard errors away.
"""

import numpy as np
import pytest
from scipy import stats

from moe_theory.verify import intervals

COUNT = 512
GENERATOR = np.random.default_rng(5)


def correlated(num_components, correlation, count=COUNT):
    """Normal components that share a part of their variance."""
    shared = GENERATOR.standard_normal((count, 1))
    own = GENERATOR.standard_normal((count, num_components))
    return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("num_components", [2, 30])
@pytest.mark.parametrize("error", [0.05, 0.002])
def test_the_critical_value_is_the_multiplier_bootstraps(num_components, correlation, error):
    """Against the bootstrap itself, a resample at a time: catches a wrong conditional law or weight."""
    samples = correlated(num_components, correlation)
    scheme = intervals.scheme_for(samples, error)
    standardised = (samples - samples.mean(axis=0)) / samples.std(axis=0, ddof=1) / np.sqrt(COUNT)
    multipliers = np.random.default_rng(8).standard_normal((20_000, COUNT))
    freedom = stats.chi2.rvs(COUNT - 1, size=20_000, random_state=9) / (COUNT - 1)
    largest = np.abs(multipliers @ standardised).max(axis=1) / np.sqrt(freedom)
    share = np.mean(largest > scheme.critical)
    assert scheme.is_bootstrap
    # It is taken a little too wide on purpose: up to a tenth of the error.
    spread = 5 * np.sqrt(error / 20_000)
    assert 0.85 * error - spread < share < error + spread


def test_the_far_tail_lies_between_one_component_and_bonferroni():
    for error in (1e-4, 1e-8, 1e-12):
        samples = correlated(20, 0.9)
        critical = intervals.scheme_for(samples, error).critical
        alone, bonferroni = (stats.t.isf(error / share / 2, COUNT - 1) for share in (1, 20))
        assert alone < critical < bonferroni


def test_copies_of_a_component_cost_nothing_and_constants_neither():
    one = GENERATOR.standard_normal((COUNT, 1))
    copies = np.concatenate([one, -one, 3 * one + 7, np.ones_like(one)], axis=1)
    alone = stats.t.isf(1e-6 / 2, COUNT - 1)
    assert intervals.scheme_for(copies, 1e-6).critical == pytest.approx(alone, rel=1e-3)
    constant = intervals.intervals(np.ones((COUNT, 2)), intervals.scheme_for(np.ones((COUNT, 2)), 0.01))
    np.testing.assert_array_equal([constant.low, constant.high], np.ones((2, 2)))


def test_few_replicates_fall_back_to_bonferroni():
    samples = GENERATOR.standard_normal((30, 10))
    scheme = intervals.scheme_for(samples, 0.01)
    assert not scheme.is_bootstrap
    assert scheme.critical == pytest.approx(stats.t.isf(0.0005, 29))


@pytest.mark.parametrize("error", [0.05, 0.01])
def test_the_median_of_means_covers_a_symmetric_mean(error):
    """Exact coverage is of the median of a block mean, which symmetry makes the mean: catches order statistics off."""
    samples = np.random.default_rng(3).standard_t(2.5, (400, 4000))
    low, high = intervals.median_of_means(samples, error)
    missed = np.sum((low > 0) | (high < 0))
    num_blocks = 2 * int(np.ceil(np.log2(2 / error)))
    outside = max(j for j in range(1, num_blocks) if 2 * stats.binom.cdf(j - 1, num_blocks, 0.5) <= error)
    exact = 2 * stats.binom.cdf(outside - 1, num_blocks, 0.5)
    assert exact <= error
    assert stats.binom.isf(1 - 1e-7, 4000, exact) <= missed <= stats.binom.isf(1e-7, 4000, exact)


def test_too_few_replicates_for_blocks_bound_nothing():
    low, high = intervals.median_of_means(np.ones((20, 2)), 1e-6)
    assert np.all(np.isinf(low))
    assert np.all(np.isinf(high))


def test_heavy_tails_widen_an_interval_and_normal_ones_do_not():
    heavy = np.random.default_rng(4).standard_cauchy((COUNT, 1))
    normal = np.random.default_rng(4).standard_normal((COUNT, 1))
    widened = intervals.intervals(heavy, intervals.scheme_for(heavy, 0.01))
    assert widened.is_widened.all()
    assert widened.low <= intervals.median_of_means(heavy, 0.01)[0]
    assert not intervals.intervals(normal, intervals.scheme_for(normal, 0.01)).is_widened.any()


def test_the_asymptotic_end_is_towards_zero_or_infinity():
    assert intervals.asymptotic_end(np.array([0.4, 0.1, 1.0, 0.2])) == ([1, 3], "small")
    assert intervals.asymptotic_end(np.array([8, 64, 16, 32])) == ([3, 1], "large")


def test_lognormal_means_are_not_excluded_more_often_than_stated():
    """Catches t trusted far out in its tail for skewed samples, and medians of means of too short blocks."""
    error, count, num_means = 5e-5, 64, 20_000
    samples = np.random.default_rng(6).lognormal(0, 1, (count, num_means))
    critical = float(stats.t.isf(error / 2, count - 1))
    found = intervals.intervals(samples, intervals.Scheme(critical, error, is_bootstrap=False))
    # One is expected of exact intervals, and t has about 120; with at most 8, a false failure is rarer than 1e-5.
    assert np.sum((found.high < np.exp(0.5)) | (found.low > np.exp(0.5))) <= 8
