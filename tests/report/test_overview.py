"""The picture of all papers, and saved pictures: words that are text, and colours that stand out, in grey too."""

import dataclasses
import importlib
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import readme
import xarray as xr
from matplotlib import rcParams
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from moe_theory.merging import experiments
from moe_theory.plot import Curves, ramp, roles, style
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
        return figure.compute(figure.setup(overview.FIRST_DEFAULTS, 4, SEED))


@pytest.mark.parametrize(
    "paper",
    [pytest.param(name, marks=[pytest.mark.thorough] * (name in ("edge", "merging"))) for name in overview.panels()],
)
def test_a_panel_computes_its_own_curves(paper):
    """Without what `measured` replaces: catches a figure that cannot be drawn for the overview's one size."""
    (figure,) = overview.figures().values()
    reading = select_readings(paper, None)[0]
    setup = dataclasses.replace(figure.setup(overview.FIRST_DEFAULTS, 2, SEED), reading=reading)
    curves = overview.panels()[paper].curves(setup)
    assert len({len(column) for column in curves}) == 1
    assert np.all(np.isfinite(curves.mean))


def test_a_printed_statement_and_what_holds_instead_are_not_mixed_up():
    claims = all_claims()
    for paper, panel in overview.panels().items():
        assert claims[panel.printed].paper == claims[panel.right].paper == paper
        assert claims[panel.printed].replaced_by is not None
        assert claims[panel.right].where.startswith("replaces")


def test_it_is_drawn_with_the_command_that_draws_it_again(measured):
    data = measured
    (figure,) = overview.figures().values()
    caption = figure.caption(data)
    picture = style.render_as("svg", figure.title, figure.size, lambda canvas: figure.draw(data, canvas), caption)
    assert f"moe-theory figures overview --replicates 4 --seed {SEED}" in picture.decode()
    assert plots.to_csv(data).count("\n") > data.sizes["place"]


def test_the_csv_gives_back_what_was_computed(measured, tmp_path):
    """The README's pictures are drawn from it."""
    data, path = measured, tmp_path / "overview.csv"
    path.write_text(plots.to_csv(data))
    again = readme.read_data(path)
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


def test_a_panel_says_the_status_of_the_statement_and_not_of_the_claim():
    panel = overview.panels()["edge"]
    statement, *_ = [each for each in recorded.judged_statements("edge") if panel.printed in each.statement.roles]
    assert overview.status_of(panel) == statement_status(statement)


PAGE, DARK_PAGE = "#fbfaf8", "#16171a"  # colours of the report's page
MARKS, WORDS = 3.0, 4.5  # contrasts that WCAG asks for
with style.our_style():
    CYCLE = rcParams["axes.prop_cycle"].by_key()["color"]


def luminance(colour):
    parts = (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour))
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


def contrast(one, other):
    dark, light = sorted(map(luminance, (one, other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("form", style.FORMS)
def test_a_name_that_is_no_text_is_escaped(form):
    """Would catch a command with bytes that no text has, as names of files may: they are in a picture's caption."""
    drawn = style.render_as(form, "\udcff", (2, 2), lambda figure: None, "--out \udcff")
    assert form != "svg" or rb"--out \udcff" in drawn


def test_places_are_rounded_where_they_are_drawn():
    """Catches a line that is off, and words whose numbers are rounded as if they were places."""

    def draw(canvas):
        canvas.add_artist(Line2D([0.0411523, 0.5], [0.3271604, 0.5]))  # shares of 216 and of 144 points
        canvas.text(0.1, 0.1, "1.23456")

    root = ElementTree.fromstring(style.render_as("svg", "title", (3, 2), draw, "caption"))
    paths = [at.get("d", "") for at in root.iter() if at.tag.endswith("}path")]
    assert "M 8.89 96.89L 108 72" in paths
    assert "1.23456" in [at.text for at in root.iter() if at.tag.endswith("}text")]


def test_a_formula_is_outlines_whose_title_says_it():
    """Catches words that became outlines, and a formula that cannot be found by what it says."""

    def draw(canvas):
        canvas.text(0.1, 0.5, r"gate drive $\kappa/\lambda$")
        canvas.text(0.1, 0.1, "only words")

    root = ElementTree.fromstring(style.render_as("svg", "title", (3, 2), draw, "caption"))
    found = {at.tag.rpartition("}")[2]: at.text for at in root.iter() if at.tag.endswith(("}title", "}text"))}
    (group,) = (at for at in root.iter() if at.get("role") == "img")
    assert group[0].text == "gate drive κ/λ"
    assert found["text"] == "only words"


@pytest.mark.parametrize("page", ["white", PAGE])
def test_colours_stand_out_on_a_light_page(page):
    assert all(contrast(colour, page) >= MARKS for colour in (*CYCLE, *ramp(3), *ramp(8)))
    assert all(contrast(colour, page) >= WORDS for colour in (*CYCLE[:2], roles.INK))


@pytest.mark.parametrize(("theme", "pages"), [(overview.LIGHT, ("white", PAGE)), (readme.DARK, ("#0d1117", DARK_PAGE))])
def test_the_overview_is_legible_on_its_page(theme, pages):
    """Its pages are the site's and GitHub's."""
    words = (theme.ink, theme.soft, theme.measured, theme.printed)
    assert all(contrast(colour, page) >= WORDS for page in pages for colour in words)
    assert all(contrast(badge, word) >= WORDS for badge, word in (theme.neutral, *theme.badges.values()))
