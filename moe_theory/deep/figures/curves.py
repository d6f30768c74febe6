"""Forgetting, generalization error and accuracy of M experts by round, with and without termination."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from moe_theory.deep.figures.twins import BAND_ALPHA, band_handle
from moe_theory.deep.presets import Preset, expert_cell
from moe_theory.deep.tables import incremental_accuracy, printed
from moe_theory.verify.claim import Runs
from moe_theory.verify.figures import across_replicates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

SYMBOLS = {
    "forgetting": "forgetting $F_t$",
    "generalization_error": "generalization error $G_t$",
    "accuracy": "test accuracy $A_t$",
}
TERMINATIONS = ("with", "without")
DIMENSIONS = ("metric", "termination", "experts", "round")
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "C0", "linewidth": 1.5},
    {"color": "C1", "linewidth": 1.5, "linestyle": (0, (4, 1.2))},
    {"color": "C2", "linewidth": 1.5, "linestyle": (0, (1.2, 0.8))},
)
SINGLE: dict[str, Any] = {"color": "0.45", "linewidth": 1.2, "linestyle": (0, (4, 1.2, 1, 1.2))}
LETTERS = "abcdefgh"
TERMINATED: dict[str, Any] = {"marker": "v", "markersize": 5.5, "markeredgecolor": "white", "linestyle": "none"}
PRINTED: dict[str, Any] = {"color": "black", "marker": "D", "markersize": 4, "fillstyle": "none", "linestyle": "none"}


def summary(preset: Preset, runs: Runs, metrics: Sequence[str], experts: Sequence[int]) -> xr.Dataset:
    """Means, bands and errors by round, the share of runs that have terminated, and the tables' accuracies.

    Average incremental accuracies and, where the paper prints them, its own have no axis of rounds or metrics.
    """
    cells = [[runs[expert_cell(size, part == "with")] for size in experts] for part in TERMINATIONS]
    rounds = cells[0][0].rounds
    values = [[[across_replicates(getattr(run.records, metric)) for run in row] for row in cells] for metric in metrics]
    variables: dict[str, Any] = {
        name: (DIMENSIONS, np.array([[[cell[name] for cell in row] for row in part] for part in values]))
        for name in values[0][0][0]
    }
    shares = [[run.records.terminated.mean(axis=1, dtype=np.float64) for run in row] for row in cells]
    variables["terminated"] = (DIMENSIONS[1:], np.array(shares))
    totals = [[across_replicates(incremental_accuracy(run.records.accuracy)[None]) for run in row] for row in cells]
    for name in ("mean", "low", "high"):
        variables[f"incremental_{name}"] = (
            DIMENSIONS[1:3],
            np.array([[cell[name][0] for cell in row] for row in totals]),
        )
    if (table := printed(preset)) is not None:
        values = [[table.accuracies[expert_cell(size, part == "with")] for size in experts] for part in TERMINATIONS]
        variables["printed"] = (DIMENSIONS[1:3], np.array(values))
    coordinates = {
        "metric": list(metrics),
        "termination": list(TERMINATIONS),
        "experts": list(experts),
        "round": rounds,
    }
    return xr.Dataset(variables, coordinates)


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """A row for each metric: with termination on the left, without on the right; a table's accuracies beside them."""
    has_table = "printed" in data
    grid = figure.add_gridspec(data.sizes["metric"], 2 + has_table, width_ratios=[1, 1, 0.72][: 2 + has_table])
    letters = iter(LETTERS)
    for row, metric in enumerate(data.metric.values):
        left = None
        for column, part in enumerate(TERMINATIONS):
            panel = figure.add_subplot(grid[row, column], sharey=left)
            left = left or panel
            here = data.sel(metric=metric, termination=part)
            _draw_panel(panel, here)
            panel.set_title(f"({next(letters)}) {part} termination", loc="left")
            panel.tick_params(labelleft=column == 0, labelbottom=row == data.sizes["metric"] - 1)
            if column == 0:
                panel.set_ylabel(SYMBOLS[str(metric)])
            if row == data.sizes["metric"] - 1:
                panel.set_xlabel("round $t$")
    if has_table:
        _draw_table(figure.add_subplot(grid[:, 2]), data, letter_of_table(data))
    _draw_legend(data, figure)


def letter_of_table(data: xr.Dataset) -> str:
    """The letter of the panel that shows a table's accuracies, where there is one."""
    return LETTERS[2 * data.sizes["metric"]]


def style_of(data: xr.Dataset, num_experts: int) -> dict[str, Any]:
    """How the curve of so many experts looks."""
    if num_experts == 1:
        return SINGLE
    return STYLES[[size for size in data.experts.values if size > 1].index(num_experts) % len(STYLES)]


def _draw_panel(panel: "Axes", here: xr.Dataset) -> None:
    rounds = here["round"].values
    for num_experts in here.experts.values:
        curve = here.sel(experts=num_experts)
        style = style_of(here, num_experts)
        panel.fill_between(rounds, curve.low, curve.high, color=style["color"], alpha=BAND_ALPHA, linewidth=0)
        panel.plot(rounds, curve["mean"], **style)
        half = np.flatnonzero(curve.terminated.values >= 0.5)
        if len(half) > 0 and num_experts > 1:
            height = 0.03 + 0.05 * int(np.flatnonzero(here.experts.values == num_experts)[0])
            at_foot = panel.get_xaxis_transform()
            panel.plot(rounds[half[:1]], [height], color=style["color"], transform=at_foot, **TERMINATED)
    panel.set_xlim(0, rounds[-1] + 0.5)


def _draw_table(panel: "Axes", data: xr.Dataset, letter: str) -> None:
    """A row for each cell, in the order of the printed table."""
    labels = []
    for size in data.experts.values:
        for part in TERMINATIONS[: 1 if size == 1 else 2]:
            here = data.sel(experts=size, termination=part)
            place = len(labels)
            labels.append(f"$M$ = {size}" + (",\nwithout" if part == "without" else ""))
            colour, mean = style_of(data, size)["color"], float(here.incremental_mean)
            panel.hlines(place, float(here.incremental_low), float(here.incremental_high), color=colour, linewidth=3)
            panel.plot(mean, place, marker="o", color=colour, markeredgecolor="white", markersize=6)
            panel.plot(float(here.printed), place, **PRINTED)
            panel.annotate(f"{mean:.3f}", (mean, place), (0, 6), textcoords="offset points", ha="center", fontsize=6.5)
    panel.set_yticks(range(len(labels)), labels)
    panel.set_ylim(len(labels) - 0.5, -0.6)
    panel.set_xlim(0, 1)
    panel.set_xlabel("average incremental accuracy")
    panel.set_title(f"({letter}) as the table", loc="left")
    panel.grid(axis="x", color="0.9", linewidth=0.5)


def _draw_legend(data: xr.Dataset, figure: "FigureBase") -> None:
    from matplotlib.lines import Line2D

    sizes = [int(size) for size in data.experts.values]
    handles: list[Any] = [
        Line2D([], [], **style_of(data, size), label=f"$M$ = {size}" if size > 1 else "one expert ($M$ = 1)")
        for size in sizes
    ]
    handles.append(band_handle())
    several = data.terminated.sel(termination="with", experts=[size for size in sizes if size > 1])
    if bool((several >= 0.5).any()):
        handles.append(Line2D([], [], color="0.25", **TERMINATED, label="half of the runs terminated"))
    if "printed" in data:
        handles.append(Line2D([], [], **PRINTED, label="printed in the paper"))
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 4))
