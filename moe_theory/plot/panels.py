"""Panels of a figure, with rows, curves with bands and intervals, ticks at values, and a legend."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from moe_theory.plot.roles import BAND, ArtistStyle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import FigureBase

LEAST_WIDTH = 1.7  # inches that a panel in a row needs. In a narrower figure panels are stacked
Z = 1.96  # for a 95 % interval at each point


def row(
    canvas: "FigureBase",
    titles: Sequence[str],
    *,
    ylabel: str = "",
    sharex: bool = False,
    sharey: bool = False,
    **settings: Any,
) -> Sequence["Axes"]:
    """Return a panel for each title, side by side. In a narrow figure they are stacked and the figure grows.

    `ylabel` is the label of the first panel of each row. `settings` are arguments of `Axes.set` for each panel.
    """
    root: Any = canvas.figure
    count = len(titles)
    columns = max(1, min(count, int(root.get_figwidth() / LEAST_WIDTH)))
    rows = -(-count // columns)  # rounded up
    root.set_figheight(root.get_figheight() * rows)
    is_split = rows > 1
    panels = canvas.subplots(rows, columns, squeeze=False, sharex=sharex and not is_split, sharey=sharey).ravel()
    for spare in panels[count:]:
        spare.remove()
    for panel, title in zip(panels, titles, strict=False):
        panel.set_title(title, loc="left")
        panel.set(**settings)
        if is_split:
            panel.tick_params(labelleft=True)  # a shared axis hides these inside a row
    for panel in panels[:count:columns]:
        panel.set_ylabel(ylabel)
    return list(panels[:count])


def curve(panel: "Axes", x: Any, data: xr.Dataset, style: ArtistStyle, label: str = "", band: str = "") -> None:
    """Draw a mean over its axis and a band from `low` to `high`. Texts that are not empty go to the legend."""
    style.plot(panel, x, data["mean"], label)
    BAND(color=style["color"]).fill(panel, x, data.low, data.high, band)


def intervals(
    panel: "Axes", x: Any, y: Any, error: Any, style: ArtistStyle, label: str = "", *, log: bool = False
) -> None:
    """Draw points with 95 % intervals from standard errors. On a `log` axis the intervals' ends stay above 0."""
    values = np.asarray(y)
    half = Z * np.nan_to_num(error)
    lower_half = np.minimum(half, values * (1 - 1e-9)) if log else half
    style.plot(panel, x, values, label)
    zorder = style.get("zorder", 2)  # matplotlib's for lines
    panel.errorbar(x, values, (lower_half, half), fmt="none", ecolor=style["color"], elinewidth=0.9, zorder=zorder)


def note(panel: "Axes", words: str, at: tuple[Any, Any], shift: tuple[float, float] = (0, 0), **style: Any) -> None:
    """Write words `shift` points away from the place `at`. The words extend away from this place."""
    across, up = shift
    sides: dict[str, Any] = {"ha": "right" if across < 0 else "left", "va": "top" if up < 0 else "bottom"}
    panel.annotate(words, at, shift, textcoords="offset points", **(sides | style))


def name_values(axis: "Axis", values: Iterable[Any]) -> None:
    """Set ticks at these values, and label them with the values in full."""
    ticks = list(values)
    axis.set_ticks(ticks, labels=[f"{value:g}" for value in ticks])
    axis.minorticks_off()


def legend(canvas: "FigureBase", ncols: int, **layout: Any) -> None:
    """Draw one legend above the panels. Each label occurs once, and areas come last."""
    from matplotlib.lines import Line2D

    handle_of_label: dict[str, Any] = {}
    figure: Any = canvas  # a figure, or a part of one
    for panel in figure.axes:
        handles, labels = panel.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            handle_of_label.setdefault(label, handle)
    labels = sorted(handle_of_label, key=lambda label: not isinstance(handle_of_label[label], Line2D))
    handles = [handle_of_label[label] for label in labels]
    canvas.legend(handles, labels, loc="outside upper center", ncols=ncols, **layout)
