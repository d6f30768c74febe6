"""BatchNorm and GroupNorm against NumPy in float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.core.errors import InvalidDimsError
from moe_theory.deep.networks.layers import (
    EPSILON,
    MOMENTUM,
    Affine,
    Moments,
    batch_normalized,
    group_normalized,
    groups,
)

quickly = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def given(channels, seed=0):
    rng = np.random.default_rng(seed)
    values = 3 + 2 * rng.normal(size=(4, 3, 2, channels))
    return values, rng.normal(size=channels), rng.normal(size=channels)


def test_batches_train_by_their_own_moments_and_move_the_running_ones():
    """Would catch a biased running variance, an unbiased one in training, and momentum taken for its complement."""
    values, scale, shift = given(5)
    mean, variance = values.mean((0, 1, 2)), values.var((0, 1, 2))
    running = Moments(np.full(5, 0.5), np.full(5, 2.0))
    with jax.enable_x64(True):
        affine, before = jax.tree.map(jnp.asarray, (Affine(scale, shift), running))
        trained, after = quickly(batch_normalized, static_argnums=3)(jnp.asarray(values), affine, before, True)
        evaluated, unmoved = batch_normalized(jnp.asarray(values), affine, after, False)
    np.testing.assert_allclose(trained, (values - mean) / np.sqrt(variance + EPSILON) * scale + shift, rtol=1e-10)
    np.testing.assert_allclose(after.mean, (1 - MOMENTUM) * 0.5 + MOMENTUM * mean, rtol=1e-12)
    np.testing.assert_allclose(
        after.variance, (1 - MOMENTUM) * 2 + MOMENTUM * values.var((0, 1, 2), ddof=1), rtol=1e-12
    )
    mean, variance = map(np.asarray, after)
    np.testing.assert_allclose(evaluated, (values - mean) / np.sqrt(variance + EPSILON) * scale + shift, rtol=1e-10)
    assert unmoved is after


def test_running_statistics_keep_their_type_and_are_not_differentiated():
    """Would catch a carry whose type changes between rounds, and gradients that flow through the statistics."""
    values, scale, shift = given(2)
    with jax.enable_x64(True):
        affine = Affine(jnp.asarray(scale), jnp.asarray(shift))
        running = Moments(jnp.zeros(2, jnp.float32), jnp.ones(2, jnp.float32))

        def spilled(values):
            after = batch_normalized(values, affine, running, True)[1]
            return jnp.sum(after.mean) + jnp.sum(after.variance), after

        slope, after = quickly(jax.grad(spilled, has_aux=True))(jnp.asarray(values))
    assert after.mean.dtype == after.variance.dtype == np.float32
    assert not np.any(slope)


def test_groups_are_normalised_image_by_image():
    """Would catch channels that are interleaved into groups, and moments over the batch or over pixels alone."""
    values, scale, shift = given(6, seed=1)
    expected = np.empty_like(values)
    for image in range(len(values)):
        for group in range(3):
            part = values[image, :, :, 2 * group : 2 * group + 2]
            expected[image, :, :, 2 * group : 2 * group + 2] = (part - part.mean()) / np.sqrt(part.var() + EPSILON)
    with jax.enable_x64(True):
        got = group_normalized(jnp.asarray(values), Affine(jnp.asarray(scale), jnp.asarray(shift)), 3)
    np.testing.assert_allclose(got, expected * scale + shift, rtol=1e-10)
    assert groups(4) is groups(4)


def test_settings_without_meaning_are_refused():
    affine, running = Affine(jnp.ones(6), jnp.zeros(6)), Moments(jnp.zeros(6), jnp.ones(6))
    with pytest.raises(InvalidDimsError, match="num_groups=4 must divide the 6 channels"):
        group_normalized(jnp.ones((1, 2, 2, 6)), affine, 4)
    with pytest.raises(InvalidDimsError, match="more than one value a channel"):
        batch_normalized(jnp.ones((1, 1, 1, 6)), affine, running, True)
