"""The network of Eq. (3) that predicts each task's reward from merging weights, and its gradient in factors.

The gradient that the bandit needs is that of psi' f, a sum over layers of outer products, delta_l a_{l-1}': of what is
passed back to a layer's units and of what the layer is given. Inner products of two gradients are then sums of
products of inner products of factors, and no vector of p numbers is made. ReLUs, without biases; a unit at 0 passes
nothing back. Inputs are of the padded number of experts, 0 beyond those that exist, whose columns then count nowhere.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from moe_theory.core.numerics import stored
from moe_theory.merging.params import Dims


class Weights(NamedTuple):
    """theta, from the input on: (w, K), then (w, w) where there are two hidden layers, then (V, w)."""

    layers: tuple[Array, ...]


class Factors(NamedTuple):
    """Gradients of psi' f at C points: that of layer l is the outer product of `outer[l]` and `inner[l]`, row by row.

    At one point (no leading axis) the same; the rows of `outer[l]` go with the rows of the layer.
    """

    outer: tuple[Array, ...]  # delta_l (C, units of layer l)
    inner: tuple[Array, ...]  # a_{l-1} (C, inputs of layer l)


def draw(key: Key[Array, ""], dims: Dims) -> Weights:
    """Independent normal entries: of variance 4 / w in hidden layers and of 2 / w in the last.

    The variances of NeuralUCB (Zhou, Li and Gu 2020, Algorithm 1), that the paper refers to, without its symmetric
    halves, which need duplicated inputs (Assumption 2) and make f(x, theta_0) = 0. So f starts at a size of 2 |x|. An
    expert's column is the same whatever `dims.max_experts`.
    """
    dtype, width = jnp.result_type(float), dims.width
    keys = jax.random.split(key, dims.num_hidden + 1)
    shapes = [(dims.max_experts, width), *[(width, width)] * (dims.num_hidden - 1), (width, dims.num_tasks)]
    variances = [4 / width] * dims.num_hidden + [2 / width]
    return Weights(
        tuple(
            stored(math.sqrt(variance) * jax.random.normal(key, shape, dtype)).T
            for key, shape, variance in zip(keys, shapes, variances, strict=True)
        )
    )


def outputs(weights: Weights, points: Float[Array, "C K"]) -> Float[Array, "C V"]:
    """f(x, theta) of Eq. (3): the reward predicted for each task."""
    return _forward(weights, points)[1]


def factors(
    weights: Weights, points: Float[Array, "C K"], mix: Float[Array, " V"]
) -> tuple[Float[Array, " C"], Factors]:
    """psi' f(x, theta), and its gradient g(x, theta) in factors."""
    given, values = _forward(weights, points)
    passed = math.sqrt(weights.layers[-1].shape[1]) * jnp.broadcast_to(mix, values.shape).astype(values.dtype)
    outer = [passed]
    for layer, activations in zip(reversed(weights.layers[1:]), reversed(given[1:]), strict=True):
        passed = jnp.where(activations > 0, jnp.matmul(passed, layer, precision="highest"), 0)
        outer.append(passed)
    return jnp.sum(values * mix, axis=-1), Factors(tuple(reversed(outer)), tuple(given))


def gradient(of: Factors) -> Float[Array, "C p"]:
    """The gradients written out, layers one after the other and each row by row."""
    parts = (outer[..., :, None] * inner[..., None, :] for outer, inner in zip(*of, strict=True))
    return jnp.concatenate([part.reshape(*part.shape[:-2], -1) for part in parts], axis=-1)


def kernel(one: Factors, other: Factors) -> Float[Array, "N C"]:
    """Inner products of the gradients of `one`, at N points, with those of `other`, at C points."""
    terms = [
        jnp.matmul(outer, outer_other.T, precision="highest") * jnp.matmul(inner, inner_other.T, precision="highest")
        for outer, inner, outer_other, inner_other in zip(*one, *other, strict=True)
    ]
    return sum(terms[1:], terms[0])


def squared_length(of: Factors) -> Float[Array, " C"]:
    """|g|^2 of each gradient: the diagonal of `kernel`."""
    terms = [
        jnp.sum(jnp.square(outer), axis=-1) * jnp.sum(jnp.square(inner), axis=-1)
        for outer, inner in zip(*of, strict=True)
    ]
    return sum(terms[1:], terms[0])


def dead_units(weights: Weights, points: Float[Array, "A K"]) -> Float[Array, " H"]:
    """For each hidden layer, the share of units that are 0 at all of the points, in [0, 1].

    Rewards at these points teach such units nothing. Rows of zeros count for nothing. Where a layer's share is 1, f is
    0 at all of them, whatever the rewards.
    """
    given, _ = _forward(weights, points)
    return jnp.stack([jnp.mean(jnp.all(layer <= 0, axis=0).astype(points.dtype)) for layer in given[1:]])


def _forward(weights: Weights, points: Float[Array, "C K"]) -> tuple[list[Array], Float[Array, "C V"]]:
    """What each layer is given, and f."""
    given = [points]
    for layer in weights.layers[:-1]:
        given.append(jax.nn.relu(jnp.matmul(given[-1], layer.T, precision="highest")))
    last = weights.layers[-1]
    return given, math.sqrt(last.shape[1]) * jnp.matmul(given[-1], last.T, precision="highest")
