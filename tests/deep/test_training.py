"""Losses, errors and hits of single images; draws of images and networks; the yardstick.

Values from SciPy's special functions; whole trainings are compared with a NumPy loop in `test_deep_parity.py`. The
yardstick is one network on a stream of tasks, by optax alone: catches an expert that a plain loop beats.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import special, stats

import moe_theory as mt
from moe_theory import deep
from moe_theory.deep import Dims, evaluation, layers, tasks, training
from moe_theory.deep.datasets import DataSet, Images
from moe_theory.deep.params import Params

from ..statistical.test_laws import (
    KEY,
    OF_OTHERS,
    PERTURBATION,
    UNIT,
    M,
    Row,
    batched,
    draws_of,
    even,
    flat,
    require_law,
    require_notice,
)

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


CLASSES = 5
PICTURES = Images(np.zeros((40, 2, 2, 1), np.uint8), np.arange(40, dtype=np.int32) % CLASSES)
DIMS = Dims(M, num_classes=CLASSES, num_samples=6, num_tests=4, num_epochs=2, batch_size=3, max_rounds=1)
PARAMS = Params(num_experts=M, perturbation_scale=PERTURBATION, positive_share=0.5)


@batched
def draws(key: Any, params: Any) -> Any:
    pool = tasks.on_device(tasks.pool_of(DataSet("flat", "flat", PICTURES, PICTURES, tuple("01234")), range(CLASSES)))
    return tasks.draw(key, DIMS, pool, params)


def rows_of_images(is_own: bool) -> np.ndarray:
    """Places among the 8 images of the class, or among the 32 others; images are in order of classes."""
    arrival, _ = draws(PARAMS)
    half = slice(None, 1) if is_own else slice(-1, None)  # of the class come first
    rows, first = np.concatenate([arrival.images[:, half], arrival.tests[:, half]], axis=1), 8 * arrival.task[:, None]
    return rows - first if is_own else np.where(rows < first, rows, np.where(rows < first + 8, -1, rows - 8))


ROWS = [
    Row("tasks and first batches", "tasks.draw", "Appendix A.3: equal probability; random minibatches",
        lambda: draws(PARAMS)[0].task * 6 + draws(PARAMS)[0].batches[:, 2, 0], even(CLASSES * 6)),
    Row("images of the class", "tasks.draw", "Appendix A.3: samples of the class, at random",
        lambda: rows_of_images(True), even(8)),
    Row("other images", "tasks.draw", "Section VI of `edge`: one class against the rest",
        lambda: rows_of_images(False), even(32)),
    Row("perturbation", "tasks.draw", "Eq. (1): Unif[0, lambda]",
        lambda: draws(PARAMS)[0].perturbation, stats.uniform(0, PERTURBATION)),
    Row("users and random choices", "tasks.draw", "uniform on the unit square, and on (0, 1)",
        lambda: flat(draws(PARAMS)[1], draws(PARAMS)[0].uniform), UNIT),
    Row("kernels", "layers.he_kernels", "He and others (2015), Eq. (10): variance 2 / fan-in",
        lambda: np.stack([kernel.ravel() for kernel in layers.he_kernels(KEY, [(3, 3, 16, 256), (144, 256)])], axis=1),
        stats.norm(0, (2 / 144) ** 0.5)),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row.what for row in ROWS])
def test_draws_have_the_law_that_is_stated(row: Row) -> None:
    """Would catch another law, and a test that does not notice an error of 5 %."""
    found = draws_of(row)
    require_law(row, found)
    require_notice(row, found)


def test_rows_are_within_what_is_left_to_them() -> None:
    assert len(ROWS) <= OF_OTHERS


STREAM_CLASSES, ROUNDS, SEEDS, STEPS, SIZE = (1, 4, 7), 12, 24, 20, 100
DIGITS = deep.datasets.load("digits")


def logits(weights, images):
    hidden = jax.nn.relu(images @ weights["first"] + weights["bias"])
    return (hidden @ weights["second"] + weights["last"])[:, 0]


@jax.jit
def trained(weights, images, labels):
    """Full-batch gradient steps on the cross entropy."""
    method = optax.sgd(0.1)

    def step(carry, _):
        weights, memory = carry
        gradient = jax.grad(lambda w: optax.sigmoid_binary_cross_entropy(logits(w, images), labels).mean())(weights)
        updates, memory = method.update(gradient, memory)
        return (optax.apply_updates(weights, updates), memory), None

    return jax.lax.scan(step, (weights, method.init(weights)), length=STEPS)[0][0]


def images_of(split, label, rng):
    """As many images of a class as of all others, standardised as all training images are."""
    scaled = (split.pixels / 255.0 - np.mean(DIGITS.train.pixels / 255.0)) / np.std(DIGITS.train.pixels / 255.0)
    own = split.labels == label
    rows = np.concatenate([rng.choice(np.flatnonzero(each), SIZE // 2) for each in (own, ~own)])
    return jnp.asarray(scaled[rows].reshape(SIZE, -1), jnp.float32), jnp.asarray(own[rows], jnp.float32)


def final_error(seed):
    """G_T of one network whose tasks follow each other."""
    rng = np.random.default_rng(seed)
    weights = {
        "first": rng.normal(0, np.sqrt(2 / 64), (64, 32)),
        "bias": np.zeros(32),
        "second": rng.normal(0, np.sqrt(2 / 32), (32, 1)),
        "last": np.zeros(1),
    }
    weights, tests = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), weights), []
    for _ in range(ROUNDS):
        label = rng.choice(STREAM_CLASSES)
        weights = trained(weights, *images_of(DIGITS.train, label, rng))
        tests.append(images_of(DIGITS.test, label, rng))
    return np.mean([np.mean((jax.nn.sigmoid(logits(weights, x)) - y) ** 2) for x, y in tests])


@pytest.mark.thorough
def test_one_expert_reaches_a_plain_network():
    """Section 6: G_T of M = 1 is that of a network by itself, whose draws are others; 4 standard errors."""
    system = deep.continual.system(deep.Dims(1, 3, ROUNDS), DIGITS, STREAM_CLASSES)
    _, info = mt.simulate_batch(system, mt.root_key(0), SEEDS, deep.Params(num_experts=1, num_rounds=ROUNDS), ROUNDS)
    ours = np.asarray(info.generalization_error[-1], float)
    plain = np.array([final_error(seed) for seed in range(SEEDS)])
    error = np.sqrt((ours.var(ddof=1) + plain.var(ddof=1)) / SEEDS)
    assert abs(ours.mean() - plain.mean()) < 4 * error
    assert error < 0.02  # a difference that anybody would notice
