"""Fig. 9: forgetting, generalization error and load balance under four termination thresholds, N = 30."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from moe_theory.continual import theory
from moe_theory.continual.experiments import FIGURE_9, THRESHOLD_POWERS, bounds_of, effective_experts
from moe_theory.continual.figures.figure_8 import settings_of
from moe_theory.continual.params import SIGMA_0
from moe_theory.runs import Progress, Run, quiet
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, across_replicates, closing, provenance, ramp, run_for_log_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

DIMS = FIGURE_9.dims
METRICS = ("forgetting", "generalization_error", "effective_experts")
SYMBOLS = {
    "forgetting": "forgetting $F_t$",
    "generalization_error": "generalization error $G_t$",
    "effective_experts": "experts in use, $\\exp H(L_t/t)$",
}
DIMENSIONS = ("metric", "threshold_power", "round")
VALUES = ("mean", "low", "high", "error", "printed", "difference", "difference_error")
Z = 1.96  # a 95 % interval at each round
WIDTHS = (5.0, 3.4, 2.0, 0.8)  # of lines that lie on each other
MARKERS = "os^"  # of the thresholds compared with the first
ROUNDS_COMPARED = (20, 40, 100, 200, 500, 1000, 2000)
PRINTED: dict[str, Any] = {"color": "C1", "linewidth": 1.2, "linestyle": (0, (4, 1.6))}
MARK: dict[str, Any] = {"markersize": 4, "markeredgecolor": "black", "markeredgewidth": 0.5}
BAND: dict[str, Any] = {"color": "C0", "alpha": 0.14, "linewidth": 0}


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """Metrics and load balance for each threshold, and their paired differences from the first, largest threshold."""
    length = FIGURE_9.num_rounds if num_rounds is None else num_rounds
    runs = run_for_log_axis(
        settings_of(reading), FIGURE_9.system, FIGURE_9.observe, length, replicates, seed, progress, "figure-9"
    )
    first = next(iter(runs.values()))
    shape = (len(METRICS), len(THRESHOLD_POWERS), len(first.rounds))
    values = {name: np.full(shape, np.nan) for name in VALUES}
    for column, run in enumerate(runs.values()):
        printed = bounds_of(run, DIMS, theory.theorem_2)
        for row, metric in enumerate(METRICS):
            samples = _samples(run, metric)
            for name, numbers in across_replicates(samples).items():
                values[name][row, column] = numbers
            paired = across_replicates(samples - _samples(first, metric))
            values["difference"][row, column] = paired["mean"]
            values["difference_error"][row, column] = paired["error"]
            if metric in printed._fields:
                values["printed"][row, column] = getattr(printed, metric).mean(axis=1)
    return xr.Dataset(
        {name: (DIMENSIONS, array) for name, array in values.items()},
        {"metric": list(METRICS), "threshold_power": list(THRESHOLD_POWERS), "round": first.rounds},
        provenance("continual", "figure-9", reading, replicates, seed, length, rounds=num_rounds),
    )


def _samples(run: Run, metric: str) -> Float[np.ndarray, "R B"]:
    if metric == "effective_experts":
        return effective_experts(run.records.loads.astype(np.float64))
    return getattr(run.records, metric).astype(np.float64)


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    axes = figure.subplots(2, len(METRICS), sharex=True, squeeze=False, gridspec_kw={"height_ratios": (1, 1)})
    for column, metric in enumerate(METRICS):
        here = data.sel(metric=metric)
        _draw_levels(axes[0, column], here)
        _draw_differences(axes[1, column], here)
        axes[0, column].set_title(f"({'abc'[column]}) {SYMBOLS[metric]}", loc="left")
        axes[1, column].set_xlabel("round $t$")
        if metric in theory.Bound._fields:
            axes[0, column].axhline(0, color="0.7", linewidth=0.6, zorder=0)
    axes[0, 2].set_ylim(1, DIMS.max_experts)
    axes[0, 0].set_ylabel("mean under each threshold")
    axes[1, 0].set_ylabel(r"change from $\Gamma = \sigma_0^{0.75}$")
    figure.align_ylabels(axes[:, 0])
    _draw_legend(figure, data)


def _colours() -> list[str]:
    """Of the thresholds: lines that lie on each other go from wide and light to narrow and dark."""
    return ramp(len(WIDTHS))[::-1]


def _draw_levels(panel: "Axes", here: xr.Dataset) -> None:
    rounds = here["round"].values
    panel.set_xscale("log")
    panel.set_xlim(rounds[0], 1.3 * here.attrs["num_rounds"])  # room for the last marks
    panel.fill_between(rounds, here.low[0], here.high[0], **BAND)
    for index, (width, colour) in enumerate(zip(WIDTHS, _colours(), strict=True)):
        panel.plot(rounds, here["mean"][index], color=colour, linewidth=width)
    panel.plot(rounds, here.printed[2], **PRINTED)


def _draw_differences(panel: "Axes", here: xr.Dataset) -> None:
    panel.axhline(0, color="0.7", linewidth=0.6, zorder=0)
    rounds = here["round"].values
    shown = np.unique(np.searchsorted(rounds, [time for time in ROUNDS_COMPARED if time <= rounds[-1]]))
    for index, marker in enumerate(MARKERS, start=1):
        panel.errorbar(
            rounds[shown] * 1.13 ** (index - 2),
            here.difference.values[index, shown],
            Z * here.difference_error.values[index, shown],
            color=_colours()[index],
            linestyle="none",
            marker=marker,
            elinewidth=0.9,
            **MARK,
        )


def _draw_legend(figure: "FigureBase", data: xr.Dataset) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    marks = ("none", *MARKERS)
    lines = [
        Line2D(
            [],
            [],
            color=_colours()[index],
            linewidth=width,
            marker=marks[index],
            **MARK,
            label=rf"$\Gamma = \sigma_0^{{{power:g}}}$ = {SIGMA_0**power:.2f}",
        )
        for index, (power, width) in enumerate(zip(data.threshold_power.values, WIDTHS, strict=True))
    ]
    others = [Line2D([], [], **PRINTED, label="Theorem 2 as printed"), Patch(**BAND, label="10–90 % of replicates")]
    figure.legend(handles=[*lines, *others], loc="outside upper center", ncols=3)


def caption(data: xr.Dataset) -> str:
    return (
        "N = 30 tasks in K = 3 clusters, M = 5 experts, perturbation λ = σ₀^1.25. Above: means under four termination "
        "thresholds, as lines that lie on each other from wide to narrow, with the 10–90 % band of the first; Theorem "
        "2 is (21), (22) from each replicate's pool and loads at Γ = σ₀^1.25. (c) is the exponential of the entropy of "
        "the loads' shares: 5 for even loads, 1 if one expert has them all. Below: paired differences from the first "
        "threshold on the same pools and arrivals, with a 95 % interval each.\n" + closing(data)
    )


FIGURE = FigureSpec(
    name="figure-9",
    title="Learning and load balance under four termination thresholds",
    summary="Fig. 9: forgetting, generalization error and load balance for N = 30, with Theorem 2.",
    replicates=400,
    size=(7.2, 4.2),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("continual.figure-9.*", "continual.theorem-2.*"),
)
