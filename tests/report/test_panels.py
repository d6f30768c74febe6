"""Verdicts as pictures: what is drawn is what the verdict says, for every kind and whatever is missing."""

import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import samples
from matplotlib.collections import PolyCollection
from samples import panel_of

from moe_theory.report import panels
from moe_theory.report.panels import INSET, WIDTH, number_line
from moe_theory.verify.claim import KINDS
from moe_theory.verify.verdict import Curve

NOTHING = {"curve": None, "reason": "because & so", "interval": (math.nan, math.nan), "looks": []}


def bars_of(panel):
    (container,) = panel.containers
    return np.array(container.lines[2][0].get_segments())[:, :, 1]


def bound(**fields):
    """An upper bound with two components, decided at the second."""
    curve = Curve(["t = 1", "t = 2"], [1.0, 2.0], [1.5, 1.6], [0.2, -0.8], [0.8, math.inf], [0.25, 0.5])
    chosen = {"curve": curve, "predicted": 2.0, "observed": 1.6, "interval": (-0.8, 0.0), "margin": 0.5}
    return samples.verdict(**(chosen | fields))


def test_bars_are_intervals_around_what_was_observed():
    """From predicted + low to predicted + high; no bar on a side where the interval is open."""
    np.testing.assert_allclose(bars_of(panel_of(bound())), [[1.2, 1.8], [1.2, 1.6]])


@pytest.mark.parametrize(
    ("kind", "below", "above"),
    [("upper_bound", None, 0.25), ("ordering", None, 0.25), ("lower_bound", -0.25, None), ("equality", -0.25, 0.25)],
)
def test_shade_is_what_the_claim_allows(kind, below, above):
    """Catches shading on the wrong side of the prediction, and a margin left out or put on the wrong side."""
    panel = panel_of(bound(kind=kind))
    (shade,) = (drawn for drawn in panel.collections if isinstance(drawn, PolyCollection))
    points = shade.get_paths()[0].vertices
    at_first = points[np.isclose(points[:, 0], 0.0)][:, 1]
    bottom, top = panel.get_ylim()
    expected = (bottom if below is None else 1 + below, top if above is None else 1 + above)
    np.testing.assert_allclose((at_first.min(), at_first.max()), expected)


def test_pictures_do_not_depend_on_those_before():
    """One figure serves all: catches what is left on it from the last."""
    verdicts = samples.sparing(samples.report(30)).verdicts
    together = list(map(panels.Pictures().of, verdicts))
    assert [picture is None for picture in together] == [verdict.curve is None for verdict in verdicts]
    drawn = [pair for pair in zip(verdicts, together, strict=True) if pair[1] is not None]
    for verdict, picture in drawn[-3:]:
        assert panels.Pictures().of(verdict) == picture
        ElementTree.fromstring(picture)


@pytest.mark.parametrize("hostile", ["$\\frac{", "a $ b $ c", "<b>&", "_^\\"])
def test_labels_and_reasons_are_no_mathematics(hostile):
    curve = Curve([hostile], [0.0], [1.0], [0.5], [1.5], [0.0])
    picture = panels.Pictures().of(samples.verdict(curve=curve))
    ElementTree.fromstring(picture)


def test_numbers_that_do_not_exist_are_left_out():
    """As they come back from JSON, where infinities are null."""
    missing = [math.nan]
    curve = Curve(["mean"], missing, missing, missing, missing, missing)
    for kind in KINDS:
        if kind != "rate":
            picture = panels.Pictures().of(samples.verdict(kind=kind, curve=curve, at="mean"))
            ElementTree.fromstring(picture)
    grid = Curve(["x = 1", "x = 2"], [1.0, 2.0], *([math.nan] * 2 for _ in range(4)), abscissa=[1.0, 2.0])
    picture = panels.Pictures().of(samples.verdict(kind="rate", curve=grid))
    ElementTree.fromstring(picture)


def test_a_number_line_keeps_the_order_of_its_numbers():
    """Interval around the estimate, 0 where it belongs, the allowed side to the edge, an arrow where it is open."""
    line = number_line(bound(predicted=1.0, observed=1.5, interval=(0.2, 0.8), margin=0.1))
    assert INSET <= line.zero < line.limits[0][0] < line.low < line.estimate < line.high <= WIDTH - INSET
    assert line.allowed == (0.0, line.limits[0][0])
    assert "0.5, asymptotic interval from 0.2 to 0.8; the claim allows it below 0.1" in line.words
    scale = (line.high - line.low) / 0.6
    np.testing.assert_allclose((line.estimate - line.zero) / scale, 0.5, rtol=1e-3)
    opened = number_line(bound(kind="lower_bound", interval=(-math.inf, 0.8)))
    assert (opened.is_open_low, opened.low, opened.is_open_high) == (True, 0.0, False)
    assert opened.allowed[1] == WIDTH
    assert number_line(samples.verdict(**(NOTHING | {"observed": math.nan}))) is None
