"""Intervals of means: catches critical values of another law, and tails that the intervals are too short for."""

import numpy as np
import pytest
from scipy import stats

from moe_theory.verification import intervals

COUNT = 512
GENERATOR = np.random.default_rng(5)


def correlated(num_components, correlation, count=COUNT):
    """Normal components that share a part of their variance."""
    shared = GENERATOR.standard_normal((count, 1))
    own = GENERATOR.standard_normal((count, num_components))
    return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own


@pytest.mark.parametrize("correlation", [0.0, pytest.param(0.5, marks=pytest.mark.thorough), 0.99])
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


def test_few_replicates_fall_back_to_bonferroni():
    samples = GENERATOR.standard_normal((30, 10))
    scheme = intervals.scheme_for(samples, 0.01)
    assert not scheme.is_bootstrap
    assert scheme.critical == pytest.approx(stats.t.isf(0.0005, 29))


def by_t(samples, error=0.01):
    return intervals.student_intervals(samples, intervals.scheme_for(samples, error))


@pytest.mark.parametrize(
    ("samples", "doubt"),
    [
        (np.ones((COUNT, 1)), "all 512 replicates are equal"),
        (np.arange(COUNT)[:, None] % 4.0, "take 4 values"),
        (np.arange(COUNT)[:, None] == 5, "take 2 values"),
        (np.random.default_rng(4).standard_cauchy((COUNT, 1)), "too few for tails like these"),
        (np.random.default_rng(4).lognormal(0, 1, (COUNT, 1)), "too few for tails like these"),
        (np.random.default_rng(4).standard_normal((intervals.LEAST_REPLICATES - 1, 1)), "255 replicates are fewer"),
    ],
)
def test_there_is_no_interval_where_t_is_not_to_be_trusted(samples, doubt):
    """Catches verdicts from samples that show nothing of a rare value, or of a tail."""
    found = by_t(np.asarray(samples, np.float64))
    assert doubt in found.doubts[0]
    assert (found.low[0], found.high[0]) == (-np.inf, np.inf)
    assert by_t(np.random.default_rng(4).standard_normal((COUNT, 1))).doubts == [""]


@pytest.mark.parametrize(
    ("law", "count"), [pytest.param("exponential", 2048, marks=pytest.mark.thorough), ("poisson", 512)]
)
def test_skewed_means_are_not_excluded_more_often_than_stated(law, count):
    """Catches t trusted as it is, far out in its tail, for skewed samples, whose error is several times as large."""
    error, num_means = 1e-3, 10_000 * 512 // count
    generator, missed, plainly_missed = np.random.default_rng(6), 0, 0
    for _ in range(num_means // 1000):
        samples = getattr(generator, law)(1.0, (count, 1000))
        critical = float(stats.t.isf(error / 2, count - 1))
        found = intervals.student_intervals(samples, intervals.Scheme(critical, is_bootstrap=False))
        missed += np.sum(found.high < 1)
        plainly_missed += np.sum(found.mean + critical * found.standard_error < 1)
    assert missed <= stats.binom.isf(1e-7, num_means, error / 2)
    assert missed < plainly_missed


def wealth_of_portfolio(returns):
    """Cover's universal portfolio of two assets with returns (n, 2), by Gauss's rule for the weight of Jeffreys."""
    nodes = (1 - np.cos(np.pi * (2 * np.arange(1, 401) - 1) / 800)) / 2
    return np.mean(np.prod(np.outer(returns[:, 0], nodes) + np.outer(returns[:, 1], 1 - nodes), axis=0))


@pytest.mark.parametrize("error", [0.1, 1e-4])
@pytest.mark.parametrize("power", [0.2, 1, 8])
def test_the_exact_interval_holds_whatever_the_portfolio_has_excluded(power, error):
    """Against the portfolio itself: no mean is excluded that its wealth does not exclude. Catches a wrong regret, or a
    root on the wrong side.
    """
    values = np.random.default_rng(7).random((40, 1)) ** power
    low, high = intervals.betting_intervals(values, np.zeros(1), np.ones(1), error)
    for mean in np.linspace(0.001, 0.999, 200):
        wealth = wealth_of_portfolio(np.hstack([values / mean, (1 - values) / (1 - mean)]))
        assert low[0] <= mean <= high[0] or wealth >= 1 / error
    near = [wealth_of_portfolio(np.hstack([values / m, (1 - values) / (1 - m)])) for m in (low[0], high[0])]
    assert all(wealth < 60 / error for wealth in near)  # and no more is lost than what may be: sqrt(pi n) and rounding


def test_exact_intervals_scale_and_mirror():
    """Catches a range taken for [0, 1], ends that are swapped, and a one-sided range with an end it cannot have."""
    values = np.random.default_rng(9).random((200, 1))
    low, high = intervals.betting_intervals(values, np.zeros(1), np.ones(1), 0.01)
    moved = intervals.betting_intervals(5 - 3 * values, np.full(1, 2.0), np.full(1, 5.0), 0.01)
    np.testing.assert_allclose(np.ravel(moved), [5 - 3 * high[0], 5 - 3 * low[0]], rtol=1e-5)
    at_least = intervals.betting_intervals(values, np.zeros(1), np.full(1, np.inf), 0.01)
    assert low[0] - 0.01 < at_least[0][0] <= values.mean()
    assert at_least[1][0] == np.inf
    constant = intervals.betting_intervals(values, np.full(1, 0.3), np.full(1, 0.3), 0.01)
    assert np.ravel(constant).tolist() == [0.3, 0.3]
    nothing = intervals.betting_intervals(np.zeros((64, 1)), np.zeros(1), np.ones(1), 0.01)
    assert nothing[0][0] == 0
    assert nothing[1][0] > 1 - 0.01 ** (1 / 64)  # an event of that frequency would not have been seen


@pytest.mark.parametrize("count", [256, 2048])
def test_replicates_of_a_shared_seed_are_seen(count):
    """Catches pairs, repeats at a distance and blocks with a common part, and calls independent ones nothing."""
    generator = np.random.default_rng(10)
    normal = generator.standard_normal(count)
    periods = (normal[np.arange(count) % period] for period in (16, 100, 101))
    for own in (
        np.repeat(normal[: count // 2], 2),
        np.tile(normal[: count // 2], 2),
        np.repeat(normal[::8], 8),
        *periods,
    ):
        assert intervals.is_dependent(own)
    blocks = np.repeat(normal[:: count // 4], count // 4) * 2
    assert intervals.is_dependent(blocks + normal)
    independent = (normal, np.round(normal), generator.random(count) < 0.03, generator.standard_cauchy(count))
    assert not any(map(intervals.is_dependent, (*independent, np.ones(count))))


def test_the_asymptotic_end_is_towards_zero_or_infinity():
    assert intervals.asymptotic_end(np.array([0.4, 0.1, 1.0, 0.2])) == ([1, 3], "small")
    assert intervals.asymptotic_end(np.array([8, 64, 16, 32])) == ([3, 1], "large")
