"""The embedded data set: scikit-learn's digits."""

import functools

import numpy as np

from moe_theory.core.digits import handwritten_digits
from moe_theory.deep.datasets.images import DataSet, Images

TITLE = "digits"
_SCALE = 15  # of grey levels: theirs end at 16, and 16 * 15 = 240 fits into a byte


@functools.cache
def load_digits() -> DataSet:
    """1,797 images of 8 x 8 pixels, of which a fifth of every digit, spread over the whole set, is for testing."""
    pixels, digits, is_test = handwritten_digits()
    images = (pixels * _SCALE).astype(np.uint8)[..., None]
    labels = digits.astype(np.int32)
    return DataSet(
        name="digits",
        title=TITLE,
        train=Images(images[~is_test], labels[~is_test]),
        test=Images(images[is_test], labels[is_test]),
        class_names=tuple(map(str, range(10))),
    )
