"""Layers of networks for images (n, height, width, channels)."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

from moe_theory.core.errors import InvalidValueError

Way = Literal["platform", "patches", "xla"]


def convolve(
    images: Float[Array, "n h w c"], kernel: Float[Array, "kh kw c o"], stride: int = 1, way: Way = "platform"
) -> Float[Array, "n rows columns o"]:
    """Return the cross-correlation of images, which networks call convolution, zero-padded by half a kernel."""
    kernel_height, kernel_width = kernel.shape[:2]
    padding = ((kernel_height - 1) // 2, (kernel_width - 1) // 2)
    patches = functools.partial(_by_patches, stride=stride, padding=padding)
    xla = functools.partial(_by_xla, stride=stride, padding=padding)
    if way == "platform":
        return jax.lax.platform_dependent(images, kernel, cpu=patches, default=xla)
    return {"patches": patches, "xla": xla}[way](images, kernel)


def max_pool(images: Float[Array, "n h w c"], side: int = 2) -> Float[Array, "n rows columns c"]:
    """Return the maxima of complete `side` x `side` squares with stride `side`."""
    n, height, width, channels = images.shape
    rows = height // side
    columns = width // side
    tiled = images[:, : rows * side, : columns * side]
    return jnp.max(tiled.reshape(n, rows, side, columns, side, channels), axis=(2, 4))


def _by_patches(images: Array, kernel: Array, stride: int, padding: tuple[int, int]) -> Array:
    rows, columns = padding
    kernel_height, kernel_width, _, num_outputs = kernel.shape
    padded = jnp.pad(images, ((0, 0), (rows, rows), (columns, columns), (0, 0)))
    last_row = padded.shape[1] - kernel_height
    last_column = padded.shape[2] - kernel_width
    patches = jnp.concatenate(
        [
            padded[:, i : i + last_row + 1 : stride, j : j + last_column + 1 : stride]
            for i, j in itertools.product(range(kernel_height), range(kernel_width))
        ],
        axis=-1,
    )
    return patches @ kernel.reshape(-1, num_outputs)


def _by_xla(images: Array, kernel: Array, stride: int, padding: tuple[int, int]) -> Array:
    return jax.lax.conv_general_dilated(
        images,
        kernel,
        window_strides=(stride, stride),
        padding=[(side, side) for side in padding],
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


EPSILON = 1e-5  # added to variances, as in PyTorch
MOMENTUM = 0.1  # weight of a batch in the running statistics, as in PyTorch


class Affine(NamedTuple):
    scale: Float[Array, " c"]  # gamma
    shift: Float[Array, " c"]  # beta


class RunningStatistics(NamedTuple):
    mean: Float[Array, " c"]
    variance: Float[Array, " c"]


class Normalization(NamedTuple):
    """begin(channels) -> statistics, and apply(values, affine, statistics, is_training) -> values and statistics."""

    begin: Callable[[int], PyTree]
    apply: Callable[[Float[Array, "n h w c"], Affine, PyTree, bool], tuple[Float[Array, "n h w c"], PyTree]]


def batch_normalized(
    values: Float[Array, "n h w c"], affine: Affine, running: RunningStatistics, is_training: bool
) -> tuple[Float[Array, "n h w c"], RunningStatistics]:
    """Normalise each channel by its mean and variance, in training those of the batch, otherwise the running ones.

    Source: Ioffe and Szegedy, "Batch Normalization" (2015), Algorithms 1 and 2.
    """
    if not is_training:
        return _standardized(values, *running) * affine.scale + affine.shift, running
    count = values.shape[0] * values.shape[1] * values.shape[2]
    if count == 1:
        raise InvalidValueError(
            "a batch of 1 image, which has 1 x 1 pixels in this layer, has only one value per channel. BatchNorm would "
            "make every value 0. Raise the batch size, or use larger images."
        )
    mean = jnp.mean(values, axis=(0, 1, 2))
    variance = jnp.var(values, axis=(0, 1, 2))
    unbiased_variance = variance * (count / (count - 1))
    after = RunningStatistics(_average(running.mean, mean), _average(running.variance, unbiased_variance))
    return _standardized(values, mean, variance) * affine.scale + affine.shift, after


def group_normalized(values: Float[Array, "n h w c"], affine: Affine, num_groups: int) -> Float[Array, "n h w c"]:
    """Normalise groups of neighbouring channels in each image by their mean and biased variance.

    Source: Wu and He, "Group Normalization" (2018), Eqs. (1), (2), (7).
    """
    n, height, width, channels = values.shape
    grouped = values.reshape(n, height, width, num_groups, channels // num_groups)
    mean = jnp.mean(grouped, axis=(1, 2, 4), keepdims=True)
    variance = jnp.var(grouped, axis=(1, 2, 4), keepdims=True)
    return _standardized(grouped, mean, variance).reshape(values.shape) * affine.scale + affine.shift


@functools.cache  # equal settings give the same functions, so their networks are equal
def batches() -> Normalization:
    return Normalization(lambda channels: RunningStatistics(jnp.zeros(channels), jnp.ones(channels)), batch_normalized)


@functools.cache
def groups(num_groups: int) -> Normalization:
    def apply(values: Array, affine: Affine, statistics: PyTree, is_training: bool) -> tuple[Array, PyTree]:
        return group_normalized(values, affine, num_groups), ()

    return Normalization(lambda channels: (), apply)  # no statistics


def _standardized(values: Array, mean: Array, variance: Array) -> Array:
    return (values - mean) * jax.lax.rsqrt(variance + EPSILON)


def _average(running: Array, batch: Array) -> Array:
    return ((1 - MOMENTUM) * running + MOMENTUM * jax.lax.stop_gradient(batch)).astype(running.dtype)


def he_kernels(key: Key[Array, ""], shapes: Sequence[tuple[int, ...]]) -> list[Float[Array, "..."]]:
    """Draw normal entries with mean 0 and variance 2 / fan-in, for kernels with outputs on the last axis.

    Source: He, Zhang, Ren and Sun, "Delving Deep into Rectifiers" (2015), Eq. (10).
    """
    dtype = jnp.result_type(float)
    sizes = [math.prod(shape) for shape in shapes]
    normals = jnp.split(jax.random.normal(key, (sum(sizes),), dtype), np.cumsum(sizes)[:-1])
    return [
        math.sqrt(2 / math.prod(shape[:-1])) * values.reshape(shape)
        for shape, values in zip(shapes, normals, strict=True)
    ]
