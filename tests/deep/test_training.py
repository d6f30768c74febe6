"""Losses, errors and hits of single images against SciPy, and the laws of draws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from moe_theory.deep import Dims, evaluation, layers, tasks, training
from moe_theory.deep.datasets import DataSet, Images
from moe_theory.deep.params import Params

from ..statistical.test_laws import (
    KEY,
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
