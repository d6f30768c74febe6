"""What diagnostics show of a round, against plain loops and finite differences: gate steps, expert sets, moves."""

import itertools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual
from moe_theory.continual import diagnostics, experiments
from moe_theory.continual.algorithm import balance_cost, draw, locality_cost, system
from moe_theory.core import gating
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


@pytest.mark.parametrize("locality_power", [1.0, 2.0])
def test_a_gate_step_is_that_of_finite_differences_of_the_task_loss(locality_power):
    params = continual.Params(num_experts=4, locality_power=locality_power, terminate=False)
    key, time = jax.random.fold_in(root_key(9), 0), 12
    with jax.enable_x64(True):
        before, _ = mt.simulate(system(STEPPED), key, params, time)
        arrival, (after, info), stepped, steps = last_round(step_key(key, time + 1), before, params)
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


def drives_by_loop(state) -> np.ndarray:
    """<theta_m, v_n> of the existing experts, in float64."""
    return np.array(
        [
            [gate @ signal for signal in np.asarray(state.pool.signals, float)]
            for gate in np.asarray(state.gates, float)[:NUM_EXPERTS]
        ]
    )


def sets_by_loop(state) -> list[int]:
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
        others = [m for m in range(NUM_EXPERTS) if m not in own]
        expert, sizes = int(seen.info.expert), sizes | {len(own)}
        assert int(seen.shown.set_size) == len(own)
        assert bool(seen.shown.is_inside) == (expert in own)
        # Experts that have not been chosen yet tie, and any of them leads.
        assert bool(seen.shown.led) == (expert in own and outputs[expert] > max(outputs[own]) - 1e-6)
        assert bool(seen.shown.led_all) == (outputs[expert] > max(outputs) - 1e-6)
        own_gap = max((abs(outputs[a] - outputs[b]) for a, b in itertools.product(own, own)), default=0.0)
        across = [abs(outputs[a] - outputs[b]) for a, b in itertools.product(own, others)]
        assert float(seen.shown.own_gap) == pytest.approx(own_gap, rel=1e-4, abs=1e-5)
        assert float(seen.shown.other_gap) == pytest.approx(np.mean(across) if across else 0, rel=1e-4, abs=1e-5)
        span = observe(seen.after, seen.info)
        assert float(span.any_gap) == pytest.approx(np.ptp(outputs), rel=1e-4, abs=1e-5)
    assert len(sizes) > 2


def test_sets_are_compared_with_those_after_exploration(rounds):
    """Would catch an anchor of another round, and the order of (33) or (40) taken between the wrong numbers."""
    sets_then, clusters = sets_by_loop(rounds[EXPLORED].before), np.asarray(rounds[0].before.pool.clusters)
    separated, ordered = set(), set()
    for seen in rounds[EXPLORED:]:
        drives, sets = drives_by_loop(seen.before), sets_by_loop(seen.before)
        weights = np.exp(drives - drives.max(axis=0))
        probabilities = np.log(weights / weights.sum(axis=0))
        is_separated = all(
            probabilities[m, n] > probabilities[m, other]
            for m in range(NUM_EXPERTS)
            for n, other in itertools.product(range(DIMS.num_tasks), repeat=2)
            if clusters[n] == sets_then[m] != clusters[other]
        )
        is_ordered = all(
            drives[m, n] > drives[other, n]
            for n in range(DIMS.num_tasks)
            for m, other in itertools.product(range(NUM_EXPERTS), repeat=2)
            if sets[m] == clusters[n] != sets[other]
        )
        assert bool(seen.shown.is_stable) == (sets == sets_then)
        assert bool(seen.shown.is_separated) == is_separated
        assert bool(seen.shown.is_ordered) == is_ordered
        separated.add(is_separated)
        ordered.add(is_ordered)
    assert separated | ordered == {True, False}


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
    explored, begun = (np.asarray(rounds[row].after.experts, float) for row in (EXPLORED - 1, EXPLORED))
    for time, seen in enumerate(rounds, start=1):
        now, expert = np.asarray(seen.after.experts, float), int(seen.info.expert)
        truth = np.asarray(seen.before.pool.truths, float)[int(seen.info.task)]
        if time <= EXPLORED + 1:
            assert float(seen.shown.drift) == 0
        else:
            drift = np.abs(now - begun)[:NUM_EXPERTS].max()
            assert float(seen.shown.drift) == pytest.approx(drift, rel=1e-3, abs=1e-4)
        if time > EXPLORED:
            change = abs(np.sum((now[expert] - truth) ** 2) - np.sum((explored[expert] - truth) ** 2))
            assert float(seen.shown.distance_change) == pytest.approx(change, rel=1e-3, abs=1e-4)
    assert float(rounds[-1].shown.drift) > 0


def test_gradients_are_those_of_automatic_differentiation(rounds):
    """Would catch a cost left out, a wrong sign between experts, or the signal in place of the gate's input."""
    exists = np.arange(DIMS.max_experts) < NUM_EXPERTS

    @jax.jit
    def gradients(seen):
        gate_input = seen.features.sum(axis=1)
        moved = jnp.where(seen.info.chosen, locality_cost(seen.info.update_norm**2, PARAMS), 0)
        balance = jnp.where(seen.info.chosen, balance_cost(seen.after.visits, seen.after.round, PARAMS), 0)
        costs = jnp.stack([moved, moved + balance])
        return jax.vmap(lambda costs: jax.grad(gating.task_loss)(seen.before.gates, gate_input, exists, costs))(costs)

    for seen in rounds[1:]:
        locality, whole = np.asarray(gradients(seen))
        gap = np.abs(whole[:NUM_EXPERTS] - whole[int(seen.info.expert)]).max()
        largest = float(np.abs(locality).max())
        assert float(seen.shown.locality_gradient) == pytest.approx(largest, rel=1e-3, abs=1e-6)
        assert float(seen.shown.gradient_gap) == pytest.approx(gap, rel=1e-3, abs=1e-6)


def sets_and_outputs(state, info):
    return diagnostics.expert_sets(state), info.gate_outputs


def test_tallies_are_what_records_of_every_round_show():
    """Would catch a round too many or too few, the wrong anchor, or another round's gaps."""
    every = diagnostics.system_with_diagnostics(DIMS)
    tallied, endless = diagnostics.system_with_tally(DIMS), diagnostics.system_with_endless_tally(DIMS)
    params = continual.reading("unit-signal").params(**experiments.limit_params(NUM_EXPERTS, 0.01))
    for_ever, first = params._replace(terminate=False), experiments.stage_rounds(params)
    second = experiments.stage_rounds(params, experiments.T2_POWER)
    length = second + 10
    cells = [
        Cell("rounds", every, params, length, is_double=True),
        Cell("tally", tallied, params, length, length, experiments.observe_gate_span, is_double=True),
        Cell("endless rounds", every, for_ever, length, is_double=True),
        Cell("endless tally", endless, for_ever, length, length, experiments.observe_gate_span, is_double=True),
    ]
    cells += [
        Cell("endless outputs", continual.system(DIMS), for_ever, length, observe=sets_and_outputs, is_double=True)
    ]
    runs = run_cells(cells, 64, seed=3)
    shown, tally, since = runs["rounds"].records, runs["tally"].state, slice(first + 1, None)
    for name in ("is_stable", "is_separated"):
        np.testing.assert_array_equal(getattr(tally, name), getattr(shown, name)[since].all(axis=0))
        assert 0 < np.mean(getattr(tally, name)) < 1
    np.testing.assert_array_equal(tally.was_ordered, shown.is_ordered[first])
    np.testing.assert_array_equal(tally.rounds_open, np.sum(~shown.terminated, axis=0))
    np.testing.assert_allclose(tally.drift, shown.drift.max(axis=0), rtol=1e-12)
    for lane in range(64):
        first_fixed = int(tally.rounds_open[lane])
        seen = slice(first_fixed, first_fixed + diagnostics.WINDOW)
        left = (shown.set_size[seen, lane] > 0) & ~shown.is_inside[seen, lane]
        assert bool(tally.was_outside[lane]) == bool(left.any())
    assert 0 < np.mean(tally.was_outside) < 1

    shown, tally = runs["endless rounds"].records, runs["endless tally"].state
    np.testing.assert_array_equal(tally.is_ordered, shown.is_ordered[first:second].all(axis=0))
    window = slice(second - diagnostics.WINDOW, second)
    np.testing.assert_allclose(tally.own_gap, shown.own_gap[window].mean(axis=0), rtol=1e-9)
    sets, outputs = runs["endless outputs"].records
    for lane in range(4):
        gaps = [
            max(
                abs(outputs[row, a, lane] - outputs[row, b, lane])
                for a, b in itertools.product(range(NUM_EXPERTS), repeat=2)
                if sets[row - 1, a, lane] != sets[row - 1, b, lane]  # at the gates that route, before the round
            )
            for row in range(second)[window]
        ]
        assert tally.other_gap[lane] == pytest.approx(np.mean(gaps), rel=1e-9)


def test_the_probability_gap_is_between_clusters():
    """Would catch tasks of one cluster compared, or two experts in place of two tasks."""
    drives, clusters = np.log([[4.0, 1.0, 1.0], [1.0, 1.0, 3.0]]), np.array([0, 0, 1])
    exists = np.array([True, True])
    found = jax.jit(diagnostics.probability_gap)(drives, exists, clusters)
    assert float(found) == pytest.approx(0.8 - 0.25, rel=1e-6)  # 4/5 for the first signal, 1/4 for the third
