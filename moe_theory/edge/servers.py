"""Servers in Algorithm 1 of `edge`: completions, gate steps and routing, for any servers and for the paper's.

A pending task is one that is routed but not completed. It is in one of the state's S slots.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moe_theory.core import gating
from moe_theory.core.linear import Fit, fitted, square_root
from moe_theory.core.locality import Locality, Move, charged
from moe_theory.core.numerics import rounded, stored
from moe_theory.core.tasks import select_row
from moe_theory.edge.policies import Policy

FREE = -1  # the server of a slot that holds no task
DROPPED = -1  # value of `Info.expert` for a task that went to no server
NONE = -1  # no task type: for an expert without a specialty, or a slot whose task is not completed


class Assignment(NamedTuple):
    server: Int[Array, ""]  # m_t, or `DROPPED`
    mask: Bool[Array, " M"]  # `server` as a one-hot row
    slot: Bool[Array, " S"]  # the slot that the task takes, one-hot
    delay: Int[Array, ""]  # d_t of (1), in rounds, 0 without a server
    wait: Int[Array, ""]  # rounds before the server starts on it
    until: Int[Array, ""]  # the round at whose start the task is done
    is_blind: Bool[Array, ""]  # whether the best score is NaN


class Done(NamedTuple):
    """The tasks that servers complete in a round, for a locality loss. Servers without one have zeros."""

    task: Int[Array, " M"]  # task type n_i
    gate_input: Float[Array, "M p"]  # stale sum_i X_i, from the round of routing


def _rank_idle(
    state: Any, scores: Float[Array, " M"], is_open: Bool[Array, " M"], params: Any
) -> tuple[Float[Array, " M"], Bool[Array, " M"]]:
    del params
    return scores, is_open & (state.busy_until <= state.round)


def _free_when_done(state: Any, task: Assignment, params: Any) -> Int[Array, " M"]:
    del params
    return jnp.where(task.mask, task.until, state.busy_until)


def _add_slot_by_slot(weights: Float[Array, "S M"], inputs: Float[Array, "S p"]) -> Float[Array, "M p"]:
    # We add slot by slot, because XLA would turn one sum of products into a slower reduction.
    slot_weights = stored(weights)
    total = jnp.zeros((weights.shape[1], inputs.shape[1]), inputs.dtype)
    for slot in range(len(inputs)):
        total = total + slot_weights[slot][:, None] * inputs[slot][None, :]
    return total


class Servers(NamedTuple):
    """How servers complete and accept tasks, as pure functions of one replicate's state.

    `open_round` and `offer` read `gates`, `gate_step`, `execution_delay`, `busy_until`, `visits`, `round` and the
    fields from `pending_server` to `pending_slopes`. Only `complete` and `take` read the others.
    """

    # (state, slots whose tasks are done (S,)) -> the state with the models they leave, their |w_t - w_{t-1}| (S,)
    complete: Callable[[Any, Bool[Array, " S"]], tuple[Any, Float[Array, " S"]]]
    # (state, arrival, assignment, params) -> the state with this task, and the |w_t - w_{t-1}| once it is done
    take: Callable[[Any, Any, Assignment, Any], tuple[Any, Float[Array, ""]]]
    # (state, scores (M,), eligible servers (M,), params) -> scores, and the servers to which a task may go now
    rank: Callable[[Any, Array, Array, Any], tuple[Array, Array]] = _rank_idle
    # (state, assignment, params) -> the first round in which each server can take another task (M,)
    free_from: Callable[[Any, Assignment, Any], Int[Array, " M"]] = _free_when_done
    # (slopes times |w_t - w_{t-1}| of the completed tasks (S, M), their gate inputs (S, p)) -> the gradient (M, p)
    gradient: Callable[[Array, Array], Array] = _add_slot_by_slot
    slots_per_server: int = 1
    # The cost of a completion, given how far it moved the model. None means |w_t - w_{t-1}|. Only servers with one task
    # each, whose state has a `memory`, may have another.
    locality: Locality | None = None


def open_round(state: Any, params: Any, servers: Servers) -> tuple[Any, Bool[Array, " S"], Float[Array, " S"]]:
    """Open a round. Complete the tasks that end, and let the gates take the step of the tasks completed before.

    With `gate_lag` 0 the gates take the step of the tasks just completed.

    Source: Eqs. (9)-(13), (24)-(26) of `edge`.
    """
    time = state.round + 1
    is_due = (state.pending_server != FREE) & (state.pending_until <= time)
    completed, change_norms = servers.complete(state, is_due)
    costs = change_norms
    if servers.locality is not None:
        costs, completed = _charge_moves(servers.locality, completed, is_due, change_norms, params)
    gradient = servers.gradient(costs[:, None] * state.pending_slopes, state.pending_input)
    is_immediate = jnp.asarray(params.gate_lag) == 0
    step = state.gate_step + jnp.where(is_immediate, gradient, 0)
    ready = completed._replace(
        gates=state.gates - params.learning_rate * step,
        gate_step=jnp.where(is_immediate, 0, gradient),
        pending_server=jnp.where(is_due, FREE, state.pending_server),
        round=time,
    )
    return ready, is_due, change_norms


def _charge_moves(
    locality: Locality, state: Any, is_done: Bool[Array, " S"], norms: Float[Array, " S"], params: Any
) -> tuple[Float[Array, " S"], Any]:
    """Return the costs of the completed tasks by a custom locality loss, and the state with its memory."""
    at_server = at_servers(state, is_done)

    def sum_by_server(slot_values: Array) -> Array:
        return jnp.sum(jnp.where(at_server.T, slot_values[None, :], 0), axis=1, dtype=slot_values.dtype)

    lengths = sum_by_server(norms)
    move = Move(lengths, costs=lengths, learned=jnp.any(at_server, axis=0))
    inputs = jnp.sum(jnp.where(at_server[:, :, None], state.pending_input[:, None, :], 0), axis=0)
    tasks = Done(sum_by_server(state.pending_task), gate_input=inputs)
    costs, memory = charged(locality, move, state.memory, tasks, params)
    slot_costs = jnp.sum(jnp.where(at_server, costs[None, :], 0), axis=1)
    return slot_costs, state._replace(memory=memory)


def offer(
    state: Any, arrival: Any, gate_input: Float[Array, " p"], params: Any, policy: Policy, servers: Servers
) -> tuple[Any, Assignment]:
    """Return the state with a task pending at the servers, or unchanged if none takes it.

    Source: Eqs. (1)-(4) and Algorithm 1 of `edge`.
    """
    time = state.round
    exists = existing(state, params)
    outputs = gating.gate_outputs(state.gates, gate_input)
    probabilities = gating.gate_probabilities(outputs, exists)
    scores = gating.checked_scores(policy(outputs, state, arrival, params), outputs)
    is_usable = state.pending_server == FREE  # a slot for the task
    scores, may_take = servers.rank(state, scores, exists & jnp.any(is_usable), params)
    server, mask, is_blind = gating.best_ranked(scores, may_take)
    is_routed = jnp.any(mask)  # not dropped
    delay = jnp.sum(jnp.where(mask, arrival.transfer_delay + state.execution_delay, 0), dtype=jnp.int32)
    busy_until = jnp.sum(jnp.where(mask, state.busy_until, 0), dtype=jnp.int32)  # of the task's server
    wait = jnp.where(is_routed, jnp.maximum(busy_until - time, 0), 0)
    if has_own_slots(state, servers.slots_per_server):
        is_usable = is_usable & jnp.repeat(mask, servers.slots_per_server)  # at the task's server
    _, first_usable = gating.best_expert(jnp.zeros(is_usable.shape), is_usable)  # of equal scores the first is best
    slot = first_usable & is_routed
    task = Assignment(server, mask, slot, delay=delay, wait=wait, until=time + wait + delay, is_blind=is_blind)
    after, norm = servers.take(state, arrival, task, params)
    slopes = gating.gate_slopes(probabilities, mask.astype(outputs.dtype))
    after = after._replace(
        visits=state.visits + mask,
        pending_server=jnp.where(slot, server, state.pending_server),
        pending_until=jnp.where(slot, task.until, state.pending_until),
        pending_norm=jnp.where(slot, norm, state.pending_norm),
        pending_input=jnp.where(slot[:, None], gate_input[None, :], state.pending_input),
        pending_slopes=jnp.where(slot[:, None], slopes[None, :], state.pending_slopes),
    )
    return after._replace(busy_until=servers.free_from(after, task, params)), task


def existing(state: Any, params: Any) -> Bool[Array, " M"]:
    return jnp.arange(state.busy_until.shape[0]) < params.num_experts


def has_own_slots(state: Any, slots_per_server: int) -> bool:
    """Return whether each server has its own slots. A small `Dims.max_delay` leaves fewer, which all servers share."""
    return state.pending_server.shape[0] == state.busy_until.shape[0] * slots_per_server


def one_task_each(fit: Fit, locality: Locality | None = None) -> Servers:
    """Return the paper's servers: linear experts that hold one task and drop others. Source: Algorithm 1."""

    def complete(state: Any, is_done: Bool[Array, " S"]) -> tuple[Any, Float[Array, " S"]]:
        is_moved = is_done  # if slot m is server m's
        if not has_own_slots(state, 1):
            is_moved = jnp.any(at_servers(state, is_done), axis=0)
        after = move_models(state, jnp.where(is_moved[:, None], state.pending_change, 0))
        return after, jnp.where(is_done, state.pending_norm, 0)

    def take(state: Any, arrival: Any, task: Assignment, params: Any) -> tuple[Any, Float[Array, ""]]:
        return hold_task(state, arrival, task, params, fit=fit)

    return Servers(complete, take, locality=locality)


def move_models(state: Any, move: Float[Array, "M p"]) -> Any:
    """Return the state after servers' models have moved (9).

    Let a server's c tasks have residuals with the sum u, and let its model move by D. Then the sum becomes u' = u + c
    D, and the sum of squares changes by D.(u + u').

    Source: Eqs. (9), (10), (20) of `edge`.
    """
    # Products are rounded before they are added to other sums. Otherwise unused slots would change the last bits.
    zero = jnp.minimum(state.round, 0)  # 0, which the compiler does not know
    drift = rounded(state.visits.astype(move.dtype)[:, None] * move, zero)
    residuals = state.residuals + drift
    gains = rounded(move * (state.residuals + residuals), zero)
    return state._replace(
        experts=state.experts + move, residuals=residuals, squared_error=state.squared_error + jnp.sum(gains)
    )


def hold_task(state: Any, arrival: Any, task: Assignment, params: Any, fit: Fit) -> tuple[Any, Float[Array, ""]]:
    """Return the state with a task at its server, if any, and how far the task moves the model."""
    mask = task.mask
    slot = task.slot
    model = jnp.sum(jnp.where(mask[:, None], state.experts, 0), axis=0)
    missing = arrival.truth - model
    error = rounded(jnp.square(missing), jnp.minimum(state.round, 0))
    change = fitted(fit, model[None, :], arrival, params)[0]
    place = slot if len(state.pending_change) == len(slot) else mask  # rows of `pending_change` are slots or servers
    squared_error = state.squared_error + jnp.sum(jnp.where(jnp.any(mask), error, 0))
    after = state._replace(
        misrouted=state.misrouted + is_misrouted(state, task.server, arrival.task),
        residuals=state.residuals - jnp.where(mask[:, None], missing[None, :], 0),
        squared_error=jnp.where(task.is_blind, jnp.nan, squared_error),  # and later, because gates stay NaN
        pending_task=jnp.where(slot, arrival.task, state.pending_task),
        pending_serial=jnp.where(slot, jnp.sum(state.visits, dtype=jnp.int32), state.pending_serial),
        pending_change=jnp.where(place[:, None], change[None, :], state.pending_change),
    )
    return after, square_root(jnp.sum(jnp.square(change)))


def at_servers(state: Any, is_counted: Bool[Array, " S"] | bool) -> Bool[Array, "S M"]:
    """Return the server of each slot's task as a one-hot row, which is zero for a free slot or an uncounted task."""
    servers = jnp.arange(state.busy_until.shape[0])
    return (state.pending_server[:, None] == servers[None, :]) & jnp.asarray(is_counted)[..., None]


def is_misrouted(state: Any, server: Int[Array, ""], task: Int[Array, ""]) -> Bool[Array, ""]:
    return (server >= 0) & (specialty(state, select_row(state.gates, server)) != task)


def specialty(state: Any, gate: Float[Array, " p"]) -> Int[Array, ""]:
    """Return the task type n in which an expert specialises, m in M_n of (15), or `NONE` at a tie."""
    drives = jnp.sum(gate[None, :] * state.pool.signals, axis=1)
    kinds = jnp.arange(drives.shape[0], dtype=jnp.int32)
    is_largest = drives == jnp.max(drives)
    is_unique = jnp.sum(is_largest) == 1
    return jnp.where(is_unique, jnp.sum(jnp.where(is_largest, kinds, 0), dtype=jnp.int32), NONE)
