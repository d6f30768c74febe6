"""Moments against NumPy and SciPy on all samples at once."""

import jax.numpy as jnp
import numpy as np
import pytest
from refusals import refusal
from scipy import stats

from moe_theory.core.errors import InvalidValueError
from moe_theory.sweep.moments import Moments, merge, over_replicates


def assert_moments(moments: Moments, samples: np.ndarray, tolerance: float) -> None:
    samples = np.asarray(samples, np.float64)
    n = samples.shape[-1]
    deviation = samples.std(axis=-1)
    assert np.all(moments.count == n)
    assert np.all(np.abs(moments.mean - samples.mean(axis=-1)) <= tolerance * (deviation + np.abs(samples).max()))
    expected = n * stats.moment(samples, 2, axis=-1)
    assert np.all(np.abs(moments.m2 - expected) <= tolerance * n * deviation**2 * 10)
    assert np.all(np.abs(moments.variance - samples.var(axis=-1, ddof=1)) <= 10 * tolerance * deviation**2)
    assert np.all(np.abs(moments.standard_error - stats.sem(samples, axis=-1)) <= 10 * tolerance * deviation)
    np.testing.assert_array_equal(moments.minimum, samples.min(axis=-1))
    np.testing.assert_array_equal(moments.maximum, samples.max(axis=-1))


def skewed(shape, seed=0) -> np.ndarray:
    """Samples that are not normal."""
    return np.random.default_rng(seed).gamma(1.5, 2.0, shape) - 1


def test_moments_along_the_replicates():
    """Would catch a reduction over another axis, a biased sum or a wrong power; in NumPy and in JAX."""
    samples = skewed((3, 2, 50))
    assert_moments(over_replicates(samples), samples, 1e-13)
    assert over_replicates(samples).mean.dtype == np.float64
    single = samples.astype(np.float32)
    moments = over_replicates(jnp.asarray(single))
    assert moments.mean.shape == (3, 2)
    assert moments.m2.dtype == np.float32
    assert_moments(moments, single, 1e-5)


@pytest.mark.parametrize("cuts", [[500], [100, 103, 400], [1, 2, 3, 999], range(1, 1000)], ids=len)
def test_merged_parts_are_the_whole(cuts):
    """Would catch a wrong term of the pairwise update: parts of equal, very unequal and single sizes."""
    samples = skewed((2, 1000), 1)
    parts = [over_replicates(part) for part in np.split(samples, list(cuts), axis=-1)]
    assert_moments(merge(parts), samples, 1e-12)


def test_parts_far_apart_merge():
    """Would catch a term in the gap between the means that vanishes when the means agree."""
    parts = [skewed((40,), seed) * 10.0**seed + 100 * seed for seed in range(4)]
    assert_moments(merge(over_replicates(part) for part in parts), np.concatenate(parts), 1e-12)


def test_a_large_mean_does_not_drown_the_variance():
    """Would catch sums of squares that are not centred."""
    samples = skewed((4, 200), 2) + 1e6
    assert_moments(merge([over_replicates(samples[:, :70]), over_replicates(samples[:, 70:])]), samples, 1e-9)
    single = np.float32(skewed((200,), 3) + 1e3)
    assert abs(over_replicates(jnp.asarray(single)).variance / single.astype(float).var(ddof=1) - 1) < 1e-3


def test_what_too_few_samples_say():
    """Would catch a warning, a 0 or an infinity where a moment is not defined."""
    one = over_replicates(np.array([[2.5]]))
    assert np.all(np.isnan(one.variance))
    assert np.all(np.isnan(one.standard_error))
    pair = merge([one, over_replicates(np.array([[4.5]]))])
    assert np.all(pair.mean == 3.5)
    assert np.all(pair.variance == 2)
    refusal(InvalidValueError, merge, [])


def test_merging_is_in_double_precision():
    """Would catch counts and sums that stop growing in float32, beyond 2^24 samples."""
    part = Moments(*(np.float32(value) for value in (2.0**24, 1.5, 2.0**24, -4.0, 7.0)))
    merged = merge([part, part, part._replace(count=np.float32(1), m2=np.float32(0))])
    assert merged.count == 2**25 + 1
    assert merged.m2 == 2**25
    assert merged.mean == 1.5
    assert all(np.asarray(leaf).dtype == np.float64 for leaf in merged)
