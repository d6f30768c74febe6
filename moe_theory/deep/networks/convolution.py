"""Convolution and pooling of images (n, height, width, channels), in the form that the platform at hand is fast at.

XLA's own convolution is the right one on an accelerator. On a CPU its gradient, inside a scan, falls back to a loop
that is tens of times slower than the same gradient outside. There the patches that the kernel meets are laid side by
side (im2col) and multiplied with it as a matrix. Both compute the same sums, in another order; products are of the
platform's default precision. Patches take as many times the memory of the images as the kernel has pixels: ResNet-18
needs 0.7 GB for a step on 32 images of 32 x 32, and 10 GB to evaluate 2000 at once, so do that in minibatches.
`benchmarks/deep_convolution.py` times one form against the other.
"""

import functools
from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from moe_theory.core.errors import InvalidDimsError

Way = Literal["platform", "patches", "xla"]


def convolve(
    images: Float[Array, "n h w c"],
    kernel: Float[Array, "kh kw c o"],
    stride: int = 1,
    padding: int | None = None,
    way: Way = "platform",
) -> Float[Array, "n rows columns o"]:
    """The cross-correlation that networks call convolution, on images with zeros around them.

    Args:
        padding: rows and columns of zeros on each side; by default (side of the kernel - 1) // 2, which under odd
            kernels leaves ceil(h / stride) x ceil(w / stride), never less than 1 x 1.
        way: "patches" or "xla"; by default the platform that a program is lowered for decides.

    Raises: InvalidDimsError if the kernel is larger than the padded image.
    """
    rows, columns = ((side - 1) // 2 if padding is None else padding for side in kernel.shape[:2])
    if images.shape[1] + 2 * rows < kernel.shape[0] or images.shape[2] + 2 * columns < kernel.shape[1]:
        raise InvalidDimsError(
            f"images of {images.shape[1]} x {images.shape[2]} pixels, padded by {rows} x {columns}, must be at least "
            f"as large as the kernel, {kernel.shape[0]} x {kernel.shape[1]}: nothing is left else. Raise padding."
        )
    ways: dict[str, Callable] = {
        name: functools.partial(form, stride=stride, padding=(rows, columns))
        for name, form in (("patches", _by_patches), ("xla", _by_xla))
    }
    if way == "platform":
        return jax.lax.platform_dependent(images, kernel, cpu=ways["patches"], default=ways["xla"])
    return ways[way](images, kernel)


def max_pool(images: Float[Array, "n h w c"], side: int = 2) -> Float[Array, "n rows columns c"]:
    """The largest value of every `side` x `side` square, stride `side`; rows and columns left over are dropped.

    Where values tie for the largest, they share the gradient evenly.

    Raises: InvalidDimsError if an image is smaller than one square.
    """
    n, height, width, channels = images.shape
    rows, columns = height // side, width // side
    if not rows or not columns:
        raise InvalidDimsError(
            f"images of {height} x {width} pixels must be at least {side} x {side}: nothing is left of them by "
            "max pooling else. Give larger images, or another network."
        )
    whole = images[:, : rows * side, : columns * side]
    return jnp.max(whole.reshape(n, rows, side, columns, side, channels), axis=(2, 4))


def _by_patches(images: Array, kernel: Array, stride: int, padding: tuple[int, int]) -> Array:
    (rows, columns), (kernel_height, kernel_width, _, num_outputs) = padding, kernel.shape
    padded = jnp.pad(images, ((0, 0), (rows, rows), (columns, columns), (0, 0)))
    last_row, last_column = padded.shape[1] - kernel_height, padded.shape[2] - kernel_width
    patches = jnp.concatenate(
        [
            padded[:, i : i + last_row + 1 : stride, j : j + last_column + 1 : stride]
            for i in range(kernel_height)
            for j in range(kernel_width)
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
