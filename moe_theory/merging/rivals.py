"""Plain policies beside Tanbr: weights that learn nothing, a bandit over single experts, a policy gradient.

All are for one replicate, without a network or a tree; what a `Pick` says of those is 0.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory.core.gating import best_expert
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.policy import Feedback, Pick, Policy, slot_reward
from moe_theory.merging.rewards import check_experts
from moe_theory.merging.tree import truncated
from moe_theory.merging.weights import equal_weights, existing, like_tasks, uniform_weights

GRADIENT_NOISE = 0.5  # deviation of the logits about their mean
GRADIENT_RATE = 0.3  # step on the logits' weights
BASELINE_RATE = 0.05  # weight of the last slot in the baseline


class Exists(NamedTuple):
    """The memory of a policy that learns nothing: which of the padded experts there are."""

    exists: Bool[Array, " K"]


class Tries(NamedTuple):
    """Rewards of single experts."""

    exists: Bool[Array, " K"]
    counts: Int[Array, " K"]
    sums: Float[Array, " K"]  # of a slot's mean reward


class Logits(NamedTuple):
    """A softmax router that is linear in the task mix."""

    exists: Bool[Array, " K"]
    weights: Float[Array, "K V+1"]  # the last column multiplies a constant 1
    baseline: Float[Array, ""]  # moving average of rewards
    noise: Float[Array, " K"]  # of the next slot's logits, standard normal


def pick_of(weights: Float[Array, " K"], candidate: Int[Array, ""] | None = None, num_candidates: int = 1) -> Pick:
    """A pick by a policy that has neither tree nor network."""
    zero, none = jnp.zeros((), weights.dtype), jnp.zeros((), jnp.int32)
    return Pick(
        weights=weights,
        candidate=none if candidate is None else candidate,
        num_candidates=jnp.asarray(num_candidates, jnp.int32),
        depth=none,
        max_depth=none,
        bonus=zero,
        prediction=zero,
        left_out=none,
    )


def _begin(key: Key[Array, ""], dims: Dims, params: Params) -> Exists:
    del key
    return Exists(existing(dims.max_experts, params.num_experts))


def _unchanged(
    key: Key[Array, ""],
    memory: Exists,
    pick: Pick,
    mix: Float[Array, " V"],
    feedback: Feedback,
    time: Int[Array, ""],
    params: Params,
) -> Exists:
    del key, pick, mix, feedback, time, params
    return memory


def _choose_uniform(
    key: Key[Array, ""], memory: Exists, mix: Float[Array, " V"], time: Int[Array, ""], params: Params
) -> Pick:
    """Uniform on the simplex, the B largest kept."""
    del mix, time
    return pick_of(truncated(uniform_weights(key, memory.exists), params.max_active))


def _choose_average(
    key: Key[Array, ""], memory: Exists, mix: Float[Array, " V"], time: Int[Array, ""], params: Params
) -> Pick:
    """1/K each, or 1/B for the first B."""
    del key, mix, time
    return pick_of(truncated(equal_weights(memory.exists), params.max_active))


def _begin_mix(key: Key[Array, ""], dims: Dims, params: Params) -> Exists:
    check_experts("policy 'mix'", dims, params)
    return _begin(key, dims, params)


def _choose_mix(
    key: Key[Array, ""], memory: Exists, mix: Float[Array, " V"], time: Int[Array, ""], params: Params
) -> Pick:
    """x = psi: expert v has the share of task v, which takes no learning."""
    del key, time
    return pick_of(truncated(like_tasks(mix, memory.exists.shape[0]), params.max_active))


def _begin_tries(key: Key[Array, ""], dims: Dims, params: Params) -> Tries:
    del key
    exists = existing(dims.max_experts, params.num_experts)
    return Tries(exists, jnp.zeros(exists.shape, jnp.int32), jnp.zeros(exists.shape, jnp.result_type(float)))


def _choose_expert(
    key: Key[Array, ""], memory: Tries, mix: Float[Array, " V"], time: Int[Array, ""], params: Params
) -> Pick:
    """UCB1: mean + (2 log t / n)^(1/2), for rewards in [0, 1]; untried experts first.

    Source: Auer, Cesa-Bianchi and Fischer, 2002.
    """
    del key, mix
    tries = memory.counts.astype(memory.sums.dtype)
    known = jnp.maximum(tries, 1)
    bonus = jnp.sqrt(2 * jnp.log(time.astype(tries.dtype)) / known)
    scores = jnp.where(tries > 0, memory.sums / known + bonus, jnp.inf)
    index, is_best = best_expert(scores, memory.exists)
    num_experts = jnp.sum(memory.exists, dtype=jnp.int32)
    pick = pick_of(is_best.astype(tries.dtype), index)
    del params
    return pick._replace(num_candidates=num_experts)


def _learn_tries(
    key: Key[Array, ""],
    memory: Tries,
    pick: Pick,
    mix: Float[Array, " V"],
    feedback: Feedback,
    time: Int[Array, ""],
    params: Params,
) -> Tries:
    del key, mix, time, params
    is_tried = jnp.arange(memory.counts.shape[0], dtype=jnp.int32) == pick.candidate
    sums = memory.sums + jnp.where(is_tried, slot_reward(feedback), 0)
    return Tries(memory.exists, memory.counts + is_tried.astype(jnp.int32), sums)


def _begin_logits(key: Key[Array, ""], dims: Dims, params: Params) -> Logits:
    exists, dtype = existing(dims.max_experts, params.num_experts), jnp.result_type(float)
    weights = jnp.zeros((dims.max_experts, dims.num_tasks + 1), dtype)
    return Logits(exists, weights, jnp.zeros((), dtype), jax.random.normal(key, exists.shape, dtype))


def _choose_softmax(
    key: Key[Array, ""], memory: Logits, mix: Float[Array, " V"], time: Int[Array, ""], params: Params
) -> Pick:
    """x = softmax(W (psi, 1) + noise), the B largest kept. The noise is in the memory, as its gradient needs it."""
    del key, time
    logits = jnp.sum(memory.weights * _with_constant(mix), axis=1) + GRADIENT_NOISE * memory.noise
    weights = jax.nn.softmax(jnp.where(memory.exists, logits, -jnp.inf))
    return pick_of(truncated(weights, params.max_active))


def _learn_softmax(
    key: Key[Array, ""],
    memory: Logits,
    pick: Pick,
    mix: Float[Array, " V"],
    feedback: Feedback,
    time: Int[Array, ""],
    params: Params,
) -> Logits:
    """A step along (r - baseline) grad log p(logits), of a Gaussian: noise / deviation times (psi, 1).

    Source: Williams, 1992, REINFORCE with a baseline. The paper's own RL rival routes tokens (Sec. V-A).
    """
    del pick, params
    reward = slot_reward(feedback)
    gain = jnp.where(time > 1, reward - memory.baseline, 0)
    score = jnp.where(memory.exists, memory.noise, 0) / GRADIENT_NOISE
    rate = jnp.where(time > 1, BASELINE_RATE, 1).astype(reward.dtype)
    return Logits(
        exists=memory.exists,
        weights=memory.weights + GRADIENT_RATE * gain * score[:, None] * _with_constant(mix),
        baseline=memory.baseline + rate * (reward - memory.baseline),
        noise=jax.random.normal(key, memory.noise.shape, memory.noise.dtype),
    )


def _with_constant(mix: Float[Array, " V"]) -> Float[Array, "1 V+1"]:
    return jnp.concatenate([mix, jnp.ones((1,), mix.dtype)])[None, :]


UNIFORM = Policy(_begin, _choose_uniform, _unchanged)
AVERAGE = Policy(_begin, _choose_average, _unchanged)
MIX = Policy(_begin_mix, _choose_mix, _unchanged)
BEST_EXPERT = Policy(_begin_tries, _choose_expert, _learn_tries)
GRADIENT = Policy(_begin_logits, _choose_softmax, _learn_softmax)
