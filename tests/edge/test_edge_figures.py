"""The edge figures' numbers against runs and theory put together in another way, on shrunk networks."""

import dataclasses

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy import stats

from moe_theory import edge
from moe_theory.edge import corrected, theory
from moe_theory.edge.figures import FIGURES, availability, figure_3, phase, regimes
from moe_theory.plot import drives
from moe_theory.plot.numbers import STRIDE
from moe_theory.runs import Cell, run_cells

READING = edge.reading("orthogonal-signal")
REPLICATES, SEED, NUM_ROUNDS = 3, 3, 80
SERVERS = (2, 4)
DIMS = edge.Dims(max_experts=4, num_tasks=2, num_features=4, num_samples=2, max_delay=10)
FIGURES |= {name: dataclasses.replace(FIGURES[name], experts=SERVERS, dims=DIMS) for name in ("figure-3", "regimes")}


@pytest.fixture(scope="module", autouse=True)
def small_networks():
    with pytest.MonkeyPatch.context() as patch:
        for module in (phase, availability):
            patch.setattr(module, "DIMS", DIMS)
        patch.setattr(phase, "EXPERTS", SERVERS)
        patch.setattr(phase, "DRIVES", (0.1, 5.0))
        patch.setattr(availability, "EXPERTS", SERVERS)
        patch.setattr(drives, "DRIVES", (0.1, 5.0))
        patch.setattr(drives, "RATIOS", (0.1, drives.FAR))
        yield


class Computed(dict):
    """Data of figures by name, each computed when a test first asks for it."""

    def __missing__(self, name):
        self[name] = FIGURES[name].compute(FIGURES[name].setup(READING, REPLICATES, SEED, rounds=NUM_ROUNDS))
        return self[name]


@pytest.fixture(scope="module")
def data():
    return Computed()


@pytest.fixture(scope="module")
def of_two():
    """Fig. 3 of two policies."""
    setup = FIGURES["figure-3"].setup(READING, REPLICATES, SEED, rounds=NUM_ROUNDS)
    return figure_3.compute(setup, ["adaptive", "nearest"])


def run_directly(system, num_experts, observe, record_every, **choices):
    """The same replicates, by a program that the figures have compiled: only what is made of them differs."""
    params = READING.params(num_experts=num_experts, **choices)
    cell = Cell("cell", system, params, NUM_ROUNDS, record_every, observe)
    return run_cells([cell], REPLICATES, seed=SEED)["cell"]


def under(policy):
    return edge.system(DIMS, edge.policies.POLICIES[policy])


def pool_of(run, replicate):
    truths, signals, clusters = (np.asarray(leaf[..., replicate], float) for leaf in run.state.pool)
    return edge.Pool(truths, signals, clusters)


@pytest.mark.thorough
def test_figure_3_holds_the_last_round_of_its_cell(of_two):
    """Catches cells mixed up, quantiles over the wrong axis, raw errors in place of errors per coordinate."""
    run = run_directly(under("nearest"), 4, figure_3.observe, STRIDE)
    samples = run.records.flushed[-1] / DIMS.num_features
    here = of_two.sel(policy="nearest", experts=4, round=NUM_ROUNDS)
    np.testing.assert_allclose(here["mean"], samples.mean(), rtol=1e-6)
    np.testing.assert_allclose(here["low"], np.quantile(samples, 0.1), rtol=1e-6)
    np.testing.assert_allclose(here["high"], np.quantile(samples, 0.9), rtol=1e-6)


def test_figure_3_averages_theory_over_replicates(of_two):
    """Each replicate's pool and loads, one at a time: catches averages taken before the formula, and lost tasks."""
    ratio, spread = 1 - DIMS.num_samples / DIMS.num_features, float(READING.params().cluster_spread)
    run = run_directly(under("nearest"), 4, figure_3.observe, STRIDE)
    here = of_two.sel(policy="nearest", experts=4, round=NUM_ROUNDS)
    printed, known = [], []
    for index in range(REPLICATES):
        pool, loads = pool_of(run, index), run.records.loads[-1, :, index].astype(float)
        printed.append(theory.proposition_4(theory.gaps(pool, spread), ratio, loads, loads.sum()))
        single = corrected.generalization_error(pool, DIMS.num_samples, NUM_ROUNDS, spread, False)
        known.append(corrected.by_loads(single, loads))
    np.testing.assert_allclose(here.proposition_4, np.mean(printed) / DIMS.num_features, rtol=1e-6)
    np.testing.assert_allclose(here.exact, np.mean(known) / DIMS.num_features, rtol=1e-6)


def test_figure_3_explores_until_t1(of_two):
    """Catches explored loads of another round than T1, and G^4 left out."""
    ratio, spread = 1 - DIMS.num_samples / DIMS.num_features, float(READING.params().cluster_spread)
    run = run_directly(under("adaptive"), 2, figure_3.observe, STRIDE)
    explored = int(of_two.explored.sel(experts=2))
    assert explored == theory.exploration_rounds(2, 0.2, 0.6, 0.05, 10) < NUM_ROUNDS
    bounds = []
    for index in range(REPLICATES):
        pool_gaps = theory.gaps(pool_of(run, index), spread)
        loads, early = (
            run.records.loads[time // STRIDE - 1, :, index].astype(float) for time in (NUM_ROUNDS, explored)
        )
        bounds.append(theory.theorem_1(pool_gaps, ratio, loads, early, loads.sum(), pool_gaps.within_gap))
    here = of_two.theorem_1.sel(policy="adaptive", experts=2, round=NUM_ROUNDS)
    np.testing.assert_allclose(here, np.mean(bounds) / DIMS.num_features, rtol=1e-6)


def test_figure_3_has_the_recursion_along_the_routes_that_it_draws(of_two):
    """Catches routes of other replicates or rounds: of one server the recursion knows the loads alone."""
    run = run_directly(under("adaptive"), 4, figure_3.observe_routes, 1)
    expected = [
        corrected.given_routes(
            run.records.truth[..., [index]],
            run.state.pool.signals[..., [index]],
            DIMS.num_samples,
            run.records.task[:, [index]],
            run.records.expert[:, [index]],
            follows_truth=False,
        )[-1, 0]
        for index in range(REPLICATES)
    ]
    here = of_two.exact.sel(policy="adaptive", experts=4, round=NUM_ROUNDS)
    np.testing.assert_allclose(here, np.mean(expected) / DIMS.num_features, rtol=1e-6)


def test_figure_3_shows_theory_only_where_it_says_something(of_two):
    finite, blind = np.isfinite(of_two), ["nearest"]
    for adaptive, name in ((True, "theorem_1"), (False, "proposition_4")):
        assert bool(finite[name].sel(policy="adaptive").all()) is adaptive
        assert bool(finite[name].sel(policy="adaptive").any()) is adaptive
        assert bool(finite[name].sel(policy=blind).all()) is not adaptive
        assert bool(finite[name].sel(policy=blind).any()) is not adaptive
    assert finite.exact.all()


@pytest.mark.parametrize("reading", ["orthogonal-signal", "sibling"])
def test_settled_errors_are_continued_exactly(reading):
    """Beyond the settled loads sums are extrapolated, whatever signals follow: compared with the whole recursion."""
    params = edge.reading(reading).params()
    rng = np.random.default_rng(5)
    pool = edge.Pool(*rng.normal(size=(2, 10, 15)), np.arange(10))
    dims = edge.Dims(70, 10, 15, 10)
    follows = params.signal_law == edge.params.PROPORTIONAL
    whole = corrected.generalization_error(pool, 10, 300, float(params.cluster_spread), follows)
    assert figure_3.CONVERGED < 300
    np.testing.assert_allclose(figure_3.single_expert_errors(pool, dims, params, 300), whole, rtol=1e-9)


def test_phase_runs_at_its_gate_drives(data):
    """The signals' scale of a cell gives its drive back, and the last cell is a run of its own."""
    assert data["phase"].ratio.dims == ("drive", "experts")
    for drive in data["phase"].drive.values:
        params = READING.params(num_experts=4)
        scaled = params._replace(signal_scale=phase.signal_scale_at(drive, params, DIMS))
        np.testing.assert_allclose(edge.gate_drive(scaled, DIMS.num_features), drive, rtol=1e-12)
    run = run_directly(edge.system(DIMS), 4, phase.flushed_error, NUM_ROUNDS, signal_scale=scaled.signal_scale)
    spread = float(scaled.cluster_spread)
    ratios = [run.records[-1, i] / theory.gaps(pool_of(run, i), spread).task_gap for i in range(REPLICATES)]
    np.testing.assert_allclose(data["phase"].ratio.sel(drive=5.0, experts=4), np.mean(ratios), rtol=1e-6)


@pytest.mark.thorough
def test_regimes_run_at_their_drive_and_ratio_and_count_own_tasks(data):
    """Catches the drive set by the signals' scale instead of its square, delays left out, dropped tasks counted."""
    given = READING.params(num_experts=4)
    params = regimes.at_drive(given, 5.0, 0.1, DIMS)
    assert edge.gate_drive(params, DIMS.num_features) == pytest.approx(5.0)
    assert 5.0 / params.perturbation_scale == pytest.approx(0.1)
    assert params.noise_scale / params.signal_scale == pytest.approx(given.noise_scale / given.signal_scale)
    choices = params._asdict()
    run = run_directly(edge.system(DIMS), observe=regimes.observe, record_every=1, **choices)
    shares = []
    for lane in range(REPLICATES):
        last, met = {}, []
        for task, server in zip(run.records.task[:, lane], run.records.expert[:, lane], strict=True):
            met.append(last.get(server) == task if server >= 0 else np.nan)
            last[server] = task
        shares.append(np.nanmean(met[-NUM_ROUNDS // 4 :]))
    here = data["regimes"].sel(experts=4, drive=5.0, ratio=0.1, delays="those of Fig. 3")
    assert float(here.own) == pytest.approx(np.mean(shares))
    assert float(here.own) != float(data["regimes"].sel(experts=4, drive=5.0, ratio=0.1, delays="one round").own)


def test_phase_names_the_servers_of_proposition_1():
    """For the N and d_u of Fig. 3, from the formulas: 10 (1 + 1.645 sqrt(.9)) = 25.6 and so on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phase, "DIMS", edge.Dims(70, 10, 15, 10, max_delay=10))
        lines = dict(phase.servers_by_line())
    needed = 10 * (1 + stats.norm.ppf(0.95) * 0.9**0.5)
    enough = 3 if stats.binom.sf(3, 10, 0.1) < 0.05 <= stats.binom.sf(2, 10, 0.1) else None
    assert list(lines.values()) == sorted(lines.values())
    np.testing.assert_allclose(lines["$N M_{th}$"], needed)
    assert lines[r"$N M_{th}\,\ln(1/\delta)$, normal"] == np.ceil(needed * np.log(20))
    assert lines[r"$N M_{th}\,\ln(1/\delta)$, binomial"] == np.ceil(10 * enough * np.log(20))


def test_availability_counts_the_second_half(data):
    """By a run that records every round, in the worst case of the delays."""

    worst = dict.fromkeys(("min_transfer_delay", "max_transfer_delay", "min_execution_delay", "max_execution_delay"), 5)
    none_idle, none_exists = run_directly(edge.system(DIMS), 4, availability.observe, 1, **worst).records
    here = data["availability"].sel(delays="all d_u", experts=4)
    np.testing.assert_allclose(here.none_idle, none_idle[NUM_ROUNDS // 2 :].mean(), atol=1e-6)
    np.testing.assert_allclose(here.none_exists, none_exists[NUM_ROUNDS // 2 :].mean(), atol=1e-6)
    assert (data["availability"].none_idle >= data["availability"].none_exists).all()


def test_availability_predicts_by_binomial_tails(data):
    here = data["availability"].sel(experts=4)
    np.testing.assert_allclose(here["tail"], stats.binom.sf(2, 10, 1 / 2))
    np.testing.assert_allclose(here["unserved"], stats.binom.sf(1, 9, 1 / 2))
    busy = [stats.binom.pmf(count, 4, 1 / 2) * stats.binom.sf(count - 1, 9, 1 / 2) for count in range(5)]
    np.testing.assert_allclose(here["unserved_random"], sum(busy))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name != "phase")) for name in FIGURES]
)
def test_drawing_and_caption(data, name, keeps_its_words):
    """Axes are named, and the caption says what was run."""
    figure, shown = FIGURES[name], data[name]
    canvas = Figure(figsize=figure.size)
    figure.draw(shown, canvas)
    canvas.draw_without_rendering()
    words = " ".join(axes.get_xlabel() + axes.get_ylabel() for axes in canvas.axes)
    axis = {"phase": "servers $M$", "availability": "servers $M$", "regimes": "gate drive"}
    assert axis.get(name, "round $t$") in words
    caption = figure.caption(shown)
    assert f"Reading {READING.name} (" in caption
    assert f"seed {SEED}, {NUM_ROUNDS} rounds" in caption
    assert caption.endswith(f"--seed {SEED} --rounds {NUM_ROUNDS}")
    keeps_its_words(figure, shown)
    assert shown.attrs["figure"] == name
    assert shown.attrs["replicates"] == REPLICATES
