"""Algorithm 1 of `continual`: routing, minimum-norm experts, gate updates with early termination."""

import functools
import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from moe_theory.continual import metrics
from moe_theory.continual.metrics import Metrics
from moe_theory.continual.params import Dims, Params, check_params
from moe_theory.continual.theory import exploration_rounds
from moe_theory.core import gating, tasks
from moe_theory.core.constraints import AT_LEAST_0, SHARE, is_known
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.linear import Fit, fitted, minimum_norm, square_root
from moe_theory.core.locality import Locality, Move, charged, check_locality, distance_moved
from moe_theory.core.numerics import rounded_positive
from moe_theory.core.parts import of_parts
from moe_theory.core.random import draws, with_own_key
from moe_theory.core.system import System
from moe_theory.core.tasks import Arrival, Pool, select_row

Optimizer = Callable[[Any], optax.GradientTransformation]  # made from a traced learning rate
# The cost that the auxiliary loss adds for each chosen expert: (visits (M,), time (), params) -> (M,).
Auxiliary = Callable[[Int[Array, " M"], Int[Array, ""], Params], Float[Array, " M"]]
# Scores of the experts, where the highest decide who learns: (gate outputs, perturbation, state, arrival, params).
Router = Callable[[Float[Array, " M"], Float[Array, " M"], Any, Arrival, Params], Float[Array, " M"]]
# Draws a round: (key, dims, state, params) -> its pool, its arrival and the routing perturbation (M,).
Stream = Callable[[Key[Array, ""], Dims, Any, Params], tuple[Pool, Arrival, Float[Array, " M"]]]


class State(NamedTuple):
    """State that is carried from round to round and saved as the checkpoint."""

    pool: Pool
    experts: Float[Array, "M d"]  # local models w^(m)
    gates: Float[Array, "M d"]  # gating parameters theta^(m)
    visits: Annotated[Int[Array, " M"], AT_LEAST_0]  # loads L_t(m): rounds in which an expert was chosen
    explored_visits: Annotated[Int[Array, " M"], AT_LEAST_0]  # loads at min(t, T1)
    converged: Bool[Array, " M"]  # convergence flags I(m)
    terminated: Bool[Array, ""]  # whether the gates are no longer updated
    round: Int[Array, ""]  # rounds done, t
    metrics: Metrics
    optimizer_state: PyTree
    memory: PyTree = None  # what the locality loss remembers, which is nothing in the paper


class Info(NamedTuple):
    """Observables of one round."""

    task: Int[Array, ""]  # n_t
    expert: Int[Array, ""]  # m_t, the first choice in top-k routing
    chosen: Bool[Array, " M"]  # the experts that learned the task
    gate_outputs: Float[Array, " M"]  # h_m, without the perturbation
    gate_probabilities: Annotated[Float[Array, " M"], SHARE]  # softmax pi_m
    update_norm: Annotated[Float[Array, ""], AT_LEAST_0]  # |w_t - w_{t-1}| over the experts that learned
    error: Annotated[Float[Array, ""], AT_LEAST_0]  # E_t(w_t), (14)
    forgetting: Float[Array, ""]  # F_t, (15)
    generalization_error: Float[Array, ""]  # G_t, (16)


ERRORS = ("error", "forgetting", "generalization_error")  # fields of `Info`


class Routing(NamedTuple):
    """How an arrival is routed: gate outputs and probabilities, the router's scores, and the chosen experts."""

    gate_outputs: Float[Array, " M"]  # h_m, without the perturbation
    gate_probabilities: Float[Array, " M"]  # softmax pi_m
    scores: Float[Array, " M"]  # the router's scores
    ranked: Int[Array, " k"]  # the experts that learn, best first, -1 in unused rows
    masks: Bool[Array, "k M"]  # `ranked` as one-hot rows, which are zero where unused


class Parts(NamedTuple):
    max_active: int
    router: Router
    fit: Fit
    optimizer: Optimizer
    auxiliary: Auxiliary
    locality: Locality


class Learned(NamedTuple):
    state: Any  # the state with new models and unchanged gates
    squared_moves: Float[Array, " k"]  # |w_t - w_{t-1}|^2 of each expert that learned, 0 in unused rows
    errors: Any = None  # what `Info` shows of the errors


# Experts of any kind: an arrival's routing -> what they learned. The function closes over the arrival.
Experts = Callable[[Routing], Learned]


def balance_cost(visits: Int[Array, " M"], time: Int[Array, ""], params: Params) -> Float[Array, " M"]:
    """Return the auxiliary cost alpha M f_t / t, with f_t of rounds 1..t. Source: Eqs. (7), (30) of `continual`."""
    # Without the cast JAX divides integers in float32, even where the run is in float64.
    fractions = visits.astype(jnp.result_type(float)) / (time * params.num_active)
    return params.balance_weight * params.num_experts * fractions / time


def perturbed(
    gate_outputs: Float[Array, " M"], perturbation: Float[Array, " M"], state: Any, arrival: Arrival, params: Params
) -> Float[Array, " M"]:
    """Return the scores h_m + r_m by which the paper routes. Source: Eq. (1) of `continual`.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import continual
        >>> def noisier(gate_outputs, perturbation, state, arrival, params):
        ...     return continual.perturbed(gate_outputs, 10 * perturbation, state, arrival, params)
        >>> noisier(np.array([1.0, 2.0]), np.array([0.2, 0.0]), None, None, None).tolist()
        [3.0, 2.0]
    """
    del state, arrival, params
    return gate_outputs + perturbation


def stationary(key: Key[Array, ""], dims: Dims, state: Any, params: Params) -> tuple[Pool, Arrival, Float[Array, " M"]]:
    """Draw tasks from one pool with equal probability, as the paper does. Source: Definition 1 of `continual`.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import continual
        >>> def shrinking(key, dims, state, params):
        ...     pool = state.pool._replace(truths=0.9 * state.pool.truths)
        ...     return continual.stationary(key, dims, state._replace(pool=pool), params)
        >>> dims = continual.Dims(max_experts=3, num_tasks=4, num_features=6, num_samples=2)
        >>> system, params = continual.system(dims, stream=shrinking), continual.Params(num_experts=3)
        >>> state, info = mt.simulate(system, mt.root_key(0), params, num_rounds=200)
        >>> float(abs(state.pool.truths).max()) < 1e-6
        True
    """
    return state.pool, *draw(key, dims, state.pool, params)


@of_parts()
def system(
    dims: Dims,
    *,
    stream: Stream = stationary,
    router: Router = perturbed,
    fit: Fit = minimum_norm,
    optimizer: Optimizer = optax.sgd,
    auxiliary: Auxiliary = balance_cost,
    locality: Locality = distance_moved,
) -> System:
    """Return Algorithm 1 as a `System`. Equal arguments give the same object.

    Every replicate draws a pool. Each part is a pure function, and the default is the paper's.

    Args:
        stream: draws the arrival of each round, and may change the pool.
        router: scores the experts, of which the `Params.num_active` best learn. A parameter named `key` receives a new
            key every round.
        fit: the change of an expert's model.
        optimizer: makes the transformation of the gates' gradient from a traced learning rate, by default `optax.sgd`
            (9).
        auxiliary: the auxiliary loss's cost for a chosen expert, by default `balance_cost` (7).
        locality: the locality loss's cost for a chosen expert, and its memory, by default `distance_moved` (6).
    Source: Algorithm 1 of `continual`, with draws from Section 3.1 and Appendix A.2.
    Raises: InvalidValueError if `locality` is not a `Locality`. `init` raises it for parameters out of range.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import continual
        >>> dims = continual.Dims(max_experts=3, num_tasks=4, num_features=6, num_samples=2)
        >>> system, params = continual.system(dims), continual.Params(num_experts=3)
        >>> state, info = mt.simulate(system, mt.root_key(0), params, num_rounds=5)
        >>> info.expert.shape, int(state.visits.sum())
        ((5,), 5)
    """
    check_locality(locality)

    def init(key: Key[Array, ""], params: Params) -> State:
        check_params(dims, params)
        pool = tasks.draw_pool(key, dims.num_tasks, dims.num_features, params)
        return begin(dims, params, pool, optimizer=optimizer, locality=locality)

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Info]:
        source = stream(key, dims, state, params)
        pool, arrival, perturbation = tasks.streamed(source, "pool", "arrival", "perturbation")
        tasks.check_pool(dims.num_tasks, dims.num_features, pool)
        own_router = with_own_key(router, key)
        parts = Parts(dims.max_active, own_router, fit, optimizer=optimizer, auxiliary=auxiliary, locality=locality)
        return _learn(state._replace(pool=pool), arrival, perturbation, params, parts)

    return System(init, step)


def on_pool(
    dims: Dims, pool: Pool, *, optimizer: Optimizer = optax.sgd, locality: Locality = distance_moved, **parts: Any
) -> System:
    """Return Algorithm 1 with one explicit pool for all replicates. Reuse the result: each call compiles a new `init`.

    Args:
        locality, parts: locality, stream, router, fit and auxiliary of `system`.
    Source: Algorithm 1 of `continual`.
    Raises: InvalidValueError for a pool that does not fit `dims`, or if `locality` is not a `Locality`.

    Examples:
        >>> import numpy as np
        >>> import moe_theory as mt
        >>> from moe_theory import continual
        >>> pool = continual.Pool(truths=np.eye(2, 4), signals=np.eye(2, 4), clusters=np.arange(2))
        >>> system = continual.on_pool(continual.Dims(3, num_tasks=2, num_features=4, num_samples=2), pool)
        >>> np.array_equal(system.init(mt.root_key(0), continual.Params(num_experts=3)).pool.truths, pool.truths)
        True
    """
    tasks.check_pool(dims.num_tasks, dims.num_features, pool)
    random_pool_system = system(dims, optimizer=optimizer, locality=locality, **parts)

    def init(key: Key[Array, ""], params: Params) -> State:
        del key
        return begin(dims, params, pool, optimizer=optimizer, locality=locality)

    return System(init, random_pool_system.step)


def begin(
    dims: Dims, params: Params, pool: Pool, optimizer: Optimizer = optax.sgd, locality: Locality = distance_moved
) -> State:
    """Return the state before round 1, with zero experts and gates.

    Source: Algorithm 1 of `continual`, line 2.
    Raises: InvalidValueError for a pool that does not fit `dims`, or `params` out of range.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import continual
        >>> pool = continual.Pool(truths=np.eye(2, 4), signals=np.eye(2, 4), clusters=np.arange(2))
        >>> dims = continual.Dims(max_experts=3, num_tasks=2, num_features=4, num_samples=2)
        >>> continual.begin(dims, continual.Params(num_experts=3), pool).experts.shape
        (3, 4)
    """
    check_params(dims, params)
    tasks.check_pool(dims.num_tasks, dims.num_features, pool)
    dtype = jnp.result_type(float)
    zeros = jnp.zeros((dims.max_experts, dims.num_features), dtype)
    pool = Pool(jnp.asarray(pool.truths, dtype), jnp.asarray(pool.signals, dtype), jnp.asarray(pool.clusters))
    return State(
        pool=pool,
        experts=zeros,
        gates=zeros,
        visits=jnp.zeros(dims.max_experts, jnp.int32),
        explored_visits=jnp.zeros(dims.max_experts, jnp.int32),
        converged=jnp.zeros(dims.max_experts, bool),
        terminated=jnp.zeros((), bool),
        round=jnp.zeros((), jnp.int32),
        metrics=metrics.no_arrivals(dims.max_experts, dims.num_features, dtype),
        optimizer_state=optimizer(jnp.asarray(params.learning_rate, dtype)).init(zeros),
        memory=locality.init(dims),
    )


def draw(key: Key[Array, ""], dims: Dims, pool: Pool, params: Params) -> tuple[Arrival, Float[Array, " M"]]:
    """Draw a round's arrival (Definition 1) and its routing perturbation r ~ U[0, lambda] of (1).

    Source: Definition 1 and Eq. (1) of `continual`.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> import moe_theory as mt
        >>> from moe_theory import continual
        >>> pool = continual.Pool(truths=jnp.eye(2, 4), signals=jnp.eye(2, 4), clusters=jnp.arange(2))
        >>> dims = continual.Dims(max_experts=3, num_tasks=2, num_features=4, num_samples=2)
        >>> draw = jax.jit(continual.draw, static_argnums=1)
        >>> arrival, perturbation = draw(mt.root_key(0), dims, pool, continual.Params(num_experts=3))
        >>> arrival.features.shape, perturbation.shape
        ((4, 2), (3,))
    """
    shape = (dims.num_features, dims.num_samples - 1)
    dtype = pool.truths.dtype
    units, noise = draws(key, 3 + dims.max_experts, math.prod(shape), dtype)
    arrival = tasks.make_arrival(units[:3], noise.reshape(shape), pool, params)
    return arrival, rounded_positive(params.perturbation_scale * units[3:])


def learn(
    state: State,
    arrival: Arrival,
    perturbation: Float[Array, " M"],
    params: Params,
    *,
    max_active: int = 1,
    router: Router = perturbed,
    fit: Fit = minimum_norm,
    optimizer: Optimizer = optax.sgd,
    auxiliary: Auxiliary = balance_cost,
    locality: Locality = distance_moved,
) -> tuple[State, Info]:
    """Run one round of Algorithm 1 on an explicit arrival and perturbation, without randomness.

    The task goes to the expert (or `Params.num_active` experts) with the highest perturbed gate output. The chosen
    experts move to the nearest model that fits the samples. Then all gates take one gradient step, unless the update
    has been terminated.

    Args:
        arrival: task () of the pool and features (d, s), with its own ground truth (d,) and targets (s,), if any.
        max_active: static bound of `Params.num_active`.
        router, fit, auxiliary: as for `system`.
        optimizer, locality: as for `begin`.
    Source: Eqs. (1)-(9) and Algorithm 1 of `continual`.
    Raises: InvalidValueError for an arrival that does not fit the state or has s >= d, values out of range, and a
        router, fit or locality that returns another shape. Inside a `jax.jit` an unknown task or non-finite features
        make the errors NaN.

    Examples:
        >>> import jax, numpy as np
        >>> from moe_theory import continual
        >>> pool = continual.Pool(truths=np.eye(2, 4), signals=np.eye(2, 4), clusters=np.arange(2))
        >>> dims = continual.Dims(max_experts=3, num_tasks=2, num_features=4, num_samples=2)
        >>> params = continual.Params(num_experts=3)
        >>> arrival = continual.Arrival(task=0, features=np.eye(4, 2))
        >>> state, info = jax.jit(continual.learn)(continual.begin(dims, params, pool), arrival, np.zeros(3), params)
        >>> int(info.expert), float(info.error), state.experts[0].tolist()
        (0, 0.0, [1.0, 0.0, 0.0, 0.0])
    """
    tasks.check_arrival(state.pool.truths.shape[0], arrival)
    parts = Parts(max_active, router, fit, optimizer=optimizer, auxiliary=auxiliary, locality=locality)
    after, info = _learn(state, arrival, perturbation, params, parts)
    if is_known(arrival.task, arrival.features):
        return after, info
    is_valid = tasks.is_valid_arrival(state.pool.truths.shape[0], arrival)
    errors = {name: tasks.nan_unless(is_valid, getattr(info, name)) for name in ERRORS}
    return after._replace(metrics=tasks.nan_unless(is_valid, after.metrics)), info._replace(**errors)


def _learn(
    state: State, arrival: Arrival, perturbation: Float[Array, " M"], params: Params, parts: Parts
) -> tuple[State, Info]:
    _check_round(state, arrival, params, parts.max_active)
    truth = select_row(state.pool.truths, arrival.task) if arrival.truth is None else jnp.asarray(arrival.truth)
    arrival_with_truth = arrival._replace(truth=truth)
    time = state.round + 1

    def learn_task(routing: Routing) -> Learned:
        masks = routing.masks
        before = jnp.sum(jnp.where(masks[:, :, None], state.experts[None, :, :], 0), axis=1)
        change = jnp.where(jnp.any(masks, axis=1)[:, None], fitted(parts.fit, before, arrival_with_truth, params), 0)
        errors = jnp.sum(jnp.square(before + change - truth[None, :]), axis=1)
        error = jnp.sum(jnp.where(jnp.any(masks, axis=1), errors, 0)) / params.num_active
        after = state._replace(
            experts=state.experts + jnp.sum(jnp.where(masks[:, :, None], change[:, None, :], 0), axis=0),
            metrics=metrics.record_arrival(state.metrics, truth, masks, before=before, change=change, error=error),
        )
        return Learned(after, jnp.sum(jnp.square(change), axis=1), error)

    gate_input = jnp.sum(arrival.features, axis=1)
    after, routing, learned = advance(
        state,
        gate_input,
        perturbation,
        arrival=arrival,
        params=params,
        experts=learn_task,
        max_active=parts.max_active,
        router=parts.router,
        optimizer=parts.optimizer,
        auxiliary=parts.auxiliary,
        locality=parts.locality,
    )
    is_exploring = time <= exploration_rounds(params.num_experts, params.learning_rate)
    after = after._replace(explored_visits=jnp.where(is_exploring, after.visits, state.explored_visits))
    info = Info(
        task=arrival.task,
        expert=routing.ranked[0],
        chosen=jnp.any(routing.masks, axis=0),
        gate_outputs=routing.gate_outputs,
        gate_probabilities=routing.gate_probabilities,
        update_norm=square_root(jnp.sum(learned.squared_moves)),
        error=learned.errors,
        forgetting=metrics.forgetting(after.metrics, time),
        generalization_error=metrics.generalization_error(after.metrics, time),
    )
    return after, info


def advance(
    state: Any,
    gate_input: Float[Array, " p"],
    perturbation: Float[Array, " M"],
    arrival: Any,
    params: Any,
    experts: Experts,
    *,
    max_active: int = 1,
    router: Router = perturbed,
    optimizer: Optimizer = optax.sgd,
    auxiliary: Auxiliary = balance_cost,
    locality: Locality = distance_moved,
) -> tuple[Any, Routing, Learned]:
    """Run one round of Algorithm 1 with any experts and any gate input. `learn` does so with linear experts.

    Args:
        state: a NamedTuple with the fields gates, visits, converged, terminated, round, optimizer_state and memory.
        arrival: the argument of the router and the locality loss.
        params: all fields of `Params` except the fields of pools.
        experts: the functions that learn the arrival.
    Source: Eqs. (1)-(9) and Algorithm 1 of `continual`.
    """
    time = state.round + 1
    exists = jnp.arange(state.gates.shape[0]) < params.num_experts
    outputs = gating.gate_outputs(state.gates, gate_input)
    probabilities = gating.gate_probabilities(outputs, exists)
    scores = gating.checked_scores(router(outputs, perturbation, state, arrival, params), outputs)
    ranked, masks = gating.route(scores, exists, params.num_active, max_active)
    is_chosen = jnp.any(masks, axis=0)
    routing = Routing(outputs, probabilities, scores, ranked=ranked, masks=masks)
    learned = experts(routing)

    visits = state.visits + is_chosen
    printed_costs = jnp.sum(jnp.where(masks, locality_cost(learned.squared_moves, params)[:, None], 0), axis=0)
    lengths = jnp.sum(jnp.where(masks, square_root(learned.squared_moves)[:, None], 0), axis=0)
    move = Move(lengths, costs=printed_costs, learned=is_chosen)
    move_costs, memory = charged(locality, move, state.memory, arrival, params)
    costs = jnp.where(is_chosen, move_costs + auxiliary(visits, time, params), 0)
    gradient = gating.gate_gradient(probabilities, gate_input, costs)

    is_exploring = time <= exploration_rounds(params.num_experts, params.learning_rate)
    converged = ~is_exploring & flag_converged(outputs, masks, state.converged, params)
    terminated = jnp.asarray(params.terminate, bool) & (state.terminated | jnp.all(converged | ~exists))
    updates, optimizer_state = optimizer(params.learning_rate).update(gradient, state.optimizer_state, state.gates)
    updated_gates: Any = optax.apply_updates(state.gates, updates)
    after = learned.state._replace(
        gates=jnp.where(terminated, state.gates, updated_gates),
        visits=visits,
        converged=converged,
        terminated=terminated,
        round=time,
        optimizer_state=jax.tree.map(functools.partial(jnp.where, terminated), state.optimizer_state, optimizer_state),
        memory=memory,
    )
    return after, routing, learned


def _check_round(state: State, arrival: Arrival, params: Params, max_active: int) -> None:
    (max_experts, num_features) = state.experts.shape
    num_tasks = state.pool.truths.shape[0]
    features_shape = jnp.shape(arrival.features)
    if len(features_shape) != 2 or features_shape[0] != num_features:
        raise InvalidValueError(
            f"features has shape {features_shape}, but must have shape ({num_features}, s), with one sample per "
            "column.",
            argument="features",
        )
    for name, shape in (("truth", features_shape[:1]), ("targets", features_shape[1:])):
        value = getattr(arrival, name)
        if value is not None and jnp.shape(value) != shape:
            raise InvalidValueError(
                f"{name} has shape {jnp.shape(value)}, but must have shape {shape}. Change the arrival's {name}.",
                argument=name,
            )
    dims = Dims(max_experts, num_tasks, num_features, num_samples=features_shape[1], max_active=max_active)
    check_params(dims, params)


def locality_cost(squared_moves: Float[Array, " k"], params: Params) -> Float[Array, " k"]:
    """Return |w_t - w_{t-1}|^q of experts that moved by these squared distances. Source: Eq. (6) of `continual`."""
    # A power would be slower, because no backend has vector instructions for it. At q = 1 the factor is exactly 1.
    logs = jnp.log(jnp.maximum(squared_moves, jnp.finfo(squared_moves.dtype).tiny))
    return square_root(squared_moves) * jnp.exp((params.locality_power - 1) / 2 * logs)


def flag_converged(
    outputs: Float[Array, " M"], masks: Bool[Array, "k M"], flags: Bool[Array, " M"], params: Params
) -> Bool[Array, " M"]:
    """Return the flags of the experts whose gate outputs are within Gamma of a chosen expert's, past exploration.

    Gate outputs are from before this round's update, and exclude the perturbation. Flags accumulate unless
    `accumulate_flags` is False. Source: Algorithm 1, lines 7 and 8, of `continual`.
    """
    chosen_outputs = jnp.sum(jnp.where(masks, outputs[None, :], 0), axis=1)
    is_near_row = jnp.abs(outputs[None, :] - chosen_outputs[:, None]) < params.termination_threshold  # (k, M)
    is_near = jnp.any(is_near_row & jnp.any(masks, axis=1)[:, None], axis=0)
    return is_near | (jnp.asarray(params.accumulate_flags, bool) & flags)
