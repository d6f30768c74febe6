"""One round of Algorithm 1 of the edge-computing paper: gate steps, completions, routing among idle servers."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moe_theory.core import gating
from moe_theory.core.experts import minimum_norm_change, orthonormal_rows
from moe_theory.core.numerics import rounded
from moe_theory.core.tasks import select_row
from moe_theory.edge.checks import check_round, require_no_dims
from moe_theory.edge.params import Dims, Params
from moe_theory.edge.policies import Policy, adaptive, check_policy, scores_of
from moe_theory.edge.state import FREE, Reprise, Room, Settled, State, next_free_round, settle, tasks_held
from moe_theory.edge.tasks import Arrival

DROPPED, WAITING = -1, -2  # what `Info.expert` says of a task that went to no server
NONE = -1  # the kind of no task: an expert's without a specialty, or a slot's where nothing was completed


class Info(NamedTuple):
    """What a round shows. Models, and so errors, are those after the round, without the tasks still under way."""

    task: Int[Array, ""]  # n_t
    truth: Float[Array, " p"]  # w_t, the task's own ground truth
    expert: Int[Array, ""]  # m_t; `DROPPED` or `WAITING` where the task went to no server in this round
    delay: Int[Array, ""]  # d_t of (1), in rounds; 0 where the task went to no server
    wait: Int[Array, ""]  # rounds before the server starts on it (`soonest`)
    num_busy: Int[Array, ""]  # servers that the router found without a place
    num_idle: Int[Array, ""]  # servers that it found with one
    num_completed: Int[Array, ""]  # tasks done at the start of this round
    completed_task: Int[Array, " S"]  # their kinds, by the slots that they held; `NONE` elsewhere
    completed_change: Float[Array, ""]  # sum of |w_{t} - w_{t-1}| over them
    gate_outputs: Float[Array, " M"]  # h_m, without the perturbation
    gate_probabilities: Float[Array, " M"]  # softmax pi_m over all servers, idle or not
    is_misrouted: Bool[Array, ""]  # whether the server specialises in another kind (15)
    num_specialists: Int[Array, ""]  # servers that specialise in this kind
    specialist_exists: Bool[Array, ""]  # whether there is one
    specialist_idle: Bool[Array, ""]  # whether an idle one does
    dropped: Int[Array, ""]  # tasks lost so far
    generalization_error: Float[Array, ""]  # G_t of (20): mean over the tasks routed so far
    generalization_error_flushed: Float[Array, ""]  # G_t as it will be once the tasks under way are completed


class _Served(NamedTuple):
    """What offering one task to the servers shows."""

    is_routed: Bool[Array, ""]
    server: Int[Array, ""]
    delay: Int[Array, ""]
    wait: Int[Array, ""]
    is_misrouted: Bool[Array, ""]


def learn(
    state: State, arrival: Arrival, params: Params, policy: Policy = adaptive, *, dims: Dims | None = None
) -> tuple[State, Info]:
    """One round on an explicit arrival, nothing random inside: gate steps, completions, routing, in this order.

    At the start of round t the router takes the gate steps of the tasks completed in round t - 1 (with `gate_lag` 0 of
    those completed now), all stale: from the gate probabilities and inputs of the rounds in which they were routed.
    Servers whose tasks end in round t take their new models and are idle. Then the arrival goes to the idle server of
    the highest score, which is busy in rounds t, ..., t + d - 1. Where nobody is idle it is dropped and counted, or
    under another `when_busy` of `Dims` waits.

    Args:
        arrival: truth (p,) and features (p, s) of the task, and what it takes to route it.
        policy: one of `policies`, or your own.
        dims: those that `begin` was given; wanted only where servers hold several tasks or tasks wait.
    Returns: the state after the round, and what it showed.
    Source: Eqs. (1)-(13) and Algorithm 1 of `edge`; capacities above 1: its footnote 1.
    Raises: InvalidDimsError for arrays that do not fit the state; InvalidParamsError for parameters or delays outside
        their range, where their values are known.

    Examples:
        A task takes 3 rounds to the fastest server and 1 there; until then the server's model is at distance 1:

        >>> import jax, numpy as np
        >>> from moe_theory import edge
        >>> pool = edge.Pool(truths=np.eye(2, 4), signals=np.eye(2, 4), clusters=np.arange(2))
        >>> dims, params = edge.Dims(2, num_tasks=2, num_features=4, num_samples=2), edge.Params(num_experts=2)
        >>> state = edge.begin(dims, params, pool, execution_delay=np.array([1, 2]))
        >>> arrival = edge.Arrival(0, np.eye(4, 2), np.eye(4)[0], np.array([3, 0]), *np.zeros((3, 2)))
        >>> state, info = jax.jit(edge.learn, static_argnums=3)(state, arrival, params, edge.policies.fastest)
        >>> int(info.expert), int(info.delay), state.busy_until.tolist()
        (0, 4, [5, 0])
        >>> float(edge.generalization_error(state)), float(edge.generalization_error_flushed(state))
        (1.0, 0.0)
    """
    check_policy(policy)
    arrival = check_round(state, arrival, params, dims)
    places = 1 if dims is None else dims.places
    time = state.round + 1
    done = (state.pending_server != FREE) & (state.pending_until <= time)
    settled = settle(state, done, places)
    costs = jnp.sqrt(jnp.sum(jnp.square(settled.change), axis=1))
    ready = _take_models(_update_gates(state, costs, params), settled, done, time)
    if ready.room is None:
        after, served = _route(ready, arrival, True, params, policy, dims)
        expert = jnp.where(served.is_routed, served.server, DROPPED)
    else:
        after, served, expert = _route_in_turn(ready, ready.room, arrival, params, policy, dims)
    after = after._replace(dropped=after.dropped + (expert == DROPPED))

    exists = _exists(state, params)
    idle = exists & (ready.busy_until <= time)
    outputs = gating.gate_outputs(after.gates, jnp.sum(arrival.features, axis=1))
    specialists = exists & (_specialties(after) == arrival.task)
    info = Info(
        task=arrival.task,
        truth=arrival.truth,
        expert=expert,
        delay=served.delay,
        wait=served.wait,
        num_busy=jnp.sum(exists & ~idle, dtype=jnp.int32),
        num_idle=jnp.sum(idle, dtype=jnp.int32),
        num_completed=jnp.sum(done, dtype=jnp.int32),
        completed_task=jnp.where(done, state.pending_task, NONE),
        completed_change=jnp.sum(costs),
        gate_outputs=outputs,
        gate_probabilities=gating.gate_probabilities(outputs, exists),
        is_misrouted=served.is_misrouted,
        num_specialists=jnp.sum(specialists, dtype=jnp.int32),
        specialist_exists=jnp.any(specialists),
        specialist_idle=jnp.any(specialists & idle),
        dropped=after.dropped,
        generalization_error=generalization_error(after),
        generalization_error_flushed=generalization_error_flushed(after, dims),
    )
    return after, info


def generalization_error(state: State) -> Float[Array, ""]:
    """G_t: the mean of |w^(m_i) - w_i|^2 over the tasks routed so far, with the models as they are.

    Source: Eq. (20) of `edge`. Units: squared model distance.
    """
    return state.squared_error / jnp.maximum(jnp.sum(state.visits), 1)


def generalization_error_flushed(state: State, dims: Dims | None = None) -> Float[Array, ""]:
    """G_t once all tasks under way are completed, none of them delayed by another: at T + d_T, (20) of `edge`.

    Args:
        dims: as for `learn`.
    Source: Eq. (20) of `edge`.
    Raises: InvalidDimsError where the state needs `dims` and there are none.
    """
    if dims is None:
        require_no_dims(state)
    flushed = settle(state, state.pending_server != FREE, 1 if dims is None else dims.places)
    return flushed.squared_error / jnp.maximum(jnp.sum(state.visits), 1)


def _update_gates(state: State, costs: Float[Array, " S"], params: Params) -> State:
    """Last round's gate step, or with `gate_lag` 0 the one of the tasks just completed, at `costs` |w_t - w_{t-1}|.

    Source: Eqs. (11)-(13), (24)-(26) of `edge`.
    """
    pulls = costs[:, None] * state.pending_slopes
    # A chain of additions, slot by slot: XLA would turn one sum of products into a slower reduction.
    gradient = jnp.zeros_like(state.gates)
    for slot in range(costs.shape[0]):
        gradient = gradient + pulls[slot][:, None] * state.pending_input[slot][None, :]
    is_immediate = jnp.asarray(params.gate_lag) == 0
    step = state.gate_step + jnp.where(is_immediate, gradient, 0)
    return state._replace(
        gates=state.gates - params.learning_rate * step, gate_step=jnp.where(is_immediate, 0, gradient)
    )


def _take_models(state: State, settled: Settled, done: Bool[Array, " S"], time: Int[Array, ""]) -> State:
    """Servers whose tasks are done have their new models, and the tasks' slots are free."""
    reprise = state.reprise
    return state._replace(
        experts=settled.experts,
        residuals=settled.residuals,
        squared_error=settled.squared_error,
        pending_server=jnp.where(done, FREE, state.pending_server),
        reprise=None if reprise is None else reprise._replace(is_stale=settled.is_stale),
        round=time,
    )


def _route(
    state: State,
    arrival: Arrival,
    is_offered: bool | Bool[Array, ""],
    params: Params,
    policy: Policy,
    dims: Dims | None,
) -> tuple[State, _Served]:
    """Offer a task to the servers: the state with it under way, or unchanged where nobody takes it."""
    time, exists = state.round, _exists(state, params)
    gate_input = jnp.sum(arrival.features, axis=1)
    outputs = gating.gate_outputs(state.gates, gate_input)
    probabilities = gating.gate_probabilities(outputs, exists)
    scores = scores_of(policy, outputs, state, arrival, params)
    is_open = exists & jnp.any(state.pending_server == FREE)
    idle = is_open & (state.busy_until <= time)
    if dims is not None and dims.when_busy == "soonest":
        is_crowded = ~jnp.any(idle)
        has_place = is_open & (tasks_held(state) < params.capacity + dims.max_waiting)
        scores = jnp.where(is_crowded, -state.busy_until.astype(scores.dtype), scores)
        idle = jnp.where(is_crowded, has_place, idle)
    server, mask = gating.best_expert(scores, idle & is_offered)
    is_routed = jnp.any(mask)
    delay = jnp.sum(jnp.where(mask, arrival.transfer_delay + state.execution_delay, 0), dtype=jnp.int32)
    free_from = jnp.sum(jnp.where(mask, state.busy_until, 0), dtype=jnp.int32)
    wait = jnp.where(is_routed, jnp.maximum(free_from - time, 0), 0)
    until = time + wait + delay
    is_misrouted = is_routed & (_specialty(state, select_row(state.gates, server)) != arrival.task)
    after = _assign(state, arrival, server, mask, until)
    slot = (after.pending_server != FREE) & (state.pending_server == FREE)
    slopes = gating.gate_slopes(probabilities, mask.astype(outputs.dtype))
    after = after._replace(
        misrouted=state.misrouted + is_misrouted,
        pending_input=jnp.where(slot[:, None], gate_input[None, :], state.pending_input),
        pending_slopes=jnp.where(slot[:, None], slopes[None, :], state.pending_slopes),
    )
    if dims is None or dims.places == 1:
        busy_until = jnp.where(mask, until, state.busy_until)
    else:
        busy_until = next_free_round(after, jnp.asarray(params.capacity))
    return after._replace(busy_until=busy_until), _Served(is_routed, server, delay, wait, is_misrouted)


def _assign(
    state: State, arrival: Arrival, server: Int[Array, ""], mask: Bool[Array, " M"], until: Int[Array, ""]
) -> State:
    """The task under way at its server, in the first free slot; nothing where `mask` is empty.

    From now on the task counts among its server's, whose model knows nothing of it yet.
    """
    _, slot = gating.best_expert(jnp.zeros(state.pending_server.shape), state.pending_server == FREE)
    slot = slot & jnp.any(mask)
    model = jnp.sum(jnp.where(mask[:, None], state.experts, 0), axis=0)
    missing = arrival.truth - model
    misses = rounded(jnp.square(missing), jnp.minimum(state.round, 0))
    change = minimum_norm_change(arrival.features, missing[None, :])[0]
    reprise = state.reprise
    if reprise is not None:
        basis = orthonormal_rows(arrival.features)
        reprise = Reprise(
            basis=jnp.where(slot[:, None, None], basis[None], reprise.basis),
            truth=jnp.where(slot[:, None], arrival.truth[None, :], reprise.truth),
            is_stale=reprise.is_stale & ~slot,
        )
    return state._replace(
        visits=state.visits + mask,
        residuals=state.residuals - jnp.where(mask[:, None], missing[None, :], 0),
        squared_error=state.squared_error + jnp.sum(jnp.where(jnp.any(mask), misses, 0)),
        pending_server=jnp.where(slot, server, state.pending_server),
        pending_task=jnp.where(slot, arrival.task, state.pending_task),
        pending_serial=jnp.where(slot, jnp.sum(state.visits, dtype=jnp.int32), state.pending_serial),
        pending_until=jnp.where(slot, until, state.pending_until),
        pending_change=jnp.where(slot[:, None], change[None, :], state.pending_change),
        reprise=reprise,
    )


def _route_in_turn(
    state: State, room: Room, arrival: Arrival, params: Params, policy: Policy, dims: Dims | None
) -> tuple[State, _Served, Int[Array, ""]]:
    """Offer the tasks that wait, then the new one, until nobody is idle: the state, what the new one met, and where."""
    num_places = room.arrivals.task.shape[0]
    is_new = jnp.arange(num_places + 1) == room.num_waiting
    line: Any = jax.tree.map(
        lambda waiting, new: jnp.where(
            is_new.reshape(-1, *(1,) * jnp.ndim(new)), new, jnp.concatenate([waiting, waiting[:1]])
        ),
        room.arrivals,
        arrival,
    )
    remaining, none = room.num_waiting + 1, jnp.zeros((), jnp.int32)
    newest = _Served(none > 0, none + WAITING, none, none, none > 0)
    for _ in range(num_places + 1):
        first = jax.tree.map(lambda leaf: leaf[0], line)
        state, served = _route(state, first, remaining > 0, params, policy, dims)
        is_last = served.is_routed & (remaining == 1)
        newest = jax.tree.map(lambda new, old, is_last=is_last: jnp.where(is_last, new, old), served, newest)
        line = jax.tree.map(
            lambda leaf, is_routed=served.is_routed: jnp.where(is_routed, jnp.roll(leaf, -1, axis=0), leaf), line
        )
        remaining = remaining - served.is_routed
    overflows = remaining > num_places
    kept = Room(jax.tree.map(lambda leaf: leaf[:num_places], line), remaining - overflows)
    return state._replace(room=kept), newest, jnp.where(overflows, DROPPED, newest.server)


def _exists(state: State, params: Params) -> Bool[Array, " M"]:
    return jnp.arange(state.experts.shape[0]) < params.num_experts


def _specialties(state: State) -> Int[Array, " M"]:
    """The kind n that each expert specialises in, m in M_n of (15); `NONE` where no kind has the largest output."""
    return jax.vmap(lambda gate: _specialty(state, gate))(state.gates)


def _specialty(state: State, gate: Float[Array, " p"]) -> Int[Array, ""]:
    drives = jnp.sum(gate[None, :] * state.pool.signals, axis=1)
    kinds = jnp.arange(drives.shape[0], dtype=jnp.int32)
    leads = drives == jnp.max(drives)
    return jnp.where(jnp.sum(leads) == 1, jnp.sum(jnp.where(leads, kinds, 0), dtype=jnp.int32), NONE)
