"""The tasks that come: the shares in which they do, which drift or do not, and the requests of a slot."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from moe_theory.core.numerics import Scalar
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.weights import log_gammas

BLOCK = 128  # requests that are drawn together


class Tasks(NamedTuple):
    """What decides the mix of every slot, drawn once a replicate."""

    log_weights: Float[Array, " V"]
    phases: Float[Array, " V"]  # where in its period a task's drift begins, in radians


def draw_tasks(key: Key[Array, ""], dims: Dims, params: Params) -> Tasks:
    """A Dirichlet mix of concentration `mix_concentration`, and phases uniform on the circle."""
    weights_key, phases_key = jax.random.split(key)
    return Tasks(
        log_weights=log_gammas(weights_key, dims.num_tasks, params.mix_concentration),
        phases=2 * jnp.pi * jax.random.uniform(phases_key, (dims.num_tasks,), jnp.result_type(float)),
    )


def mix_of(tasks: Tasks, time: Int[Array, ""], params: Params) -> Float[Array, " V"]:
    """psi_t = softmax(log-weights + drift sin(2 pi t / period + phase)), a function of the slot's number alone.

    Without drift it is the Dirichlet draw itself; a drift of 1 multiplies shares, before they are normalised, by up
    to e, and divides them by as much half a period later.
    """
    dtype = tasks.phases.dtype
    turns = time.astype(dtype) / jnp.asarray(params.mix_period, dtype)
    moved = jnp.asarray(params.mix_drift, dtype) * jnp.sin(2 * jnp.pi * turns + tasks.phases)
    return jax.nn.softmax(tasks.log_weights + moved)


def draw_counts(key: Key[Array, ""], mix: Float[Array, " V"], slot_size: Int[Scalar, ""]) -> Int[Array, " V"]:
    """Requests of each task among `slot_size`, multinomial with shares `mix`.

    Each request is drawn, in blocks: their number is traced, and a binomial of a traced number costs a rejection loop
    a task.
    """
    size = jnp.asarray(slot_size, jnp.int32)
    edges = jnp.cumsum(mix)[:-1]

    def add_block(block: Int[Array, ""], below: Int[Array, " V-1"]) -> Int[Array, " V-1"]:
        uniforms = jax.random.uniform(jax.random.fold_in(key, block), (BLOCK,), mix.dtype)
        is_request = block * BLOCK + jnp.arange(BLOCK, dtype=jnp.int32) < size
        is_below = is_request[:, None] & (uniforms[:, None] < edges)
        return below + jnp.sum(is_below, axis=0, dtype=jnp.int32)

    num_blocks = (size + (BLOCK - 1)) // BLOCK
    below = jax.lax.fori_loop(jnp.int32(0), num_blocks, add_block, jnp.zeros(edges.shape, jnp.int32))
    return jnp.diff(below, prepend=jnp.int32(0), append=size)
