"""The reduced model against complete enumeration and Algorithm 1, and what the page on gates says of small models."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual
from moe_theory.continual import corrected, reduced, theory
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.tasks import Arrival, Pool
from tests.continual.designs import complement_basis, draw_pool, residual_projectors

D, S, N, M = 4, 2, 3, 2
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


@pytest.mark.parametrize("kind", ["proportional", "independent"])
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
    dims = continual.Dims(max_experts=M, num_tasks=N, num_features=D, num_samples=S)
    params = continual.Params(num_clusters=N, num_experts=M, balance_weight=0.0)
    system, key = reduced.system(dims), mt.root_key(1)
    state = jax.jit(system.init)(mt.root_key(0), params)
    after, info = jax.jit(system.step)(key, state, params)
    arrival, _ = jax.jit(lambda pool: continual.draw(key, dims, pool, params))(state.pool)
    truth = np.asarray(state.pool.truths[int(info.task)])
    basis = complement_basis(np.asarray(state.pool.signals[int(info.task)]))
    moves = [truth - truth @ line for line in residual_projectors(basis, D - S)]
    cost = np.sqrt(np.mean(np.sum(np.square(moves), axis=1)))
    step = params.learning_rate * cost / M * (1 - 1 / M) * np.sum(arrival.features, axis=1)  # pi = 1/M at the start
    np.testing.assert_allclose(after.gates[int(info.expert)], -step, rtol=2e-5)
    np.testing.assert_allclose(after.gates[1 - int(info.expert)], step, rtol=2e-5)


def test_routes_are_algorithm_1s_where_the_perturbation_decides_them():
    """The same pool, tasks and perturbations for the same key; a drawn number more or less would part them."""
    dims = continual.Dims(max_experts=6, num_tasks=N, num_features=D, num_samples=S)
    params = continual.Params(num_experts=5, num_clusters=N, perturbation_scale=1e4)
    (state, full), (other, small) = (
        mt.simulate_batch(each.system(dims), mt.root_key(0), 8, params, num_rounds=50) for each in (continual, reduced)
    )
    np.testing.assert_array_equal(full.task, small.task)
    np.testing.assert_array_equal(full.expert, small.expert)
    np.testing.assert_array_equal(state.pool.truths, other.pool.truths)


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
    with pytest.raises(InvalidValueError, match="max_active"):
        reduced.system(continual.Dims(4, N, D, S, max_active=2))


# What docs/pages/derivations/gates.md derives.


@pytest.mark.parametrize("num_experts", [2, 3, 7])
def test_a_lead_raises_the_chance_as_the_page_says(num_experts):
    """delta P = M / ((M - 1) lambda) delta h at equal outputs, for leads that sum to 0."""
    leads = np.linspace(-1, 1, num_experts) * 1e-6
    chances = corrected.routing_probabilities(leads, perturbation_scale=0.3)
    expected = 1 / num_experts + num_experts / ((num_experts - 1) * 0.3) * (leads - leads.mean())
    np.testing.assert_allclose(chances, expected, atol=1e-10)


def test_a_gap_of_two_experts_has_the_variance_a_lambda_over_4():
    """The exact stationary law of the walk: down by a with the leader's chance, up by a with the other's."""
    step, scale = 1.0, 1e4
    gaps = np.arange(-scale, scale + step, step)
    down = corrected.routing_probabilities(np.stack([gaps, np.zeros_like(gaps)], axis=1), scale)[:, 0]
    with np.errstate(divide="ignore"):  # at a gap of lambda the leader takes all
        logs = np.concatenate([[0.0], np.cumsum(np.log(1 - down[:-1]) - np.log(down[1:]))])
    law = np.exp(logs - logs.max())
    law /= law.sum()
    assert np.sum(law * gaps**2) == pytest.approx(step * scale / 4, rel=0.01)


def test_blind_routing_of_orthonormal_tasks_is_the_recursions_limit():
    """(18)'s setting at its end: 2 G_2T - G_T leaves out what the first rounds add."""
    for num_tasks, num_features, num_samples in ((2, 4, 2), (3, 5, 2), (6, 7, 2), (4, 9, 8), (3, 5, 1)):
        pool = Pool(np.eye(num_tasks, num_features), np.eye(num_tasks, num_features), np.arange(num_tasks))
        error = corrected.single_expert(pool, num_samples, 4000).generalization_error
        limit = corrected.blind_limit(num_tasks, num_features, num_samples)
        assert 2 * error[3999] - error[1999] == pytest.approx(limit, abs=1e-9)
    with pytest.raises(InvalidValueError, match="orthonormal"):
        corrected.blind_limit(num_tasks=5, num_features=4, num_samples=1)


@pytest.mark.parametrize("num_rounds", [1, 2, 5])
def test_random_routing_is_the_mean_over_every_route(num_rounds):
    gaps = theory.Gaps(truth_norm=1.3, task_gap=2.1, within_gap=0.4, across_gap=2.5)
    loads = [np.bincount(route, minlength=M + 1) for route in itertools.product(range(M + 1), repeat=num_rounds)]
    every = corrected.theorem_1(gaps, 0.4, np.array(loads))
    found = corrected.random_routing(gaps, 0.4, M + 1, num_rounds)
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


@pytest.mark.parametrize("num_rounds", [1, 3, 6])
def test_specialised_routing_is_random_routings_formula_with_the_gap_inside_a_set(num_rounds):
    """`loads.md`: two sets of two experts, over every sequence of sets and of experts inside them."""
    gaps = theory.Gaps(truth_norm=1.3, task_gap=2.1, within_gap=0.4, across_gap=2.5)
    inside = gaps._replace(task_gap=gaps.within_gap)
    loads = [np.bincount(route, minlength=4) for route in itertools.product(range(4), repeat=num_rounds)]
    every = corrected.theorem_1(inside, 0.6, np.array(loads))
    found = corrected.random_routing(inside, 0.6, 4, num_rounds)
    np.testing.assert_allclose(found, np.mean(every, axis=1), rtol=1e-12)
