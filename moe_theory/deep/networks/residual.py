"""Residual networks of basic blocks, for images of 8 x 8 to 64 x 64 pixels.

Source: He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition" (2016), Sec. 3.3 and, for small images,
4.2: a stem of 3 x 3 at stride 1 without max pooling. The papers say "non-pretrained ResNet-18" and no more.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from moe_theory.deep.networks.convolution import Way, convolve
from moe_theory.deep.networks.initialization import he_kernels, ones, zeros
from moe_theory.deep.networks.normalization import Affine, Moments, Normalization
from moe_theory.deep.networks.plain import Layer
from moe_theory.deep.networks.weights import Network, Weights

LARGE = 64  # from this many pixels a side on, the stem has stride 2: as many operations as at half the side


class Normed(NamedTuple):
    """A convolution without bias, whose place the shift of its normalisation takes."""

    kernel: Float[Array, "k k i o"]
    affine: Affine


class Block(NamedTuple):
    first: Normed
    second: Normed
    shortcut: Normed | None  # None where a block changes neither channels nor size


class Params(NamedTuple):
    stem: Normed
    blocks: tuple[Block, ...]
    last: Layer


@functools.cache  # the same arguments give the same network, so that programs are found again
def resnet(
    name: str,
    widths: tuple[int, ...],
    num_blocks: int,
    normalization: Normalization,
    way: Way = "platform",
) -> Network:
    """A stem, `num_blocks` basic blocks for each of the widths, the mean over pixels, and one linear layer.

    The first block of every width but the first has stride 2; where size or channels change, the shortcut is a
    normalised 1 x 1 convolution. Sides are halved upwards, so that 1 x 1 stays 1 x 1. Layers with kernels, shortcuts
    aside: 2 + 2 * len(widths) * num_blocks. `Weights.statistics` holds one entry a normalisation, in the order of use.
    """
    inputs, outputs, strides = _blocks(widths, num_blocks)

    def init(key: Key[Array, ""], shape: tuple[int, int, int], num_outputs: int) -> Weights:
        shapes = [(3, 3, shape[2], widths[0])]
        for num_in, num_out, stride in zip(inputs, outputs, strides, strict=True):
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


def _blocks(widths: tuple[int, ...], num_blocks: int) -> tuple[list[int], list[int], list[int]]:
    """Channels into, channels out of, and strides of the blocks."""
    outputs = [width for width in widths for _ in range(num_blocks)]
    strides = [2 if stage and not block else 1 for stage in range(len(widths)) for block in range(num_blocks)]
    return [widths[0], *outputs[:-1]], outputs, strides
