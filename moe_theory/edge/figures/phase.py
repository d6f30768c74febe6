"""The final error over the gate drive and the number of servers."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from moe_theory import plot
from moe_theory.core.linear import error_contraction
from moe_theory.edge import corrected, theory
from moe_theory.edge.algorithm import system
from moe_theory.edge.experiments import FAILURE, FIGURE_3_EXPERTS, MAX_DELAY, figure_3_dims, flushed_error, gaps_of
from moe_theory.edge.params import Dims, gate_drive
from moe_theory.plot import roles
from moe_theory.runs import Cell, Run

if TYPE_CHECKING:
    from matplotlib.collections import QuadMesh

EXPERTS = (5, 8, 12, 20, 33, 52, 83, 130)  # numbers beyond all lines of Proposition 1, and on none
DRIVES = (0.05, 0.12, 0.28, 0.66, 1.5, 3.6, 8.5, 20.0)
DIMS = figure_3_dims(EXPERTS[-1])
RULES = {"stated": r"$N M_{th}\,\ln(1/\delta)$", "chernoff": "Chernoff"}  # rules of `theory.experts_needed`
LEVELS = (0.3, 1.0)  # limits of the colours. 1 is task-independent routing
CRITICAL = roles.ArtistStyle(color="black", linewidth=1.4)
PATH = roles.ArtistStyle(color="black", linewidth=1.0, linestyle=(0, (1, 2)))
LINE = roles.ArtistStyle(color="C1", linewidth=1.1)
POINT = roles.ArtistStyle(
    linestyle="none", marker="o", markersize=4.5, markerfacecolor="white", markeredgecolor="black"
)


def signal_scale_at(drive: float, params: Any, dims: Dims) -> float:
    """Return the scale of signals at which these parameters have a gate drive."""
    return math.sqrt(drive / gate_drive(params._replace(signal_scale=1.0), dims.num_features))


def compute(setup: plot.Setup) -> xr.Dataset:
    length = setup.rounds
    cells = []
    for drive in DRIVES:
        for number in EXPERTS:
            params = setup.params(num_experts=number, signal_scale=1.0)
            params = params._replace(signal_scale=signal_scale_at(drive, params, DIMS))
            name = _cell_name(drive, number)
            cells.append(Cell(name, system(DIMS), params, length, record_every=length, observe=flushed_error))
    runs = setup.run(cells)

    def drives_of_reading(numbers: tuple[int, ...]) -> list[float]:
        return [gate_drive(setup.params(num_experts=number), DIMS.num_features) for number in numbers]

    def values_at(drive: float, number: int) -> plot.Values:
        return _values_of(runs[_cell_name(drive, number)], length)

    data = plot.over(values_at, drive=DRIVES, experts=EXPERTS)
    data = data.assign_coords(reading_drive=("experts", drives_of_reading(EXPERTS)))
    return data.assign_attrs(figure_3_drives=drives_of_reading(FIGURE_3_EXPERTS))


def _cell_name(drive: float, num_experts: int) -> str:
    return f"kappa = {drive:g}, M = {num_experts}"


def _values_of(run: Run, num_rounds: int) -> plot.Values:
    across = plot.across_replicates(run.records[-1].astype(np.float64) / gaps_of(run).task_gap)
    return {
        "ratio": across["mean"],
        "error": across["error"],
        "dropped": float(np.mean(run.state.dropped)) / num_rounds,
        "misrouted": float(np.mean(run.state.misrouted / np.sum(run.state.visits, axis=0))),
    }


def critical_drive(num_experts: int) -> float:
    """Return `corrected.critical_drive` for a gate drive with moves of (s/p)^0.5 |w - w'| in place of E|w|."""
    contraction = math.sqrt(error_contraction(DIMS.num_features, DIMS.num_samples))
    move = math.sqrt(2 * DIMS.num_samples / DIMS.num_features)  # |w - w'|^2 is 2 |w|^2 on average
    return corrected.critical_drive(num_experts, contraction, perturbation=0.0) / move


def servers_by_line() -> list[tuple[str, float]]:
    num_tasks = DIMS.num_tasks
    lines = [("$N M_{th}$", num_tasks * theory.specialists_needed(MAX_DELAY, num_tasks, FAILURE))]
    for rule, words in RULES.items():
        for quantile in theory.QUANTILES:
            number = theory.experts_needed(MAX_DELAY, num_tasks, FAILURE, quantile=quantile, rule=rule)
            lines.append((f"{words}, {quantile}", float(number)))
    return sorted(lines, key=lambda line: line[1])  # by number


@plot.figure(
    "edge.phase",
    compute,
    title="Final error over gate drive and number of servers",
    summary="G/D over the gate drive and the number of servers, with the numbers that Proposition 1 asks for.",
    replicates=16,
    size=(7.2, 4.2),
    rounds=1500,
    claims=("edge.proposition-1.*-quantile*", "edge.proposition-1.arriving-task", "edge.proposition-3.*"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Mean final error of the adaptive policy in units of the task gap Δ, which policies that do not look at the task
    approach, over gate drive κ (how far one gate step moves a gate output) and number of servers M; N = 10, d_u =
    {MAX_DELAY}. Two arrivals of one kind are 2pτ² apart, so that 0 cannot be reached. Black: the critical drive κ_c(M)
    of gates that learn without delays (edge.corrected.critical_drive). Vertical: servers that Proposition 1 asks for at
    δ = {FAILURE:g}, with its normal quantile (16) and with the binomial one; Chernoff: what its proof asks for. Dotted:
    the gate drive of this reading; points: the cells of Fig. 3.
    """
    panel = canvas.subplots()
    drives = data.drive.values
    experts = data.experts.values
    edges = plot.log_edges(experts), plot.log_edges(drives)
    mesh = panel.pcolormesh(*edges, data.ratio.values, cmap="viridis", vmin=LEVELS[0], vmax=LEVELS[1])
    panel.set(xscale="log", yscale="log", xlabel="servers $M$", ylabel=r"gate drive $\kappa$")
    _label_cells(panel, data, mesh)
    _draw_lines(panel)
    _draw_path(panel, data)
    plot.name_values(panel.xaxis, experts)
    plot.name_values(panel.yaxis, drives)
    canvas.colorbar(mesh, ax=panel, pad=0.015, aspect=32, label=r"final error $G_T/\Delta$")


def _label_cells(panel: plot.Axes, data: xr.Dataset, mesh: "QuadMesh") -> None:
    for drive in data.drive.values:
        for number in data.experts.values:
            ratio = float(data.ratio.sel(drive=drive, experts=number))
            colour = "white" if ratio < np.mean(LEVELS) else "black"
            ground = {"facecolor": mesh.to_rgba(np.array(ratio)), "edgecolor": "none", "pad": 1}
            panel.text(number, drive, f"{ratio:.2f}", ha="center", va="center", color=colour, bbox=ground, zorder=3)


def _draw_lines(panel: plot.Axes) -> None:
    for index, (name, number) in enumerate(servers_by_line()):
        LINE.vline(panel, number)
        panel.annotate(
            f"{name}: {number:.0f}",
            xy=(number, 1),
            xytext=(0, 3 + 10 * index),  # one above the other
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right",
            va="bottom",
            color="C1",
            arrowprops={"arrowstyle": "-", "shrinkA": 0, "shrinkB": 0, "relpos": (1, 0), **LINE},
        )


def _draw_path(panel: plot.Axes, data: xr.Dataset) -> None:
    """Draw the drive of the reading as servers are added, and the critical drive, without moving the panel's ends."""
    bottom, top = panel.get_ylim()
    CRITICAL.plot(panel, data.experts, [critical_drive(int(number)) for number in data.experts])
    panel.plot(data.experts, data.reading_drive, color="white", linewidth=2.2)  # a halo
    PATH.plot(panel, data.experts, data.reading_drive)
    POINT.plot(panel, FIGURE_3_EXPERTS, data.attrs["figure_3_drives"])
    panel.set_ylim(bottom, top)
