"""Invariants of one round of Algorithm 1 from random states, arrivals and parameters, in double precision.

Hypothesis chooses a seed, NumPy draws all else from it. One compiled program serves all examples.
"""

import functools
from typing import Any, NamedTuple

import chex
import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moe_theory import continual
from moe_theory.core.metrics import Metrics

M, N, D, S = 4, 3, 5, 3  # max_experts, num_tasks, num_features, num_samples


class Round(NamedTuple):
    """A round's inputs and outputs on the host."""

    state: continual.State
    arrival: continual.Arrival
    perturbation: np.ndarray
    params: continual.Params
    after: continual.State
    info: continual.Info


@functools.cache
def program(max_active: int) -> Any:
    return jax.jit(functools.partial(continual.learn, max_active=max_active))


def run(state, arrival, perturbation, params, max_active=2) -> Round:
    """The round in double precision; the parameters are arrays, so that none is compiled in."""
    with jax.enable_x64(True):
        params = continual.Params(*(np.asarray(value) for value in params))
        after, info = jax.device_get(program(max_active)(state, arrival, perturbation, params))
    return Round(state, arrival, perturbation, params, after, info)


@st.composite
def inputs(draw, **fixed):
    """A state somewhere in a run, an arrival, a perturbation and parameters; `fixed` parameters stay."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_experts = int(rng.integers(1, M + 1))
    truth_scale, gate_scale = 10.0 ** rng.integers(-2, 3), 10.0 ** rng.integers(-2, 2)
    params = continual.Params(
        num_experts=num_experts,
        num_active=int(rng.integers(1, min(2, num_experts) + 1)),
        learning_rate=rng.uniform(0.05, 2),
        balance_weight=rng.choice([0, 1]) * rng.uniform(0, 2),
        termination_threshold=gate_scale * rng.choice([0.0, 0.1, 1.0, 1e9]),
        terminate=bool(rng.random() < 0.7),
        accumulate_flags=bool(rng.random() < 0.5),
        locality_power=rng.choice([0.5, 1.0, 2.0]),
    )._replace(**fixed)
    exists = np.arange(M) < num_experts
    truths = truth_scale * rng.normal(size=(N, D))
    gates = np.where(exists[:, None], gate_scale * rng.normal(size=(M, D)), 0)
    gates[:num_experts] -= gates[:num_experts].mean(axis=0)  # Lemma 4 up to this round
    time = int(rng.integers(0, 10 ** rng.integers(1, 4)))
    k = int(params.num_active)
    visits = np.where(exists, rng.multinomial(time * k, exists / num_experts), 0)
    arrivals = np.zeros((M, N))
    arrivals[:num_experts] = rng.multinomial(time, np.full(num_experts * N, 1 / num_experts / N)).reshape(-1, N)
    features = rng.normal(size=(D, S)) * rng.choice([0.1, 1.0])
    if rng.random() < 0.3:  # sigma_t = 0
        features[:, 1:] = 0
    state = continual.State(
        pool=continual.Pool(truths, 2 * truths, np.arange(N)),
        experts=np.where(exists[:, None], truth_scale * rng.normal(size=(M, D)), 0),
        gates=gates,
        visits=visits.astype(np.int32),
        explored_visits=visits.astype(np.int32),
        converged=exists & (rng.random(M) < 0.5),
        terminated=np.asarray(rng.random() < 0.3),
        round=np.asarray(time, np.int32),
        metrics=Metrics(arrivals, np.asarray(0.0), np.asarray(0.0)),
        optimizer_state=optimizer_state(),
    )
    arrival = continual.Arrival(np.asarray(rng.integers(N)), features)
    return state, arrival, 0.3 * rng.random(M), params


@functools.cache
def optimizer_state() -> Any:
    dims = continual.Dims(M, N, D, S)
    pool = continual.Pool(np.zeros((N, D)), np.zeros((N, D)), np.arange(N))
    return continual.begin(dims, continual.Params(num_experts=1), pool).optimizer_state


few = settings(max_examples=120, deadline=None, derandomize=True, database=None)


def close(actual, expected, scale=1.0, tolerance=1e-11):
    return np.all(np.abs(np.asarray(actual) - expected) <= tolerance * scale)


def size(*arrays):
    return 1 + max(np.abs(array).max() for array in arrays)


@few
@given(inputs())
def test_only_chosen_experts_move(drawn):
    """Would catch a mask that leaks into another row, a wrong count of experts, or loads that miss a round."""
    result = run(*drawn)
    state, after, info, params = result.state, result.after, result.info, result.params
    moved = np.any(after.experts != state.experts, axis=1)
    assert not np.any(moved & ~info.chosen)
    assert info.chosen.sum() == params.num_active
    assert info.chosen[info.expert]
    np.testing.assert_array_equal(after.visits - state.visits, info.chosen)
    assert after.visits.sum() == params.num_active * after.round
    assert after.round == state.round + 1
    assert close(after.metrics.arrivals.sum(), after.round)


@few
@given(inputs())
def test_the_chosen_are_the_best_perturbed_outputs(drawn):
    """Would catch routing by the outputs alone, by the probabilities, or after the gate's step."""
    result = run(*drawn)
    M_run = int(result.params.num_experts)
    scores = (result.state.gates @ result.arrival.features.sum(axis=1) + result.perturbation)[:M_run]
    if np.min(np.abs(np.diff(np.sort(scores))), initial=np.inf) < 1e-9 * size(scores):
        return
    best = np.argsort(-scores)[: int(result.params.num_active)]
    assert set(np.flatnonzero(result.info.chosen)) == set(best)
    assert result.info.expert == best[0]


@few
@given(inputs())
def test_the_chosen_experts_fit_the_samples_and_move_least(drawn):
    """Would catch an expert that does not solve X'w = y (4), or solves it by a longer way than needed (5)."""
    state, arrival, _, _, after, info = run(*drawn)
    X, truth = arrival.features, state.pool.truths[arrival.task]
    null_space = np.linalg.svd(X)[0][:, np.linalg.matrix_rank(X) :]
    moves = after.experts - state.experts
    scale = size(state.experts, truth)
    for expert in np.flatnonzero(info.chosen):
        assert close(X.T @ after.experts[expert], X.T @ truth, scale)
        assert close(moves[expert] @ null_space, 0, scale)
    assert close(info.update_norm, np.linalg.norm(moves), scale)
    errors = np.sum((after.experts[info.chosen] - truth) ** 2, axis=1)
    assert close(info.error, errors.mean(), scale**2)


@few
@given(inputs())
def test_padded_experts_take_no_part(drawn):
    """Would catch an expert beyond num_experts that is chosen, moves, has a gate or a probability."""
    result = run(*drawn)
    absent = np.arange(M) >= result.params.num_experts
    assert not np.any(result.info.chosen & absent)
    assert result.info.expert < result.params.num_experts
    for leaf in (result.after.experts, result.after.gates, result.after.visits, result.info.gate_probabilities):
        assert not np.any(leaf[absent])


@few
@given(inputs(), st.integers(0, 2**32 - 1))
def test_padding_changes_nothing(drawn, seed):
    """Would catch an absent expert whose perturbation, flag or load reaches the others."""
    state, arrival, perturbation, params = drawn
    rng = np.random.default_rng(seed)
    absent = np.arange(M) >= params.num_experts
    other = run(
        state._replace(converged=np.where(absent, rng.random(M) < 0.5, state.converged)),
        arrival,
        np.where(absent, 1e6 * rng.random(M), perturbation),
        params,
    )
    result = run(*drawn)
    chex.assert_trees_all_equal(result.after._replace(converged=0), other.after._replace(converged=0))
    chex.assert_trees_all_equal(result.info, other.info)
    np.testing.assert_array_equal(result.after.converged[~absent], other.after.converged[~absent])


@few
@given(inputs())
def test_probabilities_are_a_softmax(drawn):
    """Would catch probabilities that leave the simplex, or outputs that contain the perturbation."""
    result = run(*drawn)
    M_run = int(result.params.num_experts)
    outputs = result.state.gates @ result.arrival.features.sum(axis=1)
    weights = np.exp(outputs[:M_run] - outputs[:M_run].max())
    probabilities = result.info.gate_probabilities
    assert close(result.info.gate_outputs, outputs, size(outputs))
    assert np.all(probabilities >= 0)
    assert abs(probabilities.sum() - 1) < 1e-12
    assert close(probabilities[:M_run], weights / weights.sum(), size(outputs))


@few
@given(inputs())
def test_the_gates_sum_to_zero(drawn):
    """Would catch a gate gradient against Lemma 4: the sum over experts never changes."""
    result = run(*drawn)
    assert close(result.after.gates.sum(axis=0), 0, size(result.after.gates, result.state.gates))


@few
@given(inputs())
def test_a_gate_step_goes_along_the_input(drawn):
    """Would catch a step with components outside sum_i X_i, and one of the chosen expert upwards (27)-(30)."""
    result = run(*drawn)
    gate_input = result.arrival.features.sum(axis=1)
    steps = result.after.gates - result.state.gates
    along = np.outer(steps @ gate_input, gate_input) / (gate_input @ gate_input)
    scale = size(result.after.gates, result.state.gates)
    assert close(steps, along, scale)
    if result.params.num_active == 1 and not result.after.terminated:
        assert steps[result.info.expert] @ gate_input <= 1e-9 * scale


@few
@given(inputs(terminate=True))
def test_once_terminated_the_gates_stay(drawn):
    """Would catch a gate that moves after termination, or a run that resumes its gate updates."""
    state, arrival, perturbation, params = drawn
    result = run(state._replace(terminated=np.asarray(True)), arrival, perturbation, params)
    np.testing.assert_array_equal(result.after.gates, state.gates)
    assert result.after.terminated
    free = run(*drawn)
    assert not free.after.terminated or np.array_equal(free.after.gates, state.gates)
    np.testing.assert_array_equal(free.after.experts, result.after.experts)  # experts learn on


@few
@given(inputs(terminate=False))
def test_without_termination_nothing_terminates(drawn):
    """Would catch the switch ignored; the gates then always take their step."""
    state, arrival, perturbation, params = drawn
    result = run(state, arrival, perturbation, params)
    assert not result.after.terminated
    moves = np.abs(result.after.gates - state.gates).max()
    probabilities = result.info.gate_probabilities
    is_spread = params.num_experts > params.num_active == 1 and 1e-3 < probabilities[result.info.expert] < 1 - 1e-3
    assert not is_spread or moves > 0


@few
@given(inputs())
def test_flags_accumulate_or_show_this_round(drawn):
    """Would catch a flag that is lost, or set in the exploration stage of ceil(M / eta) rounds."""
    result = run(*drawn)
    state, after, params = result.state, result.after, result.params
    T1 = np.ceil(params.num_experts / params.learning_rate - 1e-9)
    exists = np.arange(M) < params.num_experts
    if after.round <= T1 - 1:
        assert not np.any(after.converged[exists])
    elif after.round > T1 + 1:
        outputs = result.info.gate_outputs
        gaps = np.abs(outputs[:, None] - outputs[None, result.info.chosen]).min(axis=1)
        is_near = gaps < params.termination_threshold
        expected = is_near | (state.converged & bool(params.accumulate_flags))
        np.testing.assert_array_equal(after.converged[exists], expected[exists])


@few
@given(inputs(), st.sampled_from([0.25, 4.0]))
def test_experts_scale_with_the_truths(drawn, factor):
    """Would catch a constant with a unit in the experts' update: routes are fixed, as the gates are the same."""
    state, arrival, perturbation, params = drawn
    scaled = state._replace(pool=state.pool._replace(truths=factor * state.pool.truths), experts=factor * state.experts)
    result, other = run(*drawn), run(scaled, arrival, perturbation, params)
    np.testing.assert_array_equal(other.info.chosen, result.info.chosen)
    # A factor that is a power of two rounds nothing.
    np.testing.assert_array_equal(other.after.experts, factor * result.after.experts)
    np.testing.assert_array_equal(other.info.update_norm, factor * result.info.update_norm)
    np.testing.assert_array_equal(other.info.error, factor**2 * result.info.error)


@few
@given(inputs(), st.permutations(range(M)))
def test_experts_are_exchangeable(drawn, order):
    """Would catch a round that treats experts by their number, but for ties."""
    state, arrival, perturbation, params = drawn
    M_run = int(params.num_experts)
    order = np.array([*(place for place in order if place < M_run), *range(M_run, M)])
    permuted = state._replace(
        experts=state.experts[order],
        gates=state.gates[order],
        visits=state.visits[order],
        explored_visits=state.explored_visits[order],
        converged=state.converged[order],
        metrics=state.metrics._replace(arrivals=state.metrics.arrivals[order]),
    )
    result, other = run(*drawn), run(permuted, arrival, perturbation[order], params)
    np.testing.assert_array_equal(other.info.chosen, result.info.chosen[order])
    scale = size(result.after.experts, result.after.gates)
    assert close(other.after.experts, result.after.experts[order], scale)
    assert close(other.after.gates, result.after.gates[order], scale)
    np.testing.assert_array_equal(other.after.terminated, result.after.terminated)
    assert close(other.info.error, result.info.error, scale**2)


@pytest.mark.parametrize("num_experts", [1, 3])
def test_invariants_hold_along_a_run(num_experts):
    """Would catch an invariant that holds in a round and drifts over many: loads, Lemma 4, padding."""
    rng = np.random.default_rng(num_experts)
    truths = rng.normal(size=(N, D))
    params = continual.Params(num_experts=num_experts, terminate=False)
    with jax.enable_x64(True):
        pool = continual.Pool(truths, 2 * truths, np.arange(N))
        state = jax.device_get(continual.begin(continual.Dims(M, N, D, S), params, pool))
    for time in range(1, 151):
        task = rng.integers(N)
        features = 0.1 * rng.normal(size=(D, S))
        features[:, rng.integers(S)] = 2 * truths[task]
        arrival = continual.Arrival(np.asarray(task), features)
        _, _, _, _, state, info = run(state, arrival, 0.3 * rng.random(M), params)
        assert state.visits.sum() == time
        assert close(state.gates.sum(axis=0), 0, size(state.gates))
        assert not np.any(state.gates[num_experts:])
        assert abs(info.gate_probabilities.sum() - 1) < 1e-12
