"""Small made-up images for tests of the deep experiments."""

import functools

import numpy as np

from moe_theory.deep.datasets import DataSet, Images


@functools.cache
def corners(num_train: int = 40, num_test: int = 30) -> DataSet:
    """Bytes of 4 x 4 pixels, brighter in a class's own place, of five classes."""
    generator = np.random.default_rng(7)

    def split(count: int) -> Images:
        labels = generator.permutation(np.arange(count) % 5).astype(np.int32)
        pixels = generator.integers(0, 120, (count, 4, 4, 1))
        for row, label in enumerate(labels):
            pixels[row, label % 4, label // 4 :, :] += 100
        return Images(pixels.astype(np.uint8), labels)

    return DataSet("corners", "corners", split(num_train), split(num_test), tuple("01234"))
