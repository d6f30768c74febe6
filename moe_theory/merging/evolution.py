"""CMA-ES as a policy: a search over merging weights without a tree, a network or a look at the task mix."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from moe_theory.merging.params import Dims, Params
from moe_theory.merging.policies import Mix, Pick, Policy, PRNGKey, Slot, plain_pick
from moe_theory.merging.rewards import Feedback, slot_reward
from moe_theory.merging.tree import truncated
from moe_theory.merging.weights import existing


class Evolution(NamedTuple):
    """A normal law of logits, and the generation that is being tried, one candidate a slot."""

    exists: Bool[Array, " K"]
    mean: Float[Array, " n"]  # n = K - 1 logits: that of the first expert is 0
    scale: Float[Array, ""]  # sigma
    covariance: Float[Array, "n n"]
    root: Float[Array, "n n"]  # of the covariance
    inverse_root: Float[Array, "n n"]
    scale_path: Float[Array, " n"]
    covariance_path: Float[Array, " n"]
    moves: Float[Array, "P n"]  # of the generation, from the mean, in units of sigma
    rewards: Float[Array, " P"]  # of its candidates that have been tried
    place: Int[Array, ""]  # of the next candidate
    generation: Int[Array, ""]


@functools.lru_cache
def cma_es(scale: float = 0.5, population: int | None = None) -> Policy:
    """CMA-ES over the K - 1 logits of the weights: each slot tries one candidate, its mean reward is the candidate's.

    Source: N. Hansen, "The CMA Evolution Strategy: A Tutorial" (2016), Sec. B, with its constants and without negative
    weights.

    Args:
        scale: sigma at the beginning, where all logits are 0.
        population: candidates of a generation; 4 + 3 ln n, rounded down, unless given.

    Examples:
        >>> import jax.numpy as jnp
        >>> import moe_theory as mt
        >>> from moe_theory.merging import Dims, Params, evolution
        >>> policy, params = evolution.cma_es(), Params(num_experts=3, max_active=3)
        >>> memory = policy.begin(mt.root_key(0), Dims(max_experts=3), params)
        >>> pick = policy.choose(mt.root_key(1), memory, jnp.ones(8) / 8, jnp.array(1), params)
        >>> pick.weights.shape, round(float(pick.weights.sum()), 5)
        ((3,), 1.0)
    """

    def begin(key: PRNGKey, dims: Dims, params: Params) -> Evolution:
        num, dtype = dims.max_experts - 1, jnp.result_type(float)
        size = population or 4 + int(3 * math.log(num))
        eye, zero = jnp.eye(num, dtype=dtype), jnp.zeros(num, dtype)
        return Evolution(
            exists=existing(dims.max_experts, params.num_experts),
            mean=zero,
            scale=jnp.asarray(scale, dtype),
            covariance=eye,
            root=eye,
            inverse_root=eye,
            scale_path=zero,
            covariance_path=zero,
            moves=jax.random.normal(key, (size, num), dtype),
            rewards=jnp.zeros(size, dtype),
            place=jnp.zeros((), jnp.int32),
            generation=jnp.zeros((), jnp.int32),
        )

    def choose(key: PRNGKey, memory: Evolution, mix: Mix, time: Slot, params: Params) -> Pick:
        del key, mix, time
        logits = memory.mean + memory.scale * memory.moves[memory.place]
        logits = jnp.concatenate([jnp.zeros(1, logits.dtype), logits])
        weights = jax.nn.softmax(jnp.where(memory.exists, logits, -jnp.inf))
        return plain_pick(truncated(weights, params.max_active), memory.place, memory.rewards.shape[0])

    def learn(
        key: PRNGKey, memory: Evolution, pick: Pick, mix: Mix, feedback: Feedback, time: Slot, params: Params
    ) -> Evolution:
        del pick, mix, time, params
        memory = memory._replace(
            rewards=memory.rewards.at[memory.place].set(slot_reward(feedback)), place=memory.place + 1
        )
        return jax.lax.cond(memory.place == memory.rewards.shape[0], lambda: _next(key, memory), lambda: memory)

    return Policy(begin, choose, learn)


def _next(key: PRNGKey, memory: Evolution) -> Evolution:
    """The law after a whole generation, and the next one of its candidates."""
    size, num = memory.moves.shape
    kept = size // 2
    logs = np.log((size + 1) / 2) - np.log(np.arange(1, kept + 1))
    shares = logs / logs.sum()
    effective = 1 / np.sum(shares**2)  # mu_eff
    rate_scale = (effective + 2) / (num + effective + 5)
    damping = 1 + 2 * max(0.0, math.sqrt((effective - 1) / (num + 1)) - 1) + rate_scale
    rate_path = (4 + effective / num) / (num + 4 + 2 * effective / num)
    rate_one = 2 / ((num + 1.3) ** 2 + effective)
    rate_rank = min(1 - rate_one, 2 * (effective - 2 + 1 / effective) / ((num + 2) ** 2 + effective))
    length = math.sqrt(num) * (1 - 1 / (4 * num) + 1 / (21 * num**2))  # of a standard normal vector, expected

    best = memory.moves[jnp.argsort(-memory.rewards)[:kept]]
    step = jnp.asarray(shares, best.dtype) @ best
    generation = memory.generation + 1
    scale_path = (1 - rate_scale) * memory.scale_path + math.sqrt(rate_scale * (2 - rate_scale) * effective) * (
        memory.inverse_root @ step
    )
    size_now = jnp.linalg.norm(scale_path)
    usual = jnp.sqrt(1 - (1 - rate_scale) ** (2 * generation.astype(best.dtype)))
    is_steady = size_now / usual < (1.4 + 2 / (num + 1)) * length
    moved = math.sqrt(rate_path * (2 - rate_path) * effective) * step
    covariance_path = (1 - rate_path) * memory.covariance_path + jnp.where(is_steady, moved, 0)
    lost = jnp.where(is_steady, 0, rate_one * rate_path * (2 - rate_path))
    covariance = (
        (1 - rate_one - rate_rank + lost) * memory.covariance
        + rate_one * jnp.outer(covariance_path, covariance_path)
        + rate_rank * (best.T * jnp.asarray(shares, best.dtype)) @ best
    )
    scale = memory.scale * jnp.exp(jnp.minimum(1.0, rate_scale / damping * (size_now / length - 1)))
    values, vectors = jnp.linalg.eigh(covariance)
    roots = jnp.sqrt(jnp.maximum(values, 1e-12))
    root, inverse_root = (vectors * roots) @ vectors.T, (vectors / roots) @ vectors.T
    return memory._replace(
        mean=memory.mean + memory.scale * step,
        scale=scale,
        covariance=covariance,
        root=root,
        inverse_root=inverse_root,
        scale_path=scale_path,
        covariance_path=covariance_path,
        moves=jax.random.normal(key, memory.moves.shape, memory.moves.dtype) @ root,
        rewards=jnp.zeros_like(memory.rewards),
        place=jnp.zeros_like(memory.place),
        generation=generation,
    )
