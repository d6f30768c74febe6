"""Losses, errors and hits of single images.

Values from SciPy's special functions; whole trainings are compared with a NumPy loop in `test_deep_parity.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from moe_theory.deep import evaluation, training
from moe_theory.deep.params import Params

LABELS = np.array([0, 2, -1, 1, 0, 2])
OUTPUTS = np.random.default_rng(3).normal(0, 3, (6, 3)).astype(np.float32)
OUTPUTS[5] = [-200.0, 90.0, 80.0]  # a sigmoid or softmax by hand would overflow, or give the log of 0

FUNCTIONS = (training.losses, evaluation.squared_errors, evaluation.hits)
told = {function.__name__: jax.jit(function) for function in FUNCTIONS}


def found(name, **choices):
    return np.asarray(told[name](OUTPUTS, jnp.asarray(LABELS), jnp.int32(2), Params(**choices)))


def test_binary_losses():
    signs = np.where(LABELS == 2, 1, -1)
    margins = signs * OUTPUTS[:, 0].astype(float)
    np.testing.assert_allclose(found("losses"), -special.log_expit(margins), rtol=1e-5)
    squares = special.expit(-margins) ** 2
    np.testing.assert_allclose(found("squared_errors"), squares, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(found("losses", squared_loss=True), found("squared_errors"))
    np.testing.assert_array_equal(found("hits"), margins > 0)


def test_losses_among_the_classes():
    """All classes count, whatever the task; an image of none of them has no cross entropy."""
    outputs = OUTPUTS.astype(float)
    shown = LABELS[:, None] == np.arange(3)
    entropies = -np.sum(shown * special.log_softmax(outputs, axis=1), axis=1)
    np.testing.assert_allclose(found("losses", multi_class=True), entropies, rtol=1e-5)
    squares = np.sum((special.softmax(outputs, axis=1) - shown) ** 2, axis=1)
    np.testing.assert_allclose(found("squared_errors", multi_class=True), squares, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(found("hits", multi_class=True), outputs.argmax(axis=1) == LABELS)
