"""Losses, errors and hits of single images, step sizes, and an optimizer that is begun anew for every task.

Values by hand, from SciPy's special functions; whole trainings are compared with a NumPy loop in `tests/golden`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

from moe_theory.deep import evaluation, networks, training
from moe_theory.deep.params import ADAM, Params

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


def test_the_step_size_goes_from_one_end_to_the_other():
    rate = jax.jit(training.step_size)
    params = Params(expert_rate=0.5, final_rate=0.1, num_rounds=9)
    expected = {1: 0.5, 3: 0.3 + 0.2 * np.cos(np.pi / 4), 5: 0.3, 9: 0.1, 40: 0.1}
    for time, value in expected.items():
        assert float(rate(params, jnp.int32(time))) == pytest.approx(value, rel=1e-6)
    assert float(rate(params._replace(num_rounds=1), jnp.int32(1))) == pytest.approx(0.5)


def test_every_task_begins_with_a_new_optimizer():
    """First steps of Adam are as long as its step size whatever the gradient: here in both of two tasks.

    Would catch moments that are handed from one task to the next, whose steps are longer or shorter.
    """
    network = networks.NETWORKS["mlp"]
    generator = np.random.default_rng(5)
    begun = network.init(jax.random.key(0), (2, 2, 1), 3)
    first_step, rate = np.arange(4)[None], 0.01

    @jax.jit
    def learned(weights, inputs, task):
        return training.train(
            network,
            ADAM,
            weights,
            inputs,
            jnp.asarray(LABELS[:4]),
            task,
            jnp.asarray(first_step),
            jnp.int32(1),
            Params(expert_rate=rate, final_rate=rate),
        )

    weights = begun
    for task in (0, 2):
        inputs = generator.normal(0, 10.0**task, (4, 2, 2, 1)).astype(np.float32)
        after = learned(weights, inputs, jnp.int32(task))
        moves = [
            np.abs(np.asarray(new - old)).ravel()
            for new, old in zip(jax.tree.leaves(after), jax.tree.leaves(weights), strict=True)
        ]
        moved = np.concatenate(moves)
        moved = moved[moved > rate / 10]  # weights of units that no image wakes, and of outputs without a task, stay
        assert len(moved) > 20
        np.testing.assert_allclose(moved, rate, rtol=1e-2)
        weights = after
