"""Ratios of bounds to the gap found by training, over T and k: Theorem 1, and the smallest corrected bound.

This gap is at most the supremum, so a ratio below 1 is a violation.
"""

import itertools
from typing import Any

import numpy as np
import xarray as xr

from moe_theory import plot
from moe_theory.generalization.experiments import FIT_RATE, best_gaps, cell_name, corrected_bounds_at, theorem_1_at
from moe_theory.generalization.model import Dims
from moe_theory.plot import roles

EXPERTS = (2, 4, 8, 16, 32)
ACTIVE = (1, *EXPERTS)
NUM_SAMPLES = 512
NUM_FEATURES = 10
ROUTER_NORM = 100.0  # W, large enough for gates near 0 and 1
BOUNDS = {"printed": "(a) Theorem 1", "repaired": "(b) what holds"}
LEVELS = (0.5, 50.0)  # limits of the colours
VIOLATED = roles.ArtistStyle(facecolor="none", edgecolor="C1", linewidth=2.2, zorder=4)


def compute(setup: plot.Setup) -> xr.Dataset:
    places = [(T, k) for T, k in itertools.product(EXPERTS, ACTIVE) if k <= T]
    # Not padded, because then few experts would cost as much as many.
    dims = {number: Dims(number, NUM_FEATURES, NUM_SAMPLES) for number in EXPERTS}
    settings = {cell_name(T=T, k=k): (dims[T], _params(setup, T, k)) for T, k in places}
    gaps = best_gaps(settings, setup.rounds, setup.replicates, setup.seed, progress=setup.progress, words=setup.name)

    def values_of(num_experts: int, active: int) -> plot.Values:
        if active > num_experts:
            return {}
        gaps_of_cell = gaps[cell_name(T=num_experts, k=active)]
        across = plot.across_replicates(gaps_of_cell)
        values = {"gap": across["mean"], "error": across["error"]}
        for name, bound in bounds_of(setup, num_experts, active).items():
            values |= {
                name: bound,
                f"{name}_ratio": bound / gaps_of_cell.mean(),
                f"{name}_exceeded": np.mean(gaps_of_cell > bound),
            }
        return values

    data = plot.over(values_of, experts=EXPERTS, active=ACTIVE)
    return data.assign_attrs(delta=float(setup.params().delta))


def bounds_of(setup: plot.Setup, num_experts: int, active: int) -> dict[str, float]:
    """Return Theorem 1, with R_m(H) at B c/sqrt(m) and the reading's d_N, and the corrected bound."""
    params = _params(setup, num_experts, active)
    radius = float(params.expert_norm) / np.sqrt(NUM_SAMPLES)
    printed = theorem_1_at(params, radius, "linear", NUM_FEATURES)
    return {"printed": printed, "repaired": corrected_bounds_at(params, NUM_FEATURES).best}


def _params(setup: plot.Setup, num_experts: int, active: int) -> Any:
    sizes = {"num_experts": num_experts, "num_active": active, "num_samples": NUM_SAMPLES}
    return setup.params(**sizes, router_norm=ROUTER_NORM, learning_rate=FIT_RATE)


def caption_words(data: xr.Dataset) -> dict[str, str]:
    below = data.printed_ratio.to_series().dropna()
    names = [f"T = {experts}, k = {active}" for (experts, active), ratio in below.items() if ratio < 1]
    return {"below": f"below the gap at {'; '.join(names)} (framed)" if names else "nowhere below the gap"}


@plot.figure(
    "generalization.tightness",
    compute,
    title="Bounds over the gap found on random labels",
    summary="Theorem 1 and the bound that holds, each over the gap of fits to random labels, over T and k.",
    words=caption_words,
    runs="{count}, {num_rounds} steps",
    replicates=8,
    size=(7.2, 3.2),
    rounds=400,
    claims=("generalization.repaired.random-labels", "generalization.repaired.some-of-many"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Bound over the mean gap |L_S − 1/2| of the best fit to random labels found in training: a lower estimate of the
    largest gap of the class, so that the ratios are at least the true ones. Linear experts (|w| ≤ 1) and linear routers
    (rows |v| ≤ {ROUTER_NORM:g}), m = {NUM_SAMPLES}, d = {NUM_FEATURES}, inputs on the unit sphere, ramp loss, δ =
    {delta:g}. (a) Theorem 1, (23), with R_m(H) at its upper bound 1/√m and d_N of linear routers under this reading;
    {below}. (b) The smallest of the corrected bounds.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    levels = LogNorm(*LEVELS)
    colours = ScalarMappable(levels, "viridis")
    labels = roles.ArtistStyle(xlabel="experts $T$", ylabel="active experts $k$")
    axes = plot.row(canvas, list(BOUNDS.values()), sharey=True, **labels)
    columns = np.arange(data.sizes["experts"])
    rows = np.arange(data.sizes["active"])
    for panel, name in zip(axes, BOUNDS, strict=True):
        ratios = data[f"{name}_ratio"].transpose("active", "experts").values
        panel.pcolormesh(columns, rows, ratios, cmap=colours.cmap, norm=levels)
        plot.name_values(panel.xaxis, data.experts.values, columns)
        plot.name_values(panel.yaxis, data.active.values, rows)
        _label_cells(panel, ratios)
    bar = canvas.colorbar(colours, ax=list(axes), pad=0.015, aspect=28, label="bound / gap found")
    plot.name_values(bar.ax.yaxis, (0.5, 1, 2, 5, 10, 20, 50))


def _label_cells(panel: plot.Axes, ratios: np.ndarray) -> None:
    from matplotlib.patches import Rectangle

    middle = np.sqrt(LEVELS[0] * LEVELS[1])
    for (row, column), ratio in np.ndenumerate(ratios):
        if np.isnan(ratio):
            continue
        colour = "white" if ratio < middle else "black"
        text = f"{ratio:.2f}" if ratio < 10 else f"{ratio:.1f}"
        weight = "bold" if ratio < 1 else "normal"
        panel.text(column, row, text, ha="center", va="center", color=colour, weight=weight)
        if ratio < 1:
            panel.add_patch(Rectangle((column - 0.47, row - 0.47), 0.94, 0.94, **VIOLATED))
