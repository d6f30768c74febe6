"""Algorithm 1 of `edge`: a router sends tasks to idle servers, which are busy until they have learned them.

Written for one replicate. A pending task, one that is routed but not completed, keeps one of S slots of the state. A
server holds one task at a time in the paper; several where `Dims.max_capacity` or a queue at the server allows it.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory.core import gating, random
from moe_theory.core.constraints import is_known
from moe_theory.core.errors import InvalidDimsError, InvalidParamsError
from moe_theory.core.fields import documented
from moe_theory.core.linear import Fit, fitted, minimum_norm, orthonormal_rows
from moe_theory.core.numerics import Numbers, rounded, rounded_positive, stored
from moe_theory.core.system import System
from moe_theory.core.tasks import (
    INDEPENDENT,
    ORTHOGONAL,
    PROPORTIONAL,
    Pool,
    check_pool,
    hide_signal,
    orthonormal,
    select_row,
    streamed,
    uniform_index,
)
from moe_theory.edge import delays
from moe_theory.edge.delays import Law, Table, Trip
from moe_theory.edge.params import (
    Dims,
    Params,
    check_params,
    require_whole_rounds,
)
from moe_theory.edge.policies import Policy, adaptive, check_policy

FREE = -1  # the server of a slot that holds no task
DROPPED, WAITING = -1, -2  # what `Info.expert` says of a task that went to no server
NONE = -1  # the kind of no task: of an expert without a specialty, or of a slot whose task is not completed


@documented
class Arrival(NamedTuple):
    """The data of one round: a user's task, and what routing it may depend on."""

    task: Int[Array, ""]  # n_t: the kind, an index into the pool
    features: Float[Array, "p s"]  # feature matrix X_t, one sample a column
    truth: Float[Array, " p"]  # ground truth w_t of this task, near its cluster's
    transfer_delay: Int[Array, " M"]  # d_t^tr to each server, in rounds
    distance: Float[Array, " M"]  # from the user to each server
    perturbation: Float[Array, " M"]  # r_t of (4)
    uniform: Float[Array, " M"]  # independent, uniform on (0, 1): for a policy that wants chance
    targets: Float[Array, " s"] | None = None  # y, which servers learn; X' truth unless given


# What arrives: (key, dims, state, params) -> the pool of this round and the arrival.
Stream = Callable[[Key[Array, ""], Dims, Any, Params], tuple[Pool, Arrival]]


class Refit(NamedTuple):
    """What refits a task to a model that has changed since its routing: only where servers hold several tasks."""

    basis: Float[Array, "S s p"]  # orthonormal rows that span the task's samples
    truth: Float[Array, "S p"]  # the task's ground truth
    is_stale: Bool[Array, " S"]  # whether the server's model has changed since


class Queue(NamedTuple):
    """The router's queue, first come first served: only under `wait`."""

    arrivals: Arrival  # every leaf (W, ...)
    num_waiting: Int[Array, ""]  # of the W that it can hold


@documented
class State(NamedTuple):
    """What is carried from round to round: the checkpoint."""

    pool: Pool
    positions: Float[Array, "M 2"]  # of the servers, on the unit square
    execution_delay: Int[Array, " M"]  # d^ex, in rounds
    experts: Float[Array, "M p"]  # local models w^(m)
    gates: Float[Array, "M p"]  # gating parameters theta^(m), as the router last saw them
    gate_step: Float[Array, "M p"]  # summed gradients of the tasks completed last: the router's next step
    busy_until: Int[Array, " M"]  # the first round in which each server can take another task
    visits: Int[Array, " M"]  # loads L_t(m): tasks routed to each server
    dropped: Int[Array, ""]  # tasks lost because no server was idle
    misrouted: Int[Array, ""]  # tasks routed to a server that specialises in another kind (15)
    residuals: Float[Array, "M p"]  # sum over a server's tasks i of w^(m) - w_i
    squared_error: Float[Array, ""]  # sum over all routed tasks i of |w^(m_i) - w_i|^2
    round: Int[Array, ""]  # rounds done, t
    pending_server: Int[Array, " S"]  # m_i, or `FREE`; where there are slots for all, those of server 0 come first
    pending_task: Int[Array, " S"]  # kind n_i
    pending_serial: Int[Array, " S"]  # how many tasks were routed before
    pending_until: Int[Array, " S"]  # the round at whose start the task is done
    pending_change: Float[Array, "C p"]  # what (9) adds to a model as it was at routing; C is M, or S with capacity
    pending_norm: Float[Array, " S"]  # its length |w_t - w_{t-1}|
    pending_input: Float[Array, "S p"]  # stale gate input sum_i X_i
    pending_slopes: Float[Array, "S M"]  # stale derivatives of pi_{m_i} in the gate outputs, (25), (26)
    refit: Refit | None = None
    queue: Queue | None = None


@documented
class Info(NamedTuple):
    """What is observed of a round. Models and errors are those after it, without the tasks still pending."""

    task: Int[Array, ""]  # n_t
    truth: Float[Array, " p"]  # w_t, the task's own ground truth
    expert: Int[Array, ""]  # m_t; `DROPPED` or `WAITING` where the task went to no server in this round
    delay: Int[Array, ""]  # d_t of (1), in rounds; 0 where the task went to no server
    wait: Int[Array, ""]  # rounds before the server starts on it (`soonest`)
    num_busy: Int[Array, ""]  # servers that the router found at capacity
    num_idle: Int[Array, ""]  # the others
    num_completed: Int[Array, ""]  # tasks done at the start of this round
    completed_task: Int[Array, " S"]  # their kinds, by slot; `NONE` elsewhere
    completed_change: Float[Array, ""]  # sum of |w_{t} - w_{t-1}| over them
    gate_outputs: Float[Array, " M"]  # h_m, without the perturbation
    gate_probabilities: Float[Array, " M"]  # softmax pi_m over all servers, idle or not
    is_misrouted: Bool[Array, ""]  # whether the server specialises in another kind (15)
    num_specialists: Int[Array, ""]  # servers that specialise in this kind
    specialist_exists: Bool[Array, ""]  # whether there is one
    specialist_idle: Bool[Array, ""]  # whether an idle one does
    dropped: Int[Array, ""]  # tasks lost so far
    generalization_error: Float[Array, ""]  # G_t of (20): mean over the tasks routed so far
    generalization_error_flushed: Float[Array, ""]  # G_t once the pending tasks are completed


@functools.lru_cache
def system(
    dims: Dims,
    policy: Policy = adaptive,
    *,
    transfer: Law = delays.uniform,
    execution: Law = delays.uniform,
    stream: Stream | None = None,
    fit: Fit = minimum_norm,
) -> System:
    """Algorithm 1 under a routing policy as a `System`. Equal arguments give the same object, compiled once.

    Every replicate draws a pool and its servers' execution delays; servers are at `delays.even_map`.

    Args:
        policy: from `policies`, or your own pure function.
        transfer: law of the transfer delays, drawn for every task; from `delays`, or your own.
        execution: law of the execution delays, drawn once.
        stream: what arrives in each round, and how the pool moves; unless given what `draw` draws from one pool.
        fit: what a server's model changes by.
    Source: Algorithm 1, Definition 1, Assumption 1 and Section VI of `edge`.
    Raises: InvalidParamsError for a policy that is no function; from its `init`, the errors of `begin`; from its `step`
        those of `learn`.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import edge
        >>> dims = edge.Dims(max_experts=2, num_tasks=3, num_features=4, num_samples=2)
        >>> system = edge.system(dims, edge.policies.nearest)
        >>> state, info = mt.simulate(system, mt.root_key(0), edge.Params(num_experts=2), num_rounds=5)
        >>> int(state.visits.sum() + state.dropped)
        5
    """
    check_policy(policy)

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Info]:
        if stream is None:
            arrival = draw(key, dims, state.pool, state.positions, params, transfer)
        else:
            pool, arrival = streamed(stream(key, dims, state, params), "pool", "arrival")
            check_pool(dims.num_tasks, dims.num_features, pool)
            state = state._replace(pool=pool)
        return learn(state, arrival, params, policy, dims=dims, fit=fit)

    return System(_drawn(dims, transfer, execution), step)


@functools.lru_cache  # what begins is the same whatever the policy
def _drawn(dims: Dims, transfer: Law, execution: Law) -> Callable[..., State]:
    def init(key: Key[Array, ""], params: Params) -> State:
        check_params(dims, params)
        check_laws(dims, params, transfer, execution)
        pool_key, execution_key = jax.random.split(key)
        pool = draw_pool(pool_key, dims, params)
        positions = jnp.asarray(delays.even_map(dims.max_experts), jnp.result_type(float))
        return begin(dims, params, pool, draw_execution(execution_key, dims, positions, params, execution), positions)

    return init


def begin(
    dims: Dims,
    params: Params,
    pool: Pool,
    execution_delay: Int[Numbers, " M"],
    positions: Float[Numbers, "M 2"] | None = None,
) -> State:
    """The state before round 1: experts and gates are zero, all servers are idle.

    Args:
        execution_delay: d^ex of each server, in whole rounds; those beyond `num_experts` are not used.
        positions: of the servers on the unit square; `delays.even_map` unless given.
    Source: Algorithm 1 of `edge`, line 2.
    Raises: InvalidDimsError for shapes that do not fit `dims`; InvalidParamsError for `params` outside their range,
        or execution delays that are negative, fractional or above `Dims.max_delay`.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import edge
        >>> pool = edge.Pool(truths=np.eye(2, 4), signals=np.eye(2, 4), clusters=np.arange(2))
        >>> dims = edge.Dims(max_experts=2, num_tasks=2, num_features=4, num_samples=2)
        >>> state = edge.begin(dims, edge.Params(num_experts=2), pool, execution_delay=np.array([1, 2]))
        >>> state.experts.shape, state.busy_until.tolist()
        ((2, 4), [0, 0])
    """
    check_params(dims, params)
    check_pool(dims.num_tasks, dims.num_features, pool)
    _check_delays("execution_delay", execution_delay, (dims.max_experts,), dims.max_delay)
    dtype = jnp.result_type(float)
    experts, slots = dims.max_experts, dims.num_slots
    positions = delays.even_map(experts) if positions is None else positions
    if np.shape(positions) != (experts, 2):
        raise InvalidDimsError(f"positions of shape {np.shape(positions)} must be ({experts}, 2). Change positions.")
    zeros = jnp.zeros((experts, dims.num_features), dtype)
    count = jnp.zeros((), jnp.int32)
    vectors = jnp.zeros((slots, dims.num_features), dtype)
    return State(
        pool=Pool(jnp.asarray(pool.truths, dtype), jnp.asarray(pool.signals, dtype), jnp.asarray(pool.clusters)),
        positions=jnp.asarray(positions, dtype),
        execution_delay=jnp.asarray(execution_delay, jnp.int32),
        experts=zeros,
        gates=zeros,
        gate_step=zeros,
        busy_until=jnp.zeros(experts, jnp.int32),
        visits=jnp.zeros(experts, jnp.int32),
        dropped=count,
        misrouted=count,
        residuals=zeros,
        squared_error=jnp.zeros((), dtype),
        round=count,
        pending_server=jnp.full(slots, FREE, jnp.int32),
        pending_task=jnp.zeros(slots, jnp.int32),
        pending_serial=jnp.zeros(slots, jnp.int32),
        pending_until=jnp.zeros(slots, jnp.int32),
        pending_change=vectors if dims.slots_per_server > 1 else zeros,
        pending_norm=jnp.zeros(slots, dtype),
        pending_input=vectors,
        pending_slopes=jnp.zeros((slots, experts), dtype),
        refit=Refit(jnp.zeros((slots, dims.num_samples, dims.num_features), dtype), vectors, jnp.zeros(slots, bool))
        if dims.slots_per_server > 1
        else None,
        queue=_empty_queue(dims, dtype) if dims.when_busy == "wait" else None,
    )


def on_pool(
    dims: Dims,
    pool: Pool,
    execution_delay: Int[Numbers, " M"],
    policy: Policy = adaptive,
    *,
    positions: Float[Numbers, "M 2"] | None = None,
    transfer: Law = delays.uniform,
    **parts: Any,
) -> System:
    """Algorithm 1 with one explicit network for all replicates: pool, execution delays and positions of the servers.

    Reuse the result: each call compiles its start anew.

    Args:
        parts: stream and fit, as `system` has them.
    Source: Algorithm 1 of `edge`.
    Raises: as `begin`; InvalidParamsError where execution and transfer may take less than 1 round together, or more
        than `Dims.max_delay`.

    Examples:
        >>> import numpy as np
        >>> import moe_theory as mt
        >>> from moe_theory import edge
        >>> pool = edge.Pool(truths=np.eye(2, 4), signals=np.eye(2, 4), clusters=np.arange(2))
        >>> dims = edge.Dims(max_experts=2, num_tasks=2, num_features=4, num_samples=2)
        >>> system = edge.on_pool(dims, pool, execution_delay=np.array([1, 2]))
        >>> system.init(mt.root_key(0), edge.Params(num_experts=2)).execution_delay.tolist()
        [1, 2]
    """
    drawn = system(dims, policy, transfer=transfer, **parts)

    def init(key: Key[Array, ""], params: Params) -> State:
        del key
        state = begin(dims, params, pool, execution_delay, positions)
        check_laws(dims, params, transfer, delays.uniform)
        for transfer_delay in (params.min_transfer_delay, params.max_transfer_delay):
            _check_totals(transfer_delay, execution_delay, params, dims.max_delay)
        return state

    return System(init, drawn.step)


def learn(
    state: State,
    arrival: Arrival,
    params: Params,
    policy: Policy = adaptive,
    *,
    dims: Dims | None = None,
    fit: Fit = minimum_norm,
) -> tuple[State, Info]:
    """One round on an explicit arrival, nothing random inside: gate steps, completions, routing, in this order.

    Round t opens with the gate steps of the tasks completed in round t - 1 (with `gate_lag` 0, of those completed
    now). They are stale: their gate probabilities and inputs are those of the round of routing. Servers whose tasks
    end in round t take their new models and are idle. The arrival goes to the idle server of highest score, which is
    busy in rounds t, ..., t + d - 1. With no server idle, it is dropped and counted, or waits (`Dims.when_busy`).

    Args:
        arrival: truth (p,) and features (p, s) of the task, and what policies route by.
        policy: from `policies`, or your own.
        dims: those passed to `begin`; needed only where servers hold several tasks or tasks wait.
        fit: what a server's model changes by.
    Returns: the state after the round, and what was observed.
    Source: Eqs. (1)-(13) and Algorithm 1 of `edge`; its footnote 1 for capacities above 1.
    Raises: InvalidDimsError for arrays that do not fit the state; InvalidParamsError for parameters or delays outside
        their range, where their values are known, and for a fit or targets of one's own where servers hold several
        tasks, whose models are fitted once more when they complete, or for targets where tasks wait.

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
    arrival = _check_round(state, arrival, params, dims, fit)
    time = state.round + 1
    done = (state.pending_server != FREE) & (state.pending_until <= time)
    completion = _complete(state, done, dims)
    ready = _apply(_update_gates(state, completion.change_norms, params), completion, done, time)
    if ready.queue is None:
        after, assignment = _route(ready, arrival, True, params, policy, fit, dims)
        expert = jnp.where(assignment.is_routed, assignment.server, DROPPED)
    else:
        after, assignment, expert = _route_queue(ready, ready.queue, arrival, params, policy, fit, dims)
    after = after._replace(dropped=after.dropped + (expert == DROPPED))

    exists = _exists(state, params)
    idle = exists & (ready.busy_until <= time)
    outputs = gating.gate_outputs(after.gates, jnp.sum(arrival.features, axis=1))
    specialists = exists & (jax.vmap(lambda gate: _specialty(after, gate))(after.gates) == arrival.task)
    info = Info(
        task=arrival.task,
        truth=arrival.truth,
        expert=expert,
        delay=assignment.delay,
        wait=assignment.wait,
        num_busy=jnp.sum(exists & ~idle, dtype=jnp.int32),
        num_idle=jnp.sum(idle, dtype=jnp.int32),
        num_completed=jnp.sum(done, dtype=jnp.int32),
        completed_task=jnp.where(done, state.pending_task, NONE),
        completed_change=jnp.sum(completion.change_norms),
        gate_outputs=outputs,
        gate_probabilities=gating.gate_probabilities(outputs, exists),
        is_misrouted=assignment.is_misrouted,
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
    """G_t once all pending tasks are completed, (20) at T + d_T.

    Args:
        dims: as for `learn`.
    Source: Eq. (20) of `edge`. Units: squared model distance.
    Raises: InvalidDimsError where the state needs `dims` and there are none.
    """
    if dims is None:
        _require_no_dims(state)
    flushed = _complete(state, state.pending_server != FREE, dims)
    return flushed.squared_error / jnp.maximum(jnp.sum(state.visits), 1)


def draw(
    key: Key[Array, ""], dims: Dims, pool: Pool, positions: Float[Array, "M 2"], params: Params, transfer: Law
) -> Arrival:
    """Draw a round's arrival: task and data by Definition 1, the user on the unit square, delays by `transfer`.

    The kind is uniform on the pool; the truth is its centre plus N(0, spread^2) entrywise (6).

    Source: Definition 1 and Eq. (6) of `edge`.
    Raises: InvalidParamsError for a law of delays that does not return whole numbers (M,).

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> import moe_theory as mt
        >>> from moe_theory import edge
        >>> pool = edge.Pool(truths=jnp.eye(2, 4), signals=jnp.eye(2, 4), clusters=jnp.arange(2))
        >>> dims, params = edge.Dims(3, num_tasks=2, num_features=4, num_samples=2), edge.Params(num_experts=3)
        >>> draw, positions = jax.jit(edge.draw, static_argnums=(1, 5)), edge.delays.even_map(3)
        >>> arrival = draw(mt.root_key(0), dims, pool, positions, params, edge.delays.uniform)
        >>> arrival.features.shape, arrival.transfer_delay.shape
        ((4, 2), (3,))
    """
    num_features, num_samples, dtype = dims.num_features, dims.num_samples, pool.truths.dtype
    numbers, normals = random.draws(key, 6 + 3 * dims.max_experts, num_features * num_samples, dtype)
    units, of_servers = numbers[:6], numbers[6:].reshape(dims.max_experts, 3)
    perturbation, uniform, for_delays = jnp.moveaxis(of_servers, 1, 0)
    vectors = normals.reshape(num_samples, num_features)

    task = uniform_index(units[0], dims.num_tasks)
    truth = select_row(pool.truths, task) + params.cluster_spread * vectors[0]
    is_proportional = jnp.asarray(params.signal_law) == PROPORTIONAL
    direction = jnp.where(is_proportional, params.signal_scale * truth, select_row(pool.signals, task))
    strength = params.max_strength - rounded_positive((params.max_strength - params.min_strength) * units[2])
    noise = params.noise_scale * vectors[1:].T
    distance = jnp.sqrt(jnp.sum(jnp.square(positions - units[None, 3:5]), axis=1))
    trip = Trip(
        uniform=for_delays,
        least=jnp.asarray(params.min_transfer_delay, jnp.int32),
        most=jnp.asarray(params.max_transfer_delay, jnp.int32),
        distance=distance,
        nearest=gating.best_expert(-distance, jnp.arange(dims.max_experts) < params.num_experts)[0],
        positions=positions,
        uplink=-jnp.log(units[5]),
    )
    return Arrival(
        task=task,
        features=hide_signal(strength * direction, noise, units[1]),
        truth=truth,
        transfer_delay=bounded_delays(transfer, trip, params),
        distance=distance,
        perturbation=rounded_positive(params.perturbation_scale * perturbation),
        uniform=uniform,
    )


def draw_pool(key: Key[Array, ""], dims: Dims, params: Params) -> Pool:
    """Draw the centres of the N clusters of ground truths, N(0, sigma_0) entrywise, and their feature signals.

    By `signal_law` the signals are c times the centres; orthogonal to each other with norm c; or independent of the
    truths, with largest entry c. Under the first law an arrival's signal is c times its own truth.

    Source: Assumption 1 of `edge`, which asks for |v|_inf = O(1) and leaves the rest open.
    """
    dtype = jnp.result_type(float)
    shape = (2, dims.num_tasks, dims.num_features)
    centres, others = random.normals(key, math.prod(shape), dtype).reshape(shape)
    scale = jnp.asarray(params.truth_scale, dtype)
    truths = jnp.where(jnp.asarray(params.scale_is_variance, bool), jnp.sqrt(scale), scale) * centres
    bounded = others / jnp.max(jnp.abs(others), axis=1, keepdims=True)
    law = jnp.asarray(params.signal_law)
    directions = jnp.where(law == ORTHOGONAL, orthonormal(others), jnp.where(law == INDEPENDENT, bounded, truths))
    return Pool(truths=truths, signals=params.signal_scale * directions, clusters=jnp.arange(dims.num_tasks))


def draw_execution(key: Key[Array, ""], dims: Dims, positions: Float[Array, "M 2"], params: Params, law: Law) -> Array:
    """Draw each server's execution delay d^ex (M,), in rounds; it stays for the whole run."""
    uniform = random.uniforms(key, dims.max_experts, positions.dtype)
    trip = Trip(
        uniform=uniform,
        least=jnp.asarray(params.min_execution_delay, jnp.int32),
        most=jnp.asarray(params.max_execution_delay, jnp.int32),
        distance=jnp.zeros(dims.max_experts, positions.dtype),
        nearest=jnp.int32(-1),
        positions=positions,
        uplink=jnp.ones((), positions.dtype),
    )
    return bounded_delays(law, trip, params)


def bounded_delays(law: Law, trip: Trip, params: Params) -> Int[Array, " M"]:
    """A law's delays, clipped to the bounds. Raises: InvalidParamsError unless the law returns whole numbers (M,)."""
    rounds = jnp.asarray(law(trip, params))
    if rounds.shape != trip.uniform.shape or not jnp.issubdtype(rounds.dtype, jnp.integer):
        raise InvalidParamsError(
            f"a law of delays gave {rounds.dtype} of shape {rounds.shape}, not whole rounds, one a server: "
            f"{trip.uniform.shape}. Round and cast in the law."
        )
    return jnp.clip(rounds.astype(jnp.int32), trip.least, trip.most)


def check_laws(dims: Dims, params: Params, transfer: Law, execution: Law) -> None:
    """Refuse laws that do not fit: execution by distance, and a table of another shape or beyond the bounds.

    Raises: InvalidParamsError, InvalidDimsError.
    """
    if execution is delays.by_distance:
        raise InvalidParamsError("by_distance is a law of transfers: execution is at one server. Choose another law.")
    experts = (dims.max_experts,)
    shapes = {"transfer": (experts, experts * 2), "execution": (experts,)}
    for name, law in (("transfer", transfer), ("execution", execution)):
        if isinstance(law, Table):
            ends = [getattr(params, f"{end}_{name}_delay") for end in ("min", "max")]
            bounds = (int(ends[0]), int(ends[1])) if is_known(ends) else None
            law.check(dims, name, shapes[name], bounds)


class _Completion(NamedTuple):
    """Models and errors once some pending tasks are completed."""

    experts: Float[Array, "M p"]
    residuals: Float[Array, "M p"]
    squared_error: Float[Array, ""]
    change_norms: Float[Array, " S"]  # of what each completed task added to its server's model; 0 elsewhere
    is_stale: Bool[Array, " S"]  # whether a task's server has changed since the task was routed


def _update_gates(state: State, change_norms: Float[Array, " S"], params: Params) -> State:
    """Take last round's gate step or, with `gate_lag` 0, that of the tasks just completed.

    Args:
        change_norms: |w_t - w_{t-1}| of the completed tasks.
    Source: Eqs. (11)-(13), (24)-(26) of `edge`.
    """
    weighted = stored(change_norms[:, None] * state.pending_slopes)
    # A chain of additions, slot by slot: XLA would turn one sum of products into a slower reduction.
    gradient = jnp.zeros_like(state.gates)
    for slot in range(change_norms.shape[0]):
        gradient = gradient + weighted[slot][:, None] * state.pending_input[slot][None, :]
    is_immediate = jnp.asarray(params.gate_lag) == 0
    step = state.gate_step + jnp.where(is_immediate, gradient, 0)
    return state._replace(
        gates=state.gates - params.learning_rate * step, gate_step=jnp.where(is_immediate, 0, gradient)
    )


def _apply(state: State, completion: _Completion, done: Bool[Array, " S"], time: Int[Array, ""]) -> State:
    """Give servers their new models, and free the slots of the tasks that are done."""
    refit = state.refit
    return state._replace(
        experts=completion.experts,
        residuals=completion.residuals,
        squared_error=completion.squared_error,
        pending_server=jnp.where(done, FREE, state.pending_server),
        refit=None if refit is None else refit._replace(is_stale=completion.is_stale),
        round=time,
    )


def _complete(state: State, is_done: Bool[Array, " S"], dims: Dims | None) -> _Completion:
    """Complete the tasks of the slots `is_done`: their servers take the models that fit them (9).

    Tasks of one server complete in the order of their ends, then of their routing, each from the model that the one
    before has left.

    The sum of squared errors is kept in centred form: when a server's model moves by D, the residuals of its c tasks
    sum to u' = u + c D in place of u, and their squares change by D.(u + u'). This stays accurate in float32.

    Source: Eqs. (9), (10), (20) of `edge`.
    """
    completion = _Completion(
        experts=state.experts,
        residuals=state.residuals,
        squared_error=state.squared_error,
        change_norms=jnp.zeros_like(state.pending_norm),
        is_stale=jnp.zeros(is_done.shape, bool) if state.refit is None else state.refit.is_stale,
    )
    if _slots_per_server(dims) == 1:
        return _complete_one_each(state, completion, is_done)
    rank = _rank_at_server(state, is_done)
    for index in range(_slots_per_server(dims)):
        completion = _complete_one_each(state, completion, is_done & (rank == index))
    return completion


def _complete_one_each(state: State, completion: _Completion, is_done: Bool[Array, " S"]) -> _Completion:
    """Complete at most one task a server."""
    is_stale = completion.is_stale
    if state.refit is None:
        move, change_norms = _moves(state, is_done)
    else:
        move, change_norms, is_stale = _refitted_moves(state, state.refit, completion, is_done)
    # Rounded apart from the sums they go into, or unused slots would change last bits.
    zero = jnp.minimum(state.round, 0)
    drift = rounded(state.visits.astype(move.dtype)[:, None] * move, zero)
    residuals = completion.residuals + drift
    gains = rounded(move * (completion.residuals + residuals), zero)
    return _Completion(
        experts=completion.experts + move,
        residuals=residuals,
        squared_error=completion.squared_error + jnp.sum(gains),
        change_norms=completion.change_norms + change_norms,
        is_stale=is_stale,
    )


def _moves(state: State, is_done: Bool[Array, " S"]) -> tuple[Float[Array, "M p"], Float[Array, " S"]]:
    """How completed tasks move their servers' models, and how far each does."""
    is_moved = is_done
    if not _has_own_slots(state, None):
        is_moved = jnp.any(_one_hot(state.pending_server, is_done, len(state.experts)), axis=0)
    move = jnp.where(is_moved[:, None], state.pending_change, 0)
    return move, jnp.where(is_done, state.pending_norm, 0)


def _refitted_moves(
    state: State, refit: Refit, completion: _Completion, is_done: Bool[Array, " S"]
) -> tuple[Float[Array, "M p"], Float[Array, " S"], Bool[Array, " S"]]:
    """The same of tasks whose servers may have changed since, each refitted to the model that it finds; and which slots
    are stale after that."""
    at_server = _one_hot(state.pending_server, is_done, len(state.experts))
    basis = refit.basis
    missing = refit.truth - jnp.sum(jnp.where(at_server[:, :, None], completion.experts[None], 0), axis=1)
    shares = jnp.sum(basis * missing[:, None, :], axis=2)
    refitted = jnp.sum(jnp.where(is_done[:, None, None], basis * shares[:, :, None], 0), axis=1)
    change = jnp.where(is_done[:, None], state.pending_change, 0)
    change = jnp.where(completion.is_stale[:, None], refitted, change)
    move = jnp.sum(jnp.where(at_server[:, :, None], change[:, None, :], 0), axis=0)
    changed = jnp.any(at_server, axis=0)
    is_pending = _one_hot(state.pending_server, True, len(changed))
    is_stale = completion.is_stale | jnp.any(changed[None, :] & is_pending, axis=1)
    norms = jnp.where(completion.is_stale, jnp.sqrt(jnp.sum(jnp.square(change), axis=1)), state.pending_norm)
    return move, jnp.where(is_done, norms, 0), is_stale


class _Assignment(NamedTuple):
    """What came of offering one task to the servers."""

    is_routed: Bool[Array, ""]
    server: Int[Array, ""]
    delay: Int[Array, ""]
    wait: Int[Array, ""]
    is_misrouted: Bool[Array, ""]


def _route(
    state: State,
    arrival: Arrival,
    is_offered: bool | Bool[Array, ""],
    params: Params,
    policy: Policy,
    fit: Fit,
    dims: Dims | None,
) -> tuple[State, _Assignment]:
    """Offer a task to the servers: the state with it pending, or unchanged where no server takes it."""
    time, exists = state.round, _exists(state, params)
    gate_input = jnp.sum(arrival.features, axis=1)
    outputs = gating.gate_outputs(state.gates, gate_input)
    probabilities = gating.gate_probabilities(outputs, exists)
    scores = gating.scored(policy(outputs, state, arrival, params), outputs)
    is_open = exists & jnp.any(state.pending_server == FREE)
    idle = is_open & (state.busy_until <= time)
    if dims is not None and dims.when_busy == "soonest":
        all_busy = ~jnp.any(idle)
        has_room = is_open & (_num_held(state) < params.capacity + dims.max_waiting)
        scores = jnp.where(all_busy, -state.busy_until.astype(scores.dtype), scores)
        idle = jnp.where(all_busy, has_room, idle)
    server, mask, is_blind = gating.best_ranked(scores, idle & is_offered)
    is_routed = jnp.any(mask)
    delay = jnp.sum(jnp.where(mask, arrival.transfer_delay + state.execution_delay, 0), dtype=jnp.int32)
    free_from = jnp.sum(jnp.where(mask, state.busy_until, 0), dtype=jnp.int32)
    wait = jnp.where(is_routed, jnp.maximum(free_from - time, 0), 0)
    until = time + wait + delay
    is_misrouted = is_routed & (_specialty(state, select_row(state.gates, server)) != arrival.task)
    after = _fill_slot(state, arrival, server, mask, until, params, fit, dims)
    slot = (after.pending_server != FREE) & (state.pending_server == FREE)
    slopes = gating.gate_slopes(probabilities, mask.astype(outputs.dtype))
    after = after._replace(
        squared_error=jnp.where(is_blind, jnp.nan, after.squared_error),  # from then on: the gates are NaN
        misrouted=state.misrouted + is_misrouted,
        pending_input=jnp.where(slot[:, None], gate_input[None, :], state.pending_input),
        pending_slopes=jnp.where(slot[:, None], slopes[None, :], state.pending_slopes),
    )
    if _slots_per_server(dims) == 1:
        busy_until = jnp.where(mask, until, state.busy_until)
    else:
        busy_until = _next_free_round(after, jnp.asarray(params.capacity))
    return after._replace(busy_until=busy_until), _Assignment(is_routed, server, delay, wait, is_misrouted)


def _route_queue(
    state: State, queue: Queue, arrival: Arrival, params: Params, policy: Policy, fit: Fit, dims: Dims | None
) -> tuple[State, _Assignment, Int[Array, ""]]:
    """Offer the queue, then the new task, until no server is idle: the state, the new task's assignment, its server."""
    max_waiting = queue.arrivals.task.shape[0]
    is_new = jnp.arange(max_waiting + 1) == queue.num_waiting
    tasks: Any = jax.tree.map(
        lambda waiting, new: jnp.where(
            is_new.reshape(-1, *(1,) * jnp.ndim(new)), new, jnp.concatenate([waiting, waiting[:1]])
        ),
        queue.arrivals,
        arrival,
    )
    remaining, none = queue.num_waiting + 1, jnp.zeros((), jnp.int32)
    latest = _Assignment(none > 0, none + WAITING, none, none, none > 0)
    for _ in range(max_waiting + 1):
        first = jax.tree.map(lambda leaf: leaf[0], tasks)
        state, assignment = _route(state, first, remaining > 0, params, policy, fit, dims)
        is_last = assignment.is_routed & (remaining == 1)
        latest = jax.tree.map(lambda new, old, is_last=is_last: jnp.where(is_last, new, old), assignment, latest)
        tasks = jax.tree.map(
            lambda leaf, is_routed=assignment.is_routed: jnp.where(is_routed, jnp.roll(leaf, -1, axis=0), leaf), tasks
        )
        remaining = remaining - assignment.is_routed
    overflows = remaining > max_waiting
    kept = Queue(jax.tree.map(lambda leaf: leaf[:max_waiting], tasks), remaining - overflows)
    return state._replace(queue=kept), latest, jnp.where(overflows, DROPPED, latest.server)


def _fill_slot(
    state: State,
    arrival: Arrival,
    server: Int[Array, ""],
    mask: Bool[Array, " M"],
    until: Int[Array, ""],
    params: Params,
    fit: Fit,
    dims: Dims | None,
) -> State:
    """Put the task into the first free slot, of its server where each has its own, and count it among its server's;
    nothing where `mask` is empty.
    """
    is_free = state.pending_server == FREE
    if _has_own_slots(state, dims):
        is_free = is_free & jnp.repeat(mask, _slots_per_server(dims))
    _, slot = gating.best_expert(jnp.zeros(is_free.shape), is_free)
    slot = slot & jnp.any(mask)
    model = jnp.sum(jnp.where(mask[:, None], state.experts, 0), axis=0)
    missing = arrival.truth - model
    error = rounded(jnp.square(missing), jnp.minimum(state.round, 0))
    change = fitted(fit, model[None, :], arrival, params)[0]
    place = slot if len(state.pending_change) == len(slot) else mask
    refit = state.refit
    if refit is not None:
        basis = orthonormal_rows(arrival.features)
        refit = Refit(
            basis=jnp.where(slot[:, None, None], basis[None], refit.basis),
            truth=jnp.where(slot[:, None], arrival.truth[None, :], refit.truth),
            is_stale=refit.is_stale & ~slot,
        )
    return state._replace(
        visits=state.visits + mask,
        residuals=state.residuals - jnp.where(mask[:, None], missing[None, :], 0),
        squared_error=state.squared_error + jnp.sum(jnp.where(jnp.any(mask), error, 0)),
        pending_server=jnp.where(slot, server, state.pending_server),
        pending_task=jnp.where(slot, arrival.task, state.pending_task),
        pending_serial=jnp.where(slot, jnp.sum(state.visits, dtype=jnp.int32), state.pending_serial),
        pending_until=jnp.where(slot, until, state.pending_until),
        pending_change=jnp.where(place[:, None], change[None, :], state.pending_change),
        pending_norm=jnp.where(slot, jnp.sqrt(jnp.sum(jnp.square(change))), state.pending_norm),
        refit=refit,
    )


def _next_free_round(state: State, capacity: Int[Array, ""]) -> Int[Array, " M"]:
    """The first round in which each server can start another task, from its pending ones; not after now if it can.

    First come first served: a new task starts once all but `capacity` - 1 of the earlier ones are done.
    """
    is_pending = state.pending_server != FREE
    is_decisive = is_pending & (_rank_at_server(state, is_pending, backwards=True) == capacity - 1)
    at_server = _one_hot(state.pending_server, is_decisive, state.experts.shape[0])
    until = jnp.sum(jnp.where(at_server, state.pending_until[:, None], 0), axis=0, dtype=jnp.int32)
    return jnp.where(jnp.any(at_server, axis=0), until, jnp.minimum(state.busy_until, state.round))


def _num_held(state: State) -> Int[Array, " M"]:
    """How many tasks each server holds, its queue included."""
    return jnp.sum(_one_hot(state.pending_server, True, state.experts.shape[0]), axis=0, dtype=jnp.int32)


def _rank_at_server(state: State, counts: Bool[Array, " S"], backwards: bool = False) -> Int[Array, " S"]:
    """For each slot, how many of the tasks that count are at its server and end earlier (`backwards`: later).

    Ties go to the task routed first.
    """
    until, serial = state.pending_until, state.pending_serial
    is_earlier = (until[None, :] < until[:, None]) | (
        (until[None, :] == until[:, None]) & (serial[None, :] < serial[:, None])
    )
    is_before = is_earlier.T if backwards else is_earlier
    together = state.pending_server[None, :] == state.pending_server[:, None]
    return jnp.sum(counts[None, :] & together & is_before, axis=1, dtype=jnp.int32)


def _one_hot(servers: Int[Array, " S"], counts: Bool[Array, " S"] | bool, max_experts: int) -> Bool[Array, "S M"]:
    """Which server each slot's task is at; none for a free slot or one that does not count."""
    return (servers[:, None] == jnp.arange(max_experts)[None, :]) & jnp.asarray(counts)[..., None]


def _has_own_slots(state: State, dims: Dims | None) -> bool:
    """Whether there are slots for all tasks that all servers hold: those of the first server, of the second, ..."""
    return state.pending_server.shape[0] == len(state.experts) * _slots_per_server(dims)


def _slots_per_server(dims: Dims | None) -> int:
    return 1 if dims is None else dims.slots_per_server


def _exists(state: State, params: Params) -> Bool[Array, " M"]:
    return jnp.arange(state.experts.shape[0]) < params.num_experts


def _specialty(state: State, gate: Float[Array, " p"]) -> Int[Array, ""]:
    """The kind n that an expert specialises in, m in M_n of (15); `NONE` where the largest output is a tie."""
    drives = jnp.sum(gate[None, :] * state.pool.signals, axis=1)
    kinds = jnp.arange(drives.shape[0], dtype=jnp.int32)
    leads = drives == jnp.max(drives)
    return jnp.where(jnp.sum(leads) == 1, jnp.sum(jnp.where(leads, kinds, 0), dtype=jnp.int32), NONE)


def _empty_queue(dims: Dims, dtype: jnp.dtype) -> Queue:
    def zeros(kind: Any, *shape: int) -> Array:
        return jnp.zeros((dims.max_waiting, *shape), kind)

    data = {"features": (dims.num_features, dims.num_samples), "truth": (dims.num_features,)}
    per_server = dict.fromkeys(("distance", "perturbation", "uniform"), (dims.max_experts,))
    reals = {name: zeros(dtype, *shape) for name, shape in (data | per_server).items()}
    arrivals = Arrival(task=zeros(jnp.int32), transfer_delay=zeros(jnp.int32, dims.max_experts), **reals)
    return Queue(arrivals, jnp.zeros((), jnp.int32))


def _check_round(state: State, arrival: Arrival, params: Params, dims: Dims | None, fit: Fit) -> Arrival:
    """Refuse a round by the shapes and, where they are known, the values of what it is given; the arrival as arrays."""
    (max_experts, num_features), num_tasks = state.experts.shape, state.pool.truths.shape[0]
    features = np.shape(arrival.features)
    if len(features) != 2 or features[0] != num_features:
        raise InvalidDimsError(f"features of shape {features} must be ({num_features}, s): a sample is a column.")
    if dims is None:
        _require_no_dims(state)
    elif not _fits(state, dims):
        raise InvalidDimsError("the state has other dims than those passed: pass the dims that begin was given.")
    elif features[1] != dims.num_samples:
        raise InvalidDimsError(
            f"features of shape {features} must be ({num_features}, {dims.num_samples}), as num_samples="
            f"{dims.num_samples}. Change the arrival's features or Dims.num_samples."
        )
    fitting = dims or Dims(max_experts, num_tasks, num_features, features[1])
    check_params(fitting, params)
    shapes = {"truth": (num_features,), "task": ()} | ({} if arrival.targets is None else {"targets": features[1:]})
    per_server = ("transfer_delay", "distance", "perturbation", "uniform")
    for name, shape in {**shapes, **dict.fromkeys(per_server, (max_experts,))}.items():
        if np.shape(getattr(arrival, name)) != shape:
            found = np.shape(getattr(arrival, name))
            raise InvalidDimsError(f"{name} of shape {found} must be {shape}. Change the arrival's {name}.")
    if state.refit is not None and (fit is not minimum_norm or arrival.targets is not None):
        raise InvalidParamsError(
            "servers that hold several tasks refit them by the minimum norm: leave out fit and targets."
        )
    if state.queue is not None and arrival.targets is not None:
        raise InvalidParamsError(
            "tasks that wait have the targets of their truths: leave out targets, or let them drop."
        )
    num_slots = state.pending_server.shape[0]
    if _has_own_slots(state, dims) and is_known(state.pending_server):
        owners = np.arange(num_slots) // _slots_per_server(dims)
        if np.any((np.asarray(state.pending_server) != FREE) & (np.asarray(state.pending_server) != owners)):
            raise InvalidParamsError(
                "pending_server names servers out of place: a state with slots for all tasks of all servers has those "
                "of server 0 first. States of earlier versions cannot go on: begin anew."
            )
    longest = num_slots if dims is None and num_slots < max_experts else fitting.max_delay
    _check_delays("transfer_delay", arrival.transfer_delay, (max_experts,), longest)
    _check_totals(arrival.transfer_delay, state.execution_delay, params, longest)
    if is_known(arrival.task) and np.asarray(arrival.task) not in range(num_tasks):
        raise InvalidParamsError(
            f"task={arrival.task} must be a whole number in 0..{num_tasks - 1}: a kind of the pool."
        )
    leaves = {}
    for name, values in arrival._asdict().items():
        if values is None:
            continue
        is_whole = name in ("task", "transfer_delay")
        if not is_whole and is_known(values) and not np.all(np.isfinite(np.asarray(values, float))):
            raise InvalidParamsError(f"{name} must be finite numbers. Change the arrival's {name}.")
        leaves[name] = jnp.asarray(values, jnp.int32 if is_whole else state.experts.dtype)
    return Arrival(**leaves)


def _require_no_dims(state: State) -> None:
    """Raise InvalidDimsError where a round cannot do without the dims."""
    if state.refit is not None or state.queue is not None:
        raise InvalidDimsError("servers of this state hold several tasks, or tasks wait: pass dims, those of begin.")


def _check_totals(transfer_delay: Any, execution_delay: Any, params: Params, longest: int | None) -> None:
    """Raise unless a transfer and an execution together, where known, take between 1 and `longest` rounds."""
    if not is_known(transfer_delay, execution_delay, params.num_experts):
        return
    totals = (np.asarray(transfer_delay) + np.asarray(execution_delay))[: int(params.num_experts)]
    if totals.min() < 1:
        raise InvalidParamsError(
            f"server {totals.argmin()} has a delay of {totals.min()} rounds, transfer and execution together: a task "
            "takes at least 1 (1). Raise its transfer_delay or execution_delay."
        )
    if longest is not None and totals.max() > longest:
        raise InvalidParamsError(
            f"server {totals.argmax()} has a delay of {totals.max()} rounds, above max_delay={longest}, which the "
            "arrays are padded to. Lower the delay or raise Dims.max_delay."
        )


def _check_delays(name: str, values: Any, shape: tuple[int, ...], longest: int | None) -> None:
    """Raise unless delays, where known, are whole numbers of rounds of at least 0 and at most `longest`, in `shape`."""
    if np.shape(values) != shape:
        raise InvalidDimsError(f"{name} of shape {np.shape(values)} must be {shape}, one a server. Change {name}.")
    if not is_known(values):
        return
    values = np.asarray(values)
    require_whole_rounds(name, values)
    if longest is not None and np.any(values > longest):
        server = int(np.argmax(values))
        raise InvalidParamsError(
            f"{name}[{server}]={values[server]} is above max_delay={longest}, which the arrays are padded to. Lower "
            f"{name} or raise Dims.max_delay."
        )


def _fits(state: State, dims: Dims) -> bool:
    """Whether the state was begun with these dims, as far as they matter."""
    waiting = 0 if state.queue is None else state.queue.arrivals.task.shape[0]
    return (
        state.pending_slopes.shape == (dims.num_slots, dims.max_experts)
        and state.pool.truths.shape == (dims.num_tasks, dims.num_features)
        and (state.refit is not None) == (dims.slots_per_server > 1)
        and waiting == (dims.max_waiting if dims.when_busy == "wait" else 0)
    )
