"""Scikit-learn's 1,797 handwritten digits and their held-out part."""

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

_EVERY = 5  # every fifth image of a digit is held out


class Digits(NamedTuple):
    pixels: Float[np.ndarray, "n 8 8"]  # 0 .. 16, whole numbers
    digits: Int[np.ndarray, " n"]
    is_held_out: Bool[np.ndarray, " n"]  # a fifth of the images of every digit, spread over the whole set


@functools.lru_cache
def handwritten_digits() -> Digits:
    """Return all images in scikit-learn's order. They are cached, so do not write to them."""
    from sklearn.datasets import load_digits  # takes a second to import

    pixels, digits = map(np.asarray, load_digits(return_X_y=True))
    is_held_out = np.zeros(len(digits), bool)
    for digit in range(10):
        is_held_out[np.flatnonzero(digits == digit)[::_EVERY]] = True
    return Digits(pixels.reshape(-1, 8, 8), digits, is_held_out)
