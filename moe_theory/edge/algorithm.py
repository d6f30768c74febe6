"""Algorithm 1 of `edge`, for one replicate: tasks go to idle servers, which are busy until they have learned them.

In the paper a server holds one task. `Dims.max_capacity` or a queue at the server allows several.
"""

import functools
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from moe_theory.core import gating
from moe_theory.core.constraints import AT_LEAST_0, SHARE, is_known
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.linear import Fit, minimum_norm
from moe_theory.core.locality import Locality, check_locality
from moe_theory.core.numerics import Numbers
from moe_theory.core.parts import of_parts
from moe_theory.core.random import with_own_key
from moe_theory.core.system import System
from moe_theory.core.tasks import Pool, check_arrival, check_pool, streamed
from moe_theory.edge import delays, servers
from moe_theory.edge.arrivals import Arrival, check_execution, draw, draw_execution, draw_pool
from moe_theory.edge.delays import Law
from moe_theory.edge.params import Dims, Params, check_params, require_whole_rounds
from moe_theory.edge.policies import Policy, adaptive, check_policy
from moe_theory.edge.servers import DROPPED, FREE, NONE, Assignment, Servers, is_misrouted
from moe_theory.edge.several import Refit, empty_refit, several_tasks_each

# Draws a round: (key, dims, state, params) -> its pool and its arrival.
Stream = Callable[[Key[Array, ""], Dims, Any, Params], tuple[Pool, Arrival]]


class State(NamedTuple):
    """State that is carried from round to round and saved as the checkpoint."""

    pool: Pool
    positions: Float[Array, "M 2"]  # of the servers, on the unit square
    execution_delay: Annotated[Int[Array, " M"], AT_LEAST_0]  # d^ex, in rounds
    experts: Float[Array, "M p"]  # local models w^(m)
    gates: Float[Array, "M p"]  # gating parameters theta^(m), as the router last saw them
    gate_step: Float[Array, "M p"]  # summed gradients of the tasks completed last: the router's next step
    busy_until: Annotated[Int[Array, " M"], AT_LEAST_0]  # the first round in which each server can take another task
    visits: Annotated[Int[Array, " M"], AT_LEAST_0]  # loads L_t(m): tasks routed to each server
    dropped: Annotated[Int[Array, ""], AT_LEAST_0]  # tasks lost because no server was idle
    misrouted: Annotated[Int[Array, ""], AT_LEAST_0]  # tasks routed to a server of another specialty (15)
    residuals: Float[Array, "M p"]  # sum over a server's tasks i of w^(m) - w_i
    squared_error: Float[Array, ""]  # sum over all routed tasks i of |w^(m_i) - w_i|^2
    round: Int[Array, ""]  # rounds done, t
    pending_server: Int[Array, " S"]  # m_i or `FREE`. If every server has its own slots, server 0's come first
    pending_task: Int[Array, " S"]  # task type n_i
    pending_serial: Int[Array, " S"]  # how many tasks were routed before this one
    pending_until: Int[Array, " S"]  # the round at whose start the task is done
    pending_change: Float[Array, "C p"]  # what (9) adds to the model as it was at routing. C is M, or S with capacity
    pending_norm: Annotated[Float[Array, " S"], AT_LEAST_0]  # length |w_t - w_{t-1}| of this change
    pending_input: Float[Array, "S p"]  # stale gate input sum_i X_i
    pending_slopes: Float[Array, "S M"]  # stale derivatives of pi_{m_i} in the gate outputs, (25), (26)
    refit: Refit | None = None  # set only if servers hold several tasks
    memory: PyTree = None  # what a custom locality loss remembers


class Info(NamedTuple):
    """Observables after a round. Models and errors do not include the pending tasks."""

    task: Int[Array, ""]  # n_t
    truth: Float[Array, " p"]  # w_t, the task's own ground truth
    expert: Int[Array, ""]  # m_t, `DROPPED` if the task went to no server
    delay: Annotated[Int[Array, ""], AT_LEAST_0]  # d_t of (1), in rounds, 0 if the task went to no server
    wait: Annotated[Int[Array, ""], AT_LEAST_0]  # rounds before the server starts on it (`soonest`)
    num_busy: Int[Array, ""]  # servers that were at capacity at routing
    num_idle: Int[Array, ""]  # servers that could take a task at routing
    num_completed: Int[Array, ""]  # tasks done at the start of this round
    completed_task: Int[Array, " S"]  # types of these tasks, by slot, `NONE` elsewhere
    completed_change: Annotated[Float[Array, ""], AT_LEAST_0]  # sum of |w_{t} - w_{t-1}| over these tasks
    gate_outputs: Float[Array, " M"]  # h_m, without the perturbation
    gate_probabilities: Annotated[Float[Array, " M"], SHARE]  # softmax pi_m over all servers, idle or not
    is_misrouted: Bool[Array, ""]  # whether the server specialises in another task type (15)
    num_specialists: Int[Array, ""]  # servers that specialise in this task type
    specialist_exists: Bool[Array, ""]  # whether there is such a server
    specialist_idle: Bool[Array, ""]  # whether such a server is idle
    dropped: Int[Array, ""]  # tasks lost so far
    generalization_error: Float[Array, ""]  # G_t of (20): mean over the tasks routed so far
    generalization_error_flushed: Float[Array, ""]  # G_t once the pending tasks are completed


@of_parts()
def system(
    dims: Dims,
    policy: Policy = adaptive,
    *,
    transfer: Law = delays.uniform,
    execution: Law = delays.uniform,
    stream: Stream | None = None,
    fit: Fit = minimum_norm,
    locality: Locality | None = None,
) -> System:
    """Return Algorithm 1 under a routing policy as a `System`.

    Every replicate draws a pool and execution delays. Servers are at `delays.even_map`.

    Args:
        policy: from `policies`, or your own pure function. A parameter named `key` receives a new key every round.
        transfer: distribution of the transfer delays of a task, from `delays` or your own.
        execution: distribution of the execution delays, drawn once.
        stream: draws the arrival of each round, and may change the pool. The default is `draw` from one pool.
        fit: the change of a server's model.
        locality: the locality loss's cost for servers that complete tasks, and its memory. It receives a `servers.Done`
            as the arrival. The default cost is |w_t - w_{t-1}|, as in (11).
    Source: Algorithm 1, Definition 1, Assumption 1 and Section VI of `edge`.
    Raises: InvalidValueError unless `policy` is a function and `locality` a `Locality`. The system's `init` and `step`
        raise the errors of `begin` and `learn`.

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
    if locality is not None:
        check_locality(locality)

    def stationary(key: Key[Array, ""], dims: Dims, state: Any, params: Params) -> tuple[Pool, Arrival]:
        return state.pool, draw(key, dims, state.pool, state.positions, params, transfer=transfer)

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Info]:
        source = (stream or stationary)(key, dims, state, params)
        pool, arrival = streamed(source, "pool", "arrival")
        check_pool(dims.num_tasks, dims.num_features, pool)
        own_policy = with_own_key(policy, key)
        return learn(state._replace(pool=pool), arrival, params, own_policy, dims=dims, fit=fit, locality=locality)

    return System(_initializer(dims, execution, locality), step)


@functools.lru_cache  # no policy changes the initial state, so all policies share one function, compiled once
def _initializer(dims: Dims, execution: Law, locality: Locality | None) -> Callable[..., State]:
    def init(key: Key[Array, ""], params: Params) -> State:
        check_params(dims, params)
        check_execution(execution)
        pool_key, execution_key = jax.random.split(key)
        pool = draw_pool(pool_key, dims, params)
        positions = jnp.asarray(delays.even_map(dims.max_experts), jnp.result_type(float))
        execution_delay = draw_execution(execution_key, dims, positions, params, law=execution)
        return begin(dims, params, pool, execution_delay=execution_delay, positions=positions, locality=locality)

    return init


def _checked_positions(num_servers: int, positions: Float[Numbers, "M 2"] | None) -> Float[Numbers, "M 2"]:
    if positions is None:
        return delays.even_map(num_servers)
    if np.shape(positions) != (num_servers, 2):
        raise InvalidValueError(
            f"positions has shape {np.shape(positions)}, but must have shape ({num_servers}, 2). Change positions.",
            argument="positions",
        )
    return positions


def begin(
    dims: Dims,
    params: Params,
    pool: Pool,
    execution_delay: Int[Numbers, " M"],
    positions: Float[Numbers, "M 2"] | None = None,
    locality: Locality | None = None,
) -> State:
    """Return the state before round 1: experts and gates are zero, all servers are idle.

    Args:
        execution_delay: d^ex of each server, from 0 to `Dims.max_delay` whole rounds.
        positions: where servers are on the unit square, `delays.even_map` by default.
        locality: as for `system`.
    Source: Algorithm 1 of `edge`, line 2.
    Raises: InvalidValueError for shapes that do not fit `dims`, parameters out of range, or impossible delays.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import edge
        >>> pool = edge.Pool(truths=np.eye(2, 4), signals=np.eye(2, 4), clusters=np.arange(2))
        >>> dims = edge.Dims(max_experts=2, num_tasks=2, num_features=4, num_samples=2)
        >>> state = edge.begin(dims, edge.Params(num_experts=2), pool, execution_delay=np.array([1, 2]))
        >>> float(edge.generalization_error(state)), float(edge.generalization_error_flushed(state, dims))
        (0.0, 0.0)
    """
    check_params(dims, params)
    check_pool(dims.num_tasks, dims.num_features, pool)
    _check_delays("execution_delay", execution_delay, (dims.max_experts,), dims.max_delay)
    dtype = jnp.result_type(float)
    num_slots = dims.num_slots
    server_zeros = jnp.zeros((dims.max_experts, dims.num_features), dtype)
    slot_zeros = jnp.zeros((num_slots, dims.num_features), dtype)
    state = State(
        pool=Pool(jnp.asarray(pool.truths, dtype), jnp.asarray(pool.signals, dtype), jnp.asarray(pool.clusters)),
        positions=jnp.asarray(_checked_positions(dims.max_experts, positions), dtype),
        execution_delay=jnp.asarray(execution_delay, jnp.int32),
        experts=server_zeros,
        gates=server_zeros,
        gate_step=server_zeros,
        busy_until=jnp.zeros(dims.max_experts, jnp.int32),
        visits=jnp.zeros(dims.max_experts, jnp.int32),
        dropped=jnp.zeros((), jnp.int32),
        misrouted=jnp.zeros((), jnp.int32),
        residuals=server_zeros,
        squared_error=jnp.zeros((), dtype),
        round=jnp.zeros((), jnp.int32),
        pending_server=jnp.full(num_slots, FREE, jnp.int32),
        pending_task=jnp.zeros(num_slots, jnp.int32),
        pending_serial=jnp.zeros(num_slots, jnp.int32),
        pending_until=jnp.zeros(num_slots, jnp.int32),
        pending_change=server_zeros,
        pending_norm=jnp.zeros(num_slots, dtype),
        pending_input=slot_zeros,
        pending_slopes=jnp.zeros((num_slots, dims.max_experts), dtype),
        memory=None if locality is None else locality.init(dims),
    )
    if dims.slots_per_server > 1:
        state = state._replace(pending_change=slot_zeros, refit=empty_refit(dims, dtype))
    return state


def on_pool(
    dims: Dims,
    pool: Pool,
    execution_delay: Int[Numbers, " M"],
    policy: Policy = adaptive,
    *,
    positions: Float[Numbers, "M 2"] | None = None,
    transfer: Law = delays.uniform,
    locality: Locality | None = None,
    **parts: Any,
) -> System:
    """Return Algorithm 1 with one explicit network for all replicates: pool, execution delays and positions.

    Reuse the result, because each call compiles a new `init`.

    Args:
        locality, parts: locality, stream and fit of `system`.
    Source: Algorithm 1 of `edge`.
    Raises: the errors of `begin`, and InvalidValueError if execution and transfer together may take less than 1 round
        or more than `Dims.max_delay`.

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
    random_pool_system = system(dims, policy, transfer=transfer, locality=locality, **parts)

    def init(key: Key[Array, ""], params: Params) -> State:
        del key
        state = begin(dims, params, pool, execution_delay=execution_delay, positions=positions, locality=locality)
        for transfer_delay in (params.min_transfer_delay, params.max_transfer_delay):
            _check_total_delays(transfer_delay, execution_delay, params, longest=dims.max_delay)
        return state

    return System(init, random_pool_system.step)


def learn(
    state: State,
    arrival: Arrival,
    params: Params,
    policy: Policy = adaptive,
    *,
    dims: Dims | None = None,
    fit: Fit = minimum_norm,
    locality: Locality | None = None,
) -> tuple[State, Info]:
    """Run one round on an explicit arrival: gate steps, completions and routing, in this order.

    Gate steps are for the tasks completed in round t - 1 (or in this round, with `gate_lag` 0). They use the gate
    probabilities and inputs from the round of routing. Servers whose tasks end in round t take their new models and
    become idle. The arrival goes to the idle server with the highest score, which is busy in rounds t, ..., t + d - 1.
    If no server is idle, it is dropped and counted, or waits (`Dims.when_busy`).

    Args:
        arrival: truth (p,) and features (p, s) of the task, and data for policies.
        policy: from `policies`, or your own.
        dims: as for `begin`, needed only if servers hold several tasks.
        fit: the change of a server's model.
        locality: as passed to `begin`.
    Returns: the state and the observables.
    Source: Eqs. (1)-(13) and Algorithm 1 of `edge`, and its footnote 1 for capacities above 1.
    Raises: InvalidValueError for arrays or locality costs of another shape, and for known parameters, delays or costs
        out of range. It also refuses a custom fit, locality or targets if servers hold several tasks.

    Examples:
        >>> import jax, numpy as np
        >>> from moe_theory import edge
        >>> pool = edge.Pool(truths=np.eye(2, 4), signals=np.eye(2, 4), clusters=np.arange(2))
        >>> dims, params = edge.Dims(2, num_tasks=2, num_features=4, num_samples=2), edge.Params(num_experts=2)
        >>> state = edge.begin(dims, params, pool, execution_delay=np.array([1, 2]))
        >>> arrival = edge.Arrival(0, np.eye(4, 2), np.eye(4)[0], np.array([3, 0]), *np.zeros((3, 2)))
        >>> state, info = jax.jit(edge.learn, static_argnums=3)(state, arrival, params, edge.policies.fastest)
        >>> int(info.expert), int(info.delay), state.busy_until.tolist()
        (0, 4, [5, 0])
    """
    check_policy(policy)
    arrival = _check_round(state, arrival, params, dims=dims, fit=fit, locality=locality)
    own_servers = _choose_servers(dims, fit, locality)
    ready, is_done, change_norms = servers.open_round(state, params, own_servers)

    gate_input = jnp.sum(arrival.features, axis=1)
    after, task = servers.offer(ready, arrival, gate_input, params, policy=policy, servers=own_servers)
    after = after._replace(dropped=after.dropped + (task.server == DROPPED))
    info = _observe_round(
        state, ready, after, arrival, params, task=task, is_done=is_done, change_norms=change_norms, dims=dims
    )
    return after, info


def _observe_round(
    before: State,
    ready: State,
    after: State,
    arrival: Arrival,
    params: Params,
    *,
    task: Assignment,
    is_done: Bool[Array, " S"],
    change_norms: Float[Array, " S"],
    dims: Dims | None,
) -> Info:
    exists = servers.existing(before, params)
    is_idle = exists & (ready.busy_until <= ready.round)
    outputs = gating.gate_outputs(after.gates, jnp.sum(arrival.features, axis=1))
    specialties = jax.vmap(lambda gate: servers.specialty(after, gate))(after.gates)
    is_specialist = exists & (specialties == arrival.task)
    return Info(
        task=arrival.task,
        truth=arrival.truth,
        expert=task.server,
        delay=task.delay,
        wait=task.wait,
        num_busy=jnp.sum(exists & ~is_idle, dtype=jnp.int32),
        num_idle=jnp.sum(is_idle, dtype=jnp.int32),
        num_completed=jnp.sum(is_done, dtype=jnp.int32),
        completed_task=jnp.where(is_done, before.pending_task, NONE),
        completed_change=jnp.sum(change_norms),
        gate_outputs=outputs,
        gate_probabilities=gating.gate_probabilities(outputs, exists),
        is_misrouted=is_misrouted(after, task.server, arrival.task),
        num_specialists=jnp.sum(is_specialist, dtype=jnp.int32),
        specialist_exists=jnp.any(is_specialist),
        specialist_idle=jnp.any(is_specialist & is_idle),
        dropped=after.dropped,
        generalization_error=generalization_error(after),
        generalization_error_flushed=generalization_error_flushed(after, dims),
    )


def _choose_servers(dims: Dims | None, fit: Fit = minimum_norm, locality: Locality | None = None) -> Servers:
    if dims is None or dims.slots_per_server == 1:
        return servers.one_task_each(fit, locality)
    return several_tasks_each(dims)


def generalization_error(state: State) -> Float[Array, ""]:
    """Return G_t, the mean of |w^(m_i) - w_i|^2 over the tasks routed so far, with the current models.

    Source: Eq. (20) of `edge`. Units: squared model distance.
    """
    return state.squared_error / jnp.maximum(jnp.sum(state.visits), 1)


def generalization_error_flushed(state: State, dims: Dims | None = None) -> Float[Array, ""]:
    """Return G_t once all pending tasks are completed, (20) at T + d_T.

    Args:
        dims: as for `learn`.
    Source: Eq. (20) of `edge`. Units: squared model distance.
    Raises: InvalidValueError where the state needs `dims`.
    """
    if dims is None:
        _require_one_task_each(state)
    flushed, _ = _choose_servers(dims).complete(state, state.pending_server != FREE)
    return flushed.squared_error / jnp.maximum(jnp.sum(state.visits), 1)


def _check_round(
    state: State, arrival: Arrival, params: Params, dims: Dims | None, fit: Fit, locality: Locality | None
) -> Arrival:
    (max_experts, num_features) = state.experts.shape
    num_tasks = state.pool.truths.shape[0]
    features_shape = np.shape(arrival.features)
    if len(features_shape) != 2 or features_shape[0] != num_features:
        raise InvalidValueError(
            f"features has shape {features_shape}, but must have shape ({num_features}, s), with one sample per "
            "column.",
            argument="features",
        )
    if dims is None:
        _require_one_task_each(state)
    elif not _has_shapes_of(dims, state):
        raise InvalidValueError("the state was made with other dims. Pass the dims that `begin` received.")
    elif features_shape[1] != dims.num_samples:
        raise InvalidValueError(
            f"features has shape {features_shape}, but must have shape ({num_features}, {dims.num_samples}) because "
            f"num_samples={dims.num_samples}. Change the arrival's features or Dims.num_samples.",
            argument="features",
        )
    dims_of_state = dims or Dims(max_experts, num_tasks, num_features, num_samples=features_shape[1])
    check_params(dims_of_state, params)
    shapes = {"truth": (num_features,), "task": ()}
    if arrival.targets is not None:
        shapes["targets"] = features_shape[1:]
    shapes |= dict.fromkeys(("transfer_delay", "distance", "perturbation", "uniform"), (max_experts,))
    for name, shape in shapes.items():
        actual = np.shape(getattr(arrival, name))
        if actual != shape:
            raise InvalidValueError(
                f"{name} has shape {actual}, but must have shape {shape}. Change the arrival's {name}.", argument=name
            )
    has_own_parts = fit is not minimum_norm or locality is not None or arrival.targets is not None
    if state.refit is not None and has_own_parts:
        raise InvalidValueError(
            "servers that hold several tasks refit them by the minimum norm. Leave out fit, targets and locality."
        )
    num_slots = state.pending_server.shape[0]
    longest = dims_of_state.max_delay
    if dims is None and num_slots < max_experts:
        longest = num_slots  # fewer slots than servers are as many as `Dims.max_delay`
    _check_delays("transfer_delay", arrival.transfer_delay, (max_experts,), longest)
    _check_total_delays(arrival.transfer_delay, state.execution_delay, params, longest)
    check_arrival(num_tasks, arrival)
    return _with_arrays(arrival, state.experts.dtype)


def _with_arrays(arrival: Arrival, dtype: Any) -> Arrival:
    leaves = {}
    for name, values in arrival._asdict().items():
        if values is not None:
            leaves[name] = jnp.asarray(values, jnp.int32 if name in ("task", "transfer_delay") else dtype)
    return Arrival(**leaves)


def _require_one_task_each(state: State) -> None:
    if state.refit is not None:
        raise InvalidValueError("servers of this state hold several tasks. Pass the dims that `begin` received.")


def _check_total_delays(transfer_delay: Any, execution_delay: Any, params: Params, longest: int | None) -> None:
    if not is_known(transfer_delay, execution_delay, params.num_experts):
        return
    totals = (np.asarray(transfer_delay) + np.asarray(execution_delay))[: int(params.num_experts)]
    if totals.min() < 1:
        raise InvalidValueError(
            f"server {totals.argmin()} has a total transfer and execution delay of {totals.min()} rounds, but by (1) a "
            "task takes at least 1 round. Raise its transfer_delay or execution_delay."
        )
    if longest is not None and totals.max() > longest:
        raise InvalidValueError(
            f"server {totals.argmax()} has a delay of {totals.max()} rounds, but arrays are padded to "
            f"max_delay={longest}. Lower the delay or raise Dims.max_delay."
        )


def _check_delays(name: str, values: Any, shape: tuple[int, ...], longest: int | None) -> None:
    if np.shape(values) != shape:
        raise InvalidValueError(
            f"{name} has shape {np.shape(values)}, but must have shape {shape}, one number per server. Change {name}.",
            argument=name,
        )
    if not is_known(values):
        return
    values = np.asarray(values)
    require_whole_rounds(name, values)
    if longest is not None and np.any(values > longest):
        server = int(np.argmax(values))
        raise InvalidValueError(
            f"{name}[{server}]={values[server]} must be at most max_delay={longest}, to which arrays are padded. Lower "
            f"{name} or raise Dims.max_delay.",
            argument=name,
        )


def _has_shapes_of(dims: Dims, state: State) -> bool:
    return (
        state.pending_slopes.shape == (dims.num_slots, dims.max_experts)
        and state.pool.truths.shape == (dims.num_tasks, dims.num_features)
        and (state.refit is not None) == (dims.slots_per_server > 1)
    )
