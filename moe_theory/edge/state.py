"""State of a network of busy servers, and its table of the tasks under way."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moe_theory.core.numerics import rounded
from moe_theory.core.tasks import Pool
from moe_theory.edge.tasks import Arrival

FREE = -1  # the server of a slot that holds no task


class Reprise(NamedTuple):
    """What fits a task to a model that has changed since the task was routed: only where servers hold several tasks."""

    basis: Float[Array, "S s p"]  # orthonormal rows that span the task's samples
    truth: Float[Array, "S p"]  # the task's ground truth
    is_stale: Bool[Array, " S"]  # whether the server's model has changed since


class Room(NamedTuple):
    """Tasks that wait at the router, first come first: only under `wait`."""

    arrivals: Arrival  # every leaf (W, ...)
    num_waiting: Int[Array, ""]  # how many of the W places are taken


class State(NamedTuple):
    """What is carried from round to round: the checkpoint.

    A task under way keeps one of S slots from its routing to its completion: `pending_server` is its server, or `FREE`.
    """

    pool: Pool
    positions: Float[Array, "M 2"]  # of the servers, on the unit square
    execution_delay: Int[Array, " M"]  # d^ex, in rounds
    experts: Float[Array, "M p"]  # local models w^(m)
    gates: Float[Array, "M p"]  # gating parameters theta^(m), as the router last saw them
    gate_step: Float[Array, "M p"]  # summed gradients of the tasks completed last: the router's next step
    busy_until: Int[Array, " M"]  # the first round in which a server has a place for another task
    visits: Int[Array, " M"]  # loads L_t(m): tasks routed to each server
    dropped: Int[Array, ""]  # tasks lost because nobody was idle
    misrouted: Int[Array, ""]  # tasks routed to a server that specialises in another kind (15)
    residuals: Float[Array, "M p"]  # sum over a server's tasks i of w^(m) - w_i
    squared_error: Float[Array, ""]  # sum over all routed tasks i of |w^(m_i) - w_i|^2
    round: Int[Array, ""]  # rounds done, t
    pending_server: Int[Array, " S"]  # m_i
    pending_task: Int[Array, " S"]  # kind n_i
    pending_serial: Int[Array, " S"]  # how many tasks were routed before
    pending_until: Int[Array, " S"]  # the round at whose start the task is done
    pending_change: Float[Array, "S p"]  # what (9) adds to the server's model as it was at routing
    pending_input: Float[Array, "S p"]  # stale gate input sum_i X_i
    pending_slopes: Float[Array, "S M"]  # stale derivatives of pi_{m_i} in the gate outputs, (25), (26)
    reprise: Reprise | None = None
    room: Room | None = None


class Settled(NamedTuple):
    """Models after some of the tasks under way are completed, and what that changes."""

    experts: Float[Array, "M p"]
    residuals: Float[Array, "M p"]
    squared_error: Float[Array, ""]
    change: Float[Array, "S p"]  # what each completed task added to its server's model; 0 elsewhere
    is_stale: Bool[Array, " S"]  # whether a task's server has changed since the task was routed


def settle(state: State, is_done: Bool[Array, " S"], places: int) -> Settled:
    """Complete the tasks of the slots `is_done`: their servers take the models that fit them (9).

    Tasks of different servers do not meddle. Those of one server, which may hold up to `places`, complete in the
    order of their ends, then of their routing, each from the model that the one before has left.

    The sum of squared errors is kept in centred form: c tasks whose residuals sum to u change theirs by D.(u + u')
    when their server's model moves by D and u becomes u' = u + c D, which stays accurate in float32.

    Source: Eqs. (9), (10), (20) of `edge`.
    """
    none = jnp.zeros(is_done.shape, bool)
    settled = Settled(
        experts=state.experts,
        residuals=state.residuals,
        squared_error=state.squared_error,
        change=jnp.zeros_like(state.pending_change),
        is_stale=none if state.reprise is None else state.reprise.is_stale,
    )
    if places == 1:
        return _settle_some(state, settled, is_done)
    turn = _place_in_order(state, is_done)
    for index in range(places):
        settled = _settle_some(state, settled, is_done & (turn == index))
    return settled


def _settle_some(state: State, settled: Settled, is_done: Bool[Array, " S"]) -> Settled:
    """Complete at most one task a server."""
    at_server = _one_hot(state.pending_server, is_done, settled.experts.shape[0])
    change = jnp.where(is_done[:, None], state.pending_change, 0)
    is_stale = settled.is_stale
    if state.reprise is not None:
        truth, basis = state.reprise.truth, state.reprise.basis
        missing = truth - jnp.sum(jnp.where(at_server[:, :, None], settled.experts[None], 0), axis=1)
        shares = jnp.sum(basis * missing[:, None, :], axis=2)
        refitted = jnp.sum(jnp.where(is_done[:, None, None], basis * shares[:, :, None], 0), axis=1)
        change = jnp.where(is_stale[:, None], refitted, change)
        changed = jnp.any(at_server, axis=0)
        is_stale = is_stale | jnp.any(changed[None, :] & _one_hot(state.pending_server, True, len(changed)), axis=1)
    move = jnp.sum(jnp.where(at_server[:, :, None], change[:, None, :], 0), axis=0)
    # Rounded apart from the sums they go into, or unused places would change last bits.
    zero = jnp.minimum(state.round, 0)
    drift = rounded(state.visits.astype(move.dtype)[:, None] * move, zero)
    residuals = settled.residuals + drift
    gains = rounded(move * (settled.residuals + residuals), zero)
    return Settled(
        experts=settled.experts + move,
        residuals=residuals,
        squared_error=settled.squared_error + jnp.sum(gains),
        change=settled.change + change,
        is_stale=is_stale,
    )


def next_free_round(state: State, capacity: Int[Array, ""]) -> Int[Array, " M"]:
    """The first round in which each server has a place, from its tasks under way; one in the past where it has one.

    Served first come first, a new task starts when all but `capacity` - 1 of the earlier ones are done.
    """
    is_pending = state.pending_server != FREE
    is_decisive = is_pending & (_place_in_order(state, is_pending, backwards=True) == capacity - 1)
    at_server = _one_hot(state.pending_server, is_decisive, state.experts.shape[0])
    until = jnp.sum(jnp.where(at_server, state.pending_until[:, None], 0), axis=0, dtype=jnp.int32)
    return jnp.where(jnp.any(at_server, axis=0), until, jnp.minimum(state.busy_until, state.round))


def tasks_held(state: State) -> Int[Array, " M"]:
    """How many tasks each server holds, those that wait there included."""
    return jnp.sum(_one_hot(state.pending_server, True, state.experts.shape[0]), axis=0, dtype=jnp.int32)


def _place_in_order(state: State, counts: Bool[Array, " S"], backwards: bool = False) -> Int[Array, " S"]:
    """For each slot, how many of the tasks that count are at its server and end earlier (`backwards`: later).

    Of tasks that end in the same round the one routed first counts as the earlier.
    """
    until, serial = state.pending_until, state.pending_serial
    is_earlier = (until[None, :] < until[:, None]) | (
        (until[None, :] == until[:, None]) & (serial[None, :] < serial[:, None])
    )
    is_before = is_earlier.T if backwards else is_earlier
    together = state.pending_server[None, :] == state.pending_server[:, None]
    return jnp.sum(counts[None, :] & together & is_before, axis=1, dtype=jnp.int32)


def _one_hot(servers: Int[Array, " S"], counts: Bool[Array, " S"] | bool, max_experts: int) -> Bool[Array, "S M"]:
    """Which server each slot's task is at; nothing for a free slot or one that does not count."""
    return (servers[:, None] == jnp.arange(max_experts)[None, :]) & jnp.asarray(counts)[..., None]
