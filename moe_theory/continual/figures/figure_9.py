"""Fig. 9: forgetting, generalization error and load balance under four termination thresholds, N = 30."""

import numpy as np
import xarray as xr
from jaxtyping import Float

from moe_theory import plot
from moe_theory.continual import theory
from moe_theory.continual.experiments import FIGURE_9, THRESHOLD_POWERS, bounds_of, effective_experts
from moe_theory.continual.figures.figure_8 import settings_of
from moe_theory.continual.params import SIGMA_0
from moe_theory.plot import roles
from moe_theory.runs import Run

DIMS = FIGURE_9.dims
SYMBOLS = {
    "forgetting": "forgetting $F_t$",
    "generalization_error": "generalization error $G_t$",
    "effective_experts": "experts in use, $\\exp H(L_t/t)$",
}
WIDTHS = (5.0, 3.4, 2.0, 0.8)  # widths of lines that lie on each other
MARKERS = "os^"  # markers of the thresholds compared with the first
ROUNDS_COMPARED = (20, 40, 100, 200, 500, 1000, 2000)
MARK = roles.ArtistStyle(markersize=4, markeredgecolor="black", markeredgewidth=0.5)


def compute(setup: plot.Setup) -> xr.Dataset:
    cells = plot.log_axis_cells(settings_of(setup), FIGURE_9.system, FIGURE_9.observe, setup.rounds)
    runs = dict(zip(THRESHOLD_POWERS, setup.run(cells).values(), strict=True))
    first_run = runs[THRESHOLD_POWERS[0]]
    printed = {power: bounds_of(run, DIMS, theory.theorem_2) for power, run in runs.items()}

    def values_at(metric: str, power: float) -> dict[str, Float[np.ndarray, " R"]]:
        samples = _samples(runs[power], metric)
        paired = plot.across_replicates(samples - _samples(first_run, metric))
        bound = getattr(printed[power], metric, np.full_like(samples, np.nan))
        return plot.across_replicates(samples) | {
            "printed": bound.mean(axis=1),
            "difference": paired["mean"],
            "difference_error": paired["error"],
        }

    return plot.over(values_at, {"round": first_run.rounds}, metric=list(SYMBOLS), threshold_power=THRESHOLD_POWERS)


def _samples(run: Run, metric: str) -> Float[np.ndarray, "R B"]:
    if metric == "effective_experts":
        return effective_experts(run.records.loads.astype(np.float64))
    return getattr(run.records, metric).astype(np.float64)


@plot.figure(
    "continual.figure-9",
    compute,
    title="Learning and load balance under four termination thresholds",
    summary="Fig. 9: forgetting, generalization error and load balance for N = 30, with Theorem 2.",
    replicates=400,
    size=(7.2, 4.2),
    rounds=FIGURE_9.num_rounds,
    claims=("continual.figure-9.*", "continual.theorem-2.*"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """N = 30 tasks in K = 3 clusters, M = 5 experts, perturbation λ = σ₀^1.25. Above: means under four termination
    thresholds, as lines that lie on each other from wide to narrow, with the 10–90 % band of the first; Theorem 2 is
    (21), (22) from each replicate's pool and loads at Γ = σ₀^1.25. (c) is the exponential of the entropy of the loads'
    shares: 5 for even loads, 1 if one expert has them all. Below: paired differences from the first threshold on the
    same pools and arrivals, with a 95 % interval each.
    """
    axes = canvas.subplots(2, len(SYMBOLS), sharex=True, squeeze=False)
    for letter, (metric, symbol), (level_panel, difference_panel) in zip("abc", SYMBOLS.items(), axes.T, strict=True):
        selection = data.sel(metric=metric)
        _draw_levels(level_panel, selection)
        _draw_differences(difference_panel, selection)
        level_panel.set_title(f"({letter}) {symbol}", loc="left")
        difference_panel.set_xlabel("round $t$")
    axes[0, 2].set_ylim(1, DIMS.max_experts)
    axes[0, 0].set_ylabel("mean under each threshold")
    axes[1, 0].set_ylabel(r"change from $\Gamma = \sigma_0^{0.75}$")
    canvas.align_ylabels(axes[:, 0])
    plot.legend(canvas, 3)


def _colours() -> list[str]:
    return plot.ramp(len(WIDTHS))[::-1]


def _draw_levels(panel: plot.Axes, selection: xr.Dataset) -> None:
    rounds = selection["round"].values
    panel.set_xscale("log")
    panel.set_xlim(rounds[0], 1.3 * selection.attrs["num_rounds"])  # room for the last marks
    if str(selection.metric.values) in theory.Bound._fields:
        roles.ZERO.hline(panel, 0)
    looks = zip(
        selection.threshold_power.values, selection["mean"], WIDTHS, _colours(), ("none", *MARKERS), strict=True
    )
    for power, mean, width, colour, marker in looks:
        label = rf"$\Gamma = \sigma_0^{{{power:g}}}$ = {SIGMA_0**power:.2f}"
        panel.plot(rounds, mean, color=colour, linewidth=width)
        MARK(color=colour, linewidth=width, marker=marker).plot(panel, [], [], label)  # for the legend
    roles.PRINTED.plot(panel, rounds, selection.printed[2], label="Theorem 2 as printed")  # at the third threshold
    roles.BAND.fill(panel, rounds, selection.low[0], selection.high[0], label="10–90 % of replicates")


def _draw_differences(panel: plot.Axes, selection: xr.Dataset) -> None:
    roles.ZERO.hline(panel, 0)
    rounds = selection["round"].values
    times = [time for time in ROUNDS_COMPARED if time <= rounds[-1]]
    places = np.unique(np.searchsorted(rounds, times))  # indices of the next recorded rounds
    for index, marker in enumerate(MARKERS, start=1):
        points = selection.isel(threshold_power=index, round=places)
        look = MARK(color=_colours()[index], linestyle="none", marker=marker)
        shifted_rounds = points["round"] * 1.13 ** (index - 2)  # so that marks do not hide each other
        plot.intervals(panel, shifted_rounds, points.difference, points.difference_error, style=look)
