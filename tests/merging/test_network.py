"""The reward network: gradients in factors, their kernel, the law that it is drawn from, dead units."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.merging import network
from moe_theory.merging.params import Dims

KEY = mt.root_key(4)
quickly = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
draw = quickly(network.draw, static_argnums=1)
outputs = quickly(network.outputs)


@pytest.mark.parametrize("num_hidden", [1, 2])
def test_factors_are_those_of_the_gradient_by_jax(num_hidden):
    """Would catch a wrong factor, layer or unit, and kernels that are not inner products of these gradients."""
    dims = Dims(4, 3, width=6, num_hidden=num_hidden)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        weights = draw(KEY, dims)
        points, mix = rng.dirichlet(np.ones(4), 5), rng.dirichlet(np.ones(3))

        def value(weights, point):
            return jnp.sum(mix * network.outputs(weights, point[None])[0])

        @quickly
        def both(weights, points, mix):
            values, factors = network.factors(weights, points, mix)
            expected = jax.vmap(jax.value_and_grad(value), in_axes=(None, 0))(weights, points)
            parts = network.gradient(factors), network.kernel(factors, jax.tree.map(lambda leaf: leaf[:2], factors))
            return values, *parts, network.squared_length(factors), expected

        values, gradients, kernel, lengths, (expected_values, expected) = both(weights, points, mix)
    flat = np.concatenate([np.asarray(layer).reshape(5, -1) for layer in expected.layers], axis=1)
    assert flat.shape == (5, dims.num_parameters)
    np.testing.assert_allclose(values, expected_values, rtol=1e-12)
    np.testing.assert_allclose(gradients, flat, rtol=0, atol=1e-12)
    np.testing.assert_allclose(kernel, flat @ flat[:2].T, rtol=1e-12)
    np.testing.assert_allclose(lengths, np.sum(flat**2, axis=1), rtol=1e-12)


def test_outputs_are_those_of_equation_3():
    """Would catch a factor that is not sqrt(w), a missing ReLU, and a ReLU of the output."""
    with jax.enable_x64(True):
        weights = draw(KEY, Dims(4, 5, width=6, num_hidden=2))
        points = np.random.default_rng(1).dirichlet(np.ones(4), 3)
        values = np.asarray(outputs(weights, jnp.asarray(points)))
    first, second, last = map(np.asarray, weights.layers)
    expected = [math.sqrt(6) * last @ np.maximum(second @ np.maximum(first @ x, 0), 0) for x in points]
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    assert values.min() < 0


def test_weights_are_normal_of_the_documented_variances_whatever_the_padding():
    """Would catch a deviation for a variance, and an expert whose column depends on how many there is room for."""
    weights = draw(KEY, Dims(20, 30, width=200, num_hidden=2))
    for layer, variance in zip(weights.layers, (4 / 200, 4 / 200, 2 / 200), strict=True):
        standard = np.asarray(layer, np.float64) / math.sqrt(variance)
        bound = 6 / math.sqrt(standard.size)  # six deviations of the mean, and of the mean square over sqrt(2)
        assert abs(standard.mean()) < bound
        assert abs(np.mean(standard**2) - 1) < math.sqrt(2) * bound
    fewer = draw(KEY, Dims(8, 30, width=200, num_hidden=2))
    np.testing.assert_array_equal(fewer.layers[0], weights.layers[0][:, :8])
    np.testing.assert_array_equal(fewer.layers[2], weights.layers[2])


def test_dead_units_are_those_that_are_never_above_zero():
    """Would catch units that are counted dead for one point, and rows of padding that revive or kill them."""
    first = jnp.asarray([[1.0, -1.0], [-1.0, 1.0], [-1.0, -2.0], [0.0, 0.0]])  # alive at one point each; never twice
    second = -jnp.ones((4, 4))
    weights = network.Weights((first, second, jnp.ones((3, 4))))
    points = jnp.asarray([[0.9, 0.1], [0.1, 0.9], [0.0, 0.0]])
    np.testing.assert_array_equal(quickly(network.dead_units)(weights, points), [0.5, 1.0])
    assert not np.any(outputs(weights, points))
