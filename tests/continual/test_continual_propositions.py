"""What claims of Lemmas 11 to 16, Propositions 1 to 3 and Figs. 8 and 9 are made of, against plain loops."""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual
from moe_theory.continual import occupancy, readings, specialisation, theory, thresholds, tracking
from moe_theory.continual.claims import figures_8_9, stages, termination
from moe_theory.continual.system import balance_cost, draw, locality_cost
from moe_theory.core import gating
from moe_theory.core.experts import minimum_norm_change
from moe_theory.runs import Cell, run_cells

DIMS = continual.Dims(max_experts=6, num_tasks=4, num_features=6, num_samples=3)
PARAMS = readings.reading("unit-signal").params(num_experts=5, num_clusters=2, learning_rate=1.0)
NUM_EXPERTS, NUM_ROUNDS, EXPLORED = 5, 40, 5


class Round(NamedTuple):
    """A round as the plain system sees it, and what was tracked of it."""

    before: continual.State
    after: continual.State
    info: continual.Info
    features: np.ndarray
    tracked: tracking.Tracked
    sight: tracking.Sight


@pytest.fixture(scope="module")
def rounds():
    """One replicate of the tracked system; each of its rounds again by the plain one."""
    plain, system = continual.system(DIMS), tracking.tracked_system(DIMS)
    step, tracked_step = jax.jit(plain.step), jax.jit(system.step)
    key = mt.root_key(7)
    tracked, seen = system.init(key, PARAMS), []
    for time in range(1, NUM_ROUNDS + 1):
        round_key, before = jax.random.fold_in(key, time), tracked.state
        arrival, _ = draw(round_key, DIMS, before.pool, PARAMS)
        after, info = step(round_key, before, PARAMS)
        tracked, sight = tracked_step(round_key, tracked, PARAMS)
        seen.append(Round(before, after, info, np.asarray(arrival.features, float), tracked, sight))
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
        assert int(seen.sight.expert) == int(seen.info.expert)
        assert int(seen.sight.task) == int(seen.info.task)
        assert float(seen.sight.error) == pytest.approx(float(seen.info.error), rel=1e-3, abs=1e-6)
        assert bool(seen.sight.terminated) == bool(seen.before.terminated)
        np.testing.assert_allclose(seen.tracked.state.experts, seen.after.experts, rtol=1e-3, atol=1e-5)


def test_sets_and_gaps_are_those_of_the_gates_that_route(rounds):
    """Would catch gates after the round, a padded expert in a set, or gaps of the wrong pairs."""
    sizes = set()
    for seen in rounds[1:]:  # before the first step all gates tie
        sets, outputs = sets_by_loop(seen.before), np.asarray(seen.info.gate_outputs, float)[:NUM_EXPERTS]
        own = [m for m in range(NUM_EXPERTS) if sets[m] == int(seen.before.pool.clusters[int(seen.info.task)])]
        others = [m for m in range(NUM_EXPERTS) if m not in own]
        expert, sizes = int(seen.info.expert), sizes | {len(own)}
        assert int(seen.sight.set_size) == len(own)
        assert bool(seen.sight.is_inside) == (expert in own)
        # Experts that have not been chosen yet tie, and any of them leads.
        assert bool(seen.sight.led) == (expert in own and outputs[expert] > max(outputs[own]) - 1e-6)
        assert bool(seen.sight.led_all) == (outputs[expert] > max(outputs) - 1e-6)
        own_gap = max((abs(outputs[a] - outputs[b]) for a, b in itertools.product(own, own)), default=0.0)
        across = [abs(outputs[a] - outputs[b]) for a, b in itertools.product(own, others)]
        assert float(seen.sight.own_gap) == pytest.approx(own_gap, rel=1e-4, abs=1e-5)
        assert float(seen.sight.other_gap) == pytest.approx(np.mean(across) if across else 0, rel=1e-4, abs=1e-5)
        assert float(seen.sight.any_gap) == pytest.approx(np.ptp(outputs), rel=1e-4, abs=1e-5)
        assert bool(seen.sight.no_set_empty) == (set(sets) == {0, 1})
        span = specialisation.observe_span(seen.after, seen.info)
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
        assert bool(seen.sight.is_stable) == (sets == sets_then)
        assert bool(seen.sight.is_separated) == is_separated
        assert bool(seen.sight.is_ordered) == is_ordered
        separated.add(is_separated)
        ordered.add(is_ordered)
    assert separated | ordered == {True, False}


def test_order_and_separation_on_gates_made_for_it():
    """Would catch experts compared where signals should be, or an expert that does not exist counted."""
    exists, clusters = jnp.array([True, True, False]), jnp.array([0, 1])
    apart = jnp.array([[2.0, 0.0], [0.0, 2.0], [9.0, 9.0]])
    assert tracking.is_ordered(apart, jnp.array([0, 1, 0]), exists, clusters)
    assert tracking.is_separated(apart, jnp.array([0, 1, 0]), exists, clusters)
    assert not tracking.is_separated(apart, jnp.array([1, 0, 0]), exists, clusters)
    outbid = jnp.array([[2.0, 0.0], [3.0, 4.0], [0.0, 0.0]])  # the second expert is above the first for both signals
    assert not tracking.is_ordered(outbid, jnp.array([0, 1, 0]), exists, clusters)
    assert tracking.is_separated(outbid, jnp.array([0, 1, 0]), exists, clusters)
    assert not tracking.no_set_empty(jnp.array([0, 0, 1]), exists, clusters)
    assert tracking.no_set_empty(jnp.array([1, 0, 1]), exists, clusters)


def test_moves_are_measured_from_the_end_of_exploration(rounds):
    """Would catch models of another round as the anchor, or the distance of another expert."""
    explored, begun = (np.asarray(rounds[row].after.experts, float) for row in (EXPLORED - 1, EXPLORED))
    for time, seen in enumerate(rounds, start=1):
        now, expert = np.asarray(seen.after.experts, float), int(seen.info.expert)
        truth = np.asarray(seen.before.pool.truths, float)[int(seen.info.task)]
        if time <= EXPLORED + 1:
            assert float(seen.sight.drift) == 0
        else:
            drift = np.abs(now - begun)[:NUM_EXPERTS].max()
            assert float(seen.sight.drift) == pytest.approx(drift, rel=1e-3, abs=1e-4)
        if time > EXPLORED:
            change = abs(np.sum((now[expert] - truth) ** 2) - np.sum((explored[expert] - truth) ** 2))
            assert float(seen.sight.distance_change) == pytest.approx(change, rel=1e-3, abs=1e-4)
    assert float(rounds[-1].sight.drift) > 0


def test_gradients_are_those_of_automatic_differentiation(rounds):
    """Would catch a cost left out, a wrong sign between experts, or the signal in place of the gate's input."""
    exists = np.arange(DIMS.max_experts) < NUM_EXPERTS
    for seen in rounds[1:]:
        gate_input = jnp.asarray(seen.features.sum(axis=1), seen.before.gates.dtype)
        moved = jnp.where(seen.info.chosen, locality_cost(seen.info.update_norm**2, PARAMS), 0)
        balance = jnp.where(seen.info.chosen, balance_cost(seen.after.visits, seen.after.round, PARAMS), 0)
        locality = jax.grad(gating.task_loss)(seen.before.gates, gate_input, exists, moved)
        whole = np.asarray(jax.grad(gating.task_loss)(seen.before.gates, gate_input, exists, moved + balance))
        gap = np.abs(whole[:NUM_EXPERTS] - whole[int(seen.info.expert)]).max()
        largest = float(np.abs(locality).max())
        assert float(seen.sight.locality_gradient) == pytest.approx(largest, rel=1e-3, abs=1e-6)
        assert float(seen.sight.gradient_gap) == pytest.approx(gap, rel=1e-3, abs=1e-6)


def test_a_step_leaves_what_is_expected_of_it():
    """Would catch a contraction of the signal's direction, or the learned task's own part left out."""
    rng = np.random.default_rng(5)
    expert, truth, signal = rng.normal(size=(3, 6))
    others = np.concatenate([rng.normal(size=(2, 6)), truth[None]])
    features = rng.normal(size=(20_000, 6, 3))
    features[:, :, 0] = signal
    change = jax.vmap(minimum_norm_change, in_axes=(0, None))(jnp.asarray(features), jnp.asarray(truth - expert)[None])
    after = expert + np.asarray(change, float)[:, 0]
    observed = np.mean(np.sum((after[:, None] - others[None]) ** 2, axis=2), axis=0)
    expected = tracking.expected_error_after(*map(jnp.asarray, (expert, truth, signal, others)), num_samples=3)
    np.testing.assert_allclose(observed, expected, rtol=0.05)


@pytest.mark.parametrize(("num_sets", "num_experts"), [(2, 2), (3, 3), (3, 5), (4, 6)])
def test_occupancy_by_counting_every_assignment(num_sets, num_experts):
    """Would catch a sign in inclusion and exclusion, and says which of the two bounds is one."""
    assignments = list(itertools.product(range(num_sets), repeat=num_experts))
    counted = sum(len(set(assignment)) == num_sets for assignment in assignments) / len(assignments)
    assert occupancy.all_occupied(num_sets, num_experts) == pytest.approx(counted)
    empty_once = sum(0 not in assignment for assignment in assignments) / len(assignments)
    assert occupancy.union(num_sets, num_experts) == pytest.approx(1 - num_sets * empty_once)
    assert occupancy.product(num_sets, num_experts) == pytest.approx((1 - empty_once) ** num_sets)
    assert occupancy.union(num_sets, num_experts) <= counted < occupancy.product(num_sets, num_experts)


def test_errors_of_a_history_are_those_of_lemma_16():
    """Would catch a wrong order of arrivals, or experts mixed up, in (42): its recursion, an arrival at a time."""
    rng = np.random.default_rng(2)
    tasks, experts, truths = rng.integers(0, 6, (9, 2)), rng.integers(0, 3, (9, 2)), rng.normal(size=(6, 10, 2))
    ratio, expected = 1 - 6 / 10, []
    for lane in range(2):
        errors = []
        for arrival in range(9):
            truth = truths[tasks[arrival, lane], :, lane]
            error = np.sum(truth**2)
            for time in range(9):
                if experts[time, lane] == experts[arrival, lane]:
                    gap = np.sum((truths[tasks[time, lane], :, lane] - truth) ** 2)
                    error = ratio * error + (1 - ratio) * gap
            errors.append(error)
        expected.append(np.mean(errors))
    np.testing.assert_allclose(termination.history_error(tasks, experts, truths), expected, rtol=1e-12)


@pytest.fixture(scope="module")
def settled():
    """A few replicates of one cell of the grid of scales, and of one of Fig. 8."""
    reading = readings.reading("unit-signal")
    cells = [
        Cell(name, experiment.system, reading.params(**experiment.cells[name]), 400, 1, experiment.observe)
        for experiment, name in (
            (specialisation.SETTLING, stages.FEW_OWN[0]),
            (thresholds.FIGURE_8, figures_8_9.SMALL[0]),
        )
    ]
    return list(run_cells(cells, 64, seed=1).values())


def test_stages_are_the_papers_rounds():
    """Would catch an exponent's sign, or a root taken of M / eta."""
    params = continual.Params(num_experts=12, learning_rate=0.25, truth_scale=1 / 16)
    assert specialisation.stage_rounds(params) == 48 == theory.exploration_rounds(12, 0.25)
    assert (
        specialisation.stage_rounds(params, stages.ROOT_TERMINATION)
        == 96
        == theory.termination_rounds(12, 0.25, 1 / 16)
    )
    assert specialisation.stage_rounds(params, stages.ROOT_RETURN) == 384


def test_termination_is_that_of_a_loop_over_the_history(settled):
    """Would catch a flag read a round too early or late, and arrivals counted before T2 or before termination."""
    run = settled[0]
    second = specialisation.stage_rounds(run.params, stages.ROOT_TERMINATION)
    fixed, by_then = termination._fixed(run), termination._is_terminated(run)
    seen = run.records
    for lane in range(64):
        ended = next((t for t in range(1, 401) if t == 400 or seen.terminated[t, lane]), 400)
        is_over = bool(seen.terminated[:, lane].any())
        assert bool(by_then[lane]) == (is_over and ended <= second)
        counted = [t for t in range(1, 401) if is_over and t > max(ended, second) and seen.set_size[t - 1, lane] >= 1]
        np.testing.assert_array_equal(np.flatnonzero(fixed[:, lane]) + 1, counted)
        inside = sum(bool(seen.is_inside[t - 1, lane]) for t in counted)
        assert termination._outside(run)[lane] == pytest.approx((len(counted) - inside) / 400)
        contested = [t for t in counted if seen.set_size[t - 1, lane] >= 2]
        share = sum(1 / int(seen.set_size[t - 1, lane]) for t in contested) / 400
        assert termination._even_share(run)[lane] == pytest.approx(share)
        gap = 1 / float(run.params.perturbation_scale)
        bound = sum(
            min(1.0, 1 / int(seen.set_size[t - 1, lane]) + gap * float(seen.own_gap[t - 1, lane])) for t in contested
        )
        assert termination._bounded_share(run)[lane] == pytest.approx(bound / 400)


def test_repeats_after_exploration_are_found_by_a_loop(settled):
    """Would catch repeats before T1, of another expert, or of a task learned to rounding."""
    run = settled[0]
    after, expected = stages.remaining_errors(run), stages.contracted_errors(run)
    length = stages.truth_length(run)
    for lane in range(64):
        last, left, count = {}, 0.0, 0
        for row in range(400):
            task, expert = int(run.records.task[row, lane]), int(run.records.expert[row, lane])
            error = float(run.records.error[row, lane])
            before = error + float(run.records.update_norm[row, lane]) ** 2
            is_large = before > 1e-4 * length[lane] ** 2
            if row >= stages.explored(run) and last.get(expert) == task and is_large:
                left, count = left + error / before, count + 1
            last[expert] = task
        assert after[lane] == pytest.approx(left, rel=1e-6)
        assert expected[lane] == pytest.approx(count * (10 - 6) / (10 - 1))


def test_evenness_counts_arrivals_after_the_gates_are_fixed(settled):
    """Would catch loads of the whole run, or none where gates are never fixed."""
    run = settled[1]
    evenness = figures_8_9._evenness(run)
    for lane in range(64):
        fixed = run.records.terminated[:, lane]
        rows = np.flatnonzero(fixed) if fixed[-1] else np.arange(stages.explored(run), 400)
        shares = np.bincount(run.records.expert[rows, lane], minlength=5) / len(rows)
        assert evenness[lane] == pytest.approx(np.exp(-sum(p * np.log(p) for p in shares if p > 0)))
