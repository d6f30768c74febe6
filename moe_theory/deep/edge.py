"""Algorithm 1 of `edge` with networks as experts. Servers are busy while they train on a task."""

import functools
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from moe_theory.core import constraints, gating
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.locality import Locality, check_locality
from moe_theory.core.random import uniforms
from moe_theory.core.system import System
from moe_theory.core.tasks import streamed
from moe_theory.deep import baselines, evaluation, gate, networks, training
from moe_theory.deep.evaluation import UNSEEN, Past, Tables
from moe_theory.deep.gate import ImageMoments
from moe_theory.deep.networks import Weights
from moe_theory.deep.params import Dims, Params, check_params
from moe_theory.deep.tasks import Arrival, Pool, Source, Stream, draw, on_device, pool_of
from moe_theory.edge.arrivals import bounded_delays, check_execution, draw_execution, transfer_trip
from moe_theory.edge.delays import Law, even_map, uniform
from moe_theory.edge.policies import POLICIES, Policy, check_policy
from moe_theory.edge.servers import DROPPED, FREE, Assignment, Servers, existing, offer, open_round

_EXECUTION = 2**31 - 1  # folded into the first key for execution delays. Experts fold in their own, smaller numbers
_TRANSFER = 2  # folded into a round's key for transfer delays. `draw` uses the key itself and 1


class State(NamedTuple):
    """The state that rounds pass on, which is also the checkpoint."""

    pool: Pool
    experts: Weights  # leaves (M, ...). A busy server's are already those after its task
    tables: Tables  # evaluations of the models in use. A busy server's are from before its task
    gates: Float[Array, "M p"]
    gate_step: Float[Array, "M p"]  # gradient that the next round applies
    moments: ImageMoments
    positions: Float[Array, "M 2"]  # servers' places in the unit square
    execution_delay: Int[Array, " M"]  # d^ex of each server, in rounds
    busy_until: Int[Array, " M"]  # round in which each server becomes idle
    visits: Int[Array, " M"]
    dropped: Int[Array, ""]  # tasks that found all servers busy
    round: Int[Array, ""]
    past: Past
    pending_server: Int[Array, " M"]  # at place m the number m while server m works on a task, else `FREE`
    pending_until: Int[Array, " M"]  # the round at whose start the task is done
    pending_rows: Tables  # evaluation of the server's model once it is done, leaves (M, K, n)
    pending_norm: Float[Array, " M"]  # |w_t - w_{t-1}|
    pending_input: Float[Array, "M p"]  # the gate's input when the task was routed
    pending_slopes: Float[Array, "M M"]  # d(locality loss)/d(gate outputs) at routing, for a cost of 1
    pending_task: PyTree = None  # task types in progress (M,), for a user's locality loss
    memory: PyTree = None  # memory of the locality loss

    @property
    def max_rounds(self) -> int:
        """The number of rounds that arrays are padded to, which is the most that `simulate` accepts."""
        return self.past.max_rounds


class Info(NamedTuple):
    """The observables of one round."""

    task: Int[Array, ""]  # n_t
    expert: Int[Array, ""]  # m_t, -1 for a dropped task
    delay: Int[Array, ""]  # d_t in rounds, 0 for a dropped task
    num_busy: Int[Array, ""]  # busy servers at routing
    gate_outputs: Float[Array, " M"]  # h_m, without the perturbation
    locality: Float[Array, ""]  # |w_t - w_{t-1}| after the task, 0 for a dropped task
    drive: Float[Array, ""]  # kappa = eta |g|^2 |w_t - w_{t-1}|
    variance: Float[Array, ""]  # variance across tasks of an element of the mean images, averaged over elements
    total_variance: Float[Array, ""]  # its sum over elements, at most 1
    generalization_error: Float[Array, ""]  # G_t in (20), the mean-squared test error of the current models
    generalization_error_flushed: Float[Array, ""]  # G_t once the tasks in progress are done
    accuracy: Float[Array, ""]  # mean test accuracy of the current models on the tasks routed so far
    class_errors: Annotated[Float[Array, " K"], UNSEEN]  # mean test error of each class's tasks, NaN before the first
    class_accuracies: Annotated[Float[Array, " K"], UNSEEN]
    dropped: Int[Array, ""]  # tasks dropped so far


@functools.lru_cache(maxsize=16)  # each system holds a data set
def system(
    dims: Dims,
    source: Source,
    classes: tuple[int, ...],
    policies: tuple[Policy, ...] = tuple(POLICIES.values()),
    transfer: Law = uniform,
    execution: Law = uniform,
    embed: gate.Embed = gate.mean_image,
    stream: Stream | None = None,
    locality: Locality | None = None,
) -> System:
    """Return the experiment on a data set as a `System`. Each of `classes` is a task.

    Args:
        policies: policies of `moe_theory.edge.policies` or your own. `Params.policy` is the index.
        transfer, execution: distributions of delays from `moe_theory.edge.delays`, or your own.
        embed: returns the gate's input from a task's images.
        stream: returns each round's arrival and pool, by default from `tasks.draw` and `sent`.
        locality: as in `moe_theory.edge.system`. The default is the printed loss, with a baseline if `Dims.compares`.
    Source: Algorithm 1 and Section VI of `edge`.
    Raises: InvalidValueError unless there are `num_classes` classes, all in the data set, and any locality is a
        `Locality`. `init` raises it for a policy out of range or unsuitable distributions.

    Examples:
        >>> import jax
        >>> import moe_theory as mt
        >>> from moe_theory import deep
        >>> dims = deep.Dims(max_experts=2, num_classes=2, max_rounds=2)
        >>> system = deep.edge.system(dims, deep.datasets.load("digits"), classes=(1, 4))
        >>> jax.eval_shape(system.init, mt.root_key(0), deep.Params(num_experts=2)).pending_norm.shape
        (2,)
    """
    if locality is not None:
        check_locality(locality)

    def init(key: Key[Array, ""], params: Params) -> State:
        check_params(dims, params)
        _check_policies(policies, params)
        check_execution(execution)
        return begin(key, dims, params, pool_of(source, classes), execution=execution, embed=embed, locality=locality)

    def stationary(key: Key[Array, ""], dims: Dims, state: Any, params: Params) -> tuple[Pool, Arrival]:
        arrival, place = draw(key, dims, state.pool, params, state.round + 1)
        transfer_key = jax.random.fold_in(key, _TRANSFER)
        return state.pool, sent(transfer_key, arrival, place, state.positions, params, transfer=transfer)

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Info]:
        output = (stream or stationary)(key, dims, state, params)
        pool, arrival = streamed(output, "pool", "arrival")
        return learn(state._replace(pool=pool), arrival, params, dims, policies, embed=embed, locality=locality)

    return System(init, step)


def begin(
    key: Key[Array, ""],
    dims: Dims,
    params: Params,
    pool: Pool,
    execution: Law = uniform,
    embed: gate.Embed = gate.mean_image,
    locality: Locality | None = None,
) -> State:
    """Return the state before round 1. Experts and execution delays are random, and idle servers are spread evenly.

    Source: Algorithm 1 and Section VI of `edge`.
    Raises: InvalidValueError if the pool has other classes or `params` are out of range. DeclarationError if `embed`
        does not return a vector.
    """
    locality = baselines.locality_of(dims, locality, printed=None)
    check_params(dims, params, num_classes=len(pool.train.counts))
    num_experts = dims.max_experts
    dtype = jnp.result_type(float)
    num_features = gate.num_features(embed, pool, dims.num_samples)
    pool = on_device(pool)
    models = training.initial_experts(key, dims, pool)
    # Initial models are evaluated too: a server has its own until its first task is done.
    tables = evaluation.evaluate_all(models, pool, params, dims)
    gates = jnp.zeros((num_experts, num_features), dtype)
    positions = jnp.asarray(even_map(num_experts), dtype)
    execution_key = jax.random.fold_in(key, _EXECUTION)
    zero = jnp.zeros((), jnp.int32)
    zeros = jnp.zeros(num_experts, jnp.int32)
    return State(
        pool=pool,
        experts=models,
        tables=tables,
        gates=gates,
        gate_step=gates,
        moments=gate.initial_moments(num_features),
        positions=positions,
        execution_delay=draw_execution(execution_key, dims.servers, positions, params.delays, execution),
        busy_until=zeros,
        visits=zeros,
        dropped=zero,
        round=zero,
        past=evaluation.empty_past(dims),
        pending_server=jnp.full(num_experts, FREE, jnp.int32),
        pending_until=zeros,
        pending_rows=tables,
        pending_norm=jnp.zeros(num_experts, dtype),
        pending_input=gates,
        pending_slopes=jnp.zeros((num_experts, num_experts), dtype),
        pending_task=None if locality is None else zeros,
        memory=None if locality is None else locality.init(dims),
    )


def learn(
    state: State,
    arrival: Arrival,
    params: Params,
    dims: Dims,
    policies: tuple[Policy, ...] = tuple(POLICIES.values()),
    embed: gate.Embed = gate.mean_image,
    locality: Locality | None = None,
) -> tuple[State, Info]:
    """Run one round on an explicit arrival, with gate steps, completions and routing in this order.

    First, completed tasks update the gates, with the inputs and probabilities at their routing. They were completed in
    the last round, or in this one if `gate_lag` is 0. Then the new task goes to the idle server that the policy ranks
    first. This server is busy for its delay, and then has its new model. If no server is idle, the task is dropped.

    Args:
        locality: as in `system`.
    Source: Eqs. (1)-(13), Algorithm 1 and Section VI of `edge`.
    Raises: the errors of `begin`, and InvalidValueError for a policy that is out of range or does not return one score
        per server, or for a known round beyond `Dims.max_rounds`.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import deep, edge
        >>> from moe_theory.deep.tasks import draw, pool_of
        >>> pool, params = pool_of(deep.datasets.load("digits"), classes=(1, 4)), deep.Params(num_experts=2)
        >>> dims = deep.Dims(2, num_classes=2, max_rounds=2, num_samples=4, num_tests=4, num_epochs=1, batch_size=4)
        >>> def init(key, params):
        ...     return deep.edge.begin(key, dims, params, pool)
        >>> def step(key, state, params):
        ...     arrival, place = draw(key, dims, state.pool, params)
        ...     arrival = deep.edge.sent(key, arrival, place, state.positions, params, edge.delays.uniform)
        ...     return deep.edge.learn(state, arrival, params, dims)
        >>> state, info = mt.simulate(mt.System(init, step), mt.root_key(0), params, num_rounds=2)
        >>> int(state.visits.sum() + state.dropped)
        2
    """
    locality = baselines.locality_of(dims, locality, printed=None)
    check_params(dims, params, num_classes=len(state.pool.train.counts))
    _check_policies(policies, params)
    time = state.round + 1
    pixels = state.pool.train.pixels[arrival.images]
    moments, gate_input = gate.observe(state.moments, pixels, time, params, embed)

    def chosen_policy(outputs: Float[Array, " M"], *arguments: Any) -> Float[Array, " M"]:
        # `params.policy` may be traced, so all policies are computed.
        scores = [gating.checked_scores(policy(outputs, *arguments), outputs) for policy in policies]
        return jnp.stack(scores)[params.policy]

    servers = _training_servers(time, pixels, dims, locality)
    ready, _, _ = open_round(state, params, servers)
    after, task = offer(ready, arrival, gate_input, params=params, policy=chosen_policy, servers=servers)
    after = after._replace(moments=moments, dropped=after.dropped + (task.server == DROPPED))
    return after, _observe_round(ready, after, arrival, params, gate_input, time=time, task=task)


def _training_servers(time: Int[Array, ""], pixels: Array, dims: Dims, locality: Locality | None) -> Servers:
    """Return servers that train a network on the task of this round, and use it once the task is done."""

    def complete(state: State, is_done: Bool[Array, " M"]) -> tuple[State, Float[Array, " M"]]:
        tables = _select(is_done, state.pending_rows, state.tables)
        return state._replace(tables=tables), jnp.where(is_done, state.pending_norm, 0)

    def take(state: State, arrival: Arrival, task: Assignment, params: Params) -> tuple[State, Float[Array, ""]]:
        # A dropped task, at server -1, trains a copy of an expert, which `with_expert` discards.
        before = networks.expert(state.experts, task.server)
        trained = training.train_on_arrival(before, arrival, pixels, state.pool, time=time, params=params, dims=dims)
        rows = Tables(losses=trained.rows.losses[None], hits=trained.rows.hits[None])  # the same for all servers
        after = state._replace(
            experts=networks.with_expert(state.experts, task.server, trained.weights),
            past=evaluation.record(state.past, time, arrival, task.server, trained.rows),
            pending_rows=_select(task.mask, rows, alternatives=state.pending_rows),
            pending_task=None if locality is None else jnp.where(task.slot, arrival.task, state.pending_task),
        )
        return after, jnp.sqrt(trained.squared_change)

    # A single product, because another order of its sums would change last bits of recorded runs.
    product = functools.partial(jnp.einsum, "sm,sp->mp")
    return Servers(complete, take, gradient=product, locality=locality)


def _observe_round(
    ready: State,
    after: State,
    arrival: Arrival,
    params: Params,
    gate_input: Float[Array, " p"],
    *,
    time: Int[Array, ""],
    task: Assignment,
) -> Info:
    moved = jnp.sum(jnp.where(task.mask, after.pending_norm, 0))  # the norm at the task's server
    scores = evaluation.scores(after.past, after.tables, time)
    flushed_tables = _select(after.pending_server != FREE, after.pending_rows, after.tables)
    flushed = evaluation.scores(after.past, flushed_tables, time)
    # If the best score is NaN, the gates are NaN, and the numbers of this run mean nothing.
    scores, flushed = jax.tree.map(lambda score: jnp.where(task.is_blind, jnp.nan, score), (scores, flushed))
    return Info(
        task=arrival.task,
        expert=task.server,
        delay=task.delay,
        num_busy=jnp.sum(existing(ready, params) & (ready.busy_until > time), dtype=jnp.int32),
        gate_outputs=gating.gate_outputs(after.gates, gate_input),
        locality=moved,
        drive=gate.drive(gate_input, moved, params),
        variance=gate.variance(after.moments, time),
        total_variance=gate.total_variance(after.moments, time),
        generalization_error=scores.generalization_error,
        generalization_error_flushed=flushed.generalization_error,
        accuracy=scores.accuracy,
        class_errors=scores.class_errors,
        class_accuracies=scores.class_accuracies,
        dropped=after.dropped,
    )


def _check_policies(policies: tuple[Policy, ...], params: Params) -> None:
    for policy in policies:
        check_policy(policy)
    if constraints.is_known(params.policy) and int(params.policy) >= len(policies):
        raise InvalidValueError(
            f"policy={params.policy} must be below {len(policies)}, the number of policies. Lower policy.",
            argument="policy",
        )


def _select(is_chosen: Bool[Array, " M"], rows: Tables, alternatives: Tables) -> Tables:
    return jax.tree.map(lambda row, other: jnp.where(is_chosen[:, None, None], row, other), rows, alternatives)


def sent(
    key: Key[Array, ""],
    arrival: Arrival,
    place: Float[Array, "2"],
    positions: Float[Array, "M 2"],
    params: Params,
    transfer: Law,
) -> Arrival:
    """Return the arrival of a user at `place`, with distances and transfer delays.

    Source: Eq. (1) and Section VI of `edge`.
    Raises: InvalidValueError unless a distribution returns one whole number per server.
    """
    units = uniforms(key, positions.shape[0] + 1, positions.dtype)  # one of the user, and one of each server
    trip = transfer_trip(place, positions, units[1:], units[0], params)
    transfer_delay = bounded_delays(transfer, trip, params.delays)
    return arrival._replace(distance=trip.distance, transfer_delay=transfer_delay)
