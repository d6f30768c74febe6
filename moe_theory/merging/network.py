"""The network of Eq. (3) and its training. The network predicts each task's reward from merging weights.

The network has ReLUs and no biases, and inputs are padded with 0 beyond the experts that exist. The gradient of psi' f
in layer l is the outer product delta_l a_{l-1}' of two factors.

The sum over slots of (f_v(x_s) - r_{s,v})^2 is, up to a constant, a sum over distinct arms. An arm's term (f_v(x) -
mean reward)^2 is weighted by the number of slots in which task v was present. The paper's loss is L = sum_s |f(x_s) -
r_s|^2 / 2 + lambda / 2 |theta - theta_0|^2. Here it is divided by the number n of squares in the sum. A step of
learning_rate / w equals the paper's with eta = learning_rate / (n w).

On the host `check_rewards` refuses rewards that are not finite. A compiled program counts them in `unusable`.
"""

import itertools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int, Key

from moe_theory.core.errors import InvalidValueError
from moe_theory.core.numerics import stored
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.rewards import Feedback


class NetworkWeights(NamedTuple):
    """Weights theta, from the input on. Shapes are (w, K), then (w, w) if there are two hidden layers, and (V, w)."""

    layers: tuple[Array, ...]


class Factors(NamedTuple):
    """Gradients of psi' f at C points, or at one, as outer products of `outer` and `inner`."""

    outer: tuple[Array, ...]  # delta_l (C, units of layer l)
    inner: tuple[Array, ...]  # a_{l-1} (C, inputs of layer l)


def draw(key: Key[Array, ""], dims: Dims) -> NetworkWeights:
    """Draw a network of two equal halves whose outputs cancel, so that f(x, theta_0) = 0, which (11) needs.

    A half has independent normal entries, of variance 4 / w in hidden layers and 2 / w in the last. The halves have
    opposite signs in the last layer. No weight connects the halves at first. An expert's column does not depend on
    `dims.max_experts`.

    Source: NeuralUCB (Zhou, Li and Gu 2020, Algorithm 1), cited in Sec. IV-C of `merging`.
    """
    dtype = jnp.result_type(float)
    half = dims.width // 2
    keys = jax.random.split(key, dims.num_hidden + 1)
    sizes = [dims.max_experts, *[half] * dims.num_hidden, dims.num_tasks]
    variances = [4 / dims.width] * dims.num_hidden + [2 / dims.width]
    halves = []
    for key, shape, variance in zip(keys, itertools.pairwise(sizes), variances, strict=True):
        normals = jax.random.normal(key, shape, dtype)  # (inputs, units): padding inputs keeps each input's draws
        halves.append(stored(math.sqrt(variance) * normals).T)
    first, *between, last = halves
    between = (jax.scipy.linalg.block_diag(layer, layer) for layer in between)
    return NetworkWeights((jnp.concatenate([first, first]), *between, jnp.concatenate([last, -last], axis=1)))


def outputs(weights: NetworkWeights, points: Float[Array, "C K"]) -> Float[Array, "C V"]:
    """Return f(x, theta) of Eq. (3), the reward predicted for each task."""
    return _forward(weights, points)[1]


def factors(
    weights: NetworkWeights, points: Float[Array, "C K"], mix: Float[Array, " V"]
) -> tuple[Float[Array, " C"], Factors]:
    """Return psi' f(x, theta), and its gradient g(x, theta) as factors."""
    inputs, values = _forward(weights, points)
    delta = math.sqrt(weights.layers[-1].shape[1]) * jnp.broadcast_to(mix, values.shape).astype(values.dtype)
    outer = [delta]  # from the last layer to the first
    for layer, activations in zip(reversed(weights.layers[1:]), reversed(inputs[1:]), strict=True):
        delta = jnp.where(activations > 0, jnp.matmul(delta, layer, precision="highest"), 0)
        outer.append(delta)
    return jnp.sum(values * mix, axis=-1), Factors(outer=tuple(reversed(outer)), inner=tuple(inputs))


def gradient(factors: Factors) -> Float[Array, "C p"]:
    """Return the gradients as vectors, layer by layer in row-major order."""
    matrices = (outer[..., :, None] * inner[..., None, :] for outer, inner in zip(*factors, strict=True))
    return jnp.concatenate([matrix.reshape(*matrix.shape[:-2], -1) for matrix in matrices], axis=-1)


def layers(vector: Float[Array, " p"], like: Factors) -> tuple[Array, ...]:
    """Split a vector of p numbers, in the order of `gradient`, into layers with the shapes of one gradient."""
    parts = []
    start = 0
    for outer, inner in zip(*like, strict=True):
        end = start + outer.shape[-1] * inner.shape[-1]
        parts.append(vector[start:end].reshape(outer.shape[-1], inner.shape[-1]))
        start = end
    return tuple(parts)


def kernel(one: Factors, other: Factors) -> Float[Array, "N C"]:
    """Return the inner products of gradients `one` at N points with gradients `other` at C points."""
    terms = [
        jnp.matmul(outer, outer_other.T, precision="highest") * jnp.matmul(inner, inner_other.T, precision="highest")
        for outer, inner, outer_other, inner_other in zip(*one, *other, strict=True)
    ]
    return sum(terms[1:], terms[0])


def squared_length(factors: Factors) -> Float[Array, " C"]:
    """Return |g|^2 of each gradient, the diagonal of `kernel`."""
    terms = [
        jnp.sum(jnp.square(outer), axis=-1) * jnp.sum(jnp.square(inner), axis=-1)
        for outer, inner in zip(*factors, strict=True)
    ]
    return sum(terms[1:], terms[0])


def _forward(weights: NetworkWeights, points: Float[Array, "C K"]) -> tuple[list[Array], Float[Array, "C V"]]:
    """Return the inputs a_{l-1} of each layer l, and the network's outputs."""
    inputs = [points]
    for layer in weights.layers[:-1]:
        inputs.append(jax.nn.relu(jnp.matmul(inputs[-1], layer.T, precision="highest")))
    last = weights.layers[-1]
    return inputs, math.sqrt(last.shape[1]) * jnp.matmul(inputs[-1], last.T, precision="highest")


ARMS_A_BLOCK = 128  # gradients are summed over the blocks of arms seen so far


class History(NamedTuple):
    """Distinct weights (arms) in the order of first use, with at most one new arm per slot."""

    points: Float[Array, "A K"]  # weights
    counts: Int[Array, "A V"]  # slots in which an arm gave a usable reward of the task
    means: Float[Array, "A V"]  # means of these rewards
    num_arms: Int[Array, ""]
    unusable: Int[Array, ""]  # number of rewards so far that were not finite


def empty_history(dims: Dims) -> History:
    dtype = jnp.result_type(float)
    size = min(ARMS_A_BLOCK, dims.max_rounds)
    capacity = -(-dims.max_rounds // size) * size  # rounded up to whole blocks
    return History(
        points=jnp.zeros((capacity, dims.max_experts), dtype),
        counts=jnp.zeros((capacity, dims.num_tasks), jnp.int32),
        means=jnp.zeros((capacity, dims.num_tasks), dtype),
        num_arms=jnp.zeros((), jnp.int32),
        unusable=jnp.zeros((), jnp.int32),
    )


def record(history: History, arm: Int[Array, ""], point: Float[Array, " K"], feedback: Feedback) -> History:
    """Add a slot's rewards to the rewards of an arm. A new arm has the index `history.num_arms`."""
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


def loss_gradient(history: History, weights: NetworkWeights, start: NetworkWeights, params: Params) -> NetworkWeights:
    """Return the gradient of the mean loss at `weights`, with theta_0 = `start`."""
    size = min(ARMS_A_BLOCK, history.points.shape[0])

    def add_block(index: Int[Array, ""], total: NetworkWeights) -> NetworkWeights:
        arms = (history.points, history.counts, history.means)
        part = jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, index * size, size), arms)
        return jax.tree.map(jnp.add, total, _squares_gradient(weights, *part))

    first = jnp.zeros((), jnp.int32)
    total = jax.tree.map(jnp.zeros_like, weights)
    if history.points.shape[0] == size:  # a single block
        total = add_block(first, total)
    else:
        total = lax.fori_loop(first, (history.num_arms + size - 1) // size, add_block, total)
    num_squares = jnp.maximum(jnp.sum(history.counts), 1)

    def mean_of_layer(fit: Array, layer: Array, start_layer: Array) -> Array:
        regularization = jnp.asarray(params.regularization, layer.dtype)
        return (fit + regularization * (layer - start_layer)) / num_squares.astype(layer.dtype)

    return jax.tree.map(mean_of_layer, total, weights, start)


def descend(
    history: History, weights: NetworkWeights, start: NetworkWeights, dims: Dims, params: Params
) -> NetworkWeights:
    """Compute theta_t from theta_{t-1} with J gradient steps of size learning_rate / w on the mean loss."""
    dtype = weights.layers[0].dtype
    step_size = jnp.asarray(params.learning_rate, dtype) / dims.width

    def step(_: Int[Array, ""], weights: NetworkWeights) -> NetworkWeights:
        slopes = loss_gradient(history, weights, start, params)
        return jax.tree.map(lambda layer, slope: layer - step_size * slope, weights, slopes)

    return lax.fori_loop(0, dims.num_steps, step, weights)


def check_rewards(feedback: Feedback) -> None:
    """Check a slot's rewards on the host."""
    rewards = np.asarray(feedback.rewards)
    counts = np.asarray(feedback.counts)
    if rewards.shape != counts.shape or rewards.ndim != 1:
        raise InvalidValueError(
            f"rewards has shape {rewards.shape} and counts has shape {counts.shape}, but both need one entry per task.",
            argument="rewards",
        )
    if counts.dtype.kind not in "iu" or np.any(counts < 0):
        raise InvalidValueError(
            f"counts={counts.tolist()} must be whole numbers of requests, at least 0 for each task.", argument="counts"
        )
    for task in np.flatnonzero((counts > 0) & ~np.isfinite(rewards)):  # the first such task is named
        raise InvalidValueError(
            f"rewards[{task}]={rewards[task]} of {counts[task]} requests must be a finite number, or it would ruin the "
            f"network. Change the reward, or set counts[{task}] to 0 to leave the task out of this slot.",
            argument="rewards",
        )


def _squares_gradient(
    weights: NetworkWeights, points: Float[Array, "A K"], counts: Int[Array, "A V"], means: Float[Array, "A V"]
) -> NetworkWeights:
    """Return the gradient of the sum of counts (f - means)^2 / 2 over some arms, which are the columns here."""
    inputs = [points.T]
    for layer in weights.layers[:-1]:
        inputs.append(jax.nn.relu(jnp.matmul(layer, inputs[-1], precision="highest")))
    root = math.sqrt(weights.layers[-1].shape[1])
    errors = root * jnp.matmul(weights.layers[-1], inputs[-1], precision="highest") - means.T
    delta = root * counts.T.astype(errors.dtype) * errors
    slopes = []  # from the last layer to the first
    for layer, activations in zip(reversed(weights.layers[1:]), reversed(inputs[1:]), strict=True):
        slopes.append(jnp.matmul(delta, activations.T, precision="highest"))
        delta = jnp.where(activations > 0, jnp.matmul(stored(layer.T), delta, precision="highest"), 0)
    slopes.append(jnp.matmul(delta, points, precision="highest"))
    return NetworkWeights(tuple(reversed(slopes)))
