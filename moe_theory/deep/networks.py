"""The experts' networks by name. They map images (n, height, width, channels) to outputs before sigmoid or softmax.

- "five-layer": the network of the MNIST experiment, with 16 and 32 channels, 128 and 64 units (the widths are ours).
- "five-layer-small": 8 and 16 channels, 32 and 16 units, for digits of 8 x 8.
- "resnet18": the standard network for 32 x 32 (64 to 512 channels, two blocks each, BatchNorm). It halves 64 x 64.
- "resnet18-small": a ResNet of 6 layers for 8 x 8, with 8 and 16 channels, one block each, and GroupNorm of 4 groups.
- "mlp": one hidden layer of 32 units.
"""

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from moe_theory.core.errors import DeclarationError, InvalidValueError, described
from moe_theory.deep.layers import (
    Affine,
    Normalization,
    RunningStatistics,
    batches,
    convolve,
    groups,
    he_kernels,
    max_pool,
)

__all__ = ["NETWORKS", "Network", "Weights", "adapted", "mlp"]

Stack = TypeVar("Stack")  # weights or other values of M experts, with leaves (M, ...)
_SIDES = (3, 3)  # of kernels
_POOL_SIDE = 2


class Weights(NamedTuple):
    """Weights of one network, or of a stack of M networks with leaves (M, ...)."""

    params: PyTree  # trained parameters
    statistics: PyTree  # running means and variances of BatchNorm, or ()


@dataclass(frozen=True)
class Network:
    """Two pure functions and a name. Networks are hashable.

    Outputs are before the sigmoid if there is one output, and before the softmax if there are several.
    """

    name: str
    # (key, (height, width, channels), number of outputs) -> weights by He initialisation
    init: Callable[[Key[Array, ""], tuple[int, int, int], int], Weights]
    # (weights, images, is training) -> outputs and new statistics
    apply: Callable[[Weights, Float[Array, "n h w c"], bool], tuple[Float[Array, "n outputs"], PyTree]]


def stacked(
    network: Network, key: Key[Array, ""], num_experts: int, shape: tuple[int, int, int], num_outputs: int
) -> Weights:
    """Return M networks as one tree with leaves (M, ...). For every M, expert m has the key `fold_in(key, m)`."""
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(num_experts))
    # `map` loops over the keys, because results of vectorised code may depend on M.
    return jax.lax.map(lambda key: network.init(key, shape, num_outputs), keys)


def expert(stack: Stack, index: Int[Array, ""]) -> Stack:
    """Return expert `index` of a stack. The index is clipped to [0, M)."""
    last = num_experts(stack) - 1
    return jax.tree.map(
        lambda leaf: jax.lax.dynamic_index_in_dim(leaf, jnp.clip(index, 0, last), keepdims=False), stack
    )


def with_expert(stack: Stack, index: Int[Array, ""], new_expert: Stack) -> Stack:
    """Return the stack with `new_expert` as expert `index`, or unchanged if the index is outside [0, M)."""
    last = num_experts(stack) - 1
    exists = (index >= 0) & (index <= last)

    def put(leaf: Array, new: Array, old: Array) -> Array:
        return jax.lax.dynamic_update_index_in_dim(leaf, jnp.where(exists, new, old), jnp.clip(index, 0, last), 0)

    return jax.tree.map(put, stack, new_expert, expert(stack, index))


def num_experts(stack: PyTree) -> int:
    return jax.tree.leaves(stack)[0].shape[0]


def num_parameters(weights: Weights) -> int:
    return sum(leaf.size for leaf in jax.tree.leaves(weights.params))


def squared_distance(after: PyTree, before: PyTree) -> Float[Array, ""]:
    """Return the squared Euclidean distance of two trees, such as |w_t - w_{t-1}|^2."""
    squares = jax.tree.map(lambda leaf, old_leaf: jnp.sum(jnp.square(leaf - old_leaf)), after, before)
    return jax.tree.reduce(jnp.add, squares)


def check(network: Network, shape: tuple[int, int, int], num_outputs: int) -> None:
    """Raise DeclarationError unless a network returns `num_outputs` outputs for an image of this shape."""
    images = jax.ShapeDtypeStruct((2, *shape), jnp.result_type(float))  # two images
    try:
        weights = jax.eval_shape(lambda: network.init(jax.random.key(0), shape, num_outputs))
        output_shape = jax.eval_shape(
            lambda weights, images: network.apply(weights, images, True)[0], weights, images
        ).shape
    except InvalidValueError:
        raise  # its message says what does not fit
    except Exception as failure:  # anything that a user's network raises
        raise DeclarationError(
            f"network {network.name} fails on images of shape {shape}: {described(failure)}. Change the network."
        ) from failure
    if output_shape != (2, num_outputs):
        raise DeclarationError(
            f"network {network.name} returns outputs of shape {output_shape} for 2 images, not (2, {num_outputs})."
        )


def adapted(
    name: str,
    init: Callable[[Key[Array, ""], Float[Array, "n h w c"], int], PyTree],
    apply: Callable[[PyTree, Float[Array, "n h w c"]], Float[Array, "n outputs"]],
) -> Network:
    """Return a network of another library, made from its two functions.

    Args:
        init: (key, an image (1, h, w, c), number of outputs) -> weights, which are all trained.
        apply: (weights, images) -> outputs before the sigmoid or softmax.

    Examples:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import moe_theory as mt
        >>> from moe_theory.deep import networks
        >>> linear = networks.adapted(
        ...     "linear",
        ...     init=lambda key, images, k: jax.random.normal(key, (images.size, k)) / images.size**0.5,
        ...     apply=lambda weights, images: images.reshape(len(images), -1) @ weights,
        ... )
        >>> linear.init(mt.root_key(0), (8, 8, 1), 2).params.shape
        (64, 2)
    """

    def begin(key: Key[Array, ""], shape: tuple[int, int, int], num_outputs: int) -> Weights:
        return Weights(init(key, jnp.zeros((1, *shape)), num_outputs), ())

    def outputs(weights: Weights, images: Float[Array, "n h w c"], is_training: bool) -> tuple[Array, tuple[()]]:
        return apply(weights.params, images), ()

    return Network(name, begin, outputs)


class _Layer(NamedTuple):
    kernel: Float[Array, "*inputs o"]
    bias: Float[Array, " o"]


@functools.cache  # equal arguments give the same network, so programs are reused
def mlp(name: str, widths: tuple[int, ...]) -> Network:
    """Return a network with fully connected ReLU layers of these widths on flattened images, and a linear output layer.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory.deep import networks
        >>> weights = networks.mlp("wide", widths=(64,)).init(mt.root_key(0), (8, 8, 1), 2)
        >>> [layer.kernel.shape for layer in weights.params]
        [(64, 64), (64, 2)]
    """

    def init(key: Key[Array, ""], shape: tuple[int, int, int], num_outputs: int) -> Weights:
        return _draw_layers(key, _dense_shapes(math.prod(shape), (*widths, num_outputs)))

    def apply(weights: Weights, images: Float[Array, "n h w c"], is_training: bool) -> tuple[Array, tuple[()]]:
        return _apply_dense(images, weights.params), ()

    return Network(name, init, apply)


@functools.cache
def five_layer(name: str, channels: tuple[int, int], widths: tuple[int, int]) -> Network:
    """Return a network with two convolutions, of which the first is max-pooled at stride 2, and three dense layers.

    Activations are ReLUs. Kernels are 3 x 3 and padded, so 8 x 8 digits are large enough.

    Source: Appendix A.4 of `continual`.
    """

    def init(key: Key[Array, ""], shape: tuple[int, int, int], num_outputs: int) -> Weights:
        height, width, num_channels = shape
        if min(height, width) < _POOL_SIDE:
            raise InvalidValueError(
                f"images of {height} x {width} pixels must be at least {_POOL_SIDE} x {_POOL_SIDE}, because {name!r} "
                "pools them. Use larger images, or another network."
            )
        num_features = (height // _POOL_SIDE) * (width // _POOL_SIDE) * channels[1]
        kernels = [(*_SIDES, num_channels, channels[0]), (*_SIDES, *channels)]
        return _draw_layers(key, [*kernels, *_dense_shapes(num_features, (*widths, num_outputs))])

    def apply(weights: Weights, images: Float[Array, "n h w c"], is_training: bool) -> tuple[Array, tuple[()]]:
        first, second, *dense = weights.params
        # Pooling comes before ReLU, which commutes with the maximum and then has a quarter as many values.
        values = jax.nn.relu(max_pool(convolve(images, first.kernel) + first.bias, _POOL_SIDE))
        values = jax.nn.relu(convolve(values, second.kernel) + second.bias)
        return _apply_dense(values, dense), ()

    return Network(name, init, apply)


def _dense_shapes(num_inputs: int, widths: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(zip((num_inputs, *widths), widths, strict=False))


def _draw_layers(key: Key[Array, ""], shapes: list) -> Weights:
    layers = tuple(_Layer(kernel, bias=jnp.zeros(kernel.shape[-1])) for kernel in he_kernels(key, shapes))
    return Weights(layers, statistics=())


def _apply_dense(values: Array, layers: tuple[_Layer, ...] | list[_Layer]) -> Float[Array, "n outputs"]:
    values = values.reshape(values.shape[0], -1)
    for layer in layers[:-1]:
        values = jax.nn.relu(jnp.matmul(values, layer.kernel) + layer.bias)
    return jnp.matmul(values, layers[-1].kernel) + layers[-1].bias


LARGE = 64  # side in pixels from which the stem has stride 2, so that images cost as much as those of half the side


class _Normed(NamedTuple):
    kernel: Float[Array, "k k i o"]
    affine: Affine


class _Block(NamedTuple):
    first: _Normed
    second: _Normed
    shortcut: _Normed | None  # None if a block keeps channels and size


class _Params(NamedTuple):
    stem: _Normed
    blocks: tuple[_Block, ...]
    last: _Layer


@functools.cache  # equal arguments give the same network, so programs are reused
def resnet(name: str, widths: tuple[int, ...], num_blocks: int, normalization: Normalization) -> Network:
    """Return a residual network for 8 x 8 to 64 x 64 pixels: a stem, basic blocks, mean over pixels, and linear layer.

    Each width has `num_blocks` blocks. Except at the first width, the first block has stride 2. If size or channels
    change, the shortcut is a normalised 1 x 1 convolution. Halved sides are rounded up.

    Source: He, Zhang, Ren and Sun, "Deep Residual Learning for Image Recognition" (2016), Sec. 3.3, and for small
        images Sec. 4.2, where the stem is 3 x 3 with stride 1 and without max pooling.
    """
    stages_and_blocks = list(itertools.product(range(len(widths)), range(num_blocks)))
    channels = [widths[stage] for stage, _ in stages_and_blocks]
    strides = [2 if stage > 0 and block == 0 else 1 for stage, block in stages_and_blocks]

    def init(key: Key[Array, ""], shape: tuple[int, int, int], num_outputs: int) -> Weights:
        # In the order in which `apply` uses them: the stem, then each block's two kernels and its shortcut.
        shapes: list[tuple[int, ...]] = [(*_SIDES, shape[2], widths[0])]
        num_inputs = widths[0]
        for num_channels, stride in zip(channels, strides, strict=True):
            shapes += [(*_SIDES, num_inputs, num_channels), (*_SIDES, num_channels, num_channels)]
            if stride != 1:
                shapes.append((1, 1, num_inputs, num_channels))
            num_inputs = num_channels
        *kernels, last_kernel = he_kernels(key, [*shapes, (widths[-1], num_outputs)])
        layers = [
            _Normed(kernel, Affine(jnp.ones(kernel.shape[-1]), jnp.zeros(kernel.shape[-1]))) for kernel in kernels
        ]
        stem, *remaining = layers
        blocks = []
        for stride in strides:
            shortcut = remaining.pop(2) if stride != 1 else None  # after the block's two kernels
            blocks.append(_Block(remaining.pop(0), remaining.pop(0), shortcut))
        statistics = tuple(normalization.begin(layer.kernel.shape[-1]) for layer in layers)
        params = _Params(stem, tuple(blocks), last=_Layer(last_kernel, bias=jnp.zeros(num_outputs)))
        return Weights(params, statistics if jax.tree.leaves(statistics) else ())

    def apply(
        weights: Weights, images: Float[Array, "n h w c"], is_training: bool
    ) -> tuple[Float[Array, "n outputs"], tuple[RunningStatistics, ...]]:
        statistics_before = iter(weights.statistics)
        statistics_after = []

        def normed(values: Array, layer: _Normed, stride: int) -> Array:
            convolved = convolve(values, layer.kernel, stride)
            before = next(statistics_before, ())  # calls are in the order of the layers. GroupNorm has no statistics
            values, after = normalization.apply(convolved, layer.affine, before, is_training)
            statistics_after.append(after)
            return values

        params: _Params = weights.params
        values = jax.nn.relu(normed(images, params.stem, 2 if max(images.shape[1:3]) >= LARGE else 1))
        for block, stride in zip(params.blocks, strides, strict=True):
            inner = normed(jax.nn.relu(normed(values, block.first, stride)), block.second, stride=1)
            if block.shortcut is not None:
                values = normed(values, block.shortcut, stride)
            values = jax.nn.relu(inner + values)
        outputs = jnp.matmul(jnp.mean(values, axis=(1, 2)), params.last.kernel) + params.last.bias
        return outputs, tuple(statistics_after) if weights.statistics else ()

    return Network(name, init, apply)


# The package's networks and the user's, by name.
NETWORKS: dict[str, Network] = {
    network.name: network
    for network in (
        five_layer("five-layer", channels=(16, 32), widths=(128, 64)),
        five_layer("five-layer-small", channels=(8, 16), widths=(32, 16)),
        resnet("resnet18", widths=(64, 128, 256, 512), num_blocks=2, normalization=batches()),
        resnet("resnet18-small", widths=(8, 16), num_blocks=1, normalization=groups(4)),
        mlp("mlp", widths=(32,)),
    )
}
_BUILT_IN = frozenset(NETWORKS)  # names that users cannot register


def register(network: Network) -> Network:
    """Register a network by name for `Dims` and `moe_theory.deep.plan`. It replaces your earlier one of this name.

    Returns: the network.
    Raises: InvalidValueError if the package uses the name.

    Examples:
        >>> from moe_theory import deep
        >>> network = deep.register(deep.networks.mlp("wide", widths=(64,)))
        >>> deep.Dims(max_experts=2, num_classes=2, max_rounds=2, network="wide").network
        'wide'
    """
    if network.name in _BUILT_IN:
        raise InvalidValueError(f"{network.name!r} is built in. Choose another name for your network.")
    NETWORKS[network.name] = network
    return network
