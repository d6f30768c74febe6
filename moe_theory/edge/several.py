"""Servers of `edge` that hold several tasks: footnote 1, and queues at the servers (`soonest`).

A server completes its tasks in the order of their ends, and on ties in the order of routing. Each task starts from the
model that the previous task left.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moe_theory.core.linear import minimum_norm, orthonormal_rows, square_root
from moe_theory.edge.params import Dims
from moe_theory.edge.servers import FREE, Assignment, Servers, at_servers, hold_task, move_models


class Refit(NamedTuple):
    """Data to refit a task to a model that has changed since its routing."""

    basis: Float[Array, "S s p"]  # orthonormal rows that span the task's samples
    truth: Float[Array, "S p"]  # the task's ground truth
    is_stale: Bool[Array, " S"]  # whether the server's model has changed since its routing


def empty_refit(dims: Dims, dtype: Any) -> Refit:
    num_slots = dims.num_slots
    return Refit(
        basis=jnp.zeros((num_slots, dims.num_samples, dims.num_features), dtype),
        truth=jnp.zeros((num_slots, dims.num_features), dtype),
        is_stale=jnp.zeros(num_slots, bool),
    )


def several_tasks_each(dims: Dims) -> Servers:
    """Return servers with linear experts that work on `Params.capacity` tasks at once, first come first served."""

    def complete(state: Any, is_done: Bool[Array, " S"]) -> tuple[Any, Float[Array, " S"]]:
        rank = _rank_at_server(state, is_done)
        change_norms = jnp.zeros_like(state.pending_norm)
        for index in range(dims.slots_per_server):
            state, norms = _complete_one_each(state, is_done & (rank == index))
            change_norms = change_norms + norms
        return state, change_norms

    def rank_soonest(
        state: Any, scores: Float[Array, " M"], is_open: Bool[Array, " M"], params: Any
    ) -> tuple[Float[Array, " M"], Bool[Array, " M"]]:
        # `busy_until` is the first round with a free place, by `_next_free_round`.
        is_idle = is_open & (state.busy_until <= state.round)
        all_busy = ~jnp.any(is_idle)
        num_held = jnp.sum(at_servers(state, is_counted=True), axis=0, dtype=jnp.int32)
        has_room = is_open & (num_held < params.capacity + dims.max_waiting)
        scores = jnp.where(all_busy, -state.busy_until.astype(scores.dtype), scores)
        return scores, jnp.where(all_busy, has_room, is_idle)

    servers = Servers(complete=complete, take=_take, free_from=_next_free_round, slots_per_server=dims.slots_per_server)
    if dims.when_busy == "soonest":
        return servers._replace(rank=rank_soonest)
    return servers


def _complete_one_each(state: Any, is_done: Bool[Array, " S"]) -> tuple[Any, Float[Array, " S"]]:
    """Complete at most one task at each server, refitted if the model has changed since its routing."""
    refit = state.refit
    at_server = at_servers(state, is_done)
    basis = refit.basis
    was_stale = refit.is_stale
    missing = refit.truth - jnp.sum(jnp.where(at_server[:, :, None], state.experts[None], 0), axis=1)
    coordinates = jnp.sum(basis * missing[:, None, :], axis=2)
    refitted = jnp.sum(jnp.where(is_done[:, None, None], basis * coordinates[:, :, None], 0), axis=1)
    change = jnp.where(is_done[:, None], state.pending_change, 0)
    change = jnp.where(was_stale[:, None], refitted, change)
    move = jnp.sum(jnp.where(at_server[:, :, None], change[:, None, :], 0), axis=0)
    is_changed = jnp.any(at_server, axis=0)
    is_stale = was_stale | jnp.any(is_changed[None, :] & at_servers(state, is_counted=True), axis=1)
    norms = jnp.where(was_stale, square_root(jnp.sum(jnp.square(change), axis=1)), state.pending_norm)
    after = move_models(state, move)._replace(refit=refit._replace(is_stale=is_stale))
    return after, jnp.where(is_done, norms, 0)


def _take(state: Any, arrival: Any, task: Assignment, params: Any) -> tuple[Any, Float[Array, ""]]:
    after, norm = hold_task(state, arrival, task, params, fit=minimum_norm)
    slot = task.slot
    refit = state.refit
    basis = orthonormal_rows(arrival.features)
    refit = Refit(
        basis=jnp.where(slot[:, None, None], basis[None], refit.basis),
        truth=jnp.where(slot[:, None], arrival.truth[None, :], refit.truth),
        is_stale=refit.is_stale & ~slot,
    )
    return after._replace(refit=refit), norm


def _next_free_round(state: Any, task: Assignment, params: Any) -> Int[Array, " M"]:
    del task
    is_pending = state.pending_server != FREE
    # A server can take another task as soon as all but capacity - 1 of its tasks are done.
    num_later = _rank_at_server(state, is_pending, backwards=True)
    is_decisive = is_pending & (num_later == jnp.asarray(params.capacity) - 1)
    at_server = at_servers(state, is_decisive)
    until = jnp.sum(jnp.where(at_server, state.pending_until[:, None], 0), axis=0, dtype=jnp.int32)
    return jnp.where(jnp.any(at_server, axis=0), until, jnp.minimum(state.busy_until, state.round))


def _rank_at_server(state: Any, is_counted: Bool[Array, " S"], backwards: bool = False) -> Int[Array, " S"]:
    """Return how many counted tasks at a slot's server end before its task (`backwards`: after it), ties by routing."""
    until = state.pending_until
    serial = state.pending_serial
    is_earlier = (until[None, :] < until[:, None]) | (
        (until[None, :] == until[:, None]) & (serial[None, :] < serial[:, None])
    )
    is_before = is_earlier.T if backwards else is_earlier
    is_at_same_server = state.pending_server[None, :] == state.pending_server[:, None]
    return jnp.sum(is_counted[None, :] & is_at_same_server & is_before, axis=1, dtype=jnp.int32)
