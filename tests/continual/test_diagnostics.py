"""What diagnostics show of a round, against plain loops and finite differences: gate steps, expert sets, moves."""

import itertools
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual
from moe_theory.continual import diagnostics, experiments, metrics
from moe_theory.continual.algorithm import draw, system
from moe_theory.core.random import root_key, step_key
from moe_theory.runs import Cell, run_cells

DIMS = continual.Dims(max_experts=6, num_tasks=4, num_features=6, num_samples=3)
PARAMS = continual.reading("unit-signal").params(num_experts=5, num_clusters=2, learning_rate=1.0)
NUM_EXPERTS, NUM_ROUNDS, EXPLORED = 5, 40, 5


def task_loss(gates, gate_input, costs):
    outputs = gates @ gate_input
    weights = np.exp(outputs - outputs.max())
    return weights @ costs / weights.sum()


def finite_gradient(gates, gate_input, costs, step=1e-6):
    gradient = np.zeros_like(gates)
    for place in np.ndindex(gates.shape):
        move = np.zeros_like(gates)
        move[place] = step
        higher, lower = (task_loss(gates + sign * move, gate_input, costs) for sign in (1, -1))
        gradient[place] = (higher - lower) / (2 * step)
    return gradient


STEPPED = continual.Dims(max_experts=5, num_tasks=4, num_features=6, num_samples=3)


@jax.jit
def last_round(key, before, params):
    arrival, _ = draw(key, STEPPED, before.pool, params)
    stepped, steps = diagnostics.system_with_gate_steps(STEPPED).step(key, before, params)
    return arrival, system(STEPPED).step(key, before, params), stepped, steps


def rising_cost(visits, time, params):
    return params.balance_weight * visits / time


def test_diagnostics_are_of_the_losses_that_are_run():
    """Would catch the printed losses' gradient beside an algorithm whose own are others, and costs below 0."""
    params = continual.Params(num_experts=4, terminate=False)
    key, time = jax.random.fold_in(root_key(9), 0), 12
    with jax.enable_x64(True):
        shown = diagnostics.system_with_diagnostics(
            STEPPED, locality=continual.baseline.repaired, auxiliary=rising_cost
        )
        after, step = jax.jit(shown.init)(key, params), jax.jit(shown.step)
        for number in range(1, time + 2):
            before = after.state
            after, info = step(step_key(key, number), after, params)
        arrival, _ = jax.jit(lambda key, pool: draw(key, STEPPED, pool, params))(step_key(key, time + 1), before.pool)
    gates, expert = np.asarray(before.gates)[:4], int(info.expert)
    gradient = (gates - np.asarray(after.state.gates)[:4]) / params.learning_rate
    assert float(info.gradient_gap) == pytest.approx(np.abs(gradient - gradient[expert]).max())
    cost = 0.5 * int(after.state.visits[expert]) / (time + 1)
    balance = finite_gradient(
        gates, np.asarray(arrival.features).sum(axis=1), np.where(np.arange(4) == expert, cost, 0)
    )
    assert float(info.locality_gradient) == pytest.approx(np.abs(gradient - balance).max(), rel=1e-5)


@pytest.mark.parametrize("locality_power", [1.0, pytest.param(2.0, marks=pytest.mark.thorough)])
def test_a_gate_step_is_that_of_finite_differences_of_the_task_loss(locality_power):
    params = continual.Params(num_experts=4, locality_power=locality_power, terminate=False)
    key, time = jax.random.fold_in(root_key(9), 0), 12
    with jax.enable_x64(True):
        after = jax.jit(system(STEPPED).init)(key, params)
        for number in range(1, time + 2):
            before = after
            arrival, (after, info), stepped, steps = last_round(step_key(key, number), before, params)
    chex.assert_trees_all_equal(after, stepped)

    chosen, gate_input = int(info.expert), np.asarray(arrival.features).sum(axis=1)
    fraction = int(after.visits[chosen]) / (time + 1)
    balance = np.where(np.arange(4) == chosen, 0.5 * 4 * fraction / (time + 1), 0)
    locality = np.where(np.arange(4) == chosen, float(info.update_norm) ** locality_power, 0)
    balance_gradient = finite_gradient(np.asarray(before.gates)[:4], gate_input, balance)
    gradient = finite_gradient(np.asarray(before.gates)[:4], gate_input, locality + balance)
    assert np.all(np.abs(gradient) >= np.abs(balance_gradient) - 1e-9)  # what Lemma 5's first case leans on
    changes = -params.learning_rate * gradient @ np.asarray(before.pool.signals).T  # (M, N)
    others, own = np.arange(4) != chosen, int(arrival.task)
    expected = {
        "least_balance_gradient": np.abs(balance_gradient).max(axis=1).min(),
        "largest_gradient": np.abs(gradient).max(),
        "chosen_change": np.abs(changes[chosen]).max(),
        "others_change": np.abs(changes[others]).max(),
        "chosen_rise": changes[chosen].max(),
        "own_rise": changes[chosen, own],
        "own_fall": -changes[others, own].min(),
        "gate_size": np.abs(np.asarray(after.gates)).max(),
        "gate_gap": max(np.abs(a - b).max() for a in np.asarray(after.gates)[:4] for b in np.asarray(after.gates)[:4]),
    }
    assert set(expected) == set(steps._fields)
    for name, value in expected.items():
        assert float(getattr(steps, name)) == pytest.approx(value, rel=1e-5, abs=1e-8), name
    np.testing.assert_allclose(after.gates - before.gates, np.pad(-0.5 * gradient, ((0, 1), (0, 0))), atol=1e-7)


class Round(NamedTuple):
    """A round as the plain system sees it, and what was tracked of it."""

    before: continual.State
    after: continual.State
    info: continual.Info
    features: np.ndarray
    tracked: diagnostics.TrackedState
    shown: diagnostics.Diagnostics


@pytest.fixture(scope="module")
def rounds():
    """One replicate of the tracked system; each of its rounds again by the plain one."""
    plain, system = continual.system(DIMS), diagnostics.system_with_diagnostics(DIMS)
    key = mt.root_key(7)

    @jax.jit
    def step(time, tracked):
        round_key, before = jax.random.fold_in(key, time), tracked.state
        arrival, _ = draw(round_key, DIMS, before.pool, PARAMS)
        after, info = plain.step(round_key, before, PARAMS)
        return Round(before, after, info, arrival.features, *system.step(round_key, tracked, PARAMS))

    tracked, seen = jax.jit(system.init)(key, PARAMS), []
    for time in range(1, NUM_ROUNDS + 1):
        seen.append(jax.device_get(step(time, tracked)))
        tracked = seen[-1].tracked
    return seen


def drives_by_loop(state):
    """<theta_m, v_n> of the existing experts, in float64."""
    return np.array(
        [
            [gate @ signal for signal in np.asarray(state.pool.signals, float)]
            for gate in np.asarray(state.gates, float)[:NUM_EXPERTS]
        ]
    )


def sets_by_loop(state):
    """Each existing expert's cluster."""
    return [int(state.pool.clusters[int(np.argmax(row))]) for row in drives_by_loop(state)]


def test_tracking_changes_nothing(rounds):
    """Would catch other draws than the system's own, or a round described that was not the one learned."""
    for seen in rounds:
        assert int(seen.shown.expert) == int(seen.info.expert)
        assert int(seen.shown.task) == int(seen.info.task)
        assert float(seen.shown.error) == pytest.approx(float(seen.info.error), rel=1e-3, abs=1e-6)
        assert bool(seen.shown.terminated) == bool(seen.before.terminated)
        np.testing.assert_allclose(seen.tracked.state.experts, seen.after.experts, rtol=1e-3, atol=1e-5)


def test_sets_and_gaps_are_those_of_the_gates_that_route(rounds):
    """Would catch gates after the round, a padded expert in a set, or gaps of the wrong pairs."""
    sizes, observe = set(), jax.jit(experiments.observe_gate_span)
    for seen in rounds[1:]:  # before the first step all gates tie
        sets, outputs = sets_by_loop(seen.before), np.asarray(seen.info.gate_outputs, float)[:NUM_EXPERTS]
        own = [m for m in range(NUM_EXPERTS) if sets[m] == int(seen.before.pool.clusters[int(seen.info.task)])]
        expert, sizes = int(seen.info.expert), sizes | {len(own)}
        assert int(seen.shown.set_size) == len(own)
        assert bool(seen.shown.is_inside) == (expert in own)
        # Experts that have not been chosen yet tie, and any of them leads.
        assert bool(seen.shown.led) == (expert in own and outputs[expert] > max(outputs[own]) - 1e-6)
        assert bool(seen.shown.led_all) == (outputs[expert] > max(outputs) - 1e-6)
        own_gap = max((abs(outputs[a] - outputs[b]) for a, b in itertools.product(own, own)), default=0.0)
        assert float(seen.shown.own_gap) == pytest.approx(own_gap, rel=1e-4, abs=1e-5)
        span = observe(seen.after, seen.info)
        assert float(span.any_gap) == pytest.approx(np.ptp(outputs), rel=1e-4, abs=1e-5)
    assert len(sizes) > 2


def test_order_and_separation_on_gates_made_for_it():
    """Would catch experts compared where signals should be, or an expert that does not exist counted."""
    is_ordered, is_separated = jax.jit(diagnostics.is_ordered), jax.jit(diagnostics.is_separated)
    exists, clusters = np.array([True, True, False]), np.array([0, 1])
    apart = np.array([[2.0, 0.0], [0.0, 2.0], [9.0, 9.0]])
    assert is_ordered(apart, np.array([0, 1, 0]), exists, clusters)
    assert is_separated(apart, np.array([0, 1, 0]), exists, clusters)
    assert not is_separated(apart, np.array([1, 0, 0]), exists, clusters)
    outbid = np.array([[2.0, 0.0], [3.0, 4.0], [0.0, 0.0]])  # the second expert is above the first for both signals
    assert not is_ordered(outbid, np.array([0, 1, 0]), exists, clusters)
    assert is_separated(outbid, np.array([0, 1, 0]), exists, clusters)


def test_moves_are_measured_from_the_end_of_exploration(rounds):
    """Would catch models of another round as the anchor, or the distance of another expert."""
    explored = np.asarray(rounds[EXPLORED - 1].after.experts, float)
    for time, seen in enumerate(rounds, start=1):
        now, expert = np.asarray(seen.after.experts, float), int(seen.info.expert)
        truth = np.asarray(seen.before.pool.truths, float)[int(seen.info.task)]
        if time > EXPLORED:
            change = abs(np.sum((now[expert] - truth) ** 2) - np.sum((explored[expert] - truth) ** 2))
            assert float(seen.shown.distance_change) == pytest.approx(change, rel=1e-3, abs=1e-4)
    assert float(rounds[-1].shown.distance_change) > 0


class Shown(NamedTuple):
    """All of a round that a tally may count, by a system that tallies nothing."""

    gates: Any
    experts: Any
    terminated: Any
    info: continual.Info


def show(state, info):
    return Shown(state.gates, state.experts, state.terminated, info)


def tallied_and_shown(system_of, params, length):
    """A tally at the end of 64 replicates, and what each round of theirs has shown: (rounds, ..., B)."""
    cells = [
        Cell("tally", system_of(DIMS), params, length, length, experiments.observe_gate_span, is_double=True),
        Cell("rounds", continual.system(DIMS), params, length, observe=show, is_double=True),
    ]
    runs = run_cells(cells, 64, seed=3)
    rounds = runs["rounds"]
    pool, gates = rounds.state.pool, rounds.records.gates[:, :NUM_EXPERTS]
    first = np.zeros_like(gates[:1])  # the gates that route round t are those after round t - 1
    drives = np.einsum("tmdb,ndb->tmnb", np.concatenate([first, gates[:-1]]), pool.signals)
    clusters = np.broadcast_to(pool.clusters, drives.shape[2:])
    sets = np.take_along_axis(clusters[None, None], np.argmax(drives, axis=2)[:, :, None], axis=2)[:, :, 0]
    return runs["tally"].state, rounds.records, drives, sets, clusters


def is_ordered_by_loop(drives, sets, clusters):
    """(40), for each round and replicate."""
    is_own = sets[:, :, None] == clusters[None, None]
    least = np.min(np.where(is_own, drives, np.inf), axis=1)
    return np.all(least > np.max(np.where(is_own, -np.inf, drives), axis=1), axis=1)


@pytest.mark.thorough
def test_a_tally_is_what_all_rounds_have_shown():
    """Would catch a round too many or too few, an anchor of another round, and (33) between the wrong numbers."""
    params = continual.reading("unit-signal").params(**experiments.limit_params(NUM_EXPERTS, 0.01))
    first = experiments.stage_rounds(params)  # round T1 + 1 has this index
    tally, shown, drives, sets, clusters = tallied_and_shown(diagnostics.system_with_tally, params, 3 * first)
    np.testing.assert_array_equal(tally.is_stable, np.all(sets[first + 1 :] == sets[first], axis=(0, 1)))
    logs = drives - np.log(np.sum(np.exp(drives), axis=1, keepdims=True))
    is_own = sets[first][:, None] == clusters[None]
    least = np.min(np.where(is_own, logs, np.inf), axis=2)
    is_separated = np.all(least > np.max(np.where(is_own, -np.inf, logs), axis=2), axis=1)
    np.testing.assert_array_equal(tally.is_separated, is_separated[first + 1 :].all(axis=0))
    np.testing.assert_array_equal(tally.was_ordered, is_ordered_by_loop(drives, sets, clusters)[first])
    experts = shown.experts[:, :NUM_EXPERTS]
    drift = np.abs(experts[first + 1 :] - experts[first]).max(axis=(0, 1, 2))
    np.testing.assert_allclose(tally.drift, drift, rtol=1e-12)
    opened = 1 + np.sum(~shown.terminated[:-1], axis=0)
    np.testing.assert_array_equal(tally.rounds_open, opened)
    for lane in range(64):
        left = False
        for time in range(opened[lane], min(opened[lane] + diagnostics.WINDOW, 3 * first)):
            members = np.flatnonzero(sets[time, :, lane] == clusters[shown.info.task[time, lane], lane])
            left |= len(members) > 0 and shown.info.expert[time, lane] not in members
        assert bool(tally.was_outside[lane]) == left
    for name in ("is_stable", "is_separated", "was_ordered", "was_outside"):
        assert 0 < np.mean(getattr(tally, name)) < 1, name


@pytest.mark.thorough
def test_an_endless_tally_is_what_the_rounds_up_to_t_1_have_shown():
    """Would catch a window at another round, gaps inside a set taken for those between sets, and rounds past t_1."""
    params = continual.reading("unit-signal").params(**experiments.limit_params(NUM_EXPERTS, 0.01), terminate=False)
    first, last = experiments.stage_rounds(params), experiments.stage_rounds(params, experiments.T2_POWER)
    system_of = diagnostics.system_with_endless_tally
    tally, shown, drives, sets, clusters = tallied_and_shown(system_of, params, last + 10)
    is_ordered = is_ordered_by_loop(drives, sets, clusters)[first:last].all(axis=0)
    np.testing.assert_array_equal(tally.is_ordered, is_ordered)
    outputs = shown.info.gate_outputs
    for lane in range(8):
        own, other = [], []
        for time in range(last - diagnostics.WINDOW, last):
            here, now = sets[time, :, lane], outputs[time, :NUM_EXPERTS, lane]
            members = now[here == clusters[shown.info.task[time, lane], lane]]
            own.append(np.ptp(members) if len(members) else 0)
            pairs = itertools.product(range(NUM_EXPERTS), repeat=2)
            other.append(max((abs(now[a] - now[b]) for a, b in pairs if here[a] != here[b]), default=0))
        assert tally.own_gap[lane] == pytest.approx(np.mean(own), rel=1e-9)
        assert tally.other_gap[lane] == pytest.approx(np.mean(other), rel=1e-9)


def test_the_probability_gap_is_between_clusters():
    """Would catch tasks of one cluster compared, or two experts in place of two tasks."""
    drives, clusters = np.log([[4.0, 1.0, 1.0], [1.0, 1.0, 3.0]]), np.array([0, 0, 1])
    exists = np.array([True, True])
    found = jax.jit(diagnostics.probability_gap)(drives, exists, clusters)
    assert float(found) == pytest.approx(0.8 - 0.25, rel=1e-6)  # 4/5 for the first signal, 1/4 for the third


def played(system, key, params):
    """Four replicates of 60 rounds by a plain loop, which compiles sooner than the engine's."""

    @jax.jit
    @jax.vmap
    def run(key):
        keys = jax.random.split(key, 61)
        start = system.init(keys[0], params)
        return jax.lax.scan(lambda state, key: system.step(key, state, params), start, keys[1:])

    return run(jax.random.split(key, 4))


def test_expected_costs_are_the_roots_of_expected_squared_moves():
    """With one sample the move is known, so that nothing changes; with more, costs are those of the reduced model."""
    plain = continual.Dims(max_experts=4, num_tasks=3, num_features=6, num_samples=1)
    params = continual.Params(num_experts=4, num_clusters=3, terminate=False)
    systems = system(plain), diagnostics.system_with_expected_costs(plain)
    (state, full), (other, expected) = (played(system, root_key(2), params) for system in systems)
    np.testing.assert_array_equal(full.expert, expected.expert)
    np.testing.assert_allclose(state.gates, other.state.gates, rtol=1e-3, atol=1e-5)

    blind = params._replace(perturbation_scale=1e4)  # by which routes are alike whatever moves cost
    systems = continual.reduced.system(STEPPED), diagnostics.system_with_expected_costs(STEPPED)
    (small, _), (other, _) = (played(system, root_key(3), blind) for system in systems)
    np.testing.assert_allclose(small.gates, other.state.gates, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(small.errors, other.errors, rtol=1e-4, atol=1e-5)


def test_a_common_part_leaves_differences_as_they_are():
    base, more = system(DIMS), diagnostics.with_common_part(system(DIMS))
    own, shifted = (jax.jit(system.init)(root_key(4), PARAMS).pool for system in (base, more))
    np.testing.assert_allclose(shifted.truths, own.truths)
    np.testing.assert_allclose(shifted.signals - own.signals, 1, rtol=1e-6)
    tally = diagnostics.with_common_part(diagnostics.system_with_tally(DIMS))
    begun = jax.jit(tally.init)(root_key(4), PARAMS).state.pool
    np.testing.assert_allclose(begun.signals - own.signals, 1, rtol=1e-6)
    np.testing.assert_allclose(begun.truths, own.truths)


# Streamed forgetting and generalization error at their ends; against sums over the past in tests/golden.

M, D = 4, 5

record = jax.jit(metrics.record_arrival)


def play(num_rounds, seed, offset=0.0):
    """Random moves of a random expert, a new truth every round: the streamed metrics at the end, and (15) and (16) as
    sums over all arrivals."""
    rng = np.random.default_rng(seed)
    experts, truths = np.zeros((M, D)) + offset, rng.normal(size=(num_rounds, D)) + offset
    chosen, own_errors = rng.integers(M, size=num_rounds), []
    streamed = metrics.no_arrivals(M, D, jnp.result_type(float))
    for m, truth in zip(chosen, truths, strict=True):
        before, change = experts[m].copy(), rng.normal(size=D)
        experts[m] += change
        own_errors.append(np.sum((experts[m] - truth) ** 2))
        mask = (np.arange(M) == m)[None]
        streamed = record(streamed, truth, mask, before[None], change[None], own_errors[-1])
    errors = np.sum((experts[chosen] - truths) ** 2, axis=1)
    return streamed, np.sum(errors[:-1] - own_errors[:-1]) / max(num_rounds - 1, 1), np.mean(errors)


def test_nothing_is_forgotten_in_the_first_round():
    """Would catch a division by zero at t = 1, where the mean over the past is empty, and at t = 0."""
    streamed, _, generalization = play(1, 3)
    assert metrics.forgetting(streamed, 1) == 0
    assert abs(metrics.generalization_error(streamed, 1) - generalization) < 1e-5
    empty = metrics.no_arrivals(M, D, np.float32)
    assert metrics.forgetting(empty, 0) == 0
    assert metrics.generalization_error(empty, 0) == 0


def test_single_precision_keeps_its_digits_far_from_the_origin():
    """Would catch sums of |w|^2 - 2 w.w_n + |w_n|^2, which at models near 1000 keep no digit of a change of 1."""
    streamed, forgetting, generalization = play(60, 5, offset=1000.0)
    assert abs(metrics.generalization_error(streamed, 60) - generalization) < 1e-3 * generalization
    assert abs(metrics.forgetting(streamed, 60) - forgetting) < 1e-3 * generalization


def test_an_arrival_without_an_expert_has_no_error():
    """Would catch gates of NaN, by which no expert is the best, under an error that stays what it was."""
    empty = metrics.no_arrivals(M, D, np.float32)
    zeros = np.zeros((2, D), np.float32)
    after = record(empty, np.ones(D, np.float32), np.zeros((2, M), bool), zeros, zeros, np.float32(0))
    assert not np.any(after.served)
    assert np.isnan(after.forgotten)
    assert np.isnan(after.remaining)
