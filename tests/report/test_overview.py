"""The picture of all papers: catches a panel that shows other numbers than its figure has, or another status than its
statement."""

import dataclasses
import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from matplotlib.figure import Figure

import moe_theory as mt
from moe_theory.core.errors import InvalidValueError
from moe_theory.merging import adversary, experiments
from moe_theory.plot import Curves, style
from moe_theory.report import overview, plots
from moe_theory.report.wording import statement_status
from moe_theory.verification import recorded
from moe_theory.verification.registry import all_claims, select_readings

FIGURES = Path(__file__).parents[2] / "figures"
SEED = 3
FROM = {
    "continual": ("figure-2", ["termination", "experts", "metric", "round"]),
    "edge": ("figure-3", ["policy", "experts", "round"]),
    "generalization": ("crossing", ["case", "place"]),
}
ASKED = {"continual": (["with"], (1,)), "edge": (["adaptive"], (30,)), "generalization": (["growing"], ())}


def kept(paper: str) -> tuple[pd.DataFrame, xr.Dataset]:
    name, dimensions = FROM[paper]
    table = pd.read_csv(FIGURES / paper / f"{name}.csv").drop(columns=["reading", "replicates", "seed"])
    return table, table.set_index(dimensions).to_xarray()


@pytest.fixture(scope="module")
def measured():
    """The overview's data, its figures' read from the repository, and the trees' of few replicates."""
    (figure,) = overview.figures().values()
    with pytest.MonkeyPatch.context() as patch:
        for paper, (name, _) in FROM.items():
            module = importlib.import_module(f"moe_theory.{paper}.figures.{name.replace('-', '_')}")
            data = kept(paper)[1]

            def compute(setup, shown, paper=paper, data=data):
                assert (shown, setup.experts) == ASKED[paper]
                return data

            patch.setattr(module, "compute", compute)
        patch.setattr(experiments, "GROWTH", dataclasses.replace(experiments.GROWTH, num_rounds=300))
        return figure.compute(overview.FIRST_DEFAULTS, 4, SEED)


def test_panels_show_what_their_figures_have(measured):
    data = measured
    table = kept("edge")[0]
    rows = table[(table.policy == "adaptive") & (table.experts == 30)]
    shown = data.sel(panel="edge").dropna("place", subset=["x"])
    for value, column in (("x", "round"), ("mean", "mean"), ("printed", "theorem_1"), ("right", "exact")):
        np.testing.assert_array_equal(shown[value], rows[column])
    table = kept("continual")[0]
    rows = table[(table.metric == "forgetting") & (table.experts == 1) & (table.termination == "with")]
    shown = data.sel(panel="continual").dropna("place", subset=["x"])
    np.testing.assert_array_equal(shown.right, rows.loc[rows["round"] >= 10, "exact"])
    table = kept("generalization")[0]
    rows = table[(table.case == "growing") & table.samples.notna()]
    shown = data.sel(panel="generalization").dropna("place", subset=["x"])
    np.testing.assert_array_equal(shown.printed, rows.printed)


def test_both_orders_go_through_the_first_point(measured):
    shown = measured.sel(panel="merging").dropna("place", subset=["x"])
    np.testing.assert_array_equal(shown.x, [64, 128, 256])
    tree = adversary.one_rule(experiments.GROWTH.dims, "in-turn")
    overrides = experiments.GROWTH.cells[experiments.tree_cell("in-turn", 0.9)]
    params = select_readings("merging", None)[0].params(**overrides)
    _, info = mt.simulate_batch(tree, mt.root_key(SEED), 4, params, 300, record_every=64)
    np.testing.assert_allclose(
        shown["mean"], np.asarray(info.cumulative_discretization)[[0, 1, 3]].mean(axis=1), rtol=1e-5
    )
    assert ((shown.low <= shown["mean"]) & (shown["mean"] <= shown.high)).all()
    np.testing.assert_allclose(shown.printed / shown.printed[0], [1, 2**0.5 * 7 / 6, 2 * 8 / 6])
    slopes = np.diff(np.log(shown.right)) / np.diff(np.log(shown.x))
    assert ((slopes > 0.88) & (slopes < 0.92)).all()
    assert float(shown.right[0]) == float(shown.printed[0]) == float(shown["mean"][0])


def test_a_printed_statement_and_what_holds_instead_are_not_mixed_up():
    claims = all_claims()
    for paper, panel in overview.panels().items():
        assert claims[panel.printed].paper == claims[panel.right].paper == paper
        assert claims[panel.printed].replaced_by is not None
        assert claims[panel.right].where.startswith("replaces")


def test_it_is_drawn_with_the_command_that_draws_it_again(measured):
    data = measured
    (figure,) = overview.figures().values()
    picture = style.render(figure.title, figure.size, lambda canvas: figure.draw(data, canvas), figure.caption(data))
    assert picture.startswith("<?xml")
    assert f"moe-theory figures overview --replicates 4 --seed {SEED}" in picture
    assert plots.to_csv(data).count("\n") > data.sizes["place"]


def test_a_panel_without_a_band_is_drawn_too(measured):
    def areas(data):
        figure = Figure()
        overview.draw(data, figure)
        return sum(len(axis.collections) for axis in figure.axes)

    assert areas(measured) - areas(measured.assign(low=measured.low.where(measured.panel != "edge"))) == 1


def test_the_csv_gives_back_what_was_computed(measured, tmp_path):
    """The README's pictures are drawn from it."""
    data, path = measured, tmp_path / "overview.csv"
    path.write_text(plots.to_csv(data))
    again = overview.read(path)
    assert list(again.panel.values) == list(data.panel.values)
    for value in Curves._fields:
        np.testing.assert_allclose(again[value].transpose(*data[value].dims), data[value], rtol=1e-5)
    assert {name: again.attrs[name] for name in ("replicates", "seed", "command")} == {
        name: data.attrs[name] for name in ("replicates", "seed", "command")
    }


def test_what_stands_beside_is_drawn_only_while_the_records_support_it(measured, monkeypatch):
    def lines():
        figure = Figure()
        overview.draw(measured, figure)
        return sum(len(axis.lines) for axis in figure.axes)

    panel = overview.panels()["generalization"]
    before, run = lines(), recorded.read()["generalization"]
    changed = [each | {"status": "REFUTED"} if each["claim"] == panel.right else each for each in run.verdicts]
    monkeypatch.setattr(recorded, "read", lambda: {"generalization": dataclasses.replace(run, verdicts=changed)})
    assert not overview.replacement_holds(panel)
    assert lines() == before - 1


def test_a_panel_says_the_status_of_the_statement_and_not_of_the_claim(monkeypatch):
    panel = overview.panels()["edge"]
    statement, *_ = [each for each in recorded.judged_statements("edge") if panel.printed in each.statement.roles]
    assert overview.status_of(panel) == statement_status(statement)
    monkeypatch.setattr(recorded, "judged_statements", lambda paper: [])
    assert overview.status_of(panel) is None


def test_a_reading_is_refused(tmp_path):
    with pytest.raises(InvalidValueError, match="Leave it out"):
        plots.make_figures("overview", reading="unit-signal", out=tmp_path)
