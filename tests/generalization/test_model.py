"""Sparse-MoE classifiers: the gate of (5), its gradients, padding, norms, the ramp loss, and the ternary example."""

import functools
import itertools
import math

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from examples.ternary import outputs, train
from moe_theory.core.digits import handwritten_digits
from moe_theory.generalization import Dims, Params, model
from moe_theory.generalization.certificate import certificate

KEY = mt.root_key(3)
quickly = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
draw_weights = quickly(model.draw_weights, static_argnums=1)
project = quickly(model.project)
NETWORKS = pytest.mark.parametrize("widths", [(0, 0), (3, 4)], ids=["linear", "networks"])


def test_gates_are_k_positive_weights_that_sum_to_1_under_one_program():
    """Would catch k or T that decides a shape, a gate beyond T, and logits that overflow the softmax."""
    gates = quickly(chex.assert_max_traces(model.gates, n=1))
    normals = np.random.default_rng(0).standard_normal((50, 6)).astype(np.float32)
    for scale, num_experts in itertools.product((1, 1e-6, 0), range(1, 7)):
        for num_active in range(1, num_experts + 1):
            values = np.asarray(gates(scale * normals, num_active, num_experts), np.float64)
            assert np.all(np.sum(values > 0, axis=1) == num_active)
            assert not values[:, num_experts:].any()
            assert np.max(np.abs(values.sum(axis=1) - 1)) < 1e-6
    assert np.all(np.isfinite(gates(1e30 * normals, 3, 5)))


def test_straight_through_lends_a_gradient_at_one_active_expert_only():
    """Would catch a router that cannot train at k = 1, a changed value, and a changed gradient at k >= 2."""
    logits = np.random.default_rng(1).standard_normal((7, 5)).astype(np.float32)
    coefficients = np.random.default_rng(2).standard_normal((7, 5)).astype(np.float32)

    @functools.partial(quickly, static_argnums=0)
    def both(gate, num_active):
        return jax.value_and_grad(lambda logits: jnp.sum(coefficients * gate(logits, num_active, 4)))(logits)

    def smooth(logits, num_active, num_experts):
        padded = jnp.zeros((7, 5 - num_experts))
        return jnp.concatenate([jax.nn.softmax(logits[:, :num_experts]), padded], axis=1)

    for num_active in (1, 2, 4):
        plain, lent = both(model.gates, num_active), both(model.gates_straight_through, num_active)
        assert plain[0] == lent[0]
        expected = both(smooth, num_active)[1] if num_active == 1 else plain[1]
        np.testing.assert_allclose(lent[1], expected, atol=1e-6)
        assert np.any(lent[1] != 0)
        assert np.any(plain[1] != 0) == (num_active > 1)


def weights_of(size, widths, scale=1.0):
    """Normal entries for `size` experts of 4 features."""
    rng, (expert, router) = np.random.default_rng(4), widths
    experts = [(size, expert, 4), (size, expert)] if expert else [(size, 4)]
    routers = [(router, 4), (size, router)] if router else [(size, 4)]
    drawn = ([np.float32(rng.normal(0, scale, shape)) for shape in part] for part in (experts, routers))
    return model.ClassifierWeights(*map(tuple, drawn))


@NETWORKS
def test_experts_that_do_not_exist_count_for_nothing(widths):
    """Would catch a padded expert in a gate, an output or a gradient."""
    weights = weights_of(5, widths)
    features = np.random.default_rng(0).standard_normal((9, 4)).astype(np.float32)

    def poisoned(layer):
        return np.concatenate([layer[:3], np.full_like(layer[3:], 1e6)]) if layer.shape[0] == 5 else layer

    @quickly
    @jax.value_and_grad
    def total(weights, num_active):
        gates = model.gates_straight_through(model.logits(weights, features), num_active, 3)
        return jnp.sum(jnp.sin(jnp.sum(gates * model.expert_outputs(weights, features), axis=1)))

    for num_active in (1, 2, 3):
        value, slopes = jax.device_get(total(weights, num_active))
        other, others = jax.device_get(total(jax.tree.map(poisoned, weights), num_active))
        assert value == other
        chex.assert_trees_all_equal(slopes, others)
        assert all(slope.shape[0] != 5 or not slope[3:].any() for slope in jax.tree.leaves(slopes))


def test_padding_changes_no_weight_that_is_drawn():
    """Would catch a draw, or a norm, that hangs on how many experts there might be."""
    params = Params(3)
    drawn, smaller = (jax.device_get(draw_weights(KEY, Dims(size, 4, 9, 3, 4), params)) for size in (5, 3))
    for one, two in zip(jax.tree.leaves(drawn), jax.tree.leaves(smaller), strict=True):
        np.testing.assert_allclose(one[: len(two)], two, rtol=1e-6)
        assert not one[len(two) :].any()
        assert np.any(two != 0)


@NETWORKS
def test_projection_is_onto_the_norms(widths):
    """Would catch the norm of the wrong rows, one that is only ever shrunk in part, and rows of zeros made NaN."""
    params = Params(4, expert_norm=2.0, router_norm=0.5)
    large = weights_of(4, widths, 20.0)
    for layer in jax.tree.leaves(large):
        layer[0] = 0
    small = jax.tree.map(lambda layer: layer / np.float32(1000), large)
    chex.assert_trees_all_equal(project(small, params), small)
    projected = jax.device_get(project(large, params))
    for layer in projected.experts:
        np.testing.assert_allclose(lengths(layer), [0, 2, 2, 2], rtol=1e-6)
    for layer, before in zip(projected.router, large.router, strict=True):
        is_linear = len(projected.router) == 1
        found = lengths(layer) if is_linear else lengths(layer[None])
        np.testing.assert_allclose(found, [0, 0.5, 0.5, 0.5] if is_linear else [0.5], rtol=1e-6)
        assert np.all(np.sign(layer) == np.sign(before))


def lengths(matrices):
    return [math.sqrt(np.sum(np.square(one, dtype=np.float64))) for one in np.asarray(matrices)]


def test_the_ramp_loss_is_half_on_a_fair_coin():
    """Would catch a loss outside [0, 1], and one whose risk on random labels is not 1/2."""
    outputs = np.linspace(-3, 3, 601).astype(np.float32)
    ramp_loss = jax.jit(model.ramp_loss)
    losses = {label: np.asarray(ramp_loss(label, outputs), np.float64) for label in (-1.0, 1.0)}
    assert np.max(np.abs(losses[-1] + losses[1] - 1)) < 1e-6
    assert (losses[1].min(), losses[1].max()) == (0, 1)
    steepest = np.max(np.abs(np.diff(losses[1]) / np.diff(outputs.astype(np.float64))))
    assert abs(steepest - model.LIPSCHITZ) < 1e-3
    assert np.all(losses[1][outputs > 1] == 0)


def test_a_small_mixture_on_digits_has_a_bound_that_informs():
    """As the page on bounds has it: the error on images that were held out is below the bound, and that below 1/2."""
    pixels, digits, is_test = handwritten_digits()
    blocks = pixels.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16) / 8 - 1
    features = np.hstack([blocks, np.ones((len(blocks), 1))]).astype(np.float32)
    weights = train(features[~is_test], (digits >= 5)[~is_test].astype(int), num_experts=2)
    wrong = (outputs(weights, features)[:, 0] > 0) != (digits >= 5)
    code_bits = math.ceil((weights.router.size + weights.experts.size) * math.log2(3))
    risk = certificate(code_bits, float(wrong[~is_test].mean()), int((~is_test).sum()))
    assert wrong[is_test].mean() < risk < 0.45
