"""Algorithm 1 of the edge-computing paper with networks for experts: servers are busy while they learn images."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory.core import checks, gating
from moe_theory.core.errors import InvalidParamsError
from moe_theory.core.random import symmetric_uniforms
from moe_theory.core.system import System
from moe_theory.deep import experts, gate, networks, scores
from moe_theory.deep.arrivals import Arrival, draw
from moe_theory.deep.gate import Moments
from moe_theory.deep.networks import Weights
from moe_theory.deep.params import Dims, Params, check_params
from moe_theory.deep.pool import Pool, Source, on_device, pool_of
from moe_theory.deep.scores import Past, Tables
from moe_theory.edge.algorithm import bounded_delays, check_laws, draw_execution
from moe_theory.edge.delays import Law, Trip, even_map, uniform
from moe_theory.edge.policies import POLICIES, Policy, check_policy, scores_of

_EXECUTION = 2**31 - 1  # folded into a key that is also folded with experts' numbers: beyond any of these


class Pending(NamedTuple):
    """The task that each server works on, or worked on last."""

    is_open: Bool[Array, " M"]  # whether there is one
    rows: Tables  # what the server will make of the test images, leaves (M, K, n)
    costs: Float[Array, " M"]  # |w_t - w_{t-1}|
    inputs: Float[Array, "M p"]  # of the gate, in the round in which it was routed
    slopes: Float[Array, "M M"]  # derivatives of the locality loss in the gate outputs then, at a cost of 1


class State(NamedTuple):
    """What is carried from round to round: with the pool, which never changes, the checkpoint."""

    pool: Pool
    experts: Weights  # leaves (M, ...); those of a busy server are as they will be
    tables: Tables  # of the models as they are
    pending: Pending
    gates: Float[Array, "M p"]
    gate_step: Float[Array, "M p"]  # the gradient that the next round applies
    moments: Moments
    positions: Float[Array, "M 2"]  # of the servers on the unit square
    execution_delay: Int[Array, " M"]  # d^ex of each server, in rounds
    busy_until: Int[Array, " M"]  # the round in which each is idle again
    visits: Int[Array, " M"]
    dropped: Int[Array, ""]  # tasks that met no idle server
    round: Int[Array, ""]
    past: Past

    @property
    def max_rounds(self) -> int:
        """Rounds that there is memory for: `simulate` refuses more."""
        return self.past.max_rounds


class Info(NamedTuple):
    """What a round shows."""

    task: Int[Array, ""]  # n_t
    expert: Int[Array, ""]  # m_t; -1 for a task that was dropped
    delay: Int[Array, ""]  # d_t, in rounds; 0 for a task that was dropped
    num_busy: Int[Array, ""]  # servers that the router found busy
    gate_outputs: Float[Array, " M"]  # h_m, without the perturbation
    locality: Float[Array, ""]  # |w_t - w_{t-1}| that the task will take; 0 for one that was dropped
    drive: Float[Array, ""]  # kappa = eta |g|^2 |w_t - w_{t-1}|
    variance: Float[Array, ""]  # of an element of the mean images across tasks, mean over elements
    total_variance: Float[Array, ""]  # and the sum over elements, at most 1
    generalization_error: Float[Array, ""]  # G_t of (20), mean-squared test error with the models as they are
    generalization_error_flushed: Float[Array, ""]  # once the tasks under way are done
    accuracy: Float[Array, ""]  # mean test accuracy of the tasks routed so far, with the models as they are
    dropped: Int[Array, ""]  # tasks lost so far


@functools.lru_cache(maxsize=16)  # each holds a data set
def system(
    dims: Dims,
    source: Source,
    classes: tuple[int, ...],
    policies: tuple[Policy, ...] = tuple(POLICIES.values()),
    transfer: Law = uniform,
    execution: Law = uniform,
) -> System:
    """The experiment as a `System` on a data set, whose tasks are to recognise `classes`, one each.

    Args:
        policies: of `moe_theory.edge.policies`, or your own; `Params.policy` says which of them routes.
        transfer, execution: laws of delays, of `moe_theory.edge.delays` or your own.
    Source: Algorithm 1 and Section VI of `edge`.
    Raises: InvalidDimsError unless there are `num_classes` classes, all in the data set; once it begins,
        InvalidParamsError for a policy that there is not, and for laws that do not fit the parameters.

    Examples:
        >>> import jax
        >>> import moe_theory as mt
        >>> from moe_theory import deep
        >>> dims = deep.Dims(max_experts=2, num_classes=2, max_rounds=2)
        >>> system = deep.edge.system(dims, deep.datasets.load("digits"), classes=(1, 4))
        >>> jax.eval_shape(system.init, mt.root_key(0), deep.Params(num_experts=2)).pending.costs.shape
        (2,)
    """

    def init(key: Key[Array, ""], params: Params) -> State:
        _check_policies(policies, params)
        check_laws(dims.servers, params.delays, transfer, execution)
        return begin(key, dims, params, pool_of(source, classes), execution)

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Info]:
        arrival, place = draw(key, dims, state.pool, params)
        arrival = sent(jax.random.fold_in(key, 2), arrival, place, state.positions, params, transfer)
        return learn(state, arrival, params, dims, policies)

    return System(init, step)


def begin(key: Key[Array, ""], dims: Dims, params: Params, pool: Pool, execution: Law = uniform) -> State:
    """The state before round 1: experts and execution delays are drawn, servers are spread evenly and idle.

    Source: Algorithm 1 and Section VI of `edge`.
    Raises: InvalidDimsError for a pool of another number of classes; InvalidParamsError for `params` outside their
        range.
    """
    check_params(dims, params, len(pool.train.counts))
    num_experts, num_pixels, dtype = dims.max_experts, pool.train.pixels[0].size, jnp.result_type(float)
    pool = on_device(pool)
    models = experts.begin(key, dims, pool)
    # A server that still works on its first task shows the model that it began with.
    tables = experts.tables_of(models, pool, params, dims)
    gates = jnp.zeros((num_experts, num_pixels), dtype)
    positions = jnp.asarray(even_map(num_experts), dtype)
    return State(
        pool=pool,
        experts=models,
        tables=tables,
        pending=Pending(
            jnp.zeros(num_experts, bool), tables, gates[:, 0], gates, jnp.zeros((num_experts, num_experts), dtype)
        ),
        gates=gates,
        gate_step=gates,
        moments=gate.none_yet(num_pixels),
        positions=positions,
        execution_delay=draw_execution(
            jax.random.fold_in(key, _EXECUTION), dims.servers, positions, params.delays, execution
        ),
        busy_until=jnp.zeros(num_experts, jnp.int32),
        visits=jnp.zeros(num_experts, jnp.int32),
        dropped=jnp.zeros((), jnp.int32),
        round=jnp.zeros((), jnp.int32),
        past=scores.no_past(dims),
    )


def learn(
    state: State,
    arrival: Arrival,
    params: Params,
    dims: Dims,
    policies: tuple[Policy, ...] = tuple(POLICIES.values()),
) -> tuple[State, Info]:
    """One round on an explicit arrival, nothing random inside: gate steps, completions, routing, in this order.

    Last round's completions move the gates (with `gate_lag` 0 this round's), from the inputs and probabilities of the
    rounds in which they were routed. Then the task goes to the idle server that the policy puts first, which is busy
    for its delay and shows its new model after it; with nobody idle the task is dropped.

    Source: Eqs. (1)-(13), Algorithm 1 and Section VI of `edge`.
    Raises: as `begin`; InvalidParamsError for a policy that there is not, or that gives no score a server;
        InvalidRunError for a round beyond `Dims.max_rounds`, where its number is known.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import deep, edge
        >>> from moe_theory.deep.arrivals import draw
        >>> from moe_theory.deep.pool import pool_of
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
    check_params(dims, params, len(state.pool.train.counts))
    _check_policies(policies, params)
    time = state.round + 1
    done = state.pending.is_open & (state.busy_until <= time)
    state = _completed(state, done, params)._replace(round=time)
    exists = jnp.arange(dims.max_experts) < params.num_experts
    idle = exists & (state.busy_until <= time)
    pixels = state.pool.train.pixels[arrival.images]
    moments, gate_input = gate.seen(state.moments, pixels, time, params)
    outputs = gating.gate_outputs(state.gates, gate_input)
    rankings = jnp.stack([scores_of(policy, outputs, state, arrival, params) for policy in policies])
    expert, chosen = gating.best_expert(rankings[params.policy], idle)
    is_routed = jnp.any(chosen)

    place = jnp.maximum(expert, 0)
    before = networks.expert(state.experts, place)
    learned = experts.learn(before, arrival, pixels, state.pool, time, params, dims)
    kept: Any = jax.tree.map(lambda new, old: jnp.where(is_routed, new, old), learned.weights, before)
    locality = jnp.where(is_routed, jnp.sqrt(learned.squared_move), 0)
    delay = jnp.sum(jnp.where(chosen, arrival.transfer_delay + state.execution_delay, 0), dtype=jnp.int32)
    slopes = gating.gate_slopes(gating.gate_probabilities(outputs, exists), chosen.astype(outputs.dtype))
    after = state._replace(
        experts=networks.with_expert(state.experts, place, kept),
        pending=_begun(state.pending, chosen, learned.rows, locality, gate_input, slopes),
        moments=moments,
        busy_until=jnp.where(chosen, time + delay, state.busy_until),
        visits=state.visits + chosen,
        dropped=state.dropped + ~is_routed,
        past=scores.remember(state.past, time, arrival.task, expert, arrival.tests, learned.rows),
    )
    found = scores.scores(after.past, after.tables, time)
    flushed = scores.scores(after.past, _rows_of(after.pending.is_open, after.pending.rows, after.tables), time)
    info = Info(
        task=arrival.task,
        expert=expert,
        delay=delay,
        num_busy=jnp.sum(exists & ~idle, dtype=jnp.int32),
        gate_outputs=outputs,
        locality=locality,
        drive=gate.drive(gate_input, locality, params),
        variance=gate.variance(moments, time),
        total_variance=gate.total_variance(moments, time),
        generalization_error=found.generalization_error,
        generalization_error_flushed=flushed.generalization_error,
        accuracy=found.accuracy,
        dropped=after.dropped,
    )
    return after, info


def _check_policies(policies: tuple[Policy, ...], params: Params) -> None:
    for policy in policies:
        check_policy(policy)
    if checks.is_known(params.policy) and int(params.policy) >= len(policies):
        raise InvalidParamsError(
            f"policy={params.policy} must be below {len(policies)}, the number of policies. Lower policy."
        )


def _completed(state: State, done: Bool[Array, " M"], params: Params) -> State:
    """Servers whose tasks are done show their new models; the gates take the step that is due.

    Source: Eqs. (11)-(13), (24)-(26) of `edge`.
    """
    pending = state.pending
    pulls = jnp.where(done, pending.costs, 0)[:, None] * pending.slopes
    gradient = jnp.einsum("sm,sp->mp", pulls, pending.inputs)
    is_immediate = jnp.asarray(params.gate_lag) == 0
    step = state.gate_step + jnp.where(is_immediate, gradient, 0)
    return state._replace(
        tables=_rows_of(done, pending.rows, state.tables),
        pending=pending._replace(is_open=pending.is_open & ~done),
        gates=state.gates - params.learning_rate * step,
        gate_step=jnp.where(is_immediate, 0, gradient),
    )


def _begun(
    pending: Pending,
    chosen: Bool[Array, " M"],
    rows: Tables,
    cost: Float[Array, ""],
    gate_input: Float[Array, " p"],
    slopes: Float[Array, " M"],
) -> Pending:
    """With the task that the chosen server, if any, now works on; `rows` have leaves (K, n)."""
    return Pending(
        is_open=pending.is_open | chosen,
        rows=_rows_of(chosen, Tables(*(row[None] for row in rows)), pending.rows),
        costs=jnp.where(chosen, cost, pending.costs),
        inputs=jnp.where(chosen[:, None], gate_input[None], pending.inputs),
        slopes=jnp.where(chosen[:, None], slopes[None], pending.slopes),
    )


def _rows_of(chosen: Bool[Array, " M"], rows: Tables, others: Tables) -> Tables:
    """Those of the chosen servers, of the others theirs, leaves (M, K, n)."""
    return Tables(*(jnp.where(chosen[:, None, None], new, old) for new, old in zip(rows, others, strict=True)))


def sent(
    key: Key[Array, ""],
    arrival: Arrival,
    place: Float[Array, "2"],
    positions: Float[Array, "M 2"],
    params: Params,
    transfer: Law,
) -> Arrival:
    """The arrival with its distances and transfer delays, of a user at `place`.

    Source: Eq. (1) and Section VI of `edge`.
    Raises: InvalidParamsError for a law of delays that gives no whole numbers, one a server.
    """
    distance = jnp.sqrt(jnp.sum(jnp.square(positions - place[None]), axis=1))
    units = (symmetric_uniforms(key, positions.shape[0] + 1, positions.dtype) + 1) / 2
    trip = Trip(
        uniform=units[1:],
        least=jnp.asarray(params.min_transfer_delay, jnp.int32),
        most=jnp.asarray(params.max_transfer_delay, jnp.int32),
        distance=distance,
        nearest=gating.best_expert(-distance, jnp.arange(positions.shape[0]) < params.num_experts)[0],
        positions=positions,
        uplink=-jnp.log(units[0]),
    )
    return arrival._replace(distance=distance, transfer_delay=bounded_delays(transfer, trip, params.delays))
