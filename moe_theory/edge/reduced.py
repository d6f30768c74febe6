"""Algorithm 1 reduced to gates and models' expected distances to task types (`core/expected.py`).

Tasks are drawn, routed, delayed and dropped, and gates take their stale steps, as in Algorithm 1. The reduced algorithm
averages over the spread of ground truths inside a cluster. It replaces distances by their means, even in squares and in
the root of the locality loss. It takes distances to be independent of past routes, and the spread of learned tasks to
be independent of models and signals.
"""

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory.core.errors import InvalidValueError
from moe_theory.core.expected import taught_to, untaught
from moe_theory.core.linear import error_contraction, square_root
from moe_theory.core.system import System
from moe_theory.core.tasks import Pool
from moe_theory.edge import algorithm, delays
from moe_theory.edge.arrivals import Arrival, draw
from moe_theory.edge.delays import Law
from moe_theory.edge.params import Dims, Params
from moe_theory.edge.policies import Policy, adaptive, check_policy
from moe_theory.edge.servers import Assignment, Servers, offer, open_round


class State(NamedTuple):
    """State that is carried from round to round and saved as the checkpoint. Models have learned pending tasks."""

    pool: Pool
    positions: Float[Array, "M 2"]  # of the servers, on the unit square
    execution_delay: Int[Array, " M"]  # d^ex, in rounds
    errors: Float[Array, "M N"]  # e, expected squared distances of models to the task types' truths
    projections: Float[Array, "M N"]  # a, expected inner products of models and unit signals
    arrivals: Float[Array, "M N"]  # how often each server learned each task type
    gates: Float[Array, "M p"]  # gating parameters theta^(m), as the router last saw them
    gate_step: Float[Array, "M p"]  # summed gradients of the tasks completed last: the router's next step
    busy_until: Int[Array, " M"]  # the first round in which each server can take another task
    visits: Int[Array, " M"]  # loads L_t(m): tasks routed to each server
    round: Int[Array, ""]  # rounds done, t
    pending_server: Int[Array, " S"]  # this and the following as in `edge.State`
    pending_until: Int[Array, " S"]
    pending_norm: Float[Array, " S"]  # (E|w_t - w_{t-1}|^2)^0.5
    pending_input: Float[Array, "S p"]
    pending_slopes: Float[Array, "S M"]


class Info(NamedTuple):
    """Observables of one round."""

    task: Int[Array, ""]  # n_t
    expert: Int[Array, ""]  # m_t, or `edge.DROPPED`
    generalization_error_flushed: Float[Array, ""]  # G_t of (20) from e, once the pending tasks are completed


@functools.lru_cache
def system(
    dims: Dims, policy: Policy = adaptive, *, transfer: Law = delays.uniform, execution: Law = delays.uniform
) -> System:
    """Return the reduced model as a `System`, with the `Params` and arguments of `edge.system`.

    Source: Algorithm 1 of `edge`, with `core/expected.py`.
    Raises: InvalidValueError if servers hold several tasks, or if `policy` is no function. Its `init` raises the errors
        of `edge.system`'s `init`.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import edge
        >>> dims = edge.Dims(max_experts=8, num_tasks=3, num_features=10, num_samples=6)
        >>> params = edge.Params(num_experts=8, signal_scale=3.0)
        >>> systems = edge.system(dims), edge.reduced.system(dims)
        >>> runs = [mt.simulate_batch(each, mt.root_key(0), 128, params, num_rounds=400)[1] for each in systems]
        >>> full, reduced = (float(info.generalization_error_flushed[-1].mean()) for info in runs)
        >>> abs(reduced / full - 1) < 0.1
        True
    """
    check_policy(policy)
    if dims.slots_per_server > 1:
        raise InvalidValueError(
            f"max_capacity={dims.max_capacity} must be 1 and when_busy={dims.when_busy!r} must be 'drop', because a "
            "server of the reduced model holds one task. Change Dims.",
            argument="max_capacity",
        )
    full_system = algorithm.system(dims, policy, transfer=transfer, execution=execution)

    def init(key: Key[Array, ""], params: Params) -> State:
        full = full_system.init(key, params)
        shared = {name: getattr(full, name) for name in State._fields if hasattr(full, name)}  # all but models
        errors, projections = untaught(full.pool, dims.max_experts)
        return State(errors=errors, projections=projections, arrivals=jnp.zeros_like(errors), **shared)

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Info]:
        arrival = draw(key, dims, state.pool, state.positions, params, transfer=transfer)
        return learn(state, arrival, params, policy)

    return System(init, step)


def learn(state: State, arrival: Arrival, params: Params, policy: Policy = adaptive) -> tuple[State, Info]:
    """Run one round on an explicit arrival, like `edge.learn`.

    Source: Algorithm 1 of `edge`, with `core/expected.py`.
    Raises: InvalidValueError for features with s >= p, or for a policy that returns another shape.

    Examples:
        >>> import jax, numpy as np
        >>> import moe_theory as mt
        >>> from moe_theory import edge
        >>> dims = edge.Dims(max_experts=3, num_tasks=2, num_features=4, num_samples=2)
        >>> params = edge.Params(num_experts=3, cluster_spread=0.0)
        >>> state = edge.reduced.system(dims).init(mt.root_key(0), params)
        >>> pool = edge.Pool(truths=np.eye(2, 4), signals=np.eye(2, 4), clusters=np.arange(2))
        >>> state = state._replace(pool=pool, errors=np.ones((3, 2)))
        >>> still = dict(transfer_delay=np.zeros(3, int), distance=np.zeros(3), uniform=np.ones(3))
        >>> arrival = edge.Arrival(task=0, features=np.eye(4, 2), truth=np.eye(4)[0], perturbation=np.zeros(3), **still)
        >>> after, info = jax.jit(edge.reduced.learn)(state, arrival, params)
        >>> int(info.expert), after.errors[0].tolist()
        (0, [0.0, 2.0])
    """
    num_features, num_samples = arrival.features.shape
    contraction = error_contraction(num_features, num_samples)
    servers = Servers(_complete, functools.partial(_take, contraction=contraction))
    ready, _, _ = open_round(state, params, servers)
    gate_input = jnp.sum(arrival.features, axis=1)
    after, task = offer(ready, arrival, gate_input, params, policy=policy, servers=servers)
    # A task's truth lies around its type's, with variance cluster_spread^2 in each entry.
    errors = after.errors + num_features * jnp.square(jnp.asarray(params.cluster_spread, after.errors.dtype))
    mean_error = jnp.sum(after.arrivals * errors) / jnp.maximum(jnp.sum(after.visits), 1)
    return after, Info(arrival.task, expert=task.server, generalization_error_flushed=mean_error)


def _complete(state: Any, is_done: Bool[Array, " S"]) -> tuple[Any, Float[Array, " S"]]:
    return state, jnp.where(is_done, state.pending_norm, 0)  # `_take` has changed the models


def _take(
    state: Any, arrival: Arrival, task: Assignment, params: Params, *, contraction: float
) -> tuple[Any, Float[Array, ""]]:
    spread = params.cluster_spread
    errors, projections, squared_move = taught_to(
        task.mask, state.pool, arrival.task, state.errors, state.projections, contraction=contraction, spread=spread
    )
    is_kind = jnp.arange(errors.shape[1]) == arrival.task
    arrivals = state.arrivals + (task.mask[:, None] & is_kind[None, :])
    return state._replace(errors=errors, projections=projections, arrivals=arrivals), square_root(squared_move)
