"""What a policy is: how merging weights are chosen for a slot and what is learnt from its rewards.

A policy knows the tasks' mix as the monitor estimates it, and the mean reward of each task that was present. It is
written for one replicate, as a system is. Weights are of the padded number of experts (K,): 0 beyond `num_experts`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from moe_theory.merging.params import Dims, Params

Memory = Any  # a NamedTuple of arrays, whose structure and types no slot changes


class Feedback(NamedTuple):
    """What is observed of a slot.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import merging
        >>> merging.Feedback(rewards=np.array([0.75, 0.0]), counts=np.array([8, 0])).counts.sum().item()
        8
    """

    rewards: Float[Array, " V"]  # mean reward of each task's requests, in [0, 1] up to noise; 0 where there were none
    counts: Int[Array, " V"]  # requests of each task


def slot_reward(feedback: Feedback) -> Float[Array, ""]:
    """The mean reward of a slot's requests, which need not know their tasks."""
    counts = feedback.counts.astype(feedback.rewards.dtype)
    return jnp.sum(counts * feedback.rewards) / jnp.sum(counts)


class Pick(NamedTuple):
    """Weights chosen for a slot, and why."""

    weights: Float[Array, " K"]  # x_t on the simplex, at most B of them above 0
    candidate: Int[Array, ""]  # its place among the policy's candidates; 0 for a policy that has but one
    num_candidates: Int[Array, ""]  # N_t; 1 for a policy that has but one
    depth: Int[Array, ""]  # h_t of the leaf it is from; 0 without a tree
    max_depth: Int[Array, ""]  # H(t) of the tree; 0 without one
    bonus: Float[Array, ""]  # gamma |g / sqrt(w)| in the norm of Z^-1, the last term of (4); 0 without a network
    prediction: Float[Array, ""]  # psi' f(x, theta); 0 without a network
    left_out: Int[Array, ""]  # splits that the tree had no room for, so far


class Policy(NamedTuple):
    """How weights are chosen; equal arguments must build equal (hashable) policies.

    Examples:
        >>> import jax.numpy as jnp
        >>> import moe_theory as mt
        >>> from moe_theory import merging
        >>> dims, params = merging.Dims(max_experts=2, num_tasks=2), merging.Params(num_experts=2, max_active=2)
        >>> policy, key = merging.policies.named("average", dims), mt.root_key(0)
        >>> mix, slot = jnp.array([0.5, 0.5]), jnp.array(1)
        >>> pick = policy.choose(key, policy.begin(key, dims, params), mix, slot, params)
        >>> pick.weights.tolist()
        [0.5, 0.5]
    """

    begin: Callable[[Key[Array, ""], Dims, Params], Memory]
    choose: Callable[[Key[Array, ""], Memory, Float[Array, " V"], Int[Array, ""], Params], Pick]  # (.., mix, t, ..)
    # (key, memory, pick, mix, feedback, t, params); t is the slot's own number, from 1
    learn: Callable[[Key[Array, ""], Memory, Pick, Float[Array, " V"], Feedback, Int[Array, ""], Params], Memory]
