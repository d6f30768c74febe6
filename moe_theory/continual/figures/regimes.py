"""Where experts specialise at all, over the gate drive in units of the perturbation: a picture the paper lacks.

The gate drive kappa says how far one step of the gates moves an output, lambda how far chance does. It is set through
the signals' scale, its square root. The paper's own limit, sigma_0 -> 0 at Algorithm 1's orders, is a path along that
axis. Beside Algorithm 1 stands its reduced model, with the same pools and draws.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Array, Bool, Float, Int

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
from moe_theory.runs import Cell, Progress, Run, quiet, run_cells
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import (
    FigureSpec,
    across_replicates,
    chosen_experts,
    closing,
    panel_row,
    provenance,
    ramp,
    resized,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

EXPERTS = FIGURE_2_EXPERTS[1:]
RATIOS = tuple(float(ratio) for ratio in np.geomspace(1e-3, 1e2, 11))  # kappa / lambda
NUM_ROUNDS = 2000
DIMENSIONS = ("experts", "ratio")
PANELS = {
    "error": r"generalization error $G_T/\Delta$",
    "own": "arrivals at an expert of their kind",
    "end": "gates fixed at round, over $T_1$",
}
Z = 1.96
MARKERS = "os^Dv"  # of numbers of experts, told apart in grey
SYSTEMS = {"": system, "_reduced": reduced.system}  # endings of what is drawn of them
REDUCED: dict[str, Any] = {"linewidth": 1.1}
BLIND: dict[str, Any] = {"color": "0.35", "linewidth": 0.9, "linestyle": (0, (4, 2))}
PATH: dict[str, Any] = {"arrowstyle": "->", "color": "black", "linewidth": 1.1}


class Routes(NamedTuple):
    task: Int[Array, ""]
    expert: Int[Array, ""]
    terminated: Bool[Array, ""]
    generalization_error: Float[Array, ""]


def observe(state: State, info: Info) -> Routes:
    return Routes(info.task, info.expert, state.terminated, info.generalization_error)


def compute(
    reading: ReadingLike,
    replicates: int,
    seed: int,
    progress: Progress = quiet,
    *,
    num_rounds: int | None = None,
    experts: Sequence[int] | None = None,  # a line each
    dims: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Means over replicates, with standard errors, for each number of experts and each ratio kappa / lambda."""
    length = NUM_ROUNDS if num_rounds is None else num_rounds
    numbers = chosen_experts(experts, EXPERTS)
    sizes = resized(FIGURE_2_DIMS, dims, FIGURE_2_DIMS.max_experts if experts is None else max(numbers))
    # The ratio decides the signals' scale, whatever the reading has.
    units = {number: reading.params(num_experts=number, signal_scale=1.0) for number in numbers}
    settings = {
        (number, ratio): with_drive(units[number], ratio, sizes.num_features) for number in numbers for ratio in RATIOS
    }
    cells = [
        Cell(_name(*place) + kind, each(sizes), params, length, 1, observe)
        for kind, each in SYSTEMS.items()
        for place, params in settings.items()
    ]
    runs = run_cells(cells, replicates, seed=seed, progress=progress, what="regimes")
    shape, values = (len(numbers), len(RATIOS)), {}
    for kind in SYSTEMS:
        found = [
            across_replicates(np.stack(list(_values_of(runs[_name(*place) + kind]).values()))) for place in settings
        ]
        for row, panel in enumerate(PANELS):
            for suffix, statistic in (("", "mean"), ("_error", "error")):
                numbers_of = np.reshape([each[statistic][row] for each in found], shape)
                values[f"{panel}{kind}{suffix}"] = (DIMENSIONS, numbers_of)
    paths = [reading.params(**limit_params(numbers[-1], scale)) for scale in (*LIMIT_SCALES, SIGMA_0)]
    about = provenance(
        "continual", "regimes", reading, replicates, seed, length, rounds=num_rounds, experts=experts, dims=dims
    )
    return xr.Dataset(
        values | {"limit_ratio": ("scale", [drive_of(params, sizes.num_features) for params in paths])},
        {"experts": list(numbers), "ratio": list(RATIOS), "scale": [*LIMIT_SCALES, SIGMA_0]},
        about
        | {
            "num_tasks": sizes.num_tasks,
            "num_clusters": min(int(units[numbers[0]].num_clusters), sizes.num_tasks),
            "paper_ratios": [drive_of(reading.params(num_experts=number), sizes.num_features) for number in numbers],
        },
    )


def _name(num_experts: int, ratio: float) -> str:
    return f"M = {num_experts}, kappa / lambda = {ratio:.3g}"


def _values_of(run: Run) -> dict[str, Float[np.ndarray, " B"]]:
    """What is drawn of each replicate: the last quarter of the rounds, where arrivals are counted."""
    open_rounds = np.sum(~run.records.terminated, axis=0)
    return {
        "error": run.records.generalization_error[-1].astype(np.float64) / gaps_of(run).task_gap,
        "own": own_share(run, run.records.expert),
        "end": open_rounds / stage_rounds(run.params),
    }


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    axes = panel_row(figure, len(PANELS), sharex=True)
    for letter, panel, (name, label) in zip("abc", axes, PANELS.items(), strict=True):
        for index, (number, colour) in enumerate(zip(data.experts.values, ramp(data.sizes["experts"]), strict=True)):
            here = data.sel(experts=number)
            panel.errorbar(
                here.ratio, here[name], Z * here[f"{name}_error"], color=colour, markersize=3,
                marker=MARKERS[index % len(MARKERS)], linestyle="none", elinewidth=0.8, label=f"$M$ = {number}",
            )  # fmt: skip
            panel.plot(here.ratio, here[f"{name}_reduced"], color=colour, **REDUCED)
            panel.axvline(data.attrs["paper_ratios"][index], color=colour, linewidth=0.7, linestyle=(0, (1, 2)))
        panel.set(xscale="log", xlabel=r"gate drive over perturbation, $\kappa/\lambda$")
        panel.set_title(f"({letter}) {label}", loc="left")
    axes[0].axhline(1, **BLIND)
    axes[0].set_ylim(bottom=0)
    axes[1].axhline(1 / data.attrs["num_clusters"], **BLIND)
    axes[1].set_ylim(0, 1)
    axes[2].set_yscale("log")
    _draw_limit(axes[0], data)
    _draw_legend(figure, axes[0])


def _draw_limit(panel: "Axes", data: xr.Dataset) -> None:
    """The papers' limit: where kappa / lambda goes as sigma_0 shrinks."""
    first, last = float(data.limit_ratio[-1]), float(data.limit_ratio[0])
    across = panel.get_xaxis_transform()
    panel.annotate("", (last, 0.12), (first, 0.12), xycoords=across, textcoords=across, arrowprops=PATH)
    panel.text(
        np.sqrt(first * last), 0.14, r"$\sigma_0 \to 0$", transform=across, ha="center", va="bottom", fontsize="small"
    )


def _draw_legend(figure: "FigureBase", panel: "Axes") -> None:
    from matplotlib.lines import Line2D

    lines, _ = panel.get_legend_handles_labels()
    others = [
        Line2D([], [], color="0.35", **REDUCED, label="gates alone"),
        Line2D([], [], **BLIND, label=r"two random tasks: $\Delta$, $1/K$"),
        Line2D(
            [], [], color="0.35", linewidth=0.7, linestyle=(0, (1, 2)), label="this reading's own $\\kappa/\\lambda$"
        ),
    ]
    figure.legend(handles=[*lines, *others], loc="outside upper center", ncols=6, columnspacing=1.5)


def caption(data: xr.Dataset) -> str:
    least = min(LIMIT_SCALES)
    return (
        "Over κ/λ, how far a step of the gates moves an output over the perturbation, set through the signals' scale: "
        "(a) the overall generalization error over the task gap Δ, the mean squared distance of two random tasks; (b) "
        "the share of the last quarter's arrivals whose expert met the same cluster last; (c) the round in which the "
        f"gates are fixed (the run's length if never), over T₁. N = {data.attrs['num_tasks']}, "
        f"K = {data.attrs['num_clusters']}, 95 % intervals. Markers: Algorithm 1. Lines: its gates alone, with an "
        "expert reduced to its expected distances to the truths (continual.reduced). The arrow is the paper's own "
        f"limit, Algorithm 1's orders from σ₀ = {SIGMA_0:g} to {least:g}.\n" + closing(data)
    )


FIGURE = FigureSpec(
    name="regimes",
    title="Where experts specialise: gate drive against perturbation",
    summary="G/D, own arrivals and termination over the gate drive, beside the gates alone, with the limit as a path.",
    replicates=128,
    size=(7.4, 3.1),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("continual.proposition-1.*", "continual.proposition-3.*", "continual.equation-35"),
)
