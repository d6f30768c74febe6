"""Networks without normalisation or shortcuts: one hidden layer, and the five-layer network of the MNIST experiment."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from moe_theory.core.errors import InvalidDimsError
from moe_theory.deep.networks.convolution import Way, convolve, max_pool
from moe_theory.deep.networks.initialization import he_kernels, zeros
from moe_theory.deep.networks.weights import Network, Weights

KERNEL_SIDE = 3
POOL_SIDE = 2


class Layer(NamedTuple):
    kernel: Float[Array, "*inputs o"]
    bias: Float[Array, " o"]


@functools.cache  # the same arguments give the same network, so that programs are found again
def mlp(name: str, widths: tuple[int, ...]) -> Network:
    """Flattened images through fully connected ReLU layers of these widths, and one more to the outputs."""

    def init(key: Key[Array, ""], shape: tuple[int, int, int], num_outputs: int) -> Weights:
        return _drawn(key, _dense_shapes(shape[0] * shape[1] * shape[2], (*widths, num_outputs)))

    def apply(weights: Weights, images: Float[Array, "n h w c"], is_training: bool) -> tuple[Array, tuple[()]]:
        return _dense(images, weights.params), ()

    return Network(name, init, apply)


@functools.cache
def five_layer(name: str, channels: tuple[int, int], widths: tuple[int, int], way: Way = "platform") -> Network:
    """Two convolutions, the first of them max-pooled at stride 2, and three fully connected layers, under ReLUs.

    The papers say this much (continual, Appendix A.4; its last layer's sigmoid is left to training code) and nothing
    of sizes: kernels here are 3 x 3, padded, so that 8 x 8 digits are enough. Convolutions have biases.

    Raises: InvalidDimsError, by `init`, if images are too small to be pooled.
    """

    def init(key: Key[Array, ""], shape: tuple[int, int, int], num_outputs: int) -> Weights:
        height, width, num_channels = shape
        if min(height, width) < POOL_SIDE:
            raise InvalidDimsError(
                f"images of {height} x {width} pixels must be at least {POOL_SIDE} x {POOL_SIDE}: {name!r} pools them. "
                "Give larger images, or another network."
            )
        left = (height // POOL_SIDE) * (width // POOL_SIDE) * channels[1]
        kernels = [(KERNEL_SIDE, KERNEL_SIDE, num_channels, channels[0]), (KERNEL_SIDE, KERNEL_SIDE, *channels)]
        return _drawn(key, [*kernels, *_dense_shapes(left, (*widths, num_outputs))])

    def apply(weights: Weights, images: Float[Array, "n h w c"], is_training: bool) -> tuple[Array, tuple[()]]:
        first, second, *dense = weights.params
        # ReLU and the maximum commute: after pooling it has a quarter of the values to look at.
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
