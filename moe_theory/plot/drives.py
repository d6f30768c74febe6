"""Maps of specialisation over the gate drive kappa and its ratio to the perturbation lambda."""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import optimize

from moe_theory.core import critical
from moe_theory.core.critical import lead_after_turns
from moe_theory.core.linear import error_contraction
from moe_theory.core.routes import own_share
from moe_theory.plot import numbers, panels, roles
from moe_theory.plot.spec import Setup
from moe_theory.runs import Cell, Run

EXPERTS = (2, 4, 6, 12, 20)
MAPPED = 12  # number of experts in the maps, or the nearest number that was run
DRIVES = tuple(float(drive) for drive in np.geomspace(0.03, 30, 10).round(3))  # kappa
RATIOS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # kappa / lambda
FAR = 10.0  # kappa / lambda at which numbers of experts are compared, the last of `RATIOS`
MARKERS = "os^Dv"  # markers of numbers of experts, for prints in grey
DRIVE_LABEL = r"gate drive $\kappa$"
LINE = roles.ArtistStyle(color="white", linewidth=1.4)  # lines on the maps
Place = tuple[int, str, float, float]  # experts, kind of run, kappa and kappa / lambda


class Kinds(NamedTuple):
    """The runs of a paper for two systems. Kinds of runs differ along `axis`."""

    axis: str  # the name of what differs between kinds
    choices: Mapping[str, Mapping[str, float]]  # parameters of each kind, which change the reading's
    systems: Mapping[str, Callable[[Any], Any]]  # functions of dims, by the ending of the variables' names
    observe: Callable[[Any, Any], Any]  # records task, expert and generalization_error of a round, and more if needed
    at_drive: Callable[[Any, float, float, Any], Any]  # parameters at a kappa and a kappa / lambda, for dims
    task_gap: Callable[[Run], Any]  # Delta of each replicate


def compute(setup: Setup, kinds: Kinds) -> xr.Dataset:
    """Return means and standard errors over replicates, by experts, kind of run, kappa and kappa / lambda."""
    places: list[Place] = list(itertools.product(setup.experts, kinds.choices, DRIVES, RATIOS))
    reading = setup.params()
    params = {}
    for number, kind, drive, ratio in places:
        kind_params = setup.params(
            num_experts=number,
            # `at_drive` overwrites these two. As overrides of all cells, `Setup` refuses a user's values for them.
            signal_scale=reading.signal_scale,
            perturbation_scale=reading.perturbation_scale,
            **kinds.choices[kind],
        )
        params[_name(number, kind, drive, ratio)] = kinds.at_drive(kind_params, drive, ratio, setup.dims)
    cells = []
    for ending, system in kinds.systems.items():
        cells += [
            Cell(name + ending, system(setup.dims), params_of_cell, setup.rounds, observe=kinds.observe)
            for name, params_of_cell in params.items()
        ]
    runs = setup.run(cells)

    def values_of(*place: Any) -> numbers.Values:
        samples = {}
        for ending in kinds.systems:
            run = runs[_name(*place) + ending]
            errors = run.records.generalization_error[-1].astype(np.float64)
            samples[f"error{ending}"] = errors / kinds.task_gap(run)
            samples[f"own{ending}"] = own_share(run.records.task, run.records.expert, run.state.pool.clusters)
        return numbers.means(samples)

    axes = {"experts": setup.experts, kinds.axis: list(kinds.choices), "drive": DRIVES, "ratio": RATIOS}
    data = numbers.over(values_of, **axes)
    move = mean_move(runs[_name(*places[0])], setup.dims)
    lines = numbers.over(
        lambda number: {"critical": [critical_at(number, ratio, setup.dims, move) for ratio in RATIOS]},
        {"ratio": RATIOS},
        experts=setup.experts,
    )
    mapped = min(setup.experts, key=lambda number: abs(number - MAPPED))
    return data.merge(lines).assign_attrs(mapped=mapped)


def _name(num_experts: int, kind: str, drive: float, ratio: float) -> str:
    return f"M = {num_experts}, {kind}, kappa = {drive:g}, kappa / lambda = {ratio:g}"


def mean_move(run: Run, dims: Any) -> float:
    """Return an expert's move after a task of another type, relative to the mean length of ground truths."""
    truths = np.moveaxis(run.state.pool.truths, -1, 0).astype(np.float64)
    clusters = run.state.pool.clusters[:, 0]
    distances = np.linalg.norm(truths[:, :, None] - truths[:, None], axis=-1)
    is_other_type = clusters[:, None] != clusters
    length = np.mean(np.linalg.norm(truths, axis=-1))
    return math.sqrt(dims.num_samples / dims.num_features) * float(np.mean(distances[:, is_other_type]) / length)


def critical_at(num_experts: int, ratio: float, dims: Any, move: float) -> float:
    """Return the smallest drive kappa at which a leader that has paid is still ahead by lambda, or NaN for none."""
    if num_experts < 2:
        return math.nan
    contraction = math.sqrt(error_contraction(dims.num_features, dims.num_samples))

    def excess(drive: float) -> float:
        return lead_after_turns(num_experts, drive * move, contraction) - drive / ratio

    low, high = critical.DRIVES
    if not excess(low) < 0 < excess(high):
        return math.nan
    return float(optimize.root_scalar(excess, bracket=(low, high)).root)


def draw(data: xr.Dataset, canvas: Any, kinds: Mapping[str, str], axis: str, compared: str, chance: float) -> list[Any]:
    """Draw a map for each kind of run, and for the kind `compared` a panel over numbers of experts.

    The panel has a line at `chance`, the share of own arrivals under task-independent routing.
    """
    letter = chr(ord("a") + len(kinds))
    last_title = rf"({letter}) at $\kappa/\lambda$ = {FAR:g}"
    *maps, panel = panels.row(canvas, [*kinds.values(), last_title], xscale="log", xlabel=DRIVE_LABEL)
    map_data = data.sel(experts=data.attrs["mapped"])
    mesh: Any = None
    for map_panel, kind in zip(maps, kinds, strict=True):
        shares = map_data.own.sel({axis: kind}).transpose("ratio", "drive")
        x_edges = numbers.log_edges(map_data.drive)
        y_edges = numbers.log_edges(map_data.ratio)
        mesh = map_panel.pcolormesh(x_edges, y_edges, shares, cmap="viridis", vmin=0, vmax=1)
        map_panel.set_yscale("log")
        LINE.plot(map_panel, map_data.critical, map_data.ratio)
    maps[0].set_ylabel(r"$\kappa/\lambda$")
    canvas.colorbar(mesh, ax=maps, location="bottom", pad=0.02, aspect=50, shrink=0.8)
    _draw_experts(panel, data.sel({"ratio": FAR, axis: compared}))
    roles.BASELINE.hline(panel, chance)
    panel.set_ylim(0, 1)
    panel.legend(loc="upper left", fontsize="small", borderpad=0.3, handletextpad=0.1)
    return maps


def _draw_experts(panel: Any, data: xr.Dataset) -> None:
    experts = data.experts.values
    for number, colour, marker in zip(experts, roles.ramp(len(experts)), itertools.cycle(MARKERS), strict=False):
        selection = data.sel(experts=number)
        look = roles.ArtistStyle(color=colour, marker=marker, markersize=3, linestyle="none")
        panels.intervals(panel, selection.drive, selection.own, selection.own_error, look, label=f"$M$ = {number}")
        panel.plot(selection.drive, selection.own_reduced, color=colour, linewidth=1.1)
        roles.REFERENCE(color=colour).vline(panel, float(selection.critical))
