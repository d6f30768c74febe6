"""Tanbr, Algorithm 1: a tree of candidate weights and a neural bandit that picks among its leaves.

The policy's functions are pure and need no `System`: a loop of your own calls them with what it observes.

    policy = tanbr(dims)
    memory = policy.begin(key, dims, params)
    choose, learn = jax.jit(policy.choose), jax.jit(policy.learn)
    for t in range(1, num_slots + 1):
        now, later = jax.random.split(jax.random.fold_in(key, t))
        mix = ...                                               # psi_t, estimated shares of the tasks (V,)
        pick = choose(now, memory, mix, t, params)
        rewards, counts = serve_a_slot_with(pick.weights)       # mean reward and number of requests of each task
        feedback = Feedback(jnp.asarray(rewards), jnp.asarray(counts))
        history.check_rewards(feedback)                         # a compiled `learn` could only leave bad ones out
        memory = learn(later, memory, pick, mix, feedback, t, params)

What is not in the paper: `Params.warm_start` adds weights equal to the task mix to the candidates. They are picked in
the first slots, then compete by their own bound, which needs no term for a leaf's size.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from moe_theory.merging import neural, tree
from moe_theory.merging import uncertainty as uncertainties
from moe_theory.merging.neural import Learner
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.policy import Feedback, Pick, Policy
from moe_theory.merging.tree import Tree
from moe_theory.merging.weights import like_tasks

WARM_SLOTS = 10  # in which a warm start picks weights equal to the task mix


class Memory(NamedTuple):
    """What Tanbr carries from slot to slot."""

    learner: Learner
    tree: Tree
    arms: Int[Array, " C"]  # the arm that a leaf's candidate is in the history; -1 before its first pull


@functools.lru_cache
def tanbr(dims: Dims, uncertainty: str = uncertainties.EXACT) -> Policy:
    """Tanbr for these sizes, with Z in one of the forms of `uncertainty.UNCERTAINTIES`.

    Candidates are the rows of the tree, of which those that hold an active leaf can be picked, and, behind them, the
    warm start's. Of equal bounds the first wins.
    Raises: UnknownNameError for a form there is not.
    """
    form = uncertainties.named(uncertainty, dims)

    def begin(key: Key[Array, ""], dims: Dims, params: Params) -> Memory:
        network_key, tree_key = jax.random.split(key)
        learner = neural.begin(network_key, form, dims, params)
        return Memory(learner, tree.begin(tree_key, dims, params), jnp.full((dims.max_leaves,), -1, jnp.int32))

    def choose(
        key: Key[Array, ""], memory: Memory, mix: Float[Array, " V"], time: Int[Array, ""], params: Params
    ) -> Pick:
        del key
        leaves = memory.tree
        is_warm = jnp.asarray(params.warm_start, bool)
        like_mix = tree.truncated(like_tasks(mix, dims.max_experts), params.max_active)
        points = jnp.concatenate([leaves.point, like_mix.astype(leaves.point.dtype)[None]])
        can_be_picked = jnp.append(leaves.active, is_warm)
        predictions, bonuses = neural.judge(form, memory.learner, points, can_be_picked, mix, time, dims, params)
        sizes = jnp.append(tree.leaf_terms(leaves.depth, params).astype(predictions.dtype), 0)
        bounds = jnp.where(can_be_picked, predictions + sizes + bonuses, -jnp.inf)
        first = is_warm & (time <= WARM_SLOTS)
        candidate = jnp.where(first, dims.max_leaves, jnp.argmax(bounds)).astype(jnp.int32)
        return Pick(
            weights=points[candidate],
            candidate=candidate,
            num_candidates=jnp.sum(can_be_picked, dtype=jnp.int32),
            depth=jnp.append(leaves.depth, 0)[candidate],
            max_depth=jnp.max(jnp.where(leaves.active, leaves.depth, 0)),
            bonus=bonuses[candidate],
            prediction=predictions[candidate],
            left_out=leaves.left_out,
        )

    def learn(
        key: Key[Array, ""],
        memory: Memory,
        pick: Pick,
        mix: Float[Array, " V"],
        feedback: Feedback,
        time: Int[Array, ""],
        params: Params,
    ) -> Memory:
        is_leaf = pick.candidate < dims.max_leaves
        leaf = jnp.where(is_leaf, pick.candidate, 0)
        known = jnp.where(is_leaf, memory.arms[leaf], -1)
        arm = jnp.where(known >= 0, known, memory.learner.history.num_arms)
        learner = neural.learn(form, memory.learner, arm, pick.weights, mix, feedback, dims, params)
        pulled, split = tree.pulled(key, memory.tree, leaf, jnp.asarray(time, jnp.int32), params)
        arms = memory.arms.at[leaf].set(jnp.where(split.happened, -1, arm))
        leaves, arms = jax.tree.map(
            lambda new, old: jnp.where(is_leaf, new, old), (pulled, arms), (memory.tree, memory.arms)
        )
        return Memory(learner, leaves, arms)

    return Policy(begin, choose, learn)
