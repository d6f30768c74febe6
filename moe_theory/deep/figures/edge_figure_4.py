"""Fig. 4 of the edge-computing paper: generalization error of four routing policies, by the number of servers."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from moe_theory.deep.experiments import describe, run_preset
from moe_theory.deep.figures.figures_3_to_7 import BAND_ALPHA, band_handle
from moe_theory.deep.presets import Preset, preset, server_cell
from moe_theory.edge.policies import POLICIES
from moe_theory.runs import Progress, quiet
from moe_theory.verify.claim import ReadingLike, Runs
from moe_theory.verify.figures import FigureSpec, across_replicates, closing, panel_row, provenance

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

NAME = "edge-figure-4"
DIMENSIONS = ("experts", "policy", "round")
STYLES: dict[str, dict[str, Any]] = {
    "adaptive": {"color": "C0", "linewidth": 1.7},
    "nearest": {"color": "C3", "linewidth": 1.3},
    "fastest": {"color": "C2", "linewidth": 1.3},
    "uniform": {"color": "0.45", "linewidth": 1.2, "linestyle": (0, (4, 1.4))},
}
LEGEND = {
    "adaptive": "adaptive (Algorithm 1)",
    "nearest": "nearest idle server",
    "fastest": "fastest idle server",
    "uniform": "any idle server (not in the paper)",
}


def summarize(preset: Preset, runs: Runs) -> xr.Dataset:
    cells = [[runs[server_cell(size, policy)] for policy in POLICIES] for size in preset.experts]
    values = [[across_replicates(run.records.generalization_error) for run in row] for row in cells]
    variables: dict[str, Any] = {
        name: (DIMENSIONS, np.array([[cell[name] for cell in row] for row in values])) for name in values[0][0]
    }
    rounds = cells[0][0].rounds
    lost = [[run.records.dropped[-1].mean() / rounds[-1] for run in row] for row in cells]
    variables["dropped"] = (DIMENSIONS[:2], np.array(lost))
    return xr.Dataset(variables, {"experts": list(preset.experts), "policy": list(POLICIES), "round": rounds})


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    small = preset("edge-mnist-small")
    runs = run_preset(small, small.cells(), reading, replicates, seed, progress, num_rounds, NAME)
    data = summarize(small, runs)
    length = int(data["round"][-1])
    return data.assign_attrs(provenance("deep", NAME, reading, replicates, seed, length, rounds=num_rounds))


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    from matplotlib.lines import Line2D

    axes = panel_row(figure, data.sizes["experts"], sharey=True)
    rounds = data["round"].values
    for letter, panel, size in zip("abcdefgh", axes, data.experts.values, strict=False):
        for policy in reversed(data.policy.values):
            here, style = data.sel(experts=size, policy=policy), STYLES[policy]
            panel.fill_between(rounds, here.low, here.high, color=style["color"], alpha=BAND_ALPHA, linewidth=0)
            panel.plot(rounds, here["mean"], **style)
        panel.set_title(f"({letter}) $M$ = {size} servers", loc="left")
        panel.set(xlabel="round $t$", xlim=(0, rounds[-1] + 0.5))
    axes[0].set_ylabel("generalization error $G_t$")
    handles: list[Any] = [Line2D([], [], **STYLES[policy], label=LEGEND[policy]) for policy in data.policy.values]
    handles.append(band_handle(data))
    figure.legend(handles=handles, loc="outside upper center", ncols=3)


def caption(data: xr.Dataset) -> str:
    lost = float(data.dropped.max())
    return (
        "Generalization error (20) of the servers' current models on the tasks routed so far. "
        f"{describe(preset('edge-mnist-small'))} Of the servers' delays the paper gives only "
        "d_u = 4; ties for the fastest server go to the first. "
        + (f"Up to {lost:.0%} of the tasks found all servers busy and are left out.\n" if lost > 0 else "\n")
        + closing(data)
    )


FIGURE = FigureSpec(
    name=NAME,
    title="Generalization error of adaptive, nearest and fastest routing",
    summary="Fig. 4 of mobile edge computing on the digits: adaptive routing against nearest and fastest, M = 5, 10.",
    replicates=16,
    size=(7.2, 3.0),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("deep.edge-figure-4.*",),
)
