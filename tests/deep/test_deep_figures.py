"""The numbers behind the deep figures against runs summarised in another way, and what the drawings say."""

import zlib
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from refusals import refusal

from moe_theory import deep
from moe_theory.core.errors import InvalidValueError
from moe_theory.deep import presets
from moe_theory.deep.figures import FIGURES, draw_runs, drive, edge_figure_4, figures_3_to_7
from moe_theory.deep.presets import EDGE, PRESETS, SMALL, expert_cell, preset, server_cell
from moe_theory.edge.policies import POLICIES
from moe_theory.runs import Run

READING = deep.reading("balanced")
REPLICATES, SEED = 3, 5
SIX, SERVERS = preset("continual-cifar100-small"), preset("edge-mnist-small")  # whose networks compile fast


def made_up_run(cell, params, num_rounds, replicates):
    """Random records that differ from cell to cell; half of the runs of several experts end after round 3."""
    random = np.random.default_rng(zlib.crc32(cell.encode()))
    shape = (num_rounds, replicates)
    later = np.arange(num_rounds)[:, None] >= (3 if params.num_experts > 1 else 0)
    records = SimpleNamespace(
        task=random.integers(3, size=shape),
        expert=random.integers(int(params.num_experts), size=shape),
        drive=random.uniform(1, 30, shape),
        **{name: random.uniform(0.1, 0.9, shape) for name in figures_3_to_7.SYMBOLS},
        terminated=later & (np.arange(replicates) % 2 == 0) & bool(params.terminate),
        dropped=np.zeros(shape),
    )
    if "servers" in cell or any(policy in cell for policy in POLICIES):
        del records.terminated, records.forgetting
    return Run(params, np.arange(1, num_rounds + 1), np.arange(replicates), None, records)


def make_up_directly(small, cell, num_rounds):
    return made_up_run(cell, READING.params(**small.cells()[cell]), num_rounds, REPLICATES)


def made_up_preset(preset, settings, setup):
    rounds = setup.rounds or preset.num_rounds
    return {cell: made_up_run(cell, setup.params(**own), rounds, setup.replicates) for cell, own in settings.items()}


@pytest.fixture
def made_up(monkeypatch):
    for module in (figures_3_to_7, edge_figure_4, drive):
        monkeypatch.setattr(module, "run_preset", made_up_preset)


def drawn(name, data):
    figure = Figure(figsize=FIGURES[name].size)
    FIGURES[name].draw(data, figure)
    return figure


def words_of(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def lines_of(panel, least=3):
    return [line for line in panel.lines if len(line.get_xdata()) >= least]


def test_figure_6_summarises_the_runs_of_its_cells(made_up):
    """Catches cells mixed up, quantiles over the wrong axis, and another table's accuracy."""
    data = FIGURES["figure-6"].compute(FIGURES["figure-6"].setup(READING, REPLICATES, SEED, rounds=4))
    assert data["round"].values.tolist() == [1, 2, 3, 4]
    for size, part in ((1, "without"), (8, "with"), (10, "without")):
        run = make_up_directly(SIX, expert_cell(size, part == "with"), 4)
        cell = data.sel(experts=size, termination=part)
        for metric in figures_3_to_7.ERRORS:
            samples = np.sort(getattr(run.records, metric).astype(np.float64), axis=1)
            here = cell.sel(metric=metric)
            np.testing.assert_allclose(here["mean"], samples.sum(axis=1) / REPLICATES, rtol=1e-6, atol=1e-9)
            # The decile of three lies a fifth of the way from the least to the middle one.
            np.testing.assert_allclose(here.low, samples[:, 0] + 0.2 * (samples[:, 1] - samples[:, 0]), atol=1e-7)
            np.testing.assert_allclose(here.high, samples[:, 2] - 0.2 * (samples[:, 2] - samples[:, 1]), atol=1e-7)
        accuracies = [sum(run.records.accuracy[t, r] for t in range(4)) / 4 for r in range(REPLICATES)]
        np.testing.assert_allclose(cell.incremental_mean, np.mean(accuracies), rtol=1e-6)
    assert data.printed.sel(experts=10, termination="without") == 0.091
    assert data.attrs["command"].endswith(" --rounds 4")


def test_edge_figure_summarises_the_runs_of_its_edge_figure_4(made_up):
    """Catches policies or numbers of servers in another's place."""
    data = FIGURES["edge-figure-4"].compute(FIGURES["edge-figure-4"].setup(READING, REPLICATES, SEED, rounds=6))
    for size, policy in ((10, "adaptive"), *((5, name) for name in POLICIES)):
        errors = make_up_directly(SERVERS, server_cell(size, policy), 6).records.generalization_error
        here = data.sel(experts=size, policy=policy)
        np.testing.assert_allclose(here["mean"], errors.astype(np.float64).mean(axis=1), rtol=1e-6)
        np.testing.assert_allclose(here.high, np.quantile(errors, 0.9, axis=1), rtol=1e-5)
    assert (data["mean"].isel(round=-1) > 0).all()
    assert (data.dropped == 0).all()


@pytest.mark.parametrize("name", [name for name in PRESETS if presets.printed(PRESETS[name])])
def test_tables_are_of_the_cells_that_run(name):
    """Every cell has a printed number and none is of a cell that does not run; a small preset has its original's."""
    table = presets.printed(PRESETS[name])
    assert set(table.accuracies) == set(PRESETS[name].cells())
    assert presets.printed(PRESETS[name.removesuffix(SMALL)]) is table
    assert table.where in PRESETS[name].where


@pytest.mark.parametrize(
    ("name", "panels", "curves_each"), [("figure-3", 4, 3), ("figure-4", 2, 2), ("figure-7", 5, 3)]
)
def test_curves_have_a_panel_each(made_up, name, panels, curves_each, keeps_its_words):
    """Letters, one curve a number of experts, a mark where half of the runs have ended and only with termination."""
    data = FIGURES[name].compute(FIGURES[name].setup(READING, 2, 0, rounds=12))
    figure = drawn(name, data)
    assert [panel.get_title("left")[:3] for panel in figure.axes] == [f"({letter})" for letter in "abcde"[:panels]]
    for panel in figure.axes[:4]:
        with_termination = panel.get_title("left").endswith("with termination")
        assert len(lines_of(panel)) == curves_each
        marks = [line.get_xdata()[0] for line in panel.lines if line.get_marker() == "v"]
        assert marks == ([4] * (curves_each - 1) if with_termination else [])
    sizes = [size for size in data.experts.values if size > 1]
    expected = ["one expert ($M$ = 1)", *(f"$M$ = {size}" for size in sizes)]
    assert words_of(figure)[: len(expected)] == expected
    assert ("printed in the paper" in words_of(figure)) == (panels == 5)
    assert "half of the runs terminated" in words_of(figure)
    keeps_its_words(FIGURES[name], data)
    early = drawn(name, FIGURES[name].compute(FIGURES[name].setup(READING, 2, 0, rounds=3)))
    assert "half of the runs terminated" not in words_of(early)


@pytest.mark.parametrize("name", ["continual-mnist", "continual-tiny-imagenet", "edge-mnist", "gate-drive"])
def test_draws_runs_of_any_preset(name):
    """Records as they come from the engine, by the preset's cells: all metrics, and the title above the legend."""
    chosen = PRESETS[name]
    setup = SimpleNamespace(params=READING.params, replicates=2, rounds=6)
    runs = made_up_preset(chosen, chosen.cells(), setup)
    figure = Figure(figsize=(7.2, 6))
    draw_runs(chosen, "what was run", runs, figure)
    parts = list(figure.subfigs) or [figure]
    assert len(parts) == max(len(chosen.scales), 1)
    count = len(chosen.experts) if chosen.paper == EDGE else 6 + (presets.printed(chosen) is not None)
    for part in parts:
        assert len(part.axes) == count
        assert part.legends[0].get_title().get_text().startswith("what was run")
    mean = runs[next(iter(chosen.cells()))].records.generalization_error.mean(axis=1)
    shown = [line.get_ydata() for panel in figure.axes for line in lines_of(panel)]
    assert any(np.allclose(mean, values) for values in shown if len(values) == len(mean))


def test_drive_is_of_the_exploration_and_differences_are_paired(made_up):
    """Against the made-up records, one scale at a time."""
    data = FIGURES["drive"].compute(FIGURES["drive"].setup(READING, 4, 0, rounds=12))
    own = drive.SMALL.cells()
    for scale in drive.SCALES:
        here = data.sel(gate_scale=scale)
        names = {part: drive._name(part, scale) for part in figures_3_to_7.TERMINATIONS}
        records = {
            part: made_up_run(name, READING.params(**own[expert_cell(4, part == "with")]), 12, 4).records
            for part, name in names.items()
        }
        last = {part: record.generalization_error[-1] for part, record in records.items()}
        difference = last["without"] - last["with"]
        np.testing.assert_allclose(here.saved_mean, difference.mean())
        np.testing.assert_allclose(here.saved_error, difference.std(ddof=1) / 2)
        np.testing.assert_allclose(here["mean"].sel(termination="with"), last["with"].mean())
        np.testing.assert_allclose(here.drive, np.median(records["with"].drive[1:8]))  # T1 = 4 / 0.5
    assert (drive.SCALES[0], drive.SCALES[-1], len(drive.SCALES)) == (5, 160, 8)
    errors, saved = drawn("drive", data).axes
    assert [len(line.get_xdata()) for line in errors.lines] == [8, 8, 2]
    assert errors.get_xscale() == saved.get_xscale() == "log"


@pytest.mark.parametrize("name", FIGURES)
def test_caption_and_picture(made_up, name):
    """The caption names data, reading and command; the picture is whole, also of one replicate and one round."""
    figure = FIGURES[name]
    caption = figure.caption(figure.compute(figure.setup(READING, 2, SEED)))
    assert "digits" in caption
    assert "MNIST" in caption or "CIFAR" in caption or "Tiny ImageNet" in caption
    assert f"moe-theory figures deep {name} --reading balanced --replicates 2 --seed {SEED}" in caption
    one = figure.compute(figure.setup(READING, 1, 0, rounds=1))
    words = " ".join(axes.get_xlabel() + axes.get_ylabel() for axes in drawn(name, one).axes)
    assert ("round $t$" in words) == (name != "drive")
    assert figure.caption(one).endswith("--rounds 1")


def test_refuses_more_rounds_than_the_preset_has():
    figure = FIGURES["figure-6"]
    refused = refusal(InvalidValueError, figure.compute, figure.setup(READING, 2, 0, rounds=121))
    assert refused.argument == "num_rounds"
