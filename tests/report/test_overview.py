"""The picture of all papers: catches a panel that shows other numbers than its figure, claim or verdict has."""

import dataclasses
import importlib
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import samples
import xarray as xr
from matplotlib.figure import Figure

from moe_theory.core.errors import InvalidRunError
from moe_theory.plot import Curves, style
from moe_theory.report import overview, plots
from moe_theory.report.wording import statement_status
from moe_theory.verify import recorded
from moe_theory.verify.registry import all_claims
from moe_theory.verify.verdict import Curve, Report

FIGURES = Path(__file__).parents[2] / "figures"
SEED = 3
FROM = {
    "continual": ("figure-2", ["termination", "experts", "metric", "round"]),
    "edge": ("figure-3", ["policy", "experts", "round"]),
    "generalization": ("crossing", ["case", "place"]),
}


def kept(paper: str) -> tuple[pd.DataFrame, xr.Dataset]:
    name, dimensions = FROM[paper]
    table = pd.read_csv(FIGURES / paper / f"{name}.csv").drop(columns=["reading", "replicates", "seed"])
    return table, table.set_index(dimensions).to_xarray()


@pytest.fixture
def measured(monkeypatch):
    """The overview's data, its figures read from the repository and its verdicts made up; which ids were judged."""
    for paper, (name, _) in FROM.items():
        module = importlib.import_module(f"moe_theory.{paper}.figures.{name.replace('-', '_')}")
        data = kept(paper)[1]
        spec = dataclasses.replace(module.picture, data=lambda setup, data=data: data)
        monkeypatch.setattr(module, "picture", spec)
    judged = []

    def judge(request, **_):
        assert request.seed == SEED
        verdicts = []
        for job in request.studies:
            for claim in job.claims:
                judged.append((claim.id, job.reading.name))
                slots = [64.0, 256.0, 1024.0]
                curve = Curve([""] * 3, [0.0] * 3, [2.0, 3.0, 5.0], [0.0] * 3, [0.0] * 3, [0.0] * 3, slots)
                status = "SUPPORTED" if claim.replaced_by is None else "REFUTED"
                made = samples.verdict(claim=claim.id, paper=claim.paper, status=samples.Status(status))
                verdicts.append(dataclasses.replace(made, curve=curve))
        return Report(verdicts, "", 0, 0.01, {}, False, {})

    monkeypatch.setattr(overview, "carry_out", judge)
    (figure,) = overview.figures().values()
    return figure.compute(overview.FIRST_DEFAULTS, 64, SEED), judged


def test_panels_show_what_their_figures_and_claims_have(measured):
    data, judged = measured
    table = kept("edge")[0]
    rows = table[(table.policy == "adaptive") & (table.experts == 30)]
    shown = data.sel(panel="edge").dropna("place", subset=["x"])
    for value, column in (("x", "round"), ("mean", "mean"), ("printed", "theorem_1"), ("right", "exact")):
        np.testing.assert_array_equal(shown[value], rows[column])
    table = kept("continual")[0]
    rows = table[(table.metric == "forgetting") & (table.experts == 1) & (table.termination == "with")]
    shown = data.sel(panel="continual").dropna("place", subset=["x"])
    np.testing.assert_array_equal(shown.right, rows[rows["round"] >= 10].exact)
    table = kept("generalization")[0]
    rows = table[(table.case == "growing") & table.samples.notna()]
    shown = data.sel(panel="generalization").dropna("place", subset=["x"])
    np.testing.assert_array_equal(shown.printed, rows.printed)
    assert len(judged) == len({id for id, _ in judged}) == 8


def test_both_orders_go_through_the_first_point(measured):
    shown = measured[0].sel(panel="merging").dropna("place", subset=["x"])
    np.testing.assert_allclose(shown["mean"], np.array([2.0, 3.0, 5.0]) * np.log([64, 256, 1024]))
    np.testing.assert_allclose(shown.printed / shown.printed[0], [1, 2 * 8 / 6, 4 * 10 / 6])
    slopes = np.diff(np.log(shown.right)) / np.diff(np.log(shown.x))
    assert ((slopes > 0.88) & (slopes < 0.92)).all()
    assert float(shown.right[0]) == float(shown.printed[0]) == float(shown["mean"][0])


def test_a_printed_statement_s_verdict_and_the_right_one_s_are_not_mixed_up(measured):
    data, judged = measured
    claims = all_claims()
    for paper, panel in overview.panels().items():
        assert claims[panel.printed].paper == claims[panel.right].paper == paper
        assert claims[panel.printed].replaced_by is not None
        assert claims[panel.right].where.startswith("replaces")
        assert {id for id, _ in judged} >= {panel.printed, panel.right}
    assert list(data.printed_verdict.values) == ["REFUTED"] * 4
    assert list(data.right_verdict.values) == ["SUPPORTED"] * 4


def test_it_is_drawn_with_its_verdicts(measured):
    data = measured[0]
    (figure,) = overview.figures().values()
    picture = style.render(figure.title, figure.size, lambda canvas: figure.draw(data, canvas), figure.caption(data))
    assert picture.startswith("<?xml")
    assert f"moe-theory figures overview --replicates 64 --seed {SEED}" in picture
    assert plots.to_csv(data).count("\n") > data.sizes["place"]


def test_the_csv_gives_back_what_was_computed(measured, tmp_path):
    """The README's pictures are drawn from it."""
    data, path = measured[0], tmp_path / "overview.csv"
    path.write_text(plots.to_csv(data))
    again = overview.read(path)
    assert list(again.panel.values) == list(data.panel.values)
    for value in Curves._fields:
        np.testing.assert_allclose(again[value].transpose(*data[value].dims), data[value], rtol=1e-5)
    assert list(again.right_verdict.values) == list(data.right_verdict.values)
    assert {name: again.attrs[name] for name in ("replicates", "seed", "command")} == {
        name: data.attrs[name] for name in ("replicates", "seed", "command")
    }


def test_what_stands_beside_is_drawn_only_while_the_records_support_it(measured, monkeypatch):
    def lines():
        figure = Figure()
        overview.draw(measured[0], figure)
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
    with pytest.raises(InvalidRunError, match="Leave it out"):
        plots.make_figures("overview", reading="unit-signal", out=tmp_path)
