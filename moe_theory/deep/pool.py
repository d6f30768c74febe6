"""Images on the device, and which of them a task takes."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, UInt8

from moe_theory.core.errors import InvalidDimsError
from moe_theory.core.numerics import Numbers, Scalar
from moe_theory.core.tasks import select_row
from moe_theory.deep.datasets import DataSet, Images


class Split(NamedTuple):
    """Images of one split, those of a class one after the other: first all others, then class 0, 1, ..., K - 1."""

    pixels: UInt8[Numbers, "n h w c"]
    labels: Int[Numbers, " n"]  # which of the K classes an image shows; `OTHER` for none of them
    starts: Int[Numbers, " K"]  # the first row of each class
    counts: Int[Numbers, " K"]  # and how many it has


class Pool(NamedTuple):
    """What tasks are drawn from: one class against the rest, for each of K classes."""

    train: Split
    test: Split
    mean: Float[Numbers, " c"]  # of the training pixels, in [0, 1]
    deviation: Float[Numbers, " c"]


OTHER = -1
Source = DataSet | Callable[[], DataSet]  # a data set, or what reads it when it is wanted


@functools.lru_cache(maxsize=4)  # each as large as its data set
def pool_of(source: Source, classes: tuple[int, ...]) -> Pool:
    """The pool of tasks that recognise these classes of a data set, one each; on the host.

    Raises: InvalidDimsError for a class that the data set lacks, or that is named twice, for a split without images
        of it or of the others, and for pixels that are no bytes or of two shapes.
    """
    data = source if isinstance(source, DataSet) else source()
    _check_pixels(data)
    known = len(data.class_names)
    if len(set(classes)) < len(classes) or not all(0 <= label < known for label in classes):
        raise InvalidDimsError(f"classes={list(classes)} must be different classes of {data.title}, 0..{known - 1}.")
    for label in classes:
        for name, split in (("training", data.train), ("test", data.test)):
            if not np.any(split.labels == label) or np.all(split.labels == label):
                raise InvalidDimsError(
                    f"class {label} of {data.title} needs {name} images, and the others too. Change the data."
                )
    mean, deviation = _moments(data.train.pixels)
    return Pool(train=_split(data.train, classes), test=_split(data.test, classes), mean=mean, deviation=deviation)


def _check_pixels(data: DataSet) -> None:
    train, test = data.train.pixels, data.test.pixels
    if train.dtype != np.uint8 or test.dtype != np.uint8:
        raise InvalidDimsError(
            f"pixels of {data.title} must be bytes in 0..255, uint8, not {train.dtype} and {test.dtype}. Convert them."
        )
    if train.ndim != 4 or train.shape[1:] != test.shape[1:]:
        raise InvalidDimsError(
            f"images of {data.title} must be (n, h, w, c), alike in both splits, not {train.shape} and {test.shape}. "
            "Change the data."
        )


def on_device(pool: Pool) -> Pool:
    """The same in JAX's arrays and, of fractions, in its precision."""
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf, None if leaf.dtype.kind in "iu" else jnp.result_type(float)), pool
    )


def _moments(pixels: UInt8[np.ndarray, "n h w c"]) -> tuple[Float[np.ndarray, " c"], Float[np.ndarray, " c"]]:
    """Mean and deviation of each channel in [0, 1], from how often it takes each of its 256 levels."""
    levels = np.arange(256) / 255
    counts = np.zeros((pixels.shape[-1], 256), np.int64)
    for first in range(0, len(pixels), 1000):
        for channel, count in enumerate(counts):
            count += np.bincount(pixels[first : first + 1000, ..., channel].ravel(), minlength=256)
    shares = counts / counts.sum(axis=1, keepdims=True)
    mean = shares @ levels
    deviation = np.sqrt(np.sum(shares * np.square(levels - mean[:, None]), axis=1))
    return mean, np.where(deviation > 0, deviation, 1)  # a channel that never changes is to become 0, not NaN


def _split(images: Images, classes: tuple[int, ...]) -> Split:
    positions = np.full(int(max(images.labels.max(), *classes)) + 1, OTHER)
    positions[list(classes)] = np.arange(len(classes))
    labels = positions[images.labels]
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels + 1, minlength=len(classes) + 1)
    return Split(
        pixels=images.pixels[order],
        labels=labels[order].astype(np.int32),
        starts=np.cumsum(counts)[:-1].astype(np.int32),
        counts=counts[1:].astype(np.int32),
    )


def pick(
    split: Split, task: Int[Array, ""], uniforms: Float[Array, " n"], positive_share: Float[Scalar, ""]
) -> Int[Array, " n"]:
    """Rows of a task's images: the first `positive_share` of them of its class, the others of all other classes.

    Each is drawn by itself, so that an image may come twice.

    Args:
        uniforms: independent, uniform on (0, 1), one an image.
    """
    # Sums of int32 are int64 under x64, and the state that remembers rows is not.
    start, count = (select_row(leaf[:, None], task)[0].astype(jnp.int32) for leaf in (split.starts, split.counts))
    num_others = split.labels.shape[0] - count
    number = uniforms.shape[0]
    is_positive = jnp.arange(number) < jnp.round(positive_share * number)
    bound = jnp.where(is_positive, count, num_others)
    places = jnp.minimum(jnp.floor(uniforms * bound).astype(jnp.int32), bound - 1)
    return jnp.where(is_positive, start + places, places + jnp.where(places >= start, count, 0))


def inputs_of(pool: Pool, pixels: UInt8[Array, "n h w c"]) -> Float[Array, "n h w c"]:
    """What networks read: pixels less the training images' mean, in units of their deviation, channel by channel."""
    return (pixels.astype(pool.mean.dtype) / 255 - pool.mean) / pool.deviation
