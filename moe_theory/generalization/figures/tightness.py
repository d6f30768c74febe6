"""Bounds over the gap that training finds: Theorem 1, and the smallest corrected bound, over T and k.

The gap is that of the best fit to random labels found. It is at most the supremum, so that a ratio is at least the true
one: a ratio below 1 is a violation.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from moe_theory.generalization.experiments import FIT_RATE, best_gaps, cell_name, corrected_bounds_at, theorem_1_at
from moe_theory.generalization.model import Dims
from moe_theory.runs import Progress, quiet
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, closing, panel_row, provenance, replicates_and_seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

EXPERTS = (2, 4, 8, 16, 32)
ACTIVE = (1, *EXPERTS)
NUM_SAMPLES, NUM_FEATURES = 512, 10
ROUTER_NORM = 100.0  # W, large enough for gates near 0 and 1
NUM_STEPS = 400
BOUNDS = {"printed": "(a) Theorem 1", "repaired": "(b) what holds"}
LEVELS = (0.5, 50.0)  # of the colours
VIOLATED: dict[str, Any] = {"facecolor": "none", "edgecolor": "C1", "linewidth": 2.2, "zorder": 4}


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """The mean gap, both bounds, their ratios to it and the share of replicates beyond each; NaN where k > T.

    Raises: InvalidRunError for replicates or steps that cannot be run.
    """
    length = NUM_STEPS if num_rounds is None else num_rounds
    places = [(num_experts, active) for num_experts in EXPERTS for active in ACTIVE if active <= num_experts]
    settings = {cell_name(T=T, k=k): (_dims(T), _params(reading, T, k)) for T, k in places}
    gaps = best_gaps(settings, length, replicates, seed, progress, "tightness")
    names = ("gap", "error", *(f"{bound}{part}" for bound in BOUNDS for part in ("", "_ratio", "_exceeded")))
    values = {name: np.full((len(EXPERTS), len(ACTIVE)), np.nan) for name in names}
    for num_experts, active in places:
        found = gaps[cell_name(T=num_experts, k=active)]
        row = {"gap": found.mean(), "error": found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else np.nan}
        for name, bound in bounds_of(reading, num_experts, active).items():
            row |= {name: bound, f"{name}_ratio": bound / found.mean(), f"{name}_exceeded": np.mean(found > bound)}
        for name, value in row.items():
            values[name][EXPERTS.index(num_experts), ACTIVE.index(active)] = value
    return xr.Dataset(
        {name: (("experts", "active"), value) for name, value in values.items()},
        {"experts": list(EXPERTS), "active": list(ACTIVE)},
        provenance("generalization", "tightness", reading, replicates, seed, length, rounds=num_rounds)
        | {"delta": float(reading.params().delta)},
    )


def bounds_of(reading: ReadingLike, num_experts: int, active: int) -> dict[str, float]:
    """Theorem 1 with R_m(H) at its upper bound B c/sqrt(m) and the reading's d_N, and the smallest bound that holds."""
    params = _params(reading, num_experts, active)
    radius = float(params.expert_norm) / np.sqrt(NUM_SAMPLES)
    printed = theorem_1_at(params, radius, "linear", NUM_FEATURES)
    return {"printed": printed, "repaired": corrected_bounds_at(params, NUM_FEATURES).best}


def _dims(num_experts: int) -> Dims:
    """Not padded, since few experts would cost as much as many."""
    return Dims(num_experts, NUM_FEATURES, NUM_SAMPLES)


def _params(reading: ReadingLike, num_experts: int, active: int) -> Any:
    sizes = {"num_experts": num_experts, "num_active": active, "num_samples": NUM_SAMPLES}
    return reading.params(**sizes, router_norm=ROUTER_NORM, learning_rate=FIT_RATE)


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """Two heat maps with their numbers; violations are framed."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    levels = LogNorm(*LEVELS)
    colours = ScalarMappable(levels, "viridis")
    axes = panel_row(figure, len(BOUNDS), sharey=True)
    columns, rows = np.arange(data.sizes["experts"]), np.arange(data.sizes["active"])
    for panel, (name, title) in zip(axes, BOUNDS.items(), strict=True):
        ratios = data[f"{name}_ratio"].transpose("active", "experts").values
        panel.pcolormesh(columns, rows, ratios, cmap=colours.cmap, norm=levels)
        panel.set_title(title, loc="left")
        panel.set_xlabel("experts $T$")
        panel.set_xticks(columns, [str(number) for number in data.experts.values])
        panel.set_yticks(rows, [str(number) for number in data.active.values])
        _label_cells(panel, ratios)
    axes[0].set_ylabel("active experts $k$")
    bar = figure.colorbar(colours, ax=list(axes), pad=0.015, aspect=28)
    bar.set_ticks([0.5, 1, 2, 5, 10, 20, 50], labels=["0.5", "1", "2", "5", "10", "20", "50"])
    bar.ax.minorticks_off()
    bar.set_label("bound / gap found")


def _label_cells(panel: "Axes", ratios: np.ndarray) -> None:
    """Each cell's number, light on dark colours, and a frame where the bound is below the gap."""
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


def caption(data: xr.Dataset) -> str:
    """What is drawn, and how to draw it again."""
    return (
        "Bound over the mean gap |L_S − 1/2| of the best fit to random labels found in training: a lower estimate of "
        "the largest gap of the class, so that the ratios are at least the true ones. Linear experts (|w| ≤ 1) and "
        f"linear routers (rows |v| ≤ {ROUTER_NORM:g}), m = {NUM_SAMPLES}, d = {NUM_FEATURES}, inputs on the unit "
        f"sphere, ramp loss, δ = {data.attrs['delta']:g}. (a) Theorem 1, (23), with R_m(H) at its upper bound 1/√m "
        f"and d_N of linear routers under this reading; {_verdict(data)}. (b) The smallest of the corrected bounds.\n"
        + closing(data, f"{replicates_and_seed(data)}, {data.attrs['num_rounds']} steps")
    )


def _verdict(data: xr.Dataset) -> str:
    """Which cells of (a) are framed, in words."""
    below = data.printed_ratio.to_series().dropna()
    names = [f"T = {experts}, k = {active}" for (experts, active), ratio in below.items() if ratio < 1]
    return f"below the gap at {'; '.join(names)} (framed)" if names else "nowhere below the gap"


FIGURE = FigureSpec(
    name="tightness",
    title="Bounds over the gap found on random labels",
    summary="Theorem 1 and the bound that holds, each over the gap of fits to random labels, over T and k.",
    replicates=8,
    size=(7.2, 3.2),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("generalization.repaired.random-labels", "generalization.repaired.some-of-many"),
)
