"""Where experts specialise, over the gate drive and the perturbation apart: a picture the paper lacks.

The gate drive kappa says how far one step of the gates moves an output, lambda how far chance does. Drive and
perturbation are set by the signals' scale and lambda, noise and threshold along with them, so that nothing else moves:
at a fixed kappa / lambda only the curvature of the softmax changes. Beside Algorithm 1 stands its reduced model, with
the same pools and draws.
"""

import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int
from scipy import optimize

from moe_theory import plot
from moe_theory.continual import reduced
from moe_theory.continual.algorithm import Info, State, system
from moe_theory.continual.experiments import (
    FIGURE_2_DIMS,
    LIMIT_SCALES,
    drive_of,
    gaps_of,
    limit_params,
    own_share,
    with_drive,
)
from moe_theory.continual.params import SIGMA_0, Dims, Params, gate_drive
from moe_theory.core import critical
from moe_theory.core.critical import lead_after_turns
from moe_theory.core.linear import error_contraction
from moe_theory.plot import roles
from moe_theory.runs import Cell, Run

EXPERTS = (2, 4, 6, 12, 20)
MAPPED = 12  # experts of the maps
DRIVES = tuple(float(drive) for drive in np.geomspace(0.03, 30, 10).round(3))  # kappa
RATIOS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)  # kappa / lambda
FAR = 10.0  # the ratio at which numbers of experts are compared
ENDS = {"without": False, "with": True}  # termination of the gates
MAPS = {"without": "(a) own arrivals, gates never fixed", "with": r"(b) own arrivals, gates fixed after $T_1$"}
MARKERS = "os^Dv"  # of numbers of experts, told apart in grey
SYSTEMS = {"": system, "_reduced": reduced.system}  # endings of what is drawn of them
LIMIT = (SIGMA_0, min(LIMIT_SCALES))  # sigma_0 at the ends of the paper's own path, a line on the map
Place = tuple[int, str, float, float]  # experts, termination, kappa and kappa / lambda
DRIVE_LABEL = r"gate drive $\kappa$"
LINE: dict[str, Any] = {"color": "white", "linewidth": 1.4}  # on the maps


class Routes(NamedTuple):
    task: Int[Array, ""]
    expert: Int[Array, ""]
    terminated: Bool[Array, ""]
    generalization_error: Float[Array, ""]


def observe(state: State, info: Info) -> Routes:
    return Routes(info.task, info.expert, state.terminated, info.generalization_error)


def at_drive(params: Params, drive: float, ratio: float, dims: Dims) -> Params:
    """These parameters at a drive and a ratio of it to lambda; noise over signal and Gamma over lambda stay."""
    noise, threshold = (
        float(part) / float(whole)
        for part, whole in (
            (params.noise_scale, params.signal_scale),
            (params.termination_threshold, params.perturbation_scale),
        )
    )
    moved = with_drive(params._replace(perturbation_scale=drive / ratio), ratio, dims)
    return moved._replace(noise_scale=noise * moved.signal_scale, termination_threshold=threshold * drive / ratio)


def compute(setup: plot.Setup) -> xr.Dataset:
    """Means over replicates, with standard errors, over experts, termination, kappa and kappa / lambda."""
    dims = setup.dims
    own = setup.params()
    decided = {"signal_scale": own.signal_scale, "perturbation_scale": own.perturbation_scale}  # by drive and ratio
    given = {
        (number, gates): setup.params(num_experts=number, terminate=is_ended, **decided)
        for number in setup.experts
        for gates, is_ended in ENDS.items()
    }
    params = {_name(*place): at_drive(given[place[:2]], *place[2:], dims) for place in _places(setup.experts)}
    cells = [
        Cell(name + kind, each(dims), own, setup.rounds, 1, observe)
        for kind, each in SYSTEMS.items()
        for name, own in params.items()
    ]
    runs = setup.run(cells)

    def values_of(*place: Any) -> dict[str, Any]:
        samples = {kind: _values_of(runs[_name(*place) + kind]) for kind in SYSTEMS}
        return plot.means({f"{panel}{kind}": own for kind, each in samples.items() for panel, own in each.items()})

    data = plot.over(values_of, experts=setup.experts, gates=list(ENDS), drive=DRIVES, ratio=RATIOS)
    move = _move(runs[_name(setup.experts[0], "without", DRIVES[0], RATIOS[0])], dims)
    lines = plot.over(
        lambda number: {"critical": [_critical(number, ratio, dims, move) for ratio in RATIOS]},
        {"ratio": RATIOS},
        experts=setup.experts,
    )
    paths = [setup.params(**limit_params(setup.experts[-1], scale)) for scale in LIMIT]
    return data.merge(lines).assign_attrs(
        limit_drives=[gate_drive(each, dims.num_features, dims.num_tasks) for each in paths],
        limit_ratios=[drive_of(each, dims) for each in paths],
        num_tasks=dims.num_tasks,
        num_clusters=min(int(own.num_clusters), dims.num_tasks),
        mapped=min(setup.experts, key=lambda number: abs(number - MAPPED)),
    )


def _places(experts: tuple[int, ...]) -> Iterator[Place]:
    return itertools.product(experts, ENDS, DRIVES, RATIOS)


def _name(num_experts: int, gates: str, drive: float, ratio: float) -> str:
    return f"M = {num_experts}, {gates} termination, kappa = {drive:g}, kappa / lambda = {ratio:g}"


def _values_of(run: Run) -> dict[str, Any]:
    """Plotted values of each replicate: the last quarter of the rounds, where arrivals are counted."""
    return {
        "error": run.records.generalization_error[-1].astype(np.float64) / gaps_of(run).task_gap,
        "own": own_share(run, run.records.expert),
    }


def _move(run: Run, dims: Dims) -> float:
    """How far an expert moves when a task of another kind came before, over the truths' mean length."""
    truths, clusters = np.moveaxis(run.state.pool.truths, -1, 0).astype(np.float64), run.state.pool.clusters[:, 0]
    apart = np.linalg.norm(truths[:, :, None] - truths[:, None], axis=-1)[:, clusters[:, None] != clusters]
    length = np.mean(np.linalg.norm(truths, axis=-1))
    return math.sqrt(dims.num_samples / dims.num_features) * float(np.mean(apart) / length)


def _critical(num_experts: int, ratio: float, dims: Dims, move: float) -> float:
    """The drive from which on a leader that has paid is ahead by lambda; NaN where none is, or nobody else."""
    if num_experts < 2:
        return math.nan
    contraction = math.sqrt(error_contraction(dims.num_features, dims.num_samples))

    def excess(drive: float) -> float:
        return lead_after_turns(num_experts, drive * move, contraction) - drive / ratio

    low, high = critical.DRIVES
    if not excess(low) < 0 < excess(high):
        return math.nan
    return float(optimize.root_scalar(excess, bracket=(low, high)).root)


@plot.figure(
    "continual.regimes",
    compute,
    title="Where experts specialise: gate drive and perturbation",
    summary="Own arrivals over the gate drive and its ratio to the perturbation, with the critical drive.",
    replicates=32,
    size=(7.4, 3.2),
    rounds=1500,
    experts=EXPERTS,
    dims=FIGURE_2_DIMS,
    claims=("continual.proposition-1.*", "continual.proposition-3.*", "continual.equation-35"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """The share of the last quarter's arrivals whose expert met the same cluster last, for N = {num_tasks} and K =
    {num_clusters}; by chance 1/K. (a), (b): M = {mapped} over κ, how far a step of the gates moves an output, and
    its ratio to the perturbation λ; signals, noise and Γ move with them. White: the critical drive at which a leader
    that has paid for its task is still ahead by λ (continual.corrected.critical_drive). The arrow: the paper's own
    limit, Algorithm 1's orders, from σ₀ = {SIGMA_0:g} on, out of the map. (c): at κ/λ = {FAR:g}, gates never fixed;
    markers, with 95 % intervals: Algorithm 1; lines: its gates alone (continual.reduced); dotted: critical drives.
    """
    axes = plot.row(canvas, [*MAPS.values(), rf"(c) at $\kappa/\lambda$ = {FAR:g}"], xscale="log", xlabel=DRIVE_LABEL)
    here = data.sel(experts=data.attrs["mapped"])
    mesh: Any = None
    for panel, gates in zip(axes, MAPS, strict=False):
        shares = here.own.sel(gates=gates).transpose("ratio", "drive")
        mesh = panel.pcolormesh(
            plot.log_edges(here.drive), plot.log_edges(here.ratio), shares, cmap="viridis", vmin=0, vmax=1
        )
        panel.set_yscale("log")
        panel.plot(here.critical, here.ratio, **LINE)
        _draw_limit(panel, data)
    axes[0].set_ylabel(r"$\kappa/\lambda$")
    canvas.colorbar(mesh, ax=axes[:2], location="bottom", pad=0.02, aspect=50, shrink=0.8)
    _draw_experts(axes[2], data)


def _draw_experts(panel: plot.Axes, data: xr.Dataset) -> None:
    far = data.sel(ratio=FAR, gates="without")
    numbers = data.experts.values
    for number, colour, marker in zip(numbers, plot.ramp(len(numbers)), itertools.cycle(MARKERS), strict=False):
        one = far.sel(experts=number)
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 3, "linestyle": "none"}
        plot.intervals(panel, one.drive, one.own, one.own_error, f"$M$ = {number}", **look)
        panel.plot(one.drive, one.own_reduced, color=colour, linewidth=1.1)
        panel.axvline(float(one.critical), **roles.REFERENCE(color=colour))
    panel.axhline(1 / data.attrs["num_clusters"], **roles.BASELINE)
    panel.set_ylim(0, 1)
    panel.legend(loc="upper left", fontsize="small", borderpad=0.3, handletextpad=0.1)


def _draw_limit(panel: plot.Axes, data: xr.Dataset) -> None:
    """The paper's limit, sigma_0 to 0, from its largest value to the map's edge."""
    edges = panel.axis()
    (drive, next_drive), (ratio, next_ratio) = (data.attrs[name] for name in ("limit_drives", "limit_ratios"))
    slope = math.log(ratio / next_ratio) / math.log(drive / next_drive)
    left = edges[0] * 1.1
    end = ratio * (left / drive) ** slope
    panel.annotate("", (left, end), (drive, ratio), arrowprops={"arrowstyle": "->", **LINE})
    plot.note(panel, r"$\sigma_0 \to 0$", (left, end), (8, 9), color="white")
    panel.axis(edges)
