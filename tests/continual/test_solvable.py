"""The theorems of solvable.md against Algorithm 1, and the reduced model against complete enumeration."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from examples import solvable
from moe_theory import continual
from moe_theory.continual import corrected, reduced, theory
from moe_theory.core.errors import MoeTheoryError
from moe_theory.core.tasks import Arrival, Pool
from tests.continual.cases import loop_over, refuse
from tests.continual.designs import complement_basis, draw_pool, residual_projectors

M, ROUNDS, RUNS, SCALE = 5, 120, 6, 1e-3
EXACT = 1e-9 * SCALE
# How every hypothesis that a theorem does without may be, beside the paper's orders.
FREE = {
    "paper": {},
    "alpha": {"balance_weight": SCALE**0.5},
    "beta": {"min_strength": 0.2, "max_strength": 3.0},
    "eta": {"learning_rate": 2.0},
    "lambda": {"perturbation_scale": 1e-9},
    "Gamma": {"termination_threshold": 1.0},
}


@functools.cache
def run(name, free="paper", num_samples=1, rounds=ROUNDS, experts=M):
    """Histories (T, B), models, gates and metrics of some runs, in float64."""
    instance = solvable.INSTANCES[name](scale=SCALE)
    with jax.enable_x64(True):
        cell = solvable.continual_cell(instance, experts, num_samples, **FREE[free])
        state, info = mt.simulate_batch(cell.system, mt.root_key(3), RUNS, cell.params, rounds)
        return instance, cell.params, jax.tree.map(np.asarray, (state, info))


def spoilt(pool, num_experts=M, **choices):
    """The models and gates of a run on another pool, and what the gates would be by Theorem 2."""
    instance = solvable.Solvable(pool, SCALE, SCALE)
    with jax.enable_x64(True):
        cell = solvable.continual_cell(instance, num_experts, **choices)
        state, _ = mt.simulate_batch(cell.system, mt.root_key(3), RUNS, cell.params, ROUNDS, ROUNDS)
        models, gates = np.asarray(state.experts), np.asarray(state.gates)
    return models, gates, solvable.telescoped_gates(models, float(cell.params.learning_rate))


def histories(info):
    return zip(info.task.T, info.expert.T, strict=True)


@pytest.mark.parametrize(
    ("free", "num_samples"),
    [
        pytest.param("paper", 1, marks=pytest.mark.thorough),
        ("paper", 3),
        pytest.param("alpha", 2, marks=pytest.mark.thorough),
        ("beta", 3),
        pytest.param("Gamma", 1, marks=pytest.mark.thorough),
    ],
)
def test_a_model_is_the_last_of_two_opposite_truths(free, num_samples):
    """Theorem 4: on every path, with noise as large as sigma_0."""
    instance, _, (state, info) = run("opposite-truths", free, num_samples)
    for place, (tasks, routes) in enumerate(histories(info)):
        models = solvable.last_truths(instance, tasks, routes, M)
        np.testing.assert_allclose(state.experts[..., place], models, atol=EXACT)
        unlike = np.sum((models[routes] - instance.pool.truths[tasks]) ** 2, axis=1) > SCALE**2
        error, forgetting = np.mean(unlike), np.sum(unlike[:-1]) / (ROUNDS - 1)
        np.testing.assert_allclose(info.generalization_error[-1, place], 4 * SCALE**2 * error, atol=EXACT * SCALE)
        np.testing.assert_allclose(info.forgetting[-1, place], 4 * SCALE**2 * forgetting, atol=EXACT * SCALE)


@pytest.mark.thorough
@loop_over("free", FREE)
def test_a_model_is_the_sum_of_the_orthonormal_truths_met(free):
    """Theorem 6, and Theorem 7: whatever alpha, beta, eta, lambda and Gamma are, all ends with what one expert has."""
    instance, _, (state, info) = run("orthonormal-one-sample", free)
    for place, (tasks, routes) in enumerate(histories(info)):
        models = solvable.truths_met(instance, tasks, routes, M)
        np.testing.assert_allclose(state.experts[..., place], models, atol=EXACT)
        met = np.zeros((M, 3), bool)
        now = np.zeros(ROUNDS)
        for time, (task, route) in enumerate(zip(tasks, routes, strict=True)):
            met[route, task] = True
            now[time] = met[route].sum()
        error = SCALE**2 * (met.sum(axis=1)[routes] - 1)
        np.testing.assert_allclose(info.generalization_error[-1, place], error.mean(), atol=EXACT * SCALE)
        lost = np.sum(error[:-1] - SCALE**2 * (now[:-1] - 1)) / (ROUNDS - 1)
        np.testing.assert_allclose(info.forgetting[-1, place], lost, atol=EXACT * SCALE)
    rare = solvable.unmet_probability(3, M, ROUNDS)
    assert rare < 0.01
    np.testing.assert_allclose(info.generalization_error[-1], solvable.limit_error(instance), rtol=1e-9)
    one = continual.exact.single_expert(instance.pool, 1, 2000).generalization_error[-1]
    assert solvable.limit_error(instance) == pytest.approx(one, rel=1e-9)


TELESCOPED = ["opposite-truths", "three-directions", "orthonormal-one-sample", "unseen-part"]


@loop_over("name", TELESCOPED)
@loop_over("free", ["paper", "lambda"])
def test_gates_are_minus_the_models(name, free):
    """Theorem 2: the remainder is not 0, and within its constant, whatever the routes."""
    instance, params, (state, info) = run(name, free)
    expected = solvable.telescoped_gates(state.experts, params.learning_rate)
    left = np.linalg.norm(state.gates - expected, axis=1).max()
    moves = int((info.update_norm > EXACT).sum(axis=0).max())
    step = params.learning_rate * instance.reach / M
    bound = solvable.gate_remainder(instance, M, params.learning_rate, moves)
    assert bound == pytest.approx(8 * step**2 * moves)
    assert M / params.learning_rate > ROUNDS  # gates are still updated
    assert 0 < left <= bound < math.inf


@pytest.mark.parametrize("num_tasks", [pytest.param(2, marks=pytest.mark.thorough), 5])
def test_the_mean_move_on_a_simplex_never_falls(num_tasks):
    """Theorem 5: sigma_0, for every expert after 60 rounds; not so for orthonormal signals."""
    instance = solvable.simplex(num_tasks, SCALE, num_features=6)
    models, _, _ = spoilt(instance.pool)
    along = np.einsum("md...,nd->mn...", models, instance.pool.signals)
    assert np.all(along <= SCALE + EXACT)
    assert np.all(along >= SCALE - instance.reach - EXACT)
    np.testing.assert_allclose((SCALE - along).mean(axis=1), SCALE, rtol=1e-9)
    assert np.abs(models).max() > 0.5 * SCALE


def test_chances_are_even_up_to_the_drive_over_lambda():
    """Theorem 3: chances by integration over r, at outputs that are as far apart as allowed."""
    instance = solvable.opposite_truths(1e-8)
    width = 1e-10  # lambda
    most = solvable.chance_deviation(instance, M, 1e-4, width)
    apart = most * width
    for outputs in (np.array([apart, 0, 0, 0, 0]), np.array([0, apart, apart, apart, apart])):
        r = (np.arange(20_000) + 0.5) / 20_000 * width
        others = np.prod([np.clip((r + outputs[0] - h) / width, 0, 1) for h in outputs[1:]], axis=0)
        assert 0.1 * most < abs(np.mean(others) - 1 / M) <= most


def blind(gate_outputs, perturbation, state, arrival, params):
    return perturbation


@pytest.mark.thorough
@pytest.mark.parametrize("name", [pytest.param("opposite-truths", marks=pytest.mark.thorough), "unseen-part"])
def test_expected_errors_of_blind_routing(name):
    """Theorems 4, 6 and 8, by 1,024 runs with a router that looks at no output; M = 1 is the exact single expert."""
    instance = solvable.INSTANCES[name](scale=0.5)
    dims = solvable.continual_cell(instance, 3).dims
    system = continual.on_pool(dims, instance.pool, router=blind)
    params = solvable.continual_cell(instance, 3, noise_scale=0.1).params
    _, info = mt.simulate_batch(system, mt.root_key(1), 1024, params, 12)
    is_pair = name == "opposite-truths"
    errors = functools.partial(
        *((solvable.opposite_errors, 0.5) if is_pair else (solvable.orthonormal_errors, instance))
    )
    expected, one, alone = errors(3, 12), continual.exact.single_expert(instance.pool, 1, 9), errors(1, 9)
    for metric in solvable.Errors._fields:
        found, value = getattr(info, metric), getattr(expected, metric)
        error = np.std(found, axis=1) / math.sqrt(1024) + 1e-6
        assert np.all(np.abs(np.mean(found, axis=1) - value) <= 5 * error)
        np.testing.assert_allclose(getattr(alone, metric), getattr(one, metric), atol=1e-12)


def test_refuses_what_is_no_instance():
    for refused in (
        functools.partial(solvable.simplex, 1),
        functools.partial(solvable.simplex, 5, num_features=4),
        functools.partial(solvable.orthonormal, scale=1.0),
        functools.partial(solvable.unseen_part, unseen=math.inf),
        functools.partial(solvable.many_tasks, times=1e-9),
        functools.partial(solvable.chance_deviation, solvable.simplex(3), 2, 0.1, 0.0),
        functools.partial(solvable.continual_cell, solvable.simplex(3), 2, mu=1.0),
    ):
        with pytest.raises(MoeTheoryError):
            refused()


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
