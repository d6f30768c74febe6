"""Mobile edge computing as a `System`: pools, servers' delays and arrivals drawn, then Algorithm 1 of `edge`."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from moe_theory.core import checks
from moe_theory.core.errors import InvalidDimsError, InvalidParamsError
from moe_theory.core.numerics import Numbers
from moe_theory.core.system import System
from moe_theory.core.tasks import Pool, check_pool
from moe_theory.edge import delays
from moe_theory.edge.checks import check_delays, check_totals
from moe_theory.edge.delays import Law, Table
from moe_theory.edge.params import Dims, Params, check_params
from moe_theory.edge.policies import Policy, adaptive, check_policy
from moe_theory.edge.rounds import Info, learn
from moe_theory.edge.state import FREE, Reprise, Room, State
from moe_theory.edge.tasks import Arrival, draw, draw_execution, draw_pool


@functools.lru_cache
def system(
    dims: Dims,
    policy: Policy = adaptive,
    *,
    transfer: Law = delays.uniform,
    execution: Law = delays.uniform,
) -> System:
    """Algorithm 1 under a routing policy as a `System`. Equal arguments give the same object, compiled once.

    Every replicate draws a pool and its servers' execution delays; servers stand on `delays.even_map`.

    Args:
        policy: one of `policies`, or your own pure function.
        transfer: law of the transfer delays, drawn for every task; one of `delays`, or your own.
        execution: law of the execution delays, drawn once.
    Source: Algorithm 1 of `edge`; what is drawn, Definition 1, Assumption 1 and Section VI.
    Raises: InvalidParamsError for a policy that is no function; from its `init`, the errors of `begin`.

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

    def init(key: Key[Array, ""], params: Params) -> State:
        check_params(dims, params)
        check_laws(dims, params, transfer, execution)
        pool_key, execution_key = jax.random.split(key)
        pool = draw_pool(pool_key, dims, params)
        positions = jnp.asarray(delays.even_map(dims.max_experts), jnp.result_type(float))
        return begin(dims, params, pool, draw_execution(execution_key, dims, positions, params, execution), positions)

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Info]:
        arrival = draw(key, dims, state.pool, state.positions, params, transfer)
        return learn(state, arrival, params, policy, dims=dims)

    return System(init, step)


def begin(
    dims: Dims,
    params: Params,
    pool: Pool,
    execution_delay: Int[Numbers, " M"],
    positions: Float[Numbers, "M 2"] | None = None,
) -> State:
    """The state before round 1: experts and gates are zero, all servers idle.

    Args:
        execution_delay: d^ex of each server, in whole rounds; those beyond `num_experts` are not used.
        positions: the servers' places on the unit square; `delays.even_map` unless given.
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
    check_delays("execution_delay", execution_delay, (dims.max_experts,), dims.max_delay)
    dtype = jnp.result_type(float)
    experts, slots = dims.max_experts, dims.num_slots
    places = delays.even_map(experts) if positions is None else positions
    if jnp.shape(places) != (experts, 2):
        raise InvalidDimsError(f"positions of shape {jnp.shape(places)} must be ({experts}, 2). Change positions.")
    zeros = jnp.zeros((experts, dims.num_features), dtype)
    count = jnp.zeros((), jnp.int32)
    vectors = jnp.zeros((slots, dims.num_features), dtype)
    return State(
        pool=Pool(jnp.asarray(pool.truths, dtype), jnp.asarray(pool.signals, dtype), jnp.asarray(pool.clusters)),
        positions=jnp.asarray(places, dtype),
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
        pending_change=vectors,
        pending_input=vectors,
        pending_slopes=jnp.zeros((slots, experts), dtype),
        reprise=_empty_reprise(dims, vectors) if dims.places > 1 else None,
        room=_empty_room(dims, dtype) if dims.when_busy == "wait" else None,
    )


def on_pool(
    dims: Dims,
    pool: Pool,
    execution_delay: Int[Numbers, " M"],
    policy: Policy = adaptive,
    *,
    positions: Float[Numbers, "M 2"] | None = None,
    transfer: Law = delays.uniform,
) -> System:
    """Algorithm 1 with one explicit network for all replicates: pool, execution delays and places of the servers.

    Keep the result: each call makes a new program.

    Source: Algorithm 1 of `edge`.
    Raises: as `begin`; InvalidParamsError for execution delays that with the bounds of a transfer may make less than 1
        round, or more than `Dims.max_delay`.

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
    drawn = system(dims, policy, transfer=transfer)

    def init(key: Key[Array, ""], params: Params) -> State:
        del key
        state = begin(dims, params, pool, execution_delay, positions)
        check_laws(dims, params, transfer, delays.uniform)
        for transfer_delay in (params.min_transfer_delay, params.max_transfer_delay):
            check_totals(transfer_delay, execution_delay, params, dims.max_delay)
        return state

    return System(init, drawn.step)


def check_laws(dims: Dims, params: Params, transfer: Law, execution: Law) -> None:
    """Refuse laws that do not fit: an execution by distance, and a table of another shape or beyond the bounds.

    Raises: InvalidParamsError, InvalidDimsError.
    """
    if execution is delays.by_distance:
        raise InvalidParamsError("by_distance is a law of transfers: an execution goes nowhere. Choose another law.")
    experts = (dims.max_experts,)
    shapes = {"transfer": (experts, experts * 2), "execution": (experts,)}
    for name, law in (("transfer", transfer), ("execution", execution)):
        if isinstance(law, Table):
            ends = [getattr(params, f"{end}_{name}_delay") for end in ("min", "max")]
            bounds = (int(ends[0]), int(ends[1])) if checks.is_known(ends) else None
            law.check(dims, name, shapes[name], bounds)


def _empty_reprise(dims: Dims, vectors: Float[Array, "S p"]) -> Reprise:
    slots, num_features = vectors.shape
    return Reprise(
        basis=jnp.zeros((slots, dims.num_samples, num_features), vectors.dtype),
        truth=vectors,
        is_stale=jnp.zeros(slots, bool),
    )


def _empty_room(dims: Dims, dtype: jnp.dtype) -> Room:
    waiting, experts = dims.max_waiting, dims.max_experts
    per_server = jnp.zeros((waiting, experts), dtype)
    arrivals = Arrival(
        task=jnp.zeros(waiting, jnp.int32),
        features=jnp.zeros((waiting, dims.num_features, dims.num_samples), dtype),
        truth=jnp.zeros((waiting, dims.num_features), dtype),
        transfer_delay=jnp.zeros((waiting, experts), jnp.int32),
        distance=per_server,
        perturbation=per_server,
        uniform=per_server,
    )
    return Room(arrivals=arrivals, num_waiting=jnp.zeros((), jnp.int32))
