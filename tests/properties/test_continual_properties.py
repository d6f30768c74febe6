"""One round of Algorithm 1 from random states, arrivals and parameters, in double precision, against the plain loop.

Hypothesis chooses a seed, NumPy draws all else from it. One compiled program serves all examples. That the loop itself
fits the samples, moves least, and descends the printed loss is tested in tests/golden.
"""

import functools
from typing import Any

import chex
import jax
import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from moe_theory import continual
from moe_theory.continual.metrics import Metrics

from ..golden.continual_loop import Reference, settings_of

M, N, D, S = 4, 3, 5, 3  # max_experts, num_tasks, num_features, num_samples


learn = jax.jit(functools.partial(continual.learn, max_active=2))


def run(state, arrival, perturbation, params) -> tuple[continual.State, continual.Info]:
    """The round in double precision; the parameters are arrays, so that none is compiled in."""
    with jax.enable_x64(True):
        params = continual.Params(*(np.asarray(value) for value in params))
        return jax.device_get(learn(state, arrival, perturbation, params))


@st.composite
def inputs(draw):
    """A state somewhere in a run, an arrival, a perturbation and parameters."""
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
    )
    exists = np.arange(M) < num_experts
    truths = truth_scale * rng.normal(size=(N, D))
    gates = np.where(exists[:, None], gate_scale * rng.normal(size=(M, D)), 0)
    gates[:num_experts] -= gates[:num_experts].mean(axis=0)  # Lemma 4 up to this round
    time = int(rng.integers(0, 10 ** rng.integers(1, 4)))
    k, is_explored = int(params.num_active), time > np.ceil(num_experts / params.learning_rate)
    visits = np.where(exists, rng.multinomial(time * k, exists / num_experts), 0)
    served = np.where(exists, rng.multinomial(time, exists / num_experts), 0).astype(float)
    features = rng.normal(size=(D, S)) * rng.choice([0.1, 1.0])
    if rng.random() < 0.3:  # sigma_t = 0
        features[:, 1:] = 0
    state = continual.State(
        pool=continual.Pool(truths, 2 * truths, np.arange(N)),
        experts=np.where(exists[:, None], truth_scale * rng.normal(size=(M, D)), 0),
        gates=gates,
        visits=visits.astype(np.int32),
        explored_visits=visits.astype(np.int32),
        converged=exists & is_explored & (rng.random(M) < 0.5),
        terminated=np.asarray(bool(params.terminate and is_explored and rng.random() < 0.3)),
        round=np.asarray(time, np.int32),
        metrics=Metrics(served, rng.normal(size=(M, D)), np.asarray(0.0), np.asarray(0.0)),
        optimizer_state=optimizer_state(),
    )
    arrival = continual.Arrival(np.asarray(rng.integers(N)), features)
    return state, arrival, 0.3 * rng.random(M), params


@functools.cache
def optimizer_state() -> Any:
    dims = continual.Dims(M, N, D, S)
    pool = continual.Pool(np.zeros((N, D)), np.zeros((N, D)), np.arange(N))
    return continual.begin(dims, continual.Params(num_experts=1), pool).optimizer_state


few = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def close(actual, expected, scale=1.0, tolerance=1e-11):
    return np.all(np.abs(np.asarray(actual) - expected) <= tolerance * scale)


def size(*arrays):
    return 1 + max(np.abs(array).max() for array in arrays)


@few
@given(inputs())
def test_a_round_is_that_of_the_loop(drawn):
    """Would catch a slip in (1)-(9), (27)-(30) or lines 5 to 13, at states, scales and switches that no run visits."""
    state, arrival, perturbation, params = drawn
    after, info = run(*drawn)
    M_run, exists = int(params.num_experts), np.arange(M) < params.num_experts
    reference = loop_at(state, params)
    outputs = reference.theta @ arrival.features.sum(axis=1)
    gaps = np.abs(outputs[:, None] - outputs)[~np.eye(M_run, dtype=bool)]
    assume(np.min(np.abs(np.diff(np.sort(outputs + perturbation[:M_run]))), initial=np.inf) > 1e-9 * size(outputs))
    assume(np.min(np.abs(gaps - params.termination_threshold), initial=np.inf) > 1e-9 * size(outputs))
    outcome = reference.learn(int(arrival.task), arrival.features, perturbation[:M_run])
    assert info.expert == outcome.chosen[0]
    np.testing.assert_array_equal(info.chosen, np.isin(np.arange(M), outcome.chosen))
    np.testing.assert_array_equal(after.experts[~info.chosen], state.experts[~info.chosen])
    np.testing.assert_array_equal(after.visits[exists], reference.visits)
    np.testing.assert_array_equal(after.converged[exists], reference.flags)
    assert (after.terminated, after.round) == (reference.terminated, reference.t)
    assert close(after.metrics.served.sum(), after.round)
    if after.terminated:
        np.testing.assert_array_equal(after.gates, state.gates)
    scale, gate_scale = size(state.experts, state.pool.truths), size(state.gates, after.gates)
    assert close(after.experts[exists], reference.w, scale)
    assert close(after.gates[exists], reference.theta, gate_scale)
    assert close(after.gates.sum(axis=0), 0, gate_scale)  # Lemma 4
    assert close(info.gate_outputs[exists], outcome.h, size(outputs))
    assert close(info.gate_probabilities[exists], outcome.pi, size(outputs))
    assert close(info.update_norm, outcome.update_norm, scale)
    assert close(info.error, reference.error(), scale**2)
    for leaf in (after.experts, after.gates, after.visits, info.gate_probabilities):
        assert not np.any(leaf[~exists])


def loop_at(state: continual.State, params: continual.Params) -> Reference:
    """The loop in this state, of whose past its metrics know nothing."""
    M_run = int(params.num_experts)
    reference = Reference(state.pool.truths, settings_of(params))
    reference.w, reference.theta = state.experts[:M_run].copy(), state.gates[:M_run]
    reference.visits, reference.flags = state.visits[:M_run].copy(), state.converged[:M_run].copy()
    reference.t, reference.terminated = int(state.round), bool(state.terminated)
    reference.arrived, reference.chosen, reference.models = ([None] * reference.t for _ in range(3))
    return reference


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
    (after, info), (other_after, other_info) = run(*drawn), other
    chex.assert_trees_all_equal(after._replace(converged=0), other_after._replace(converged=0))
    chex.assert_trees_all_equal(info, other_info)
    np.testing.assert_array_equal(after.converged[~absent], other_after.converged[~absent])
