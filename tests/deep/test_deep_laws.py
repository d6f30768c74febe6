"""What is drawn of images and networks, as `tests/statistical/test_laws.py` has it for the other papers."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

from moe_theory.deep import Dims, Params, layers, tasks
from moe_theory.deep.datasets import DataSet, Images

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
