"""Algorithm 1 with more observables than `Info`, computed from the gates that routed a round.

M > N is not a separate case, because with K >= N every task is a cluster.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory.continual import corrected, reduced, theory
from moe_theory.continual.algorithm import Auxiliary, Info, State, balance_cost, draw, learn, locality_cost, system
from moe_theory.continual.params import Dims, Params
from moe_theory.core import gating
from moe_theory.core.expected import taught, untaught
from moe_theory.core.linear import error_contraction
from moe_theory.core.locality import Locality, Move, charged, distance_moved
from moe_theory.core.numerics import Numbers
from moe_theory.core.parts import of_parts
from moe_theory.core.system import System
from moe_theory.core.tasks import Arrival, select_row


class GateSteps(NamedTuple):
    """How a round's gradient moves the gates, even after their updates end, and how large the gates are."""

    least_balance_gradient: Float[Array, ""]  # min over experts of |auxiliary loss's gradient in theta^(m)|_inf
    largest_gradient: Float[Array, ""]  # max over experts of |task loss's gradient in theta^(m)|_inf
    chosen_change: Float[Array, ""]  # max over n of |<theta' - theta, v_n>| for the expert that was chosen
    others_change: Float[Array, ""]  # max over n and the other experts of |<theta' - theta, v_n>|
    chosen_rise: Float[Array, ""]  # max over n of <theta' - theta, v_n> for the expert that was chosen
    own_rise: Float[Array, ""]  # <theta' - theta, v_n> of the arriving task's n, for the expert that was chosen
    own_fall: Float[Array, ""]  # max over the other experts of -<theta' - theta, v_n>, for the same n
    gate_size: Float[Array, ""]  # max over experts of |theta^(m)|_inf after the round
    gate_gap: Float[Array, ""]  # max over pairs of experts of |theta^(m) - theta^(m')|_inf after the round


class Costs(NamedTuple):
    """Costs of the chosen expert from each loss, and 0 for other experts."""

    locality: Float[Array, " M"]  # (6), or a custom locality loss
    balance: Float[Array, " M"]  # (7), or a custom auxiliary loss


def _costs_of(
    arrival: Arrival,
    before: State,
    after: State,
    info: Info,
    params: Params,
    *,
    auxiliary: Auxiliary = balance_cost,
    locality: Locality = distance_moved,
    **other_parts: Any,
) -> Costs:
    del other_parts
    printed_costs = jnp.where(info.chosen, locality_cost(info.update_norm**2, params), 0)
    move = Move(jnp.where(info.chosen, info.update_norm, 0), costs=printed_costs, learned=info.chosen)
    move_costs, _ = charged(locality, move, before.memory, arrival, params)
    balance_costs = auxiliary(after.visits, after.round, params)
    return Costs(jnp.where(info.chosen, move_costs, 0), jnp.where(info.chosen, balance_costs, 0))


@of_parts(like=system, only=("router", "fit", "auxiliary", "locality"))
def system_with_gate_steps(dims: Dims, **parts: Any) -> System:
    """Return Algorithm 1 as a `System` that observes `GateSteps` and draws as `continual.system` does."""

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, GateSteps]:
        arrival, perturbation = draw(key, dims, state.pool, params)
        after, info = learn(state, arrival, perturbation, params, max_active=dims.max_active, **parts)
        costs = _costs_of(arrival, state, after, info, params, **parts)
        return after, gate_steps(arrival, after, info, params=params, costs=costs)

    return System(system(dims, **parts).init, step)


def gate_steps(arrival: Arrival, after: State, info: Info, params: Params, costs: Costs) -> GateSteps:
    """Return the gate step of a round of switch routing, given its observables and the state after it."""
    gate_input = jnp.sum(arrival.features, axis=1)
    slopes = gating.gate_slopes(info.gate_probabilities, costs.locality + costs.balance)
    exists = jnp.arange(slopes.shape[0]) < params.num_experts
    is_other = exists & ~info.chosen
    input_size = jnp.max(jnp.abs(gate_input))
    balance_gradients = jnp.abs(gating.gate_slopes(info.gate_probabilities, costs.balance)) * input_size

    drives = jnp.sum(after.pool.signals * gate_input[None, :], axis=1)
    changes = -params.learning_rate * slopes[:, None] * drives[None, :]
    own_changes = -params.learning_rate * slopes * select_row(drives[:, None], arrival.task)[0]
    chosen_changes = jnp.sum(jnp.where(info.chosen[:, None], changes, 0), axis=0)
    highest = _largest(after.gates, exists[:, None])
    lowest = -_largest(-after.gates, exists[:, None])
    return GateSteps(
        least_balance_gradient=-_largest(-balance_gradients, exists),
        largest_gradient=_largest(jnp.abs(slopes) * input_size, exists),
        chosen_change=jnp.max(jnp.abs(chosen_changes)),
        others_change=jnp.max(_largest(jnp.abs(changes), is_other[:, None])),
        chosen_rise=jnp.max(chosen_changes),
        own_rise=jnp.sum(jnp.where(info.chosen, own_changes, 0)),
        own_fall=_largest(-own_changes, is_other),
        gate_size=jnp.max(jnp.abs(after.gates)),
        gate_gap=jnp.max(highest - lowest),
    )


def _largest(values: Float[Array, "M *rest"], mask: Bool[Array, "M *ones"]) -> Float[Array, "*rest"]:
    return jnp.max(jnp.where(mask, values, -jnp.inf), axis=0)


# Classes of states that contain the algorithm's state have these two fields of it, which engines and figures read.
_POOL = property(lambda self: self.state.pool)
_ROUND = property(lambda self: self.state.round)


class TrackedState(NamedTuple):
    state: State
    explored: Float[Array, "M d"]  # experts after round T1

    pool = _POOL
    round = _ROUND


class Diagnostics(NamedTuple):
    task: Int[Array, ""]  # n_t
    expert: Int[Array, ""]  # m_t
    terminated: Bool[Array, ""]  # whether the gates were fixed before this round
    error: Float[Array, ""]  # |w_t - w_n|^2 of the expert that learned
    update_norm: Float[Array, ""]  # |w_t - w_{t-1}|
    generalization_error: Float[Array, ""]  # G_t
    set_size: Int[Array, ""]  # |M_n| of the arriving task's set
    is_inside: Bool[Array, ""]  # whether m_t is in this set
    led: Bool[Array, ""]  # whether m_t has the highest gate output in this set
    led_all: Bool[Array, ""]  # whether m_t has the highest gate output of all experts
    own_gap: Float[Array, ""]  # largest |h_m - h_m'| in this set
    locality_gradient: Float[Array, ""]  # largest entry of the gradient of (6) in the gates
    gradient_gap: Float[Array, ""]  # largest |gradient of (8) at m minus its gradient at m_t|_inf
    distance_change: Float[Array, ""]  # | |w_t - w_n|^2 - |w_T1 - w_n|^2 | of the expert that learned
    step_error: Float[Array, ""]  # mean over all truths w_n of |w_t - w_n|^2, for the expert that learned
    step_expected: Float[Array, ""]  # expected `step_error`, given the expert before the round, the task and its signal


@of_parts(like=system, only=("router", "fit", "optimizer", "auxiliary", "locality"))
def system_with_diagnostics(dims: Dims, **parts: Any) -> System:
    plain = system(dims, **parts)

    def init(key: Key[Array, ""], params: Params) -> TrackedState:
        state = plain.init(key, params)
        return TrackedState(state, explored=state.experts)

    def step(key: Key[Array, ""], before: TrackedState, params: Params) -> tuple[TrackedState, Diagnostics]:
        arrival, perturbation = draw(key, dims, before.pool, params)
        state, info = learn(before.state, arrival, perturbation, params, max_active=dims.max_active, **parts)
        is_exploring = state.round <= theory.exploration_rounds(params.num_experts, params.learning_rate)
        tracked = TrackedState(state, jnp.where(is_exploring, state.experts, before.explored))
        costs = _costs_of(arrival, before.state, state, info, params, **parts)
        return tracked, _diagnose(before, tracked, arrival, info=info, params=params, costs=costs)

    return System(init, step)


WINDOW = 20  # rounds up to t_1 over which gaps are averaged, or rounds observed once the gates are fixed


class Tally(NamedTuple):
    """The algorithm's state with a summary of its rounds, for long runs."""

    state: State
    begun: Float[Array, "M d"]  # experts after round T1 + 1
    sets: Int[Array, " M"]  # each expert's set, by its cluster, at the gates of round T1 + 1
    was_ordered: Bool[Array, ""]  # (40) at these gates
    probability_gap: Float[Array, ""]  # largest |pi_m(v_n) - pi_m(v_n')| of different clusters, at these gates
    is_stable: Bool[Array, ""]  # whether all sets have stayed the same since
    is_separated: Bool[Array, ""]  # whether (33) has held in all rounds since
    drift: Float[Array, ""]  # largest |w_t - w_{T1+1}|_inf of all rounds since
    rounds_open: Int[Array, ""]  # rounds in which the gates were not fixed yet
    was_outside: Bool[Array, ""]  # whether one of the next `WINDOW` arrivals missed its set, if this was not empty

    pool = _POOL
    round = _ROUND


@of_parts(like=system)
def system_with_tally(dims: Dims, **parts: Any) -> System:
    plain = system(dims, **parts)

    def init(key: Key[Array, ""], params: Params) -> Tally:
        state = plain.init(key, params)
        true = jnp.ones((), bool)
        zero = jnp.zeros((), state.experts.dtype)
        return Tally(
            state,
            begun=state.experts,
            sets=jnp.zeros(dims.max_experts, jnp.int32),
            was_ordered=true,
            probability_gap=zero,
            is_stable=true,
            is_separated=true,
            drift=zero,
            rounds_open=jnp.zeros((), jnp.int32),
            was_outside=~true,
        )

    def step(key: Key[Array, ""], before: Tally, params: Params) -> tuple[Tally, Info]:
        state, info = plain.step(key, before.state, params)
        past_t1 = state.round - theory.exploration_rounds(params.num_experts, params.learning_rate)  # in rounds
        exists = jnp.arange(dims.max_experts) < params.num_experts
        drives = signal_outputs(before.state)
        sets = expert_sets(before.state)
        clusters = state.pool.clusters
        # Later rounds are compared with round T1 + 1, where `past_t1` is 1.
        models_at_begin = jnp.where(past_t1 <= 1, state.experts, before.begun)
        drift = jnp.max(jnp.where(exists[:, None], jnp.abs(state.experts - models_at_begin), 0))
        sets_at_begin = jnp.where(past_t1 <= 1, sets, before.sets)
        members = exists & set_of_task(before.state, info.task)
        is_outside = jnp.any(members) & ~jnp.any(members & info.chosen)
        is_in_window = before.state.terminated & (state.round <= before.rounds_open + WINDOW)
        after = Tally(
            state=state,
            begun=models_at_begin,
            sets=sets_at_begin,
            was_ordered=jnp.where(past_t1 == 1, is_ordered(drives, sets, exists, clusters), before.was_ordered),
            probability_gap=jnp.where(past_t1 == 1, probability_gap(drives, exists, clusters), before.probability_gap),
            is_stable=before.is_stable & (jnp.all((sets == sets_at_begin) | ~exists) | (past_t1 <= 1)),
            is_separated=before.is_separated & (is_separated(drives, sets_at_begin, exists, clusters) | (past_t1 <= 1)),
            drift=jnp.maximum(before.drift, drift),
            rounds_open=before.rounds_open + ~before.state.terminated,
            was_outside=before.was_outside | (is_in_window & is_outside),
        )
        return after, info

    return System(init, step)


def with_common_part(base: System) -> System:
    """Return the system with 1 added to entries of all signals.

    Differences of signals stay unchanged. No field of the initial state but the pool may depend on signals.
    """

    def init(key: Key[Array, ""], params: Params) -> Any:
        start_state = base.init(key, params)
        state = getattr(start_state, "state", start_state)  # a tally contains the algorithm's state
        pool = state.pool._replace(signals=state.pool.signals + 1.0)
        shifted = state._replace(pool=pool)
        if state is not start_state:
            return start_state._replace(state=shifted)
        return shifted

    return System(init, base.step)


class Paired(NamedTuple):
    state: State
    reduced: reduced.State

    pool = _POOL
    round = _ROUND


class PairedRoutes(NamedTuple):
    task: Int[Array, ""]  # n_t
    expert: Int[Array, ""]  # m_t
    generalization_error: Float[Array, ""]  # G_t
    reduced_expert: Int[Array, ""]  # m_t of the reduced model
    reduced_error: Float[Array, ""]  # G_t of the reduced model


@functools.lru_cache
def system_beside_reduced(dims: Dims) -> System:
    """Return Algorithm 1 and `continual.reduced`, run on the same pool, tasks, features and perturbations."""
    plain = system(dims)
    reduced_system = reduced.system(dims)

    def init(key: Key[Array, ""], params: Params) -> Paired:
        return Paired(plain.init(key, params), reduced_system.init(key, params))

    def step(key: Key[Array, ""], before: Paired, params: Params) -> tuple[Paired, PairedRoutes]:
        state, info = plain.step(key, before.state, params)
        reduced_state, reduced_info = reduced_system.step(key, before.reduced, params)
        routes = PairedRoutes(
            task=info.task,
            expert=info.expert,
            generalization_error=info.generalization_error,
            reduced_expert=reduced_info.expert,
            reduced_error=reduced_info.generalization_error,
        )
        return Paired(state, reduced_state), routes

    return System(init, step)


class Expecting(NamedTuple):
    """The algorithm's state with each expert's expected state, given its tasks (`core/expected.py`)."""

    state: State
    errors: Float[Array, "M N"]
    projections: Float[Array, "M N"]

    pool = _POOL
    round = _ROUND


def system_with_expected_costs(dims: Dims) -> System:
    """Return Algorithm 1 where locality costs are about (E|w_t - w_{t-1}|^2)^0.5, given the routes."""

    def expected_costs(move: Move, memory: Array, arrival: Arrival, params: Params) -> tuple[Array, Array]:
        del move, arrival, params
        return memory, memory  # `step` puts the costs of its round there

    locality = Locality(expected_costs, init=lambda dims: jnp.zeros(dims.max_experts))
    base = system(dims, locality=locality)
    contraction = error_contraction(dims.num_features, dims.num_samples)

    def init(key: Key[Array, ""], params: Params) -> Expecting:
        state = base.init(key, params)
        return Expecting(state, *untaught(state.pool, dims.max_experts))

    def step(key: Key[Array, ""], before: Expecting, params: Params) -> tuple[Expecting, Info]:
        arrival, perturbation = draw(key, dims, before.pool, params)
        errors, projections, squared_moves = jax.vmap(
            lambda errors, projections: taught(before.pool, arrival.task, errors, projections, contraction=contraction)
        )(before.errors, before.projections)
        with_costs = before.state._replace(memory=jnp.sqrt(squared_moves))
        state, info = learn(with_costs, arrival, perturbation, params, locality=locality)
        is_chosen = info.chosen[:, None]
        after = Expecting(
            state, jnp.where(is_chosen, errors, before.errors), jnp.where(is_chosen, projections, before.projections)
        )
        return after, info

    return System(init, step)


class EndlessTally(NamedTuple):
    """The state while the gates learn forever, with a summary up to t_1."""

    state: State
    is_ordered: Bool[Array, ""]  # whether (40) has held in all rounds past T1
    own_gap: Float[Array, ""]  # largest |h_m - h_m'| in the arriving task's set, a mean over the last `WINDOW` rounds
    other_gap: Float[Array, ""]  # largest |h_m - h_m'| of experts in different sets, a mean over these rounds

    pool = _POOL
    round = _ROUND


@of_parts(like=system)
def system_with_endless_tally(dims: Dims, **parts: Any) -> System:
    plain = system(dims, **parts)

    def init(key: Key[Array, ""], params: Params) -> EndlessTally:
        state = plain.init(key, params)
        zero = jnp.zeros((), state.experts.dtype)
        return EndlessTally(state, is_ordered=jnp.ones((), bool), own_gap=zero, other_gap=zero)

    def step(key: Key[Array, ""], before: EndlessTally, params: Params) -> tuple[EndlessTally, Info]:
        state, info = plain.step(key, before.state, params)
        exists = jnp.arange(dims.max_experts) < params.num_experts
        drives = signal_outputs(before.state)
        sets = expert_sets(before.state)
        own_gap = set_gap(info.gate_outputs, exists & set_of_task(before.state, info.task))
        is_apart = (sets[:, None] != sets[None, :]) & exists[:, None] & exists[None, :]
        gaps = jnp.abs(info.gate_outputs[:, None] - info.gate_outputs[None, :])
        other_gap = jnp.max(jnp.where(is_apart, gaps, 0))
        is_past_t1 = state.round > theory.exploration_rounds(params.num_experts, params.learning_rate)
        last_round = theory.termination_rounds(params.num_experts, params.learning_rate, params.truth_scale)  # t_1
        rounds_left = last_round - state.round
        weight = jnp.where((rounds_left >= 0) & (rounds_left < WINDOW), 1 / WINDOW, 0)
        has_order = is_ordered(drives, sets, exists, state.pool.clusters) | ~is_past_t1 | (rounds_left < 0)
        own_gap = before.own_gap + weight * own_gap
        other_gap = before.other_gap + weight * other_gap
        return EndlessTally(state, before.is_ordered & has_order, own_gap=own_gap, other_gap=other_gap), info

    return System(init, step)


def set_of_task(state: State, task: Int[Array, ""]) -> Bool[Array, " M"]:
    """Return which experts are in the set of the task's cluster."""
    is_task = jnp.arange(state.pool.clusters.shape[0]) == task
    return expert_sets(state) == jnp.sum(jnp.where(is_task, state.pool.clusters, 0))


def signal_outputs(state: State) -> Float[Array, "M N"]:
    return jnp.sum(state.gates[:, None, :] * state.pool.signals[None, :, :], axis=2)


def expert_sets(state: State) -> Int[Array, " M"]:
    """Return the cluster of each gate's largest output, the lowest on ties. Source: Eq. (11)."""
    drives = signal_outputs(state)
    is_best = drives == jnp.max(drives, axis=1, keepdims=True)
    return jnp.min(jnp.where(is_best, state.pool.clusters[None, :], drives.shape[1]), axis=1).astype(jnp.int32)


def is_separated(
    drives: Float[Array, "M N"], sets: Int[Array, " M"], exists: Bool[Array, " M"], clusters: Int[Numbers, " N"]
) -> Bool[Array, ""]:
    """Return whether every expert's probability is larger for its set's signals than for others. Source: (33)."""
    logits = jnp.where(exists[:, None], drives, -jnp.inf)
    logs = drives - jax.nn.logsumexp(logits, axis=0, keepdims=True)  # of probabilities
    is_own = sets[:, None] == clusters[None, :]
    least_own = jnp.min(jnp.where(is_own, logs, jnp.inf), axis=1)
    return jnp.all((least_own > jnp.max(jnp.where(is_own, -jnp.inf, logs), axis=1)) | ~exists)


def probability_gap(
    drives: Float[Array, "M N"], exists: Bool[Array, " M"], clusters: Int[Numbers, " N"]
) -> Float[Array, ""]:
    """Return the largest difference between an expert's probabilities for two clusters' signals. Source: (35)."""
    probabilities = jax.nn.softmax(jnp.where(exists[:, None], drives, -jnp.inf), axis=0)
    gaps = jnp.abs(probabilities[:, :, None] - probabilities[:, None, :])
    return jnp.max(jnp.where(clusters[:, None] != clusters[None, :], gaps, 0))


def is_ordered(
    drives: Float[Array, "M N"], sets: Int[Array, " M"], exists: Bool[Array, " M"], clusters: Int[Numbers, " N"]
) -> Bool[Array, ""]:
    """Return whether, for each signal, the gate outputs of its set are above all others. Source: (40)."""
    is_own = (sets[:, None] == clusters[None, :]) & exists[:, None]
    least_own = jnp.min(jnp.where(is_own, drives, jnp.inf), axis=0)
    return jnp.all(least_own > jnp.max(jnp.where(is_own | ~exists[:, None], -jnp.inf, drives), axis=0))


def set_gap(outputs: Float[Array, " M"], members: Bool[Array, " M"]) -> Float[Array, ""]:
    """Return the largest gap between two outputs in a set, and 0 for an empty set."""
    spread = jnp.max(jnp.where(members, outputs, -jnp.inf)) - jnp.min(jnp.where(members, outputs, jnp.inf))
    return jnp.where(jnp.any(members), spread, 0)


def _diagnose(
    before: TrackedState, after: TrackedState, arrival: Arrival, info: Info, params: Params, costs: Costs
) -> Diagnostics:
    state = before.state
    pool = before.pool
    exists = jnp.arange(state.experts.shape[0]) < params.num_experts
    members = exists & set_of_task(state, arrival.task)
    row_of_expert = functools.partial(select_row, index=info.expert)
    truth = select_row(pool.truths, arrival.task)
    expert = row_of_expert(after.state.experts)
    signal = select_row(pool.signals, arrival.task)
    num_samples = arrival.features.shape[1]
    expected = corrected.lemma_16(row_of_expert(state.experts), truth, signal, pool.truths, num_samples=num_samples)
    outputs = info.gate_outputs
    is_chosen = info.chosen
    highest = jnp.max(jnp.where(members, outputs, -jnp.inf))
    locality_gradient, gradient_gap = _gradients(arrival, info, exists, costs)
    return Diagnostics(
        task=arrival.task,
        expert=info.expert,
        terminated=state.terminated,
        error=info.error,
        update_norm=info.update_norm,
        generalization_error=info.generalization_error,
        set_size=jnp.sum(members),
        is_inside=jnp.any(members & is_chosen),
        led=jnp.any(members & is_chosen & (outputs == highest)),
        led_all=jnp.any(is_chosen & (outputs == jnp.max(jnp.where(exists, outputs, -jnp.inf)))),
        own_gap=set_gap(outputs, members),
        locality_gradient=locality_gradient,
        gradient_gap=gradient_gap,
        distance_change=jnp.abs(jnp.sum((expert - truth) ** 2) - jnp.sum((row_of_expert(after.explored) - truth) ** 2)),
        step_error=jnp.mean(jnp.sum((expert[None, :] - pool.truths) ** 2, axis=1)),
        step_expected=jnp.mean(expected),
    )


def _gradients(
    arrival: Arrival, info: Info, exists: Bool[Array, " M"], costs: Costs
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Return `Diagnostics.locality_gradient` and `Diagnostics.gradient_gap`."""
    probabilities = info.gate_probabilities
    chosen = info.chosen
    slopes = jnp.sum(jnp.where(chosen, probabilities, 0)) * (chosen - probabilities)
    locality = jnp.sum(costs.locality)
    cost = jnp.sum(costs.locality) + jnp.sum(costs.balance)
    input_size = jnp.max(jnp.abs(jnp.sum(arrival.features, axis=1)))
    gaps = jnp.abs(slopes - jnp.sum(jnp.where(chosen, slopes, 0)))
    locality_gradient = jnp.abs(locality) * input_size * jnp.max(jnp.abs(slopes))
    gradient_gap = jnp.abs(cost) * input_size * jnp.max(jnp.where(exists, gaps, 0))
    return locality_gradient, gradient_gap
