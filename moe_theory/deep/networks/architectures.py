"""Architectures: one hidden layer, the five-layer network of the MNIST experiment, residual networks."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from moe_theory.core.errors import InvalidDimsError
from moe_theory.deep.networks.layers import (
    Affine,
    Moments,
    Normalization,
    Way,
    convolve,
    he_kernels,
    max_pool,
    ones,
    zeros,
)
from moe_theory.deep.networks.weights import Network, Weights

KERNEL_SIDE = 3
POOL_SIDE = 2


class Layer(NamedTuple):
    kernel: Float[Array, "*inputs o"]
    bias: Float[Array, " o"]


@functools.cache  # the same arguments give the same network, so that programs are reused
def mlp(name: str, widths: tuple[int, ...]) -> Network:
    """Fully connected ReLU layers of these widths on flattened images, and a linear layer to the outputs."""

    def init(key: Key[Array, ""], shape: tuple[int, int, int], num_outputs: int) -> Weights:
        return _drawn(key, _dense_shapes(shape[0] * shape[1] * shape[2], (*widths, num_outputs)))

    def apply(weights: Weights, images: Float[Array, "n h w c"], is_training: bool) -> tuple[Array, tuple[()]]:
        return _dense(images, weights.params), ()

    return Network(name, init, apply)


@functools.cache
def five_layer(name: str, channels: tuple[int, int], widths: tuple[int, int], way: Way = "platform") -> Network:
    """Two convolutions, the first of them max-pooled at stride 2, and three fully connected layers, under ReLUs.

    The paper gives no sizes: kernels here are 3 x 3, padded, so that 8 x 8 digits are enough.

    Source: Appendix A.4 of `continual`.
    Raises: InvalidDimsError, by `init`, if images are too small for pooling.
    """

    def init(key: Key[Array, ""], shape: tuple[int, int, int], num_outputs: int) -> Weights:
        height, width, num_channels = shape
        if min(height, width) < POOL_SIDE:
            raise InvalidDimsError(
                f"images of {height} x {width} pixels must be at least {POOL_SIDE} x {POOL_SIDE}: {name!r} pools them. "
                "Use larger images, or another network."
            )
        left = (height // POOL_SIDE) * (width // POOL_SIDE) * channels[1]
        kernels = [(KERNEL_SIDE, KERNEL_SIDE, num_channels, channels[0]), (KERNEL_SIDE, KERNEL_SIDE, *channels)]
        return _drawn(key, [*kernels, *_dense_shapes(left, (*widths, num_outputs))])

    def apply(weights: Weights, images: Float[Array, "n h w c"], is_training: bool) -> tuple[Array, tuple[()]]:
        first, second, *dense = weights.params
        # ReLU and maximum commute: after pooling there are a quarter as many values.
        values = jax.nn.relu(max_pool(convolve(images, first.kernel, way=way) + first.bias, POOL_SIDE))
        values = jax.nn.relu(convolve(values, second.kernel, way=way) + second.bias)
        return _dense(values, dense), ()

    return Network(name, init, apply)


def _dense_shapes(num_inputs: int, widths: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(zip((num_inputs, *widths), widths, strict=False))


def _drawn(key: Key[Array, ""], shapes: list) -> Weights:
    return Weights(tuple(Layer(kernel, zeros(kernel.shape[-1])) for kernel in he_kernels(key, shapes)), ())


def _dense(values: Array, layers: tuple[Layer, ...] | list[Layer]) -> Float[Array, "n outputs"]:
    values = values.reshape(values.shape[0], -1)
    for layer in layers[:-1]:
        values = jax.nn.relu(jnp.matmul(values, layer.kernel) + layer.bias)
    return jnp.matmul(values, layers[-1].kernel) + layers[-1].bias


LARGE = 64  # pixels a side from which on the stem has stride 2: the cost is then that of half the side


class Normed(NamedTuple):
    kernel: Float[Array, "k k i o"]
    affine: Affine


class Block(NamedTuple):
    first: Normed
    second: Normed
    shortcut: Normed | None  # None where a block keeps channels and size


class Params(NamedTuple):
    stem: Normed
    blocks: tuple[Block, ...]
    last: Layer


@functools.cache  # the same arguments give the same network, so that programs are reused
def resnet(
    name: str, widths: tuple[int, ...], num_blocks: int, normalization: Normalization, way: Way = "platform"
) -> Network:
    """A residual network for images of 8 x 8 to 64 x 64: a stem, basic blocks, the mean over pixels, a linear layer.

    There are `num_blocks` blocks for each of the widths. The first block of every width but the first has stride 2;
    where size or channels change, the shortcut is a normalised 1 x 1 convolution. Halved sides are rounded up.

    Source: He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition" (2016), Sec. 3.3 and, for small
        images, 4.2: a stem of 3 x 3 at stride 1 without max pooling. The papers say "non-pretrained ResNet-18" only.
    """
    channels = [width for width in widths for _ in range(num_blocks)]
    strides = [2 if stage and not block else 1 for stage in range(len(widths)) for block in range(num_blocks)]

    def init(key: Key[Array, ""], shape: tuple[int, int, int], num_outputs: int) -> Weights:
        shapes = [(3, 3, shape[2], widths[0])]
        for num_in, num_out, stride in zip([widths[0], *channels[:-1]], channels, strides, strict=True):
            shapes += [(3, 3, num_in, num_out), (3, 3, num_out, num_out)]
            shapes += [(1, 1, num_in, num_out)] if stride != 1 else []
        *convolved, last = he_kernels(key, [*shapes, (widths[-1], num_outputs)])
        layers = [Normed(kernel, Affine(ones(kernel.shape[-1]), zeros(kernel.shape[-1]))) for kernel in convolved]
        rest = iter(layers[1:])
        blocks = tuple(Block(next(rest), next(rest), next(rest) if stride != 1 else None) for stride in strides)
        statistics = tuple(normalization.begin(layer.kernel.shape[-1]) for layer in layers)
        params = Params(layers[0], blocks, Layer(last, zeros(num_outputs)))
        return Weights(params, statistics if jax.tree.leaves(statistics) else ())

    def apply(
        weights: Weights, images: Float[Array, "n h w c"], is_training: bool
    ) -> tuple[Float[Array, "n outputs"], tuple[Moments, ...]]:
        before, after = iter(weights.statistics), []

        def normed(values: Array, layer: Normed, stride: int) -> Array:
            convolved = convolve(values, layer.kernel, stride, way=way)
            values, statistics = normalization.apply(convolved, layer.affine, next(before, ()), is_training)
            after.append(statistics)
            return values

        params: Params = weights.params
        values = jax.nn.relu(normed(images, params.stem, 2 if max(images.shape[1:3]) >= LARGE else 1))
        for block, stride in zip(params.blocks, strides, strict=True):
            inner = jax.nn.relu(normed(values, block.first, stride))
            inner = normed(inner, block.second, 1)
            values = jax.nn.relu(inner + (values if block.shortcut is None else normed(values, block.shortcut, stride)))
        outputs = jnp.matmul(jnp.mean(values, axis=(1, 2)), params.last.kernel) + params.last.bias
        return outputs, tuple(after) if weights.statistics else ()

    return Network(name, init, apply)
