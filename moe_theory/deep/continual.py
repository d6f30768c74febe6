"""Algorithm 1 of `continual` with networks as experts. A task is one class against the rest."""

import functools
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from moe_theory.continual.algorithm import Learned, Optimizer, Router, Routing, advance, perturbed
from moe_theory.core.locality import Locality, check_locality, distance_moved
from moe_theory.core.system import System
from moe_theory.core.tasks import streamed
from moe_theory.deep import baselines, evaluation, gate, networks, training
from moe_theory.deep.evaluation import UNSEEN, Past, Tables
from moe_theory.deep.gate import ImageMoments
from moe_theory.deep.networks import Weights
from moe_theory.deep.params import Dims, Params, check_params
from moe_theory.deep.tasks import Arrival, Pool, Source, Stream, draw, on_device, pool_of


class State(NamedTuple):
    """The state that rounds pass on, which is also the checkpoint."""

    pool: Pool
    experts: Weights  # leaves (M, ...)
    tables: Tables
    gates: Float[Array, "M p"]  # gating parameters theta^(m)
    moments: ImageMoments
    visits: Int[Array, " M"]  # loads, the number of rounds in which each expert was chosen
    converged: Bool[Array, " M"]  # convergence flags I(m)
    terminated: Bool[Array, ""]  # whether gate updates have stopped
    round: Int[Array, ""]  # t, completed rounds
    past: Past
    optimizer_state: PyTree
    memory: PyTree = None  # memory of the locality loss

    @property
    def max_rounds(self) -> int:
        """The number of rounds that arrays are padded to, which is the most that `simulate` accepts."""
        return self.past.max_rounds


class Info(NamedTuple):
    """The observables of one round."""

    task: Int[Array, ""]  # n_t
    expert: Int[Array, ""]  # m_t
    gate_outputs: Float[Array, " M"]  # h_m, without the perturbation
    gate_probabilities: Float[Array, " M"]  # softmax pi_m
    locality: Float[Array, ""]  # |w_t - w_{t-1}| of the chosen expert
    drive: Float[Array, ""]  # kappa = eta |g|^2 |w_t - w_{t-1}|
    variance: Float[Array, ""]  # variance across tasks of an element of the mean images, averaged over elements
    total_variance: Float[Array, ""]  # its sum over elements, at most 1
    error: Float[Array, ""]  # E_t(w_t), mean-squared test error
    forgetting: Float[Array, ""]  # F_t, (15)
    generalization_error: Float[Array, ""]  # G_t, (16)
    accuracy: Float[Array, ""]  # A_t, the mean test accuracy of the tasks so far
    class_errors: Annotated[Float[Array, " K"], UNSEEN]  # mean test error of each class's tasks, NaN before the first
    class_accuracies: Annotated[Float[Array, " K"], UNSEEN]
    terminated: Bool[Array, ""]


@functools.lru_cache(maxsize=16)  # each system holds a data set
def system(
    dims: Dims,
    source: Source,
    classes: tuple[int, ...],
    embed: gate.Embed = gate.mean_image,
    *,
    stream: Stream | None = None,
    optimizer: Optimizer = optax.sgd,
    locality: Locality | None = None,
    **parts: Any,
) -> System:
    """Return the experiment on a data set as a `System`. Each of `classes` is a task.

    Args:
        embed: returns the gate's input from a task's images.
        stream: returns each round's arrival and pool, by default `tasks.draw`.
        optimizer, locality, parts: optimizer, locality, router and auxiliary as in `moe_theory.continual.system`, but
            with `Params` of this package. If `Dims.compares`, the default locality loss has a baseline.
    Source: Algorithm 1, Section 6 and Appendix A of `continual`.
    Raises: InvalidValueError unless there are `num_classes` classes, all in the data set, or for a wrong `locality`.

    Examples:
        >>> import jax
        >>> import moe_theory as mt
        >>> from moe_theory import deep
        >>> dims = deep.Dims(max_experts=2, num_classes=2, max_rounds=2)
        >>> system = deep.continual.system(dims, deep.datasets.load("digits"), classes=(1, 4))
        >>> jax.eval_shape(system.init, mt.root_key(0), deep.Params(num_experts=2)).gates.shape
        (2, 64)
    """
    if locality is not None:
        check_locality(locality)

    def init(key: Key[Array, ""], params: Params) -> State:
        return begin(key, dims, params, pool_of(source, classes), embed=embed, optimizer=optimizer, locality=locality)

    def stationary(key: Key[Array, ""], dims: Dims, state: Any, params: Params) -> tuple[Pool, Arrival]:
        arrival, _ = draw(key, dims, state.pool, params, state.round + 1)
        return state.pool, arrival

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Info]:
        output = (stream or stationary)(key, dims, state, params)
        pool, arrival = streamed(output, "pool", "arrival")
        return learn(
            state._replace(pool=pool), arrival, params, dims, embed, optimizer=optimizer, locality=locality, **parts
        )

    return System(init, step)


def begin(
    key: Key[Array, ""],
    dims: Dims,
    params: Params,
    pool: Pool,
    embed: gate.Embed = gate.mean_image,
    optimizer: Optimizer = optax.sgd,
    locality: Locality | None = None,
) -> State:
    """Return the state before round 1, with random experts and zero gates.

    Source: Algorithm 1 and Section 6 of `continual`.
    Raises: InvalidValueError if the pool has other classes or `params` are out of range. DeclarationError if `embed`
        does not return a vector.
    """
    check_params(dims, params, len(pool.train.counts))
    num_features = gate.num_features(embed, pool, dims.num_samples)
    pool = on_device(pool)
    experts = training.initial_experts(key, dims, pool)
    tables = evaluation.evaluate_all(experts, pool, params, dims)
    gates = jnp.zeros((dims.max_experts, num_features), jnp.result_type(float))
    return State(
        pool=pool,
        experts=experts,
        tables=tables,
        gates=gates,
        moments=gate.initial_moments(num_features),
        visits=jnp.zeros(dims.max_experts, jnp.int32),
        converged=jnp.zeros(dims.max_experts, bool),
        terminated=jnp.zeros((), bool),
        round=jnp.zeros((), jnp.int32),
        past=evaluation.empty_past(dims),
        optimizer_state=optimizer(jnp.asarray(params.learning_rate, gates.dtype)).init(gates),
        memory=baselines.locality_of(dims, locality, printed=distance_moved).init(dims),
    )


def learn(
    state: State,
    arrival: Arrival,
    params: Params,
    dims: Dims,
    embed: gate.Embed = gate.mean_image,
    *,
    router: Router = perturbed,
    locality: Locality | None = None,
    **parts: Any,
) -> tuple[State, Info]:
    """Run one round of Algorithm 1 on an explicit arrival, without randomness.

    The expert with the highest perturbed gate output trains on the task. Then the gates take a step, unless terminated.

    Args:
        router, locality, parts: router, locality, optimizer and auxiliary as in `system`.
    Source: Algorithm 1, Section 6 and Appendices A.3, A.4 of `continual`.
    Raises: the errors of `begin`, and InvalidValueError for a known round beyond `Dims.max_rounds`.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import deep
        >>> from moe_theory.deep.tasks import draw, pool_of
        >>> pool, params = pool_of(deep.datasets.load("digits"), classes=(1, 4)), deep.Params(num_experts=2)
        >>> dims = deep.Dims(2, num_classes=2, max_rounds=2, num_samples=4, num_tests=4, num_epochs=1, batch_size=4)
        >>> def init(key, params):
        ...     return deep.continual.begin(key, dims, params, pool)
        >>> def step(key, state, params):
        ...     arrival, place = draw(key, dims, state.pool, params)
        ...     return deep.continual.learn(state, arrival, params, dims)
        >>> state, info = mt.simulate(mt.System(init, step), mt.root_key(0), params, num_rounds=2)
        >>> info.accuracy.shape, int(state.visits.sum())
        ((2,), 2)
    """
    check_params(dims, params, len(state.pool.train.counts))
    time = state.round + 1
    pixels = state.pool.train.pixels[arrival.images]
    moments, gate_input = gate.observe(state.moments, pixels, time, params, embed)

    def train_expert(routing: Routing) -> Learned:
        before = state._replace(moments=moments)
        return _train_expert(before, arrival, params, dims, pixels=pixels, time=time, routing=routing)

    def score_experts(*arguments: Any) -> Float[Array, " M"]:
        # Scores of -inf instead of NaN tie, so the first expert learns if all gates are NaN.
        scores = router(*arguments)
        return jnp.where(jnp.isnan(scores), -jnp.inf, scores)

    parts |= {"router": score_experts, "locality": baselines.locality_of(dims, locality, printed=distance_moved)}
    after, routing, learned = advance(
        state, gate_input, arrival.perturbation, arrival, params, experts=train_expert, **parts
    )
    return after, _observe_round(after, arrival, params, gate_input, time=time, routing=routing, learned=learned)


def _train_expert(
    state: State, arrival: Arrival, params: Params, dims: Dims, *, pixels: Array, time: Int[Array, ""], routing: Routing
) -> Learned:
    expert = routing.ranked[0]
    before = networks.expert(state.experts, expert)
    trained = training.train_on_arrival(before, arrival, pixels, pool=state.pool, time=time, params=params, dims=dims)
    after = state._replace(
        experts=networks.with_expert(state.experts, expert, trained.weights),
        tables=jax.tree.map(lambda table, row: table.at[expert].set(row), state.tables, trained.rows),
        past=evaluation.record(state.past, time, arrival, expert, trained.rows),
    )
    return Learned(after, trained.squared_change[None])


def _observe_round(
    after: State,
    arrival: Arrival,
    params: Params,
    gate_input: Float[Array, " p"],
    *,
    time: Int[Array, ""],
    routing: Routing,
    learned: Learned,
) -> Info:
    """Return the observables of a round. Errors are NaN if the learning expert has no finite score."""
    moved = jnp.sqrt(learned.squared_moves[0])
    scores = evaluation.scores(after.past, after.tables, time)
    is_blind = jnp.any(routing.masks[0] & jnp.isneginf(routing.scores))
    scores = jax.tree.map(lambda score: jnp.where(is_blind, jnp.nan, score), scores)  # routing ignored NaN gates
    return Info(
        task=arrival.task,
        expert=routing.ranked[0],
        gate_outputs=routing.gate_outputs,
        gate_probabilities=routing.gate_probabilities,
        locality=moved,
        drive=gate.drive(gate_input, moved, params),
        variance=gate.variance(after.moments, time),
        total_variance=gate.total_variance(after.moments, time),
        terminated=after.terminated,
        **scores._asdict(),
    )
