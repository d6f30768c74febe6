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
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Key

from moe_theory.core.errors import InvalidRewardError
from moe_theory.core.numerics import stored
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.rewards import Feedback


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


ARMS_A_BLOCK = 256  # steps pay for the blocks of arms that there are, not for those to come


class History(NamedTuple):
    """Arms in the order in which they were first tried; a slot tries at most one that is new, so there is room."""

    points: Float[Array, "A K"]  # weights
    counts: Int[Array, "A V"]  # slots that an arm was tried in with a usable reward of the task
    means: Float[Array, "A V"]  # of these rewards
    num_arms: Int[Array, ""]
    unusable: Int[Array, ""]  # rewards that were not finite, so far


def empty_history(dims: Dims) -> History:
    """Nothing seen."""
    dtype = jnp.result_type(float)
    size = min(ARMS_A_BLOCK, dims.max_rounds)
    capacity = -(-dims.max_rounds // size) * size
    return History(
        points=jnp.zeros((capacity, dims.max_experts), dtype),
        counts=jnp.zeros((capacity, dims.num_tasks), jnp.int32),
        means=jnp.zeros((capacity, dims.num_tasks), dtype),
        num_arms=jnp.zeros((), jnp.int32),
        unusable=jnp.zeros((), jnp.int32),
    )


def record(history: History, arm: Int[Array, ""], point: Float[Array, " K"], feedback: Feedback) -> History:
    """Add a slot's rewards to an arm's; a new arm has the index `history.num_arms`."""
    present = feedback.counts > 0
    usable = present & jnp.isfinite(feedback.rewards)
    counts = history.counts[arm] + usable.astype(jnp.int32)
    means = history.means[arm]
    rewards = jnp.where(usable, feedback.rewards, means).astype(means.dtype)
    means = means + (rewards - means) / jnp.maximum(counts, 1).astype(means.dtype)
    return History(
        points=history.points.at[arm].set(point.astype(history.points.dtype)),
        counts=history.counts.at[arm].set(counts),
        means=history.means.at[arm].set(means),
        num_arms=jnp.maximum(history.num_arms, arm + 1),
        unusable=history.unusable + jnp.sum(present & ~usable, dtype=jnp.int32),
    )


def loss_gradient(history: History, weights: Weights, start: Weights, params: Params) -> Weights:
    """Of the mean loss at theta = `weights`, with theta_0 = `start`; 0 from the data where nothing was seen."""
    size = min(ARMS_A_BLOCK, history.points.shape[0])

    def block(index: Int[Array, ""], total: Weights) -> Weights:
        arms = (history.points, history.counts, history.means)
        part = jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, index * size, size), arms)
        return jax.tree.map(jnp.add, total, jax.grad(_squares)(weights, *part))

    first = jnp.zeros((), jnp.int32)
    total = jax.tree.map(jnp.zeros_like, weights)
    if history.points.shape[0] == size:
        total = block(first, total)
    else:
        total = lax.fori_loop(first, (history.num_arms + size - 1) // size, block, total)
    num_squares = jnp.maximum(jnp.sum(history.counts), 1)

    def mean(fit: Array, layer: Array, started: Array) -> Array:
        regularization = jnp.asarray(params.regularization, layer.dtype)
        return (fit + regularization * (layer - started)) / num_squares.astype(layer.dtype)

    return jax.tree.map(mean, total, weights, start)


def descend(history: History, weights: Weights, start: Weights, dims: Dims, params: Params) -> Weights:
    """theta_t from theta_{t-1}: J gradient steps on the mean loss, each of learning_rate / w."""
    dtype = weights.layers[0].dtype
    size = jnp.asarray(params.learning_rate, dtype) / dims.width

    def step(_: Int[Array, ""], weights: Weights) -> Weights:
        slope = loss_gradient(history, weights, start, params)
        return jax.tree.map(lambda layer, part: layer - size * part, weights, slope)

    return lax.fori_loop(0, dims.num_steps, step, weights)


def check_rewards(feedback: Feedback) -> None:
    """Refuse, on the host, rewards of a slot that would teach nothing or ruin what was learnt.

    Raises: InvalidRewardError naming the task, unless a task with requests has a finite reward, and counts are whole.
    """
    rewards, counts = np.asarray(feedback.rewards), np.asarray(feedback.counts)
    if rewards.shape != counts.shape or rewards.ndim != 1:
        raise InvalidRewardError(
            f"rewards of shape {rewards.shape} and counts of shape {counts.shape} must both be of one number a task."
        )
    if counts.dtype.kind not in "iu" or np.any(counts < 0):
        raise InvalidRewardError(f"counts={counts.tolist()} must be whole numbers of requests, 0 or more a task.")
    for task in np.flatnonzero((counts > 0) & ~np.isfinite(rewards)):
        raise InvalidRewardError(
            f"rewards[{task}]={rewards[task]} of {counts[task]} requests must be a finite number: it would ruin the "
            f"network. Change the reward, or set counts[{task}] to 0 to leave the task out of this slot."
        )


def _squares(
    weights: Weights, points: Float[Array, "A K"], counts: Int[Array, "A V"], means: Float[Array, "A V"]
) -> Float[Array, ""]:
    """The sum over slots of squared errors, halved, up to a constant."""
    errors = outputs(weights, points) - means
    return jnp.sum(counts.astype(errors.dtype) * jnp.square(errors)) / 2
