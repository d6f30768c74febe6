"""Scikit-learn's 1,797 images of digits, 8 x 8 pixels, under four changes of the image."""

import numpy as np

from moe_theory.core.digits import handwritten_digits
from moe_theory.merging.testbed.families import Family

CHANGES = ("as it is", "rotated", "inverted", "permuted")
SIDE = 8
PATCH = 4  # pixels along the side of a token


def base_task(change: int, is_validation: bool) -> tuple[np.ndarray, np.ndarray]:
    """Images under one of the `CHANGES` as patches of pixels in [-1, 1], and the digits they show."""
    pixels, digits, is_held_out = handwritten_digits()
    chosen = is_held_out == is_validation
    return _patches(changed(pixels[chosen] / 8 - 1, change)), digits[chosen]


def changed(images: np.ndarray, change: int) -> np.ndarray:
    """Images (n, 8, 8) of pixels in [-1, 1]: left alone, turned by a right angle, negated, or with pixels permuted."""
    if change == 1:
        return np.rot90(images, axes=(1, 2))
    if change == 2:
        return -images
    return images.reshape(-1, SIDE**2)[:, _permutation()].reshape(images.shape) if change == 3 else images


def _patches(images: np.ndarray) -> np.ndarray:
    blocks = SIDE // PATCH
    rows = images.reshape(-1, blocks, PATCH, blocks, PATCH).swapaxes(2, 3)
    return np.ascontiguousarray(rows.reshape(-1, blocks**2, PATCH**2))


def _permutation() -> np.ndarray:
    """One fixed order of the pixels."""
    return np.random.default_rng(0).permutation(SIDE**2)


FAMILY = Family(CHANGES, 10, (SIDE // PATCH) ** 2, PATCH**2, base_task)
