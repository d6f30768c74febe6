"""Files of figures: what is in them, that they come out the same again, and refusals before any work."""

import dataclasses
import io
import xml.etree.ElementTree as ElementTree

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from refusals import refusal

import moe_theory as mt
from moe_theory import continual, plot
from moe_theory.core.errors import InvalidValueError, UnknownNameError
from moe_theory.plot import drives, style
from moe_theory.report import plots
from moe_theory.verification.catalog import all_figure_titles

NUM_ROUNDS = 100  # as the tests of the figures themselves, whose compiled programs serve again


@pytest.fixture
def shortened(monkeypatch):
    """The continual paper's figures with short runs, by name; counts what is computed."""
    computed = []

    def short(figure):
        def compute(setup):
            data = figure.data(setup)
            computed.append(figure.name)
            return data

        return dataclasses.replace(figure, data=compute, rounds=NUM_ROUNDS)

    figures = {name: short(figure) for name, figure in plots.figures_of("continual").items()}
    monkeypatch.setattr(plots, "figures_of", lambda paper: figures)
    monkeypatch.setattr(drives, "DRIVES", drives.DRIVES[::4])
    monkeypatch.setattr(drives, "RATIOS", (1.0, drives.FAR))
    return computed


def test_cells_on_a_logarithmic_axis_lie_around_their_centres():
    """Labelled centres too: xarray would add neighbours by their labels, and leave an edge out."""
    centres = xr.DataArray([0.1, 1.0, 10.0], coords={"drive": [0.1, 1.0, 10.0]}, dims="drive")
    edges = np.sqrt(10.0) * np.array([0.01, 0.1, 1.0, 10.0])
    for given in (centres, centres.values):
        np.testing.assert_allclose(plot.log_edges(given), edges)


def description_of(svg):
    return ElementTree.fromstring(svg).findtext(".//{http://purl.org/dc/elements/1.1/}description")


def test_csv_keeps_numbers_beside_their_coordinates():
    """A row a point: catches an axis transposed, and a missing value written as a number."""
    values = np.array([[1.23456, -2e-9, np.nan], [4.0, 5e6, 6.0]])
    coordinates = {"metric": ["a", "b"], "round": [2, 4, 6]}
    about = {"reading": "r", "replicates": 7, "seed": 1, "command": "c"}
    text = plots.to_csv(xr.Dataset({"mean": (("metric", "round"), values)}, coordinates, about))
    table = pd.read_csv(io.StringIO(text)).set_index(["metric", "round"])
    for place, value in zip([(m, t) for m in "ab" for t in (2, 4, 6)], values.ravel(), strict=True):
        np.testing.assert_equal(table.loc[place, "mean"], value)
    assert text.splitlines()[3] == "r,7,1,a,6,"


@pytest.mark.parametrize("names", [(), ("all",), ("regimes", "figure-9", "figure-2", "figure-8")])
def test_selects_all_in_the_papers_order(names):
    chosen = plots._select_specs("continual", names)
    assert [figure.name for figure in chosen] == list(plots.figures_of("continual"))
    assert [figure.name for figure in chosen][:3] == ["figure-2", "figure-8", "figure-9"]


def test_refuses_before_making_a_folder(shortened, tmp_path):
    of_figure_2 = {"names": ["figure-2"]}
    for asked, error, argument in (
        ({"names": ["figure-3"]}, UnknownNameError, "figure"),
        ({"reading": "unit-signl"}, UnknownNameError, "reading"),
        ({"reading": "all"}, UnknownNameError, "reading"),
        ({"replicates": 0}, InvalidValueError, "replicates"),
        ({"rounds": 0}, InvalidValueError, "rounds"),
        ({"experts": [2]}, InvalidValueError, ""),
        ({**of_figure_2, "experts": [0]}, InvalidValueError, "experts"),
        ({"settings": {"noise_scal": 1}}, InvalidValueError, "noise_scal"),
        ({"forms": ["pfd"]}, UnknownNameError, "format"),
        ({"width": "3.25inch"}, InvalidValueError, "width"),
        ({"width": 0.5}, InvalidValueError, "width"),
    ):
        asked = {"names": ["figure-8"], "out": tmp_path / "out"} | asked
        assert refusal(error, plots.make_figures, "continual", **asked).argument == argument, asked
    assert not (tmp_path / "out").exists()
    for name, setting, value in (
        ("figure-2", "noise_scale", -1),
        ("figure-2", "num_experts", 5),
        ("regimes", "signal_scale", 5),
    ):
        asked = {"settings": {setting: value}, "out": tmp_path}
        refusal(InvalidValueError, plots.make_figures, "continual", [name], **asked)
    assert shortened == []


@plot.figure(
    "continual.line",
    lambda setup: xr.Dataset({"level": ("round", np.linspace(0, 1, setup.rounds))}),
    title="A line",
    summary="A line.",
    replicates=4,
    size=(7.2, 2.5),
    rounds=3,
)
def line(data, canvas):
    """From 0 to 1 in {num_rounds} rounds, {{and braces}}; at least {NUM_ROUNDS} elsewhere."""
    (panel,) = plot.row(canvas, ["10–90 % of the runs, with a title that is far too long for a column of a journal"])
    panel.plot(data.level, color="C1")
    for number in range(4):
        panel.plot([], [], label=f"a label of some length, {number}")
    plot.legend(canvas, 4)


def test_a_caption_is_the_docstring_of_what_draws():
    """Words in braces are of the data and of the module; the last lines say what was run and how to run it again."""
    reading = continual.reading("unit-signal")
    words = line.caption(line.compute(line.setup(reading, 1, 2)))
    assert words.splitlines() == [
        "From 0 to 1 in 3 rounds, {and braces}; at least 100 elsewhere.",
        f"Reading unit-signal ({reading.summary.replace('sigma_0', 'σ₀')}); 1 replicate, seed 2, 3 rounds.",
        "moe-theory figures continual line --reading unit-signal --replicates 1 --seed 2",
    ]


def test_over_labels_what_a_function_returns_at_every_place():
    """Catches axes in another order, an inner axis that is not the last one, and a missing name that is not NaN."""

    def values(a, b):
        return {"sum": a + b, "line": [a, b, 0]} | ({} if a == 2 else {"early": b})

    data = plot.over(values, {"kind": ["x", "y", "z"]}, a=[1, 2], b=[10, 20, 30])
    assert data["sum"].sel(a=2, b=30) == 32
    assert data.line.dims == ("a", "b", "kind")
    assert data.line.sel(a=1, b=20, kind="y") == 20
    np.testing.assert_array_equal(data.early, [[10, 20, 30], [np.nan] * 3])


@pytest.fixture
def drawing(monkeypatch):
    monkeypatch.setattr(plots, "figures_of", lambda paper: {"line": line})


def test_writes_every_format_at_a_width_the_same_again(drawing, tmp_path):
    """Catches dates in files, and a size that is not the one asked for."""
    asked = {"rounds": 5, "width": "8cm"}
    forms = {"forms": ["svg", "pdf", "png"]}
    paths = plots.make_figures("continual", settings={"noise_scale": "0.2"}, out=tmp_path, **forms, **asked)
    assert [path.name for path in paths] == ["line.svg", "line.pdf", "line.png", "line.csv"]
    np.testing.assert_allclose(pd.read_csv(paths[-1]).level, np.linspace(0, 1, 5))
    options = "--set noise_scale=0.2 --replicates 4 --seed 0 --rounds 5 --width 8cm"
    command = f"moe-theory figures continual line --reading unit-signal {options}"
    assert description_of(paths[0].read_text(encoding="utf-8")).endswith(command)
    again = plots.make_figures("continual", settings={"noise_scale": "0.2"}, out=tmp_path / "again", **forms, **asked)
    assert [path.read_bytes() for path in again[:3]] == [path.read_bytes() for path in paths[:3]]
    root = ElementTree.fromstring(paths[0].read_text(encoding="utf-8"))
    assert float(root.get("width").removesuffix("pt")) == pytest.approx(72 * 8 / 2.54)


def test_a_figure_of_python_is_drawn_and_shows_itself(drawing, keeps_its_words):
    """Legend and title that are too long for the width are broken; a notebook gets a picture."""
    data, drawn = mt.figure("continual.line", width=3.25, rounds=4)
    assert data.sizes["round"] == 4
    assert drawn.get_figwidth() == 3.25
    assert not any(str(curve.get_color()).startswith("C") for curve in drawn.axes[0].lines)
    assert drawn._repr_png_().startswith(b"\x89PNG")
    keeps_its_words(line, data)
    own, whole = mt.figure("continual.line")
    assert tuple(whole.get_size_inches()) == line.size
    assert "width" not in own.attrs["command"]
    assert refusal(UnknownNameError, mt.figure, "continual.lien").argument == "figure"


@pytest.mark.parametrize(("width", "expected"), [("3.25in", 3.25), ("8.89cm", 3.5), ("88.9 mm", 3.5), (7, 7), ("7", 7)])
def test_widths(width, expected):
    assert style.inches(width) == pytest.approx(expected)


def test_all_papers_figures_are_listed():
    titles = all_figure_titles()
    assert {"continual", "edge", "overview"} <= set(titles)
    assert {name for name, figures in titles.items() if not figures} == {"reinforced"}  # drawn by continual and edge
