"""The reduced model, and closed forms of loads, against complete enumeration."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual
from moe_theory.continual import corrected, reduced, theory
from moe_theory.core.tasks import Arrival, Pool
from tests.continual.cases import loop_over, refuse
from tests.continual.designs import complement_basis, draw_pool, residual_projectors

D, S, N, NUM_EXPERTS = 4, 2, 3, 2
ALONE = continual.Params(num_experts=1, num_clusters=N)


@functools.cache
def begun():
    dims = continual.Dims(max_experts=1, num_tasks=N, num_features=D, num_samples=S)
    return jax.jit(reduced.system(dims).init)(mt.root_key(0), ALONE)


@jax.jit
def learned(state, task):
    arrival = Arrival(task=task, features=jnp.zeros((D, S)))
    return reduced.learn(state, arrival, jnp.zeros(1), ALONE)[0]


def taught(pool, tasks):
    """The reduced model of one expert after each of some tasks; features carry the number of samples alone."""
    state = begun()._replace(
        pool=jax.tree.map(jnp.asarray, pool), errors=jnp.sum(jnp.asarray(pool.truths) ** 2, axis=1)[None]
    )
    for task in tasks:
        before = state
        state = learned(state, jnp.asarray(task))
        yield before, state


def lines(pool):
    return [residual_projectors(complement_basis(signal), D - S) for signal in pool.signals]


@loop_over("kind", ["proportional", "independent"])
def test_one_task_leaves_distances_and_projections_as_expected(kind):
    """Lemma 16, corrected, and the mean of a step: over the lines of a design, from a known expert on."""
    pool = draw_pool(N, D, kind)
    units = pool.signals / np.linalg.norm(pool.signals, axis=1, keepdims=True)
    for task in range(N):
        ((_, after),) = taught(pool, [task])
        experts = np.array([pool.truths[task] - pool.truths[task] @ line for line in lines(pool)[task]])
        distances = np.sum((experts[:, None] - pool.truths[None]) ** 2, axis=2)
        np.testing.assert_allclose(after.errors[0], distances.mean(axis=0), rtol=2e-5, atol=1e-6)
        np.testing.assert_allclose(after.projections[0], (experts @ units.T).mean(axis=0), rtol=2e-5, atol=2e-6)


def test_projections_are_the_means_over_every_sequence_of_lines():
    """They are linear in the expert, so that nothing is left out: three tasks, one after the other."""
    pool, tasks = draw_pool(N, D), (0, 2, 1)
    units = pool.signals / np.linalg.norm(pool.signals, axis=1, keepdims=True)
    *_, (_, after) = taught(pool, tasks)
    experts = []
    for chosen in itertools.product(*(lines(pool)[task] for task in tasks)):
        expert = np.zeros(D)
        for task, line in zip(tasks, chosen, strict=True):
            expert = pool.truths[task] + (expert - pool.truths[task]) @ line
        experts.append(expert)
    np.testing.assert_allclose(after.projections[0], np.mean(experts @ units.T, axis=0), rtol=1e-4, atol=1e-5)


def test_the_gates_see_the_expected_move():
    """The cost of a step is the root of E|w' - w|^2, of a known expert, and the gates move by it as Algorithm 1's."""
    dims = continual.Dims(max_experts=NUM_EXPERTS, num_tasks=N, num_features=D, num_samples=S)
    params = continual.Params(num_clusters=N, num_experts=NUM_EXPERTS, balance_weight=0.0)
    system, key = reduced.system(dims), mt.root_key(1)
    state = jax.jit(system.init)(mt.root_key(0), params)
    after, info = jax.jit(system.step)(key, state, params)
    arrival, _ = jax.jit(lambda pool: continual.draw(key, dims, pool, params))(state.pool)
    truth = np.asarray(state.pool.truths[int(info.task)])
    basis = complement_basis(np.asarray(state.pool.signals[int(info.task)]))
    moves = [truth - truth @ line for line in residual_projectors(basis, D - S)]
    cost = np.sqrt(np.mean(np.sum(np.square(moves), axis=1)))
    step = (
        params.learning_rate * cost / NUM_EXPERTS * (1 - 1 / NUM_EXPERTS) * np.sum(arrival.features, axis=1)
    )  # pi = 1/M at the start
    np.testing.assert_allclose(after.gates[int(info.expert)], -step, rtol=2e-5)
    np.testing.assert_allclose(after.gates[1 - int(info.expert)], step, rtol=2e-5)


def test_gates_end_by_algorithm_1s_rule():
    """At a threshold that nothing exceeds the gates are fixed one round after T1, and not before."""
    dims = continual.Dims(max_experts=4, num_tasks=N, num_features=D, num_samples=S)
    params = continual.Params(num_experts=4, num_clusters=N, termination_threshold=1e6)
    states = mt.simulate_batch(
        reduced.system(dims), mt.root_key(0), 4, params, num_rounds=20, observe=lambda state, _: state
    )[1]
    last = theory.exploration_rounds(params.num_experts, params.learning_rate)
    np.testing.assert_array_equal(states.terminated, np.asarray(states.round) > last)


def test_several_active_experts_are_refused():
    refuse("max_active", reduced.system, continual.Dims(4, N, D, S, max_active=2))


# What docs/pages/derivations/gates.md derives.


def test_blind_routing_of_orthonormal_tasks_is_the_recursions_limit():
    """(18)'s setting at its end: 2 G_2T - G_T leaves out what the first rounds add."""
    for num_tasks, num_features, num_samples in ((2, 4, 2), (3, 5, 2), (6, 7, 2), (4, 9, 8), (3, 5, 1)):
        pool = Pool(np.eye(num_tasks, num_features), np.eye(num_tasks, num_features), np.arange(num_tasks))
        error = corrected.single_expert(pool, num_samples, 4000).generalization_error
        limit = corrected.blind_limit(num_tasks, num_features, num_samples)
        assert 2 * error[3999] - error[1999] == pytest.approx(limit, abs=1e-9)
    refuse("num_tasks", corrected.blind_limit, num_tasks=5, num_features=4, num_samples=1)


@loop_over("num_rounds", [1, 2, 5])
def test_random_routing_is_the_mean_over_every_route(num_rounds):
    gaps = theory.Gaps(truth_norm=1.3, task_gap=2.1, within_gap=0.4, across_gap=2.5)
    loads = [
        np.bincount(route, minlength=NUM_EXPERTS + 1)
        for route in itertools.product(range(NUM_EXPERTS + 1), repeat=num_rounds)
    ]
    every = corrected.theorem_1(gaps, 0.4, np.array(loads))
    found = corrected.random_routing(gaps, 0.4, NUM_EXPERTS + 1, num_rounds)
    np.testing.assert_allclose(found, np.mean(every, axis=1), rtol=1e-12)


def test_loads_of_many_experts_add_up_to_what_each_is_alone():
    """(19) and (20) as equalities, of experts with 3 and 5 arrivals, against one expert after each."""
    pool = draw_pool(N, D)
    alone = corrected.single_expert_gaussian(pool, S, 5)
    both = corrected.theorem_1(theory.gaps(pool), 1 - S / D, np.array([3, 5, 0]))
    assert both.generalization_error == pytest.approx(
        (3 * alone.generalization_error[2] + 5 * alone.generalization_error[4]) / 8
    )
    assert both.forgetting == pytest.approx((2 * alone.forgetting[2] + 4 * alone.forgetting[4]) / 7)
