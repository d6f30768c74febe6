"""The minimum-norm update against NumPy's singular value decomposition."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.core.linear import minimum_norm_change

WAYS = {
    "written out": jax.jit(minimum_norm_change),
    "in a loop": jax.jit(functools.partial(minimum_norm_change, most_samples=0)),
}
EPS = {"float32": 1.2e-7, "float64": 2.3e-16}


@pytest.fixture(params=EPS)
def dtype(request):
    with jax.enable_x64(request.param == "float64"):
        yield np.dtype(request.param)


def projection(features: np.ndarray, residuals: np.ndarray, rank_tolerance: float) -> np.ndarray:
    """P r for each row r, with P = X X^+ from the singular values above `rank_tolerance` of the largest.

    Samples are brought to one length first, which changes nothing of their span.
    """
    features = np.asarray(features, np.float64)
    lengths = np.linalg.norm(features, axis=0)
    features = features / np.where(lengths > 0, lengths, 1)
    return np.asarray(residuals, np.float64) @ features @ np.linalg.pinv(features, rcond=rank_tolerance)


def check(features, residuals, dtype, tolerance=None, rank_tolerance=None):
    """For few samples and for many; the change of few."""
    features, residuals = np.asarray(features, dtype), np.asarray(residuals, dtype)
    eps = EPS[dtype.name]
    expected = projection(features, residuals, 1e3 * eps if rank_tolerance is None else rank_tolerance)
    bound = (300 * eps if tolerance is None else tolerance) * np.linalg.norm(residuals.astype(np.float64), axis=1)
    changes = {}
    for name, change_of in WAYS.items():
        changes[name] = np.asarray(change_of(jnp.asarray(features), jnp.asarray(residuals)))
        assert (changes[name].dtype, changes[name].shape) == (dtype, residuals.shape), name
        error = np.linalg.norm(changes[name] - expected, axis=1)
        assert np.all(error <= bound), (name, (error / bound).max())
    return changes["written out"]


@pytest.mark.parametrize("num_samples", [1, 3, 6])
def test_it_is_the_projection_on_the_samples(num_samples, dtype):
    """Would catch an inverse of the wrong side, samples left out, or residuals that mix."""
    rng = np.random.default_rng(num_samples)
    for _ in range(5):
        check(rng.normal(size=(7, num_samples)), rng.normal(size=(2, 7)), dtype)


@pytest.mark.parametrize("slot", [0, 3, 5])
def test_without_noise_only_the_signal_s_column_counts(slot, dtype):
    """Would catch 0/0 for columns of zeros, before and after the signal's (sigma_t = 0)."""
    rng = np.random.default_rng(1)
    features = np.zeros((7, 6))
    features[:, slot] = rng.normal(size=7)
    residuals = rng.normal(size=(2, 7))
    change = check(features, residuals, dtype)
    direction = features[:, slot] / np.linalg.norm(features[:, slot])
    assert np.abs(change - np.outer(residuals @ direction, direction)).max() < 1e3 * EPS[dtype.name]


def test_without_samples_nothing_moves(dtype):
    """Would catch a nan where all samples are zero."""
    for change_of in WAYS.values():
        change = change_of(jnp.zeros((7, 3), dtype), jnp.ones((2, 7), dtype))
        np.testing.assert_array_equal(change, np.zeros((2, 7)))


def test_dependent_samples_are_skipped(dtype):
    """Would catch a division by the rounding that is left of a column which repeats, or combines, earlier ones."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        base = rng.normal(size=(7, 3)).astype(dtype)
        features = np.stack([base[:, 0], base[:, 1], base[:, 0], -3 * base[:, 1], base[:, 2], base[:, 0]], axis=1)
        check(features, rng.normal(size=(2, 7)), dtype)
        combined = np.stack([base[:, 0], base[:, 1], 0.3 * base[:, 0] - 0.7 * base[:, 1]], axis=1)
        check(combined, rng.normal(size=(2, 7)), dtype)


@pytest.mark.parametrize("exponent", [-15, -9, -3, 3, 9, 15])
def test_the_samples_scale_does_not_matter(exponent, dtype):
    """Would catch a threshold in absolute units, which would drop small samples or keep the rounding of large ones."""
    rng = np.random.default_rng(3)
    features, residuals = rng.normal(size=(7, 6)), rng.normal(size=(2, 7))
    check(10.0**exponent * features, residuals, dtype)
    check(features * 10.0 ** np.array([exponent, 0, -exponent, 0, 1, exponent]), residuals, dtype)
    repeated = np.concatenate([features[:, :2], features[:, :1]], axis=1).astype(dtype)
    check(dtype.type(10.0**exponent) * repeated, residuals, dtype)


@pytest.mark.parametrize("exponent", [-15, 15])
def test_the_change_scales_with_the_residuals(exponent, dtype):
    """Would catch a threshold that compares samples with residuals."""
    rng = np.random.default_rng(4)
    check(rng.normal(size=(7, 6)), 10.0**exponent * rng.normal(size=(2, 7)), dtype)


def test_nearly_dependent_samples_lose_no_more_than_their_condition(dtype):
    """Would catch the classical Gram-Schmidt, or normal equations, whose error grows with the condition squared."""
    rng = np.random.default_rng(5)
    eps = EPS[dtype.name]
    nearness = eps**0.5
    base = rng.normal(size=(7, 3))
    features = np.stack([base[:, 0], base[:, 0] + nearness * base[:, 1], base[:, 2]], axis=1)
    check(features, rng.normal(size=(2, 7)), dtype, tolerance=300 * eps / nearness, rank_tolerance=30 * eps)
