"""The figures on cost: what their drawings say of given numbers, and labels that keep apart."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from moe_theory.merging.figures import scaling, tradeoff
from moe_theory.report.plots import to_csv


def test_labels_keep_their_distance_and_their_order():
    """Would catch labels on top of each other, off the axis, or moved though there is room."""
    np.testing.assert_allclose(tradeoff.spread([0.2, 0.5, 0.8], 0.1, 0, 1), [0.2, 0.5, 0.8])
    crowded = tradeoff.spread([0.5, 0.5, 0.51, 0.9], 0.1, 0, 1)
    assert np.all(np.diff(crowded) >= 0.1 - 1e-9)
    np.testing.assert_allclose(np.mean(crowded[:3]), np.mean([0.5, 0.5, 0.51]))  # moved as little as can be
    top = tradeoff.spread([0.95, 0.97, 0.99], 0.1, 0, 1)
    np.testing.assert_allclose(top, [0.8, 0.9, 1.0])


def table():
    names = ["average", "token-top-1-capacity", "token-top-1-dense", "task-top-1-dense", "smear-token-linear", "mix"]
    names.append("best-merge")
    sizes = ("model", "mix", "approach")
    accuracy = np.linspace(0.3, 0.9, len(names))[None, None].repeat(2, axis=1)
    ratio = np.array([[0.9, 1.3, 12.0, 11.0, 5.0, 1.0, 1.0]])
    return xr.Dataset(
        {
            "accuracy": (sizes, accuracy),
            "accuracy_error": (sizes, np.full(accuracy.shape, 0.01)),
            "ratio": (("model", "approach"), ratio),
            "serving": (("model", "approach"), ratio / 1000),
            "merging": (("model", "approach"), ratio / 10_000),
            "loaded_bytes": (("model", "approach"), np.where(ratio > 1, 880_000, 180_000)),
        },
        {"model": ["digits"], "mix": ["fixed", "drifting"], "approach": names},
        {
            "slot_size": 128,
            "num_slots": 100,
            "device": "cpu",
            "reading": "any",
            "reading_summary": "",
            "replicates": 2,
            "seed": 0,
            "num_rounds": 100,
            "command": "",
        },
    )


def test_the_tradeoff_shows_every_approach(monkeypatch):
    """Would catch points that are left out or drawn elsewhere, and builds that are not joined."""
    monkeypatch.setattr(tradeoff, "POLICIES", {"mix": ("mix", {})})
    data = table()
    figure = Figure()
    tradeoff.draw(data, figure)
    assert len(figure.axes) == 2
    words = {text.get_text().strip() for text in figure.axes[0].texts}
    assert {"average", "mix", "token-top-1", "task-top-1", "smear-token"} <= words
    lines = [line.get_xydata() for line in figure.axes[0].lines]
    for name in data.approach.values[:-1]:
        here = data.isel(model=0).sel(mix="fixed", approach=name)
        assert any(np.allclose(line, [[here.ratio, here.accuracy]]) for line in lines if len(line) == 1), name
    joined = data.isel(model=0).sel(mix="fixed", approach=["token-top-1-capacity", "token-top-1-dense"])
    pairs = np.stack([joined.ratio, joined.accuracy], axis=1)
    assert any(np.allclose(line, pairs) for line in lines if line.shape == pairs.shape)
    assert "0.90 ms" not in tradeoff.caption(data)
    assert "1.00 ms" in tradeoff.caption(data)
    assert len(to_csv(data).splitlines()) == 1 + 2 * 7


def test_the_scaling_shows_medians_and_the_claim():
    """Would catch quantiles in another order, and a bound in seconds on an axis of milliseconds."""
    slots = np.array([[10.0, 20, 30], [15, 25, 40]])
    data = xr.Dataset(
        {"slots": (("experts", "quantile"), slots), "milliseconds": (("experts", "quantile"), slots / 100)},
        {"experts": [4, 8], "quantile": list(scaling.BAND)},
        table().attrs,
    )
    figure = Figure()
    scaling.draw(data, figure)
    left, right = figure.axes
    np.testing.assert_allclose(left.lines[0].get_ydata(), [20, 25])
    np.testing.assert_allclose(right.lines[0].get_ydata(), [0.2, 0.25])
    assert right.lines[1].get_ydata()[0] == pytest.approx(0.4)
    assert "count as" not in scaling.caption(data)
