"""The figures' numbers against runs and theory put together in another way, and what the drawings say."""

import dataclasses

import numpy as np
import pytest
from matplotlib.figure import Figure

from moe_theory import continual
from moe_theory.continual import corrected, experiments, system, theory
from moe_theory.continual.experiments import FIGURE_2, FIGURE_2_DIMS, pools_of
from moe_theory.continual.figures import FIGURES, figure_2, figure_8, regimes
from moe_theory.plot import drives
from moe_theory.plot.numbers import STRIDE
from moe_theory.plot.spec import checked_experts
from moe_theory.runs import Cell, run_cells
from tests.continual.cases import loop_over, refuse

READING = continual.reading("unit-signal")
REPLICATES, SEED, NUM_ROUNDS = 6, 3, 100  # past the dense records
FIGURES["regimes"] = dataclasses.replace(FIGURES["regimes"], experts=(2, 12, 20))  # whose cells are many


class Computed(dict):
    """Data of figures by name, each computed when a test first asks for it."""

    def __missing__(self, name):
        self[name] = FIGURES[name].compute(FIGURES[name].setup(READING, REPLICATES, SEED, rounds=NUM_ROUNDS))
        return self[name]


@pytest.fixture(scope="module")
def data():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drives, "DRIVES", drives.DRIVES[:7:6])
        patch.setattr(drives, "RATIOS", (0.03, 1.0, 10.0))
        yield Computed()


def run_directly(num_experts, terminate):
    """The same replicates, by the program that the figure has compiled: only what is made of them differs."""
    params = READING.params(num_experts=num_experts, terminate=terminate)
    cell = Cell("cell", FIGURE_2.system, params, NUM_ROUNDS, STRIDE, FIGURE_2.observe)
    return run_cells([cell], REPLICATES, seed=SEED)["cell"]


@pytest.mark.parametrize(("num_experts", "termination"), [(5, "with"), (20, "without")])
def test_figure_2_summarises_the_runs_of_its_cell(data, num_experts, termination):
    """Catches cells mixed up, quantiles over the wrong axis, and dense records that belong to another run."""
    run = run_directly(num_experts, termination == "with")
    rounds = [20, 40, 60, 100]
    rows = np.searchsorted(run.rounds, rounds)
    for metric in figure_2.METRICS:
        samples = getattr(run.records, metric)[rows].astype(np.float64)
        here = data["figure-2"].sel(experts=num_experts, termination=termination, metric=metric, round=rounds)
        np.testing.assert_allclose(here["mean"], samples.mean(axis=1), rtol=1e-5)
        np.testing.assert_allclose(here["low"], np.quantile(samples, 0.1, axis=1), rtol=1e-5)
        np.testing.assert_allclose(here["high"], np.quantile(samples, 0.9, axis=1), rtol=1e-5)
        np.testing.assert_allclose(here["error"], samples.std(axis=1, ddof=1) / REPLICATES**0.5, rtol=1e-4)
        np.testing.assert_allclose(here["terminated"], run.records.terminated[rows].mean(axis=1))


def test_figure_2_averages_the_printed_forms_over_replicates(data):
    """Each replicate's pool and loads, one at a time: catches a form evaluated at averaged loads, or the wrong one."""
    ratio, last = theory.overparameterization_ratio(10, 6), NUM_ROUNDS
    forms = {
        1: lambda gaps, loads, explored: theory.proposition_4(gaps, ratio, last),
        5: lambda gaps, loads, explored: theory.theorem_2(gaps, ratio, loads, explored, last),
        10: lambda gaps, loads, explored: theory.theorem_1(gaps, ratio, loads, explored, last),
    }
    for num_experts, form in forms.items():
        run = run_directly(num_experts, terminate=True)
        loads, explored = (leaf[-1].astype(np.float64) for leaf in (run.records.loads, run.records.explored_loads))
        bounds = [form(theory.gaps(pool), loads[:, i], explored[:, i]) for i, pool in enumerate(pools_of(run))]
        here = data["figure-2"].printed.sel(experts=num_experts, termination="with", round=last)
        for metric in figure_2.METRICS:
            expected = np.mean([getattr(bound, metric) for bound in bounds])
            np.testing.assert_allclose(here.sel(metric=metric), expected, rtol=1e-6)


def test_figure_2_has_the_exact_theory_along_the_routes_that_it_draws(data):
    """Replicate by replicate: catches routes of other runs, pools of other replicates, and rounds off by one."""
    cell = Cell("cell", FIGURE_2.system, READING.params(num_experts=5), NUM_ROUNDS, 1, experiments.observe_route)
    run = run_cells([cell], REPLICATES, seed=SEED)["cell"]
    found = []
    for i in range(REPLICATES):
        pool = run.state.pool._replace(truths=run.state.pool.truths[..., [i]], signals=run.state.pool.signals[..., [i]])
        found.append(corrected.given_routes(pool, 6, run.records.task[:, [i]], run.records.expert[:, [i]]))
    here = data["figure-2"].exact.sel(experts=5, termination="with", round=NUM_ROUNDS)
    for metric in figure_2.METRICS:
        np.testing.assert_allclose(here.sel(metric=metric), np.mean([getattr(each, metric)[-1] for each in found]))


def test_exact_theory_is_continued_without_a_visible_error(data):
    """Beyond the settled rounds sums are extrapolated: compared with the whole recursion."""
    run = run_directly(1, terminate=True)
    whole = [corrected.single_expert(pool, 6, NUM_ROUNDS) for pool in pools_of(run)]
    here = data["figure-2"].exact.sel(experts=1, termination="with")
    assert figure_2.SETTLED < NUM_ROUNDS
    for metric in figure_2.METRICS:
        expected = np.mean([getattr(moments, metric) for moments in whole], axis=0)[here["round"].values - 1]
        np.testing.assert_allclose(here.sel(metric=metric), expected, rtol=1e-7)


@pytest.mark.thorough
def test_figure_8_shows_the_arrivals_of_one_run(data):
    """Against that threshold run alone: catches counts from 0, another replicate, thresholds in the wrong panel."""
    shown = data["figure-8"]
    replicate, threshold = int(shown.replicate), float(shown.threshold_power[-1])
    params = READING.params(num_experts=5, perturbation_scale=0.4**1.25, termination_threshold=0.4**threshold)
    cell = Cell("cell", system(figure_8.DIMS), params, NUM_ROUNDS, 1, regimes.observe)
    records = run_cells([cell], replicate + 1, seed=SEED)["cell"].records
    here = shown.sel(threshold_power=threshold)
    assert here.expert.values.tolist() == (records.expert[:, replicate] + 1).tolist()
    assert here.task.values.tolist() == (records.task[:, replicate] + 1).tolist()
    assert set(zip(here.task.values.tolist(), here.cluster.values.tolist(), strict=True)) <= {
        (1, 1), (4, 1), (2, 2), (5, 2), (3, 3), (6, 3),
    }  # fmt: skip


@pytest.mark.thorough
def test_regimes_are_those_of_the_runs_at_their_gate_drive(data):
    """Would catch the drive set by the signals' scale instead of its square, and arrivals of another expert counted."""
    number, drive, ratio, dims = 12, drives.DRIVES[-1], 1.0, FIGURE_2_DIMS
    given = READING.params(num_experts=number, terminate=False)
    params = regimes.at_drive(given, drive, ratio, dims)
    assert continual.gate_drive(params, dims.num_features, dims.num_tasks) == pytest.approx(drive)
    assert drive / params.perturbation_scale == pytest.approx(ratio)
    assert params.noise_scale / params.signal_scale == pytest.approx(given.noise_scale / given.signal_scale)
    cell = Cell("cell", system(dims), params, NUM_ROUNDS, 1, regimes.observe)
    run = run_cells([cell], REPLICATES, seed=SEED)["cell"]
    shares, clusters = [], run.state.pool.clusters
    for lane in range(REPLICATES):
        last, met = {}, []
        for task, expert in zip(run.records.task[:, lane], run.records.expert[:, lane], strict=True):
            met.append(expert in last and clusters[last[expert], lane] == clusters[task, lane])
            last[expert] = task
        shares.append(np.mean(met[-NUM_ROUNDS // 4 :]))
    here = data["regimes"].sel(experts=number, drive=drive, ratio=ratio, gates="without")
    assert float(here.own) == pytest.approx(np.mean(shares))
    ratios = run.records.generalization_error[-1] / experiments.gaps_of(run).task_gap
    assert float(here.error) == pytest.approx(np.mean(ratios), rel=1e-5)


def test_effective_experts_counts_even_loads():
    loads = np.array([[[4.0, 6.0], [4.0, 0.0], [4.0, 6.0]]])  # one round, three experts, two replicates
    np.testing.assert_allclose(experiments.effective_experts(loads), [[3.0, 2.0]])


@pytest.mark.thorough
def test_figure_9_compares_with_its_first_threshold(data):
    shown = data["figure-9"]
    levels = shown["mean"] - shown["mean"].sel(threshold_power=0.75)
    np.testing.assert_allclose(shown.difference, levels, atol=1e-9)
    assert (shown.difference.sel(threshold_power=0.75) == 0).all()
    assert not np.isfinite(shown.printed.sel(metric="effective_experts")).any()


SLOW = ("figure-8", "figure-9", "regimes")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name in SLOW)) for name in FIGURES]
)
def test_drawing_and_caption(data, name, keeps_its_words):
    """Every axis that carries ticks' meaning is named in words; the caption names reading, replicates and seed."""
    figure = Figure(figsize=FIGURES[name].size)
    FIGURES[name].draw(data[name], figure)
    words = " ".join(axes.get_xlabel() + axes.get_ylabel() + axes.get_title("left") for axes in figure.axes)
    assert ("gate drive" if name == "regimes" else "round $t$") in words
    assert figure.legends or any(axes.get_legend() for axes in figure.axes)
    caption = FIGURES[name].caption(data[name])
    assert (
        f"Reading unit-signal (c = 1/σ₀, spread σ₀^1.5 inside a cluster, q = 1; the default); {REPLICATES}" in caption
    )
    assert f"seed {SEED}, {NUM_ROUNDS} rounds" in caption
    assert caption.endswith(f"--replicates {REPLICATES} --seed {SEED} --rounds {NUM_ROUNDS}")
    keeps_its_words(FIGURES[name], data[name])


@loop_over("experts", [[0], [2, 2], [], [2.5], [True]])
def test_numbers_of_experts_that_cannot_be(experts):
    refuse("experts", checked_experts, experts)
