"""Rewards seen, by the weights that they were seen of, and the gradient steps of Algorithm 1, line 14.

Weights are tried again and again: a leaf keeps its point. The sum over slots of (f_v(x_s) - r_{s,v})^2 is, up to what
theta does not change, one over distinct arms of the number of slots in which task v was present times (f_v(x) - mean
reward)^2, so that steps cost what there are arms.

The paper's loss is a sum over slots, L = sum_s |f(x_s) - r_s|^2 / 2 + lambda / 2 |theta - theta_0|^2, whose steps grow
with t: at the paper's widths and step sizes they soon throw every ReLU to where it is 0 for good, without a word. Here
L is divided by the number n of its squares, pairs of a slot and a task that was present in it: the mean loss, with
lambda / n. A step of learning_rate / w on it is the paper's with eta = learning_rate / (n w). `network.dead_units`
tells whether a network has died.

A task without requests in a slot has no reward in it. A reward that is not finite is refused by `check_rewards` on the
host; inside a compiled program it is left out, as if the task had been absent, and counted in `unusable`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from moe_theory.core.errors import InvalidRewardError
from moe_theory.merging import network
from moe_theory.merging.network import Weights
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.policy import Feedback

ARMS_A_BLOCK = 256  # steps pay for the blocks of arms that there are, not for those to come


class History(NamedTuple):
    """Arms in the order in which they were first tried; a slot tries at most one that is new, so there is room."""

    points: Float[Array, "A K"]  # weights
    counts: Int[Array, "A V"]  # slots that an arm was tried in with a usable reward of the task
    means: Float[Array, "A V"]  # of these rewards
    num_arms: Int[Array, ""]
    unusable: Int[Array, ""]  # rewards that were not finite, so far


def begin(dims: Dims) -> History:
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
    errors = network.outputs(weights, points) - means
    return jnp.sum(counts.astype(errors.dtype) * jnp.square(errors)) / 2
