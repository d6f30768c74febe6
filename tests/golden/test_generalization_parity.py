"""Training of sparse-MoE classifiers against the plain NumPy loop, a round at a time from the same state, in x64."""

import functools

import chex
import jax
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.generalization import Dims, Params, data, model
from moe_theory.generalization.training import empirical_risk, learn, system

from . import generalization_loop as loop

KEY = mt.root_key(5)
TOLERANCE = 1e-10
ROUNDS = 6

advance = jax.jit(learn)


@functools.partial(jax.jit, static_argnums=0)
def begin(dims, params):
    return system(dims).init(KEY, params)


def own(weights, num_experts):
    """Layers of the experts that exist, for the loop."""
    experts = [np.array(layer, np.float64)[:num_experts] for layer in weights.experts]
    router = [np.array(layer, np.float64) for layer in weights.router]
    return loop.Layers(experts, [*router[:-1], router[-1][:num_experts]])


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("num_active", "widths"),
    [
        (1, (3, 4)),
        pytest.param(2, (0, 0), marks=pytest.mark.thorough),
        pytest.param(1, (0, 0), marks=pytest.mark.thorough),
        pytest.param(2, (3, 4), marks=pytest.mark.thorough),
    ],
)
def test_a_round_of_training_is_the_loops(widths, num_active):
    """Would catch a gradient, an optimizer's unit, a projection or a padded row that is not as documented."""
    dims = Dims(5, 4, 12, *widths)
    params = Params(3, num_active, 9, expert_norm=1.5, router_norm=3.0, learning_rate=0.3)
    with jax.enable_x64(True):
        state = begin(dims, params)
        features, labels = np.array(state.sample.features)[:9], np.array(state.sample.labels)[:9]
        for step in range(1, ROUNDS + 1):
            before, moments = own(state.weights, 3), state.optimizer_state[0]
            expected = loop.train(
                before,
                features,
                labels,
                num_active,
                means=own(moments.mu, 3),
                squares=own(moments.nu, 3),
                step=step,
                rate=params.learning_rate,
                B=params.expert_norm,
                W=params.router_norm,
            )
            state, info = advance(state, params)
            outputs = np.array([loop.output(before, x, num_active) for x in features])
            squares = [np.sum(loop.gate(loop.scores_of(before, x), num_active) ** 2) for x in features]
            assert abs(info.loss + np.mean(labels * outputs) / 2) < TOLERANCE
            assert abs(info.error - np.mean(np.sign(outputs) != labels)) < TOLERANCE
            assert abs(info.mean_square_gate - np.mean(squares)) < TOLERANCE
            actual = own(state.weights, 3)
            chex.assert_trees_all_close(actual, expected, rtol=0, atol=TOLERANCE)
        losses = [loop.ramp_loss(y, loop.output(actual, x, num_active)) for x, y in zip(features, labels, strict=True)]
        assert abs(empirical_risk(state) - np.mean(losses)) < TOLERANCE


def test_active_experts_are_the_loops_with_ties():
    """Would catch ties that a higher index wins, experts beyond T that are active, and ranks that are off by one."""
    rng = np.random.default_rng(0)
    logits = rng.integers(-1, 2, (64, 6)).astype(np.float32)  # many ties
    masks = jax.jit(model.masks)
    for num_experts in range(1, 7):
        for num_active in range(1, num_experts + 1):
            expected = np.zeros(logits.shape, bool)
            for row, scores in zip(expected, logits[:, :num_experts], strict=True):
                row[loop.route(scores, num_active)] = True
            np.testing.assert_array_equal(masks(logits, num_active, num_experts), expected)


def test_the_risk_on_the_digits_is_the_mean_over_all_images():
    """Would catch a population that misses images, labels of the wrong parity, and noise on the wrong side."""
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    images = images / np.sqrt((images**2).sum(axis=1).max())
    labels = [1.0 if digit % 2 else -1.0 for digit in digits]
    noise = 0.25
    with jax.enable_x64(True):
        weights = model.ClassifierWeights(*([np.random.default_rng(0).normal(0, scale, (4, 64))] for scale in (5, 2)))
        risk = float(jax.jit(data.true_risk, static_argnums=3)(weights, 2, 3, data.DIGITS, None, noise))
    expected = digits_risk(own(weights, 3), images, labels, noise)
    assert abs(risk - expected) < TOLERANCE
    assert abs(expected - 0.5) > 0.001


def digits_risk(layers, images, labels, noise):
    outputs = [loop.output(layers, x, 2) for x in images]
    clean, flipped = (
        np.mean([loop.ramp_loss(sign * y, f) for y, f in zip(labels, outputs, strict=True)]) for sign in (1, -1)
    )
    return (1 - noise) * clean + noise * flipped
