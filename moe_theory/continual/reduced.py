"""Algorithm 1 reduced to its gates and to experts' expected distances to ground truths (`core/expected.py`).

Draws, routing, costs, gate steps and their end follow Algorithm 1. The reduced algorithm replaces distances by their
means, even in squares and in the root in (6). Given the tasks, it takes distances to be independent of routes.
"""

import functools
from typing import NamedTuple

import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from moe_theory.continual.algorithm import Learned, Routing, advance, draw
from moe_theory.continual.params import Dims, Params, check_params
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.expected import taught_to, untaught
from moe_theory.core.linear import error_contraction
from moe_theory.core.system import System
from moe_theory.core.tasks import Arrival, Pool, draw_pool


class State(NamedTuple):
    """State that is carried from round to round and saved as the checkpoint."""

    pool: Pool
    gates: Float[Array, "M d"]  # gating parameters theta^(m)
    errors: Float[Array, "M N"]  # e, expected squared distances of experts to truths
    projections: Float[Array, "M N"]  # a, expected inner products of experts and unit signals
    arrivals: Float[Array, "M N"]  # how often each expert learned each task
    visits: Int[Array, " M"]  # loads: rounds in which an expert was chosen
    converged: Bool[Array, " M"]  # convergence flags I(m)
    terminated: Bool[Array, ""]  # whether the gates are no longer updated
    round: Int[Array, ""]  # rounds done, t
    optimizer_state: PyTree
    memory: None = None  # of the locality loss, empty in the paper


class Info(NamedTuple):
    """Observables of one round."""

    task: Int[Array, ""]  # n_t
    expert: Int[Array, ""]  # m_t
    generalization_error: Float[Array, ""]  # expected G_t, (16)


@functools.lru_cache
def system(dims: Dims) -> System:
    """Return the reduced model as a `System` of switch routing, with the `Params` of `continual.system`.

    Source: Algorithm 1 of `continual`, with `core/expected.py`.
    Raises: InvalidValueError for max_active > 1. The system's `init` raises it for parameters out of range.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import continual
        >>> dims = continual.Dims(max_experts=4, num_tasks=2, num_features=10, num_samples=6)
        >>> params = continual.Params(num_experts=4, num_clusters=2)
        >>> systems = continual.system(dims), continual.reduced.system(dims)
        >>> runs = [mt.simulate_batch(each, mt.root_key(0), 256, params, num_rounds=400)[1] for each in systems]
        >>> full, reduced = (float(info.generalization_error[-1].mean()) for info in runs)
        >>> abs(reduced / full - 1) < 0.2
        True
    """
    if dims.max_active > 1:
        raise InvalidValueError(
            f"max_active={dims.max_active} must be 1: the reduced model routes to one expert.", argument="max_active"
        )

    def init(key: Key[Array, ""], params: Params) -> State:
        check_params(dims, params)
        pool = draw_pool(key, dims.num_tasks, dims.num_features, params)
        errors, projections = untaught(pool, dims.max_experts)
        gates = jnp.zeros((dims.max_experts, dims.num_features), pool.truths.dtype)
        return State(
            pool=pool,
            gates=gates,
            errors=errors,
            projections=projections,
            arrivals=jnp.zeros_like(errors),
            visits=jnp.zeros(dims.max_experts, jnp.int32),
            converged=jnp.zeros(dims.max_experts, bool),
            terminated=jnp.zeros((), bool),
            round=jnp.zeros((), jnp.int32),
            optimizer_state=optax.sgd(params.learning_rate).init(gates),
        )

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Info]:
        arrival, perturbation = draw(key, dims, state.pool, params)
        return learn(state, arrival, perturbation, params)

    return System(init, step)


def learn(state: State, arrival: Arrival, perturbation: Float[Array, " M"], params: Params) -> tuple[State, Info]:
    """Run one round on an explicit arrival and perturbation, like `continual.learn`.

    Source: Algorithm 1 of `continual`, with `core/expected.py`.
    Raises: InvalidValueError for features with s >= d, or for a perturbation with more axes than (M,).

    Examples:
        >>> import jax, numpy as np
        >>> import moe_theory as mt
        >>> from moe_theory import continual
        >>> dims = continual.Dims(max_experts=3, num_tasks=2, num_features=4, num_samples=2)
        >>> params = continual.Params(num_experts=3)
        >>> state = continual.reduced.system(dims).init(mt.root_key(0), params)
        >>> pool = continual.Pool(truths=np.eye(2, 4), signals=np.eye(2, 4), clusters=np.arange(2))
        >>> state = state._replace(pool=pool, errors=np.ones((3, 2)))
        >>> arrival = continual.Arrival(task=0, features=np.eye(4, 2))
        >>> after, info = jax.jit(continual.reduced.learn)(state, arrival, np.zeros(3), params)
        >>> int(info.expert), after.errors[0].tolist()
        (0, [0.0, 2.0])
    """
    contraction = error_contraction(*arrival.features.shape)
    is_task = jnp.arange(state.pool.truths.shape[0]) == arrival.task

    def learn_task(routing: Routing) -> Learned:
        is_chosen = routing.masks[0]
        errors, projections, squared_move = taught_to(
            is_chosen, state.pool, arrival.task, state.errors, projections=state.projections, contraction=contraction
        )
        arrivals = state.arrivals + (is_chosen[:, None] & is_task[None, :])
        return Learned(state._replace(errors=errors, projections=projections, arrivals=arrivals), squared_move[None])

    gate_input = jnp.sum(arrival.features, axis=1)
    after, routing, _ = advance(state, gate_input, perturbation, arrival=arrival, params=params, experts=learn_task)
    mean_error = jnp.sum(after.arrivals * after.errors) / after.round
    return after, Info(arrival.task, expert=routing.ranked[0], generalization_error=mean_error)
