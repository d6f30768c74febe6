"""Routing: linear routers that see tokens, examples or task tags, and sparse and soft MoE layers.

The sparse builds (`SPARSE_BUILDS`) return the gated sum over every token's k experts. Only `with_capacity` drops
surplus tokens. In soft merging (SMEAR), every example or token has its own merged expert, E(u; sum_k x_k W_k). The
merge may act on the inputs of the K linear maps (`by_linearity`) or on the parameters, as printed (`materialised`).

Source: M. Muqeeth, H. Liu, C. Raffel, "Soft Merging of Experts with Adaptive Routing", 2023, Sec. 3.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from moe_theory.merging.testbed.transformer import Experts, MoE

CAPACITY_FACTOR = 1.25  # buffer per expert relative to an even share, as in Switch

Tokens = Float[Array, "N d"]
Indices = Int[Array, "N k"]  # indices of each token's experts
Gates = Float[Array, "N k"]
Dispatch = Callable[[Experts, Tokens, Indices, Gates], Tokens]  # (experts, tokens, indices, gates) -> outputs


def with_capacity(
    experts: Experts, tokens: Tokens, indices: Indices, gates: Gates, factor: float = CAPACITY_FACTOR
) -> Tokens:
    """Compute at most `capacity` tokens at each expert. Other tokens get 0, so that only their residual passes.

    First choices and earlier tokens have priority.

    Source: Switch Transformer, Sec. 2.2 (one choice), and GShard, Algorithm 1 (several).
    """
    num_tokens, num_choices = indices.shape
    num_experts = experts.b_out.shape[0]
    size = capacity(num_tokens, num_choices, num_experts, factor)
    place = places(indices, num_experts)
    num_slots = num_experts * size
    slot = jnp.where(place < size, indices * size + place, num_slots)  # (N, k), `num_slots` for a dropped token
    rows = jnp.broadcast_to(jnp.arange(num_tokens, dtype=jnp.int32)[:, None], indices.shape)
    empty = jnp.full(num_slots, num_tokens, jnp.int32)  # no token has this row, so it reads as 0
    row_of_slot = empty.at[slot.reshape(-1)].set(rows.reshape(-1), mode="drop")
    buffers = jnp.take(tokens, row_of_slot, axis=0, mode="fill", fill_value=0).reshape(num_experts, size, -1)
    hidden = jax.nn.relu(buffers @ experts.w_in + experts.b_in[:, None])
    outputs = (hidden @ experts.w_out + experts.b_out[:, None]).reshape(num_slots, -1)
    by_choice = [jnp.take(outputs, slot[:, j], axis=0, mode="fill", fill_value=0) for j in range(num_choices)]
    return sum(gates[:, j, None] * part for j, part in enumerate(by_choice))  # pyright: ignore[reportReturnType]


def capacity(num_tokens: int, num_choices: int, num_experts: int, factor: float = CAPACITY_FACTOR) -> int:
    """Return how many tokens an expert takes: `factor` times an even share, rounded up."""
    return min(num_tokens, math.ceil(factor * num_tokens * num_choices / num_experts))


def places(indices: Int[Array, "N k"], num_experts: int) -> Int[Array, "N k"]:
    """Return the number of tokens before each token at each of its experts."""
    num_tokens, num_choices = indices.shape
    queue = indices.T.reshape(-1)  # all first choices, then all second choices, and so on
    waiting = jnp.cumsum(jax.nn.one_hot(queue, num_experts, dtype=jnp.int32), axis=0, dtype=jnp.int32)
    before = jnp.take_along_axis(waiting, queue[:, None], axis=1) - 1
    return before.reshape(num_choices, num_tokens).T


def dense(experts: Experts, tokens: Tokens, indices: Indices, gates: Gates) -> Tokens:
    """Compute all tokens at all experts, with gates of 0 for experts that were not chosen."""
    is_chosen = jax.nn.one_hot(indices, experts.b_out.shape[0], dtype=gates.dtype)
    return gated(experts, tokens, jnp.einsum("nj,njk->nk", gates, is_chosen))


def gated(experts: Experts, tokens: Tokens, gates: Float[Array, "N K"]) -> Tokens:
    hidden = jax.nn.relu(jnp.einsum("nd,kdf->knf", tokens, experts.w_in) + experts.b_in[:, None])
    outputs = jnp.einsum("knf,kfd->knd", hidden, experts.w_out) + experts.b_out[:, None]
    return jnp.einsum("nk,knd->nd", gates, outputs)


def ragged(experts: Experts, tokens: Tokens, indices: Indices, gates: Gates) -> Tokens:
    """Sort tokens by expert and compute each expert's rows (`jax.lax.ragged_dot`), without drops."""
    num_tokens, num_choices = indices.shape
    queue = indices.reshape(-1)
    order = jnp.argsort(queue, stable=True)
    expert_of_row = queue[order]
    sizes = jnp.bincount(queue, length=experts.b_out.shape[0]).astype(jnp.int32)
    rows = tokens[order // num_choices]
    hidden = jax.nn.relu(jax.lax.ragged_dot(rows, experts.w_in, sizes) + experts.b_in[expert_of_row])
    outputs = jax.lax.ragged_dot(hidden, experts.w_out, sizes) + experts.b_out[expert_of_row]
    unsorted = jnp.zeros_like(outputs).at[order].set(outputs, unique_indices=True)
    return jnp.einsum("nj,njd->nd", gates, unsorted.reshape(num_tokens, num_choices, -1))


SPARSE_BUILDS: dict[str, Dispatch] = {"capacity": with_capacity, "dense": dense, "ragged": ragged}

Groups = Float[Array, "g t d"]  # groups of tokens, each with its own merged expert
GroupWeights = Float[Array, "g K"]
SoftMerge = Callable[[Experts, Groups, GroupWeights], Groups]


def by_linearity(experts: Experts, tokens: Groups, weights: GroupWeights) -> Groups:
    """Return sum_k (x_k u) W_k in both layers, with K times the work of one expert but no merged parameters."""
    hidden = jax.nn.relu(_weighted_map(tokens, weights, experts.w_in) + (weights @ experts.b_in)[:, None])
    return _weighted_map(hidden, weights, experts.w_out) + (weights @ experts.b_out)[:, None]


def materialised(experts: Experts, tokens: Groups, weights: GroupWeights) -> Groups:
    """Build one merged expert for each of the g groups, with g times the parameters of an expert."""
    merged = Experts(*(jnp.tensordot(weights, part, axes=1) for part in experts))
    hidden = jax.nn.relu(jnp.einsum("gtd,gdf->gtf", tokens, merged.w_in) + merged.b_in[:, None])
    return jnp.einsum("gtf,gfd->gtd", hidden, merged.w_out) + merged.b_out[:, None]


def _weighted_map(
    inputs: Float[Array, "g t i"], weights: GroupWeights, maps: Float[Array, "K i o"]
) -> Float[Array, "g t o"]:
    copies = weights[:, None, :, None] * inputs[:, :, None, :]
    return copies.reshape(*inputs.shape[:2], -1) @ maps.reshape(-1, maps.shape[-1])


SOFT_BUILDS: dict[str, SoftMerge] = {"linear": by_linearity, "materialised": materialised}

TOKEN = "token"
EXAMPLE = "example"
TASK = "task"
SOFT = 0  # in place of a number of active experts: a merge of all experts


class Router(NamedTuple):
    """A linear map of one layer, from a token's features, an example's mean features, or V tags."""

    weights: Float[Array, "i K"]
    bias: Float[Array, " K"]


Routers = tuple[Router, ...]  # one per layer


class Kind(NamedTuple):
    """Level of routing, number of experts, and the router's training."""

    level: str  # TOKEN, EXAMPLE or TASK
    num_active: int = SOFT  # k, or SOFT
    is_reinforced: bool = False  # learned by REINFORCE from right answers, with one expert per token and no gates


KINDS = {
    **{f"token-top-{k}": Kind(TOKEN, k) for k in (1, 2, 3)},
    **{f"task-top-{k}": Kind(TASK, k) for k in (1, 2, 3)},
    "rl": Kind(TOKEN, 1, is_reinforced=True),
    "smear-token": Kind(TOKEN),
    "smear-example": Kind(EXAMPLE),
}


def logits(
    router: Router, kind: Kind, tokens: Float[Array, "n t d"], tags: Int[Array, " n"] | None
) -> Float[Array, "n g K"]:
    """Return a router's logits for every token (g = t), or for every example or its tag (g = 1)."""
    if kind.level == TASK:
        assert tags is not None
        return (router.weights[tags] + router.bias)[:, None]
    routed = tokens if kind.level == TOKEN else jnp.mean(tokens, axis=1, keepdims=True)
    return routed @ router.weights + router.bias


def choose(kind: Kind, scores: Float[Array, "*n K"]) -> tuple[Int[Array, "*n k"], Float[Array, "*n k"]]:
    """Return the k most likely experts and their gates, a softmax among these k, which is 1 for a single expert.

    Source: Shazeer et al., 2017, Eq. (3) to (5).
    """
    remaining = scores
    experts_chosen = []
    for _ in range(kind.num_active):  # a loop, which is faster than a sort for so few experts
        experts_chosen.append(jnp.argmax(remaining, axis=-1).astype(jnp.int32))
        remaining = jnp.where(jax.nn.one_hot(experts_chosen[-1], scores.shape[-1], dtype=bool), -jnp.inf, remaining)
    experts = jnp.stack(experts_chosen, axis=-1)
    return experts, jax.nn.softmax(jnp.take_along_axis(scores, experts, axis=-1))


def sparse(routers: Routers, kind: Kind, dispatch: Dispatch, tags: Int[Array, " n"] | None = None) -> MoE:
    """Send every token to the k experts that the router chooses for it, or for its example's tag."""

    def moe(experts: Experts, tokens: Float[Array, "n t d"], layer: int) -> Float[Array, "n t d"]:
        indices, gates = choose(kind, logits(routers[layer], kind, tokens, tags))
        shape = (*tokens.shape[:2], kind.num_active)
        flat_indices = jnp.broadcast_to(indices, shape).reshape(-1, kind.num_active)
        flat_gates = jnp.broadcast_to(gates, shape).reshape(-1, kind.num_active)
        outputs = dispatch(experts, tokens.reshape(-1, tokens.shape[-1]), flat_indices, flat_gates)
        return outputs.reshape(tokens.shape)

    return moe


def soft(routers: Routers, kind: Kind, build: SoftMerge, tags: Int[Array, " n"] | None = None) -> MoE:
    """Merge all experts for every token or example, or for an example's tag."""

    def moe(experts: Experts, tokens: Float[Array, "n t d"], layer: int) -> Float[Array, "n t d"]:
        weights = jax.nn.softmax(logits(routers[layer], kind, tokens, tags))
        groups = tokens.reshape(-1, tokens.shape[1] // weights.shape[1], tokens.shape[-1])
        return build(experts, groups, weights.reshape(-1, weights.shape[-1])).reshape(tokens.shape)

    return moe


def of_one_task(routers: Routers, kind: Kind, tags: Int[Array, " n"]) -> MoE:
    """Send all tokens to the k experts of the first example's task."""

    def moe(experts: Experts, tokens: Float[Array, "n t d"], layer: int) -> Float[Array, "n t d"]:
        indices, gates = choose(kind, logits(routers[layer], kind, tokens[:1], tags[:1])[0, 0])
        active_experts = Experts(*(part[indices] for part in experts))
        flat = tokens.reshape(-1, tokens.shape[-1])
        hidden = jax.nn.relu(flat @ active_experts.w_in + active_experts.b_in[:, None])
        outputs = hidden @ active_experts.w_out + active_experts.b_out[:, None]
        return jnp.tensordot(gates, outputs, axes=1).reshape(tokens.shape)

    return moe


def zeros(kind: Kind, widths: Sequence[int], num_experts: int, num_tasks: int) -> Routers:
    sizes = [num_tasks if kind.level == TASK else width for width in widths]
    bias = jnp.zeros(num_experts, jnp.float32)
    return tuple(Router(weights=jnp.zeros((size, num_experts), jnp.float32), bias=bias) for size in sizes)
