"""What the continual paper's claims are made of, computed another way: on made states, and against plain loops."""

import types

import numpy as np
import pytest

from moe_theory import continual
from moe_theory.continual import experiments, theory
from moe_theory.continual.statements import (
    figure_8,
    lemma_02,
    lemma_08,
    lemma_10,
    proposition_1,
    proposition_2,
    proposition_3,
)
from moe_theory.runs import Cell, Run, run_cells
from moe_theory.verification.settings import at_setting


def made_run(num_replicates, first=0, **changes):
    """A run whose gates, signals and loads are drawn here, on the dims of the grid of scales."""
    dims, rng = experiments.ROUTER_DIMS, np.random.default_rng(3)
    params = continual.reading("unit-signal").params(**experiments.router_params(0.04, **changes))
    gates = rng.normal(size=(dims.max_experts, dims.num_features, num_replicates))
    signals = rng.normal(size=(dims.num_tasks, dims.num_features, num_replicates))
    state = types.SimpleNamespace(gates=gates, pool=types.SimpleNamespace(signals=signals))
    return Run(params, np.array([1]), np.arange(first, first + num_replicates), state, None)


def test_the_constant_of_lemma_2_is_not_violated_where_lambda_is_large():
    run = made_run(64, perturbation_scale=2.0)  # 2 / lambda = 1 is below lambda M^2 for every M
    assert not np.any(lemma_02.exceeds_constant(run))
    assert np.all(lemma_02.exceeds_constant(made_run(64, first=128)))


def test_pairs_of_like_tasks_differ_by_the_noise_that_the_gates_let_through():
    run = made_run(4096, noise_scale=0.3)
    pairs = experiments.gate_output_pairs(run)
    deviations = 0.3 * np.sqrt(2 * 5) * np.sqrt(np.sum(run.state.gates**2, axis=1)).T
    squares = ((pairs[:, 0] - pairs[:, 1]) / deviations)[:, 0] ** 2  # of one expert: chi-squared of one degree
    assert abs(squares.mean() - 1) < 6 * np.sqrt(2 / len(squares))


def test_pairs_without_noise_are_of_one_task_or_of_one_cluster():
    for num_clusters, num_experts in ((6, 10), (3, 5)):
        run = made_run(64, noise_scale=0.0, num_clusters=num_clusters, num_experts=num_experts)
        outputs = np.einsum("mdb,ndb->bnm", run.state.gates[:num_experts], run.state.pool.signals)
        pairs = experiments.gate_output_pairs(run)
        tasks = np.abs(pairs[:, :, None] - outputs[:, None]).max(axis=3).argmin(axis=2)  # (B, 2)
        np.testing.assert_allclose(np.take_along_axis(outputs, tasks[:, :, None], axis=1), pairs, atol=1e-6)
        assert np.all(tasks[:, 1] == (tasks[:, 0] + num_clusters) % 6)
        assert len(np.unique(tasks[:, 0])) == 6


def test_the_load_gap_is_the_largest_distance_from_an_even_share():
    run = made_run(2, num_experts=4, learning_rate=0.4)  # T1 = 10
    visits = np.array([[4, 3], [2, 2], [2, 3], [2, 2], [0, 0]])
    run.state.explored_visits = visits
    np.testing.assert_allclose(lemma_08.largest_gap(run), [0.15, 0.05])


def test_probabilities_at_a_gap_are_those_of_its_log_odds():
    probabilities = lemma_10.probabilities_at(made_run(16), 0.5, 3.0)
    odds = np.log(probabilities[..., 0] / probabilities[..., 1])
    np.testing.assert_allclose(odds, np.tile([0.5, 3.0], (16, 1)), atol=1e-9)
    assert np.all(probabilities.sum(axis=-1) < 1)


@pytest.fixture(scope="module")
def settled():
    """A few replicates of one cell of the grid of scales, and of one of Fig. 8."""
    reading = continual.reading("unit-signal")
    cells = [
        Cell(name, experiment.system, reading.params(**experiment.cells[name]), 400, 1, experiment.observe)
        for experiment, name in (
            (experiments.SPECIALIZATION, experiments.FEW_FIGURE_2[0]),
            (experiments.FIGURE_8, figure_8.SMALL[0]),
        )
    ]
    return list(run_cells(cells, 16, seed=1).values())


def test_stages_are_the_papers_rounds():
    """Would catch an exponent's sign, or a root taken of M / eta."""
    params = continual.Params(num_experts=12, learning_rate=0.25, truth_scale=1 / 16)
    assert experiments.stage_rounds(params) == 48 == theory.exploration_rounds(12, 0.25)
    assert experiments.stage_rounds(params, experiments.T2_POWER) == 96 == theory.termination_rounds(12, 0.25, 1 / 16)
    assert experiments.stage_rounds(params, experiments.RETURN_POWER) == 384


@pytest.mark.thorough
def test_termination_is_that_of_a_loop_over_the_history(settled):
    """Would catch a flag read a round too early or late, and arrivals counted before T2 or before termination."""
    run = settled[0]
    second = experiments.stage_rounds(run.params, experiments.T2_POWER)
    fixed, by_then = proposition_3.is_fixed(run), proposition_3.is_terminated(run)
    seen = run.records
    for lane in range(16):
        ended = next((t for t in range(1, 401) if t == 400 or seen.terminated[t, lane]), 400)
        is_over = bool(seen.terminated[:, lane].any())
        assert bool(by_then[lane]) == (is_over and ended <= second)
        counted = [t for t in range(1, 401) if is_over and t > max(ended, second) and seen.set_size[t - 1, lane] >= 1]
        np.testing.assert_array_equal(np.flatnonzero(fixed[:, lane]) + 1, counted)
        inside = sum(bool(seen.is_inside[t - 1, lane]) for t in counted)
        assert proposition_3.outside_share(run)[lane] == pytest.approx((len(counted) - inside) / 400)
        contested = [t for t in counted if seen.set_size[t - 1, lane] >= 2]
        share = sum(1 / int(seen.set_size[t - 1, lane]) for t in contested) / 400
        assert proposition_3.even_share(run)[lane] == pytest.approx(share)
        gap = 1 / float(run.params.perturbation_scale)
        bound = sum(
            min(1.0, 1 / int(seen.set_size[t - 1, lane]) + gap * float(seen.own_gap[t - 1, lane])) for t in contested
        )
        assert proposition_3.bounded_share(run)[lane] == pytest.approx(bound / 400)


def test_repeats_after_exploration_are_found_by_a_loop(settled):
    """Would catch repeats before T1, of another expert, or of a task learned to rounding."""
    run = settled[0]
    after, expected = proposition_1.remaining_errors(run), proposition_1.contracted_errors(run)
    length = experiments.truth_length(run)
    for lane in range(16):
        last, left, count = {}, 0.0, 0
        for row in range(400):
            task, expert = int(run.records.task[row, lane]), int(run.records.expert[row, lane])
            error = float(run.records.error[row, lane])
            before = error + float(run.records.update_norm[row, lane]) ** 2
            is_large = before > 1e-4 * length[lane] ** 2
            if row >= experiments.stage_rounds(run.params) and last.get(expert) == task and is_large:
                left, count = left + error / before, count + 1
            last[expert] = task
        assert after[lane] == pytest.approx(left, rel=1e-6)
        assert expected[lane] == pytest.approx(count * (10 - 6) / (10 - 1))


def test_evenness_counts_arrivals_after_the_gates_are_fixed(settled):
    """Would catch loads of the whole run, or none where gates are never fixed."""
    run = settled[1]
    evenness = figure_8.evenness(run)
    for lane in range(16):
        fixed = run.records.terminated[:, lane]
        rows = np.flatnonzero(fixed) if fixed[-1] else np.arange(experiments.stage_rounds(run.params), 400)
        shares = np.bincount(run.records.expert[rows, lane], minlength=5) / len(rows)
        assert evenness[lane] == pytest.approx(np.exp(-sum(p * np.log(p) for p in shares if p > 0)))


def test_runs_follow_t1_to_smaller_learning_rates():
    """Would catch a search of eta that looks at the end of exploration before it: runs that may vary eta are as long as
    T1 asks there, in whole records, and as long as recorded where that is longer."""
    group = experiments.COVERAGE, continual.reading("unit-signal"), []
    recorded, moved = (
        at_setting(group, setting) for setting in ({}, {experiments.FREE_ETA: experiments.FREE_ETA.most})
    )
    (was,), (now,) = (made.cells_under(reading) for made, reading, _ in (recorded, moved))
    assert now.params.learning_rate == pytest.approx(was.params.learning_rate * now.params.truth_scale**0.25)
    assert was.num_rounds == experiments.COVERAGE.num_rounds
    needed = experiments.stage_rounds(now.params)
    assert needed > was.num_rounds
    assert needed <= now.num_rounds < needed + experiments.COVERAGE.record_every
    assert now.num_rounds % experiments.COVERAGE.record_every == 0
    for selection in (experiments.LIMIT_MANY, experiments.BY_SCALE):
        made, reading, _ = at_setting((selection.experiment, *group[1:]), {experiments.FREE_ETA: 0.75})
        assert all(cell.num_rounds >= experiments.stage_rounds(cell.params) for cell in made.cells_under(reading))


def test_gaps_in_units_of_what_is_claimed_stand_one_scale_apart():
    """Would catch runs compared with themselves, or the larger sigma_0 with the smaller."""
    runs = [
        Run(continual.Params(truth_scale=scale), None, None, types.SimpleNamespace(own_gap=scale**1.75 * each), None)
        for scale, each in ((0.01, np.array([1.0, 2.0])), (0.1, np.array([3.0, 4.0])), (0.5, np.array([5.0, 6.0])))
    ]
    np.testing.assert_allclose(proposition_2.SMALLER_OWN(*runs), [[1, 2], [3, 4]])
    np.testing.assert_allclose(proposition_2.OWN_STAYS.value(*runs), [[3, 4], [5, 6]])
