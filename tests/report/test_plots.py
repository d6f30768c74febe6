"""Files of figures: what is in them, that they come out the same again, and refusals before any work."""

import dataclasses
import functools
import io
import re
import xml.etree.ElementTree as ElementTree
from concurrent.futures import ThreadPoolExecutor

import matplotlib
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from moe_theory import continual
from moe_theory.core.errors import InvalidRunError, OutputError, UnknownNameError
from moe_theory.report import plots

NUM_ROUNDS = 100  # as the tests of the figures themselves, whose compiled programs serve again


@pytest.fixture
def shortened(monkeypatch):
    """The continual paper's figures with short runs, by name; counts what is computed."""
    computed = []

    def short(figure):
        def compute(*arguments):
            computed.append(figure.name)
            return figure.compute(*arguments, num_rounds=NUM_ROUNDS)

        return dataclasses.replace(figure, compute=compute)

    figures = {name: short(figure) for name, figure in plots.figures_of("continual").items()}
    monkeypatch.setattr(plots, "figures_of", lambda paper: figures)
    return computed


def words_of(svg):
    """Texts of an SVG whose glyphs are outlines: matplotlib keeps each as a comment."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(svg, parser)
    return [part.text.strip() for part in root.iter(ElementTree.Comment)]


def description_of(svg):
    return ElementTree.fromstring(svg).findtext(".//{http://purl.org/dc/elements/1.1/}description")


def test_writes_a_picture_and_its_numbers_the_same_again(shortened, tmp_path):
    """The CSV, read again, holds the numbers of the dataset that is drawn, and says where they come from."""
    paths = plots.make_figures("continual", ["figure-8"], replicates=3, seed=5, out=tmp_path)
    before = [path.read_bytes() for path in paths]
    assert paths == [tmp_path / "continual" / "figure-8.svg", tmp_path / "continual" / "figure-8.csv"]
    assert sorted(tmp_path.rglob("*.*")) == sorted(paths)
    table = pd.read_csv(paths[1])
    figure = plots.figures_of("continual")["figure-8"]
    data = figure.compute(continual.reading("unit-signal"), 3, 5)
    assert len(table) == 4 * NUM_ROUNDS
    assert set(table["reading"]) == {"unit-signal"}
    assert set(table["replicates"]) == {3}
    assert set(table["seed"]) == {5}
    for power in data.threshold_power.values:
        np.testing.assert_array_equal(
            table.loc[table.threshold_power == power, "expert"], data.expert.sel(threshold_power=power)
        )
    svg = paths[0].read_text(encoding="utf-8")
    assert "round $t$" in " ".join(words_of(svg))
    assert " ".join(description_of(svg).split()) == " ".join(figure.caption(data).split())
    assert "dc:date" not in svg
    # Bytes do not depend on the user's matplotlib configuration either.
    with matplotlib.rc_context({"font.size": 20, "svg.hashsalt": "other", "axes.grid": True}):
        again = plots.make_figures("continual", ["figure-8"], replicates=3, seed=5, out=tmp_path / "again")
    assert [path.read_bytes() for path in again] == before


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


def test_threads_draw_the_same():
    draw = functools.partial(plots.render, "title", (3, 2), lambda canvas: canvas.subplots().plot([1, 2]), "caption")
    alone = draw()
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda _: draw(), range(4)))
    assert together == [alone] * 4


def test_configuration_is_left_as_it_was():
    before = dict(matplotlib.rcParams)
    plots.render("title", (3, 2), lambda canvas: canvas.subplots(), "")
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("names", [(), ("all",), ("regimes", "figure-9", "figure-2", "figure-8")])
def test_selects_all_in_the_papers_order(names):
    chosen = plots._selected(names, plots.figures_of("continual"))
    assert [figure.name for figure in chosen] == ["figure-2", "figure-8", "figure-9", "regimes"]


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"names": ["figure-3"]}, UnknownNameError, "unknown figure 'figure-3'. Did you mean 'figure-"),
        ({"reading": "unit-signl"}, UnknownNameError, "Did you mean 'unit-signal'"),
        ({"reading": "all"}, UnknownNameError, "unknown reading 'all'"),
        ({"replicates": 0}, InvalidRunError, "replicates=0 must be at least 1"),
    ],
)
def test_refuses_before_making_a_folder(shortened, tmp_path, asked, error, words):
    with pytest.raises(error, match=re.escape(words)):
        plots.make_figures("continual", out=tmp_path / "out", **asked)
    assert not (tmp_path / "out").exists()
    assert shortened == []


def test_unknown_paper():
    with pytest.raises(UnknownNameError, match="Did you mean 'continual'"):
        plots.figures_of("continal")


def test_unwritable_folder_is_one_line_and_computes_nothing(shortened, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError) as caught:
        plots.make_figures("continual", ["figure-8"], replicates=3, out=tmp_path / "file")
    assert "\n" not in str(caught.value)
    assert shortened == []
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
