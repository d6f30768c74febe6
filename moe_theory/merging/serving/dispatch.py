"""Three builds of one and the same sparse layer: how tokens get to the experts that their router chose.

All take every token's k experts and gates, and give the gated sum of those experts' outputs. They differ in cost, and
`with_capacity` also in what becomes of tokens that an expert has no room for.
"""

import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from moe_theory.merging.testbed.transformer import Experts

CAPACITY_FACTOR = 1.25  # Switch's own, of an even share

# (experts, tokens, chosen, gates) -> outputs
Dispatch = Callable[
    [Experts, Float[Array, "N d"], Int[Array, "N k"], Float[Array, "N k"]],
    Float[Array, "N d"],
]


def with_capacity(
    experts: Experts,
    tokens: Float[Array, "N d"],
    chosen: Int[Array, "N k"],
    gates: Float[Array, "N k"],
    factor: float = CAPACITY_FACTOR,
) -> Float[Array, "N d"]:
    """Every expert computes a buffer of `capacity` tokens; those beyond it get 0, so that only the residual passes.

    First choices come before second ones, earlier tokens before later ones.

    Source: Switch Transformer, Sec. 2.2 (one choice); GShard, Algorithm 1 (several).
    """
    num_tokens, num_choices = chosen.shape
    num_experts = experts.b_out.shape[0]
    size = capacity(num_tokens, num_choices, num_experts, factor)
    place = places(chosen, num_experts)
    nowhere = num_experts * size
    slot = jnp.where(place < size, chosen * size + place, nowhere)  # (N, k)
    rows = jnp.broadcast_to(jnp.arange(num_tokens, dtype=jnp.int32)[:, None], chosen.shape)
    held = jnp.full(nowhere, num_tokens, jnp.int32).at[slot.reshape(-1)].set(rows.reshape(-1), mode="drop")
    buffers = jnp.take(tokens, held, axis=0, mode="fill", fill_value=0).reshape(num_experts, size, -1)
    hidden = jax.nn.relu(buffers @ experts.w_in + experts.b_in[:, None])
    outputs = (hidden @ experts.w_out + experts.b_out[:, None]).reshape(nowhere, -1)
    back = [jnp.take(outputs, slot[:, j], axis=0, mode="fill", fill_value=0) for j in range(num_choices)]
    return sum(gates[:, j, None] * part for j, part in enumerate(back))  # pyright: ignore[reportReturnType]


def capacity(num_tokens: int, num_choices: int, num_experts: int, factor: float = CAPACITY_FACTOR) -> int:
    """Tokens that an expert has room for: `factor` times an even share, rounded up, and never more than there are."""
    return min(num_tokens, math.ceil(factor * num_tokens * num_choices / num_experts))


def places(chosen: Int[Array, "N k"], num_experts: int) -> Int[Array, "N k"]:
    """How many come before each token at the expert of each of its choices."""
    num_tokens, num_choices = chosen.shape
    queue = chosen.T.reshape(-1)
    waiting = jnp.cumsum(jax.nn.one_hot(queue, num_experts, dtype=jnp.int32), axis=0, dtype=jnp.int32)
    before = jnp.take_along_axis(waiting, queue[:, None], axis=1) - 1
    return before.reshape(num_choices, num_tokens).T


def dense(
    experts: Experts, tokens: Float[Array, "N d"], chosen: Int[Array, "N k"], gates: Float[Array, "N k"]
) -> Float[Array, "N d"]:
    """All experts compute all tokens, and gates of 0 leave out what was not chosen."""
    return gated(experts, tokens, gate_matrix(chosen, gates, experts.b_out.shape[0]))


def gated(experts: Experts, tokens: Float[Array, "N d"], gates: Float[Array, "N K"]) -> Float[Array, "N d"]:
    """The sum of all experts' outputs, each times its own gate."""
    hidden = jax.nn.relu(jnp.einsum("nd,kdf->knf", tokens, experts.w_in) + experts.b_in[:, None])
    outputs = jnp.einsum("knf,kfd->knd", hidden, experts.w_out) + experts.b_out[:, None]
    return jnp.einsum("nk,knd->nd", gates, outputs)


def gate_matrix(chosen: Int[Array, "N k"], gates: Float[Array, "N k"], num_experts: int) -> Float[Array, "N K"]:
    """Every expert's gate, 0 for those that were not chosen."""
    return jnp.einsum("nj,njk->nk", gates, jax.nn.one_hot(chosen, num_experts, dtype=gates.dtype))


def ragged(
    experts: Experts, tokens: Float[Array, "N d"], chosen: Int[Array, "N k"], gates: Float[Array, "N k"]
) -> Float[Array, "N d"]:
    """Tokens are sorted by expert, and each expert computes its own rows (`jax.lax.ragged_dot`): none is dropped."""
    num_tokens, num_choices = chosen.shape
    queue = chosen.reshape(-1)
    order = jnp.argsort(queue, stable=True)
    expert = queue[order]
    sizes = jnp.bincount(queue, length=experts.b_out.shape[0]).astype(jnp.int32)
    rows = tokens[order // num_choices]
    hidden = jax.nn.relu(jax.lax.ragged_dot(rows, experts.w_in, sizes) + experts.b_in[expert])
    outputs = jax.lax.ragged_dot(hidden, experts.w_out, sizes) + experts.b_out[expert]
    back = jnp.zeros_like(outputs).at[order].set(outputs, unique_indices=True)
    return jnp.einsum("nj,njd->nd", gates, back.reshape(num_tokens, num_choices, -1))


BUILDS: dict[str, Dispatch] = {"capacity": with_capacity, "dense": dense, "ragged": ragged}


def ample(num_experts: int) -> Dispatch:
    """`with_capacity` with room for any token at any expert: nothing is dropped."""
    return functools.partial(with_capacity, factor=float(num_experts))
