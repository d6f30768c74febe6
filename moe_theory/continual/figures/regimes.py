"""Where experts specialise at all, over the gate drive in units of the perturbation: a picture the paper lacks.

The gate drive kappa says how far one step of the gates moves an output, lambda how far chance does. It is set through
the signals' scale, its square root. The paper's own limit, sigma_0 -> 0 at Algorithm 1's orders, is a path along that
axis. Beside Algorithm 1 stands its reduced model, with the same pools and draws.
"""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int

from moe_theory import plot
from moe_theory.continual import reduced
from moe_theory.continual.algorithm import Info, State, system
from moe_theory.continual.experiments import (
    FIGURE_2_DIMS,
    FIGURE_2_EXPERTS,
    LIMIT_SCALES,
    drive_of,
    gaps_of,
    limit_params,
    own_share,
    stage_rounds,
    with_drive,
)
from moe_theory.continual.params import SIGMA_0
from moe_theory.plot import roles
from moe_theory.runs import Cell, Run

RATIOS = tuple(float(ratio) for ratio in np.geomspace(1e-3, 1e2, 11))  # kappa / lambda
PANELS = {
    "error": r"(a) generalization error $G_T/\Delta$",
    "own": "(b) arrivals at an expert of their kind",
    "end": "(c) gates fixed at round, over $T_1$",
}
MARKERS = "os^Dv"  # of numbers of experts, told apart in grey
SYSTEMS = {"": system, "_reduced": reduced.system}  # endings of what is drawn of them
SCALES = [*LIMIT_SCALES, SIGMA_0]
LEAST_SCALE = min(LIMIT_SCALES)
PATH: dict[str, Any] = {"arrowstyle": "->", "color": "black", "linewidth": 1.1}


class Routes(NamedTuple):
    task: Int[Array, ""]
    expert: Int[Array, ""]
    terminated: Bool[Array, ""]
    generalization_error: Float[Array, ""]


def observe(state: State, info: Info) -> Routes:
    return Routes(info.task, info.expert, state.terminated, info.generalization_error)


def compute(setup: plot.Setup) -> xr.Dataset:
    """Means over replicates, with standard errors, for each number of experts and each ratio kappa / lambda."""
    numbers, dims = setup.experts, setup.dims
    # The ratio decides the signals' scale, whatever the reading has.
    units = {number: setup.params(num_experts=number, signal_scale=1.0) for number in numbers}
    cells = [
        Cell(
            _name(number, ratio) + kind,
            each(dims),
            with_drive(units[number], ratio, dims.num_features),
            setup.rounds,
            1,
            observe,
        )
        for kind, each in SYSTEMS.items()
        for number in numbers
        for ratio in RATIOS
    ]
    runs = setup.run(cells)

    def values_of(number: int, ratio: float) -> dict[str, Any]:
        samples = {kind: _values_of(runs[_name(number, ratio) + kind]) for kind in SYSTEMS}
        return plot.means({f"{panel}{kind}": own for kind, each in samples.items() for panel, own in each.items()})

    data = plot.over(values_of, experts=numbers, ratio=RATIOS)
    paths = [setup.params(**limit_params(numbers[-1], scale)) for scale in SCALES]
    limit = xr.Dataset(
        {"limit_ratio": ("scale", [drive_of(params, dims.num_features) for params in paths])}, {"scale": SCALES}
    )
    return data.merge(limit).assign_attrs(
        num_tasks=dims.num_tasks,
        num_clusters=min(int(units[numbers[0]].num_clusters), dims.num_tasks),
        paper_ratios=[drive_of(setup.params(num_experts=number), dims.num_features) for number in numbers],
    )


def _name(num_experts: int, ratio: float) -> str:
    return f"M = {num_experts}, kappa / lambda = {ratio:.3g}"


def _values_of(run: Run) -> dict[str, Float[np.ndarray, " B"]]:
    """Plotted values of each replicate: the last quarter of the rounds, where arrivals are counted."""
    open_rounds = np.sum(~run.records.terminated, axis=0)
    return {
        "error": run.records.generalization_error[-1].astype(np.float64) / gaps_of(run).task_gap,
        "own": own_share(run, run.records.expert),
        "end": open_rounds / stage_rounds(run.params),
    }


@plot.figure(
    "continual.regimes",
    compute,
    title="Where experts specialise: gate drive against perturbation",
    summary="G/D, own arrivals and termination over the gate drive, beside the gates alone, with the limit as a path.",
    replicates=128,
    size=(7.4, 3.1),
    rounds=2000,
    experts=FIGURE_2_EXPERTS[1:],
    dims=FIGURE_2_DIMS,
    claims=("continual.proposition-1.*", "continual.proposition-3.*", "continual.equation-35"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Over κ/λ, how far a step of the gates moves an output over the perturbation, set through the signals' scale: (a)
    the overall generalization error over the task gap Δ, the mean squared distance of two random tasks; (b) the share
    of the last quarter's arrivals whose expert met the same cluster last; (c) the round in which the gates are fixed
    (the run's length if never), over T₁. N = {num_tasks}, K = {num_clusters}, 95 % intervals. Markers: Algorithm 1.
    Lines: its gates alone, with an expert reduced to its expected distances to the truths (continual.reduced). The
    arrow is the paper's own limit, Algorithm 1's orders from σ₀ = {SIGMA_0:g} to {LEAST_SCALE:g}.
    """
    label = r"gate drive over perturbation, $\kappa/\lambda$"
    axes = plot.row(canvas, list(PANELS.values()), sharex=True, xscale="log", xlabel=label)
    colours = plot.ramp(data.sizes["experts"])
    for place, (number, colour) in enumerate(zip(data.experts.values, colours, strict=True)):
        here, marker = data.sel(experts=number), MARKERS[place % len(MARKERS)]
        look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 3, "linestyle": "none"}
        for panel, name in zip(axes, PANELS, strict=True):
            plot.intervals(panel, here.ratio, here[name], here[f"{name}_error"], f"$M$ = {number}", **look)
            panel.plot(here.ratio, here[f"{name}_reduced"], color=colour, linewidth=1.1)
            panel.axvline(data.attrs["paper_ratios"][place], **roles.REFERENCE(color=colour))
    blind = roles.BASELINE(label=r"two random tasks: $\Delta$, $1/K$")
    axes[0].plot([], [], color="0.35", linewidth=1.1, label="gates alone")
    axes[0].axhline(1, **blind)
    axes[0].plot([], [], **roles.REFERENCE, label="this reading's own $\\kappa/\\lambda$")
    axes[0].set_ylim(bottom=0)
    axes[1].axhline(1 / data.attrs["num_clusters"], **blind)
    axes[1].set_ylim(0, 1)
    axes[2].set_yscale("log")
    _draw_limit(axes[0], data)
    plot.legend(canvas, 6, columnspacing=1.5)


def _draw_limit(panel: plot.Axes, data: xr.Dataset) -> None:
    """The papers' limit: where kappa / lambda goes as sigma_0 shrinks."""
    first, last = float(data.limit_ratio[-1]), float(data.limit_ratio[0])
    across = panel.get_xaxis_transform()
    panel.annotate("", (last, 0.12), (first, 0.12), xycoords=across, textcoords=across, arrowprops=PATH)
    panel.text(
        np.sqrt(first * last), 0.14, r"$\sigma_0 \to 0$", transform=across, ha="center", va="bottom", fontsize="small"
    )
