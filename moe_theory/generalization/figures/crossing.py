"""Where Theorem 1's bound falls below the gap: counterexamples A and B over the number of samples.

Both have k = 1, where the readings of d_N agree. In A the router is fixed, so that d_N is 0, as one function shatters
nothing; 1 in its place changes little. In B it is linear and learned, and d_N is that of linear routers.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from moe_theory.core.system import System
from moe_theory.generalization import corrected
from moe_theory.generalization.complexity import constants, natarajan
from moe_theory.generalization.experiments import theorem_1_at
from moe_theory.generalization.instances import State, cells, learned_cells
from moe_theory.generalization.model import LIPSCHITZ, Dims
from moe_theory.runs import Cell, Progress, quiet, run_cells
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import (
    Curves,
    FigureSpec,
    Panel,
    across_replicates,
    closing,
    panel_row,
    provenance,
    replicates_and_seed,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase


class Case(NamedTuple):
    """One panel: a family of instances over the number of samples."""

    title: str
    is_learned: bool  # the router: B, or A
    samples: tuple[int, ...]
    num_experts: int
    is_growing: bool = False  # whether `num_experts` is per sample


TENS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
POWERS = (256, 1024, 4096, 16384, 65536, 131072, 262144, 524288)  # multiples of T, for even cells
CASES: dict[str, Case] = {
    "growing": Case(r"(a) fixed router, $T = 10\,m$", False, TENS, 10, True),
    "fixed": Case("(b) fixed router, $T = 5000$", False, (*TENS, 20000, 50000, 100000), 5000),
    "learned": Case("(c) learned router, $T = 64$", True, POWERS, 64),
}
BOUNDS = ("printed", "granted", "repaired")  # d_N as it is, d_N = 1 where it is 0, and the corrected bound
STATISTICS = ("mean", "low", "high", "error")
LEAST_PADDED = 65536  # samples of B's programs
COORDINATES = 2  # of B's router: an input's own and a constant
STYLES: dict[str, dict[str, Any]] = {
    "mean": {"color": "C0", "linewidth": 1.6, "marker": "o", "markersize": 3},
    "band": {"color": "C0", "linewidth": 0, "alpha": 0.2},
    "printed": {"color": "C1", "linewidth": 1.4, "linestyle": (0, (4, 1.6))},
    "granted": {"color": "C1", "linewidth": 1.2, "linestyle": (0, (1, 1.2))},
    "repaired": {"color": "black", "linewidth": 1.0, "linestyle": (0, (4, 1.2, 1, 1.2))},
    "level": {"color": "0.3", "linewidth": 0.8, "linestyle": (0, (1, 1.5)), "zorder": 0},
    "crossing": {
        "color": "C1",
        "linestyle": "none",
        "marker": "o",
        "markersize": 6,
        "markerfacecolor": "white",
        "markeredgewidth": 1.3,
        "zorder": 5,
    },
}
LEGEND = {
    "mean": "measured gap",
    "band": "10–90 % of replicates",
    "repaired": "what holds",
    "printed": "Theorem 1, $d_N$ = 0; (c) $d_N$ of linear routers",
    "granted": "Theorem 1, $d_N$ = 1",
    "crossing": "falls below the gap",
}


def observe(state: State, info: Any) -> Float[Array, ""]:
    """The gap of the instance drawn."""
    del state
    return info.gap


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """The gap's mean and band, the bounds and where they cross, by case and place on the axis of samples.

    Each case has its own samples; shorter ones are padded with NaN.

    Raises: InvalidRunError for replicates or rounds that cannot be run.
    """
    length = 1 if num_rounds is None else num_rounds
    parts = [
        Cell(f"{name}, m = {samples}", _system(case, samples), _params(reading, case, samples), length, length, observe)
        for name, case in CASES.items()
        for samples in case.samples
    ]
    runs = run_cells(parts, replicates, seed=seed, progress=progress, what="crossing")
    places = max(len(case.samples) for case in CASES.values())
    names = ("samples", "experts", *STATISTICS, *BOUNDS)
    values = {name: np.full((len(CASES), places), np.nan) for name in names}
    crossings = {f"{bound}_crossing": np.full(len(CASES), np.nan) for bound in BOUNDS}
    for row, (name, case) in enumerate(CASES.items()):
        for place, samples in enumerate(case.samples):
            gaps = across_replicates(runs[f"{name}, m = {samples}"].records)
            found = {measure: float(value[0]) for measure, value in gaps.items()}
            found |= {"samples": samples, "experts": experts_of(case, samples)} | bounds_of(reading, case, samples)
            for key, value in found.items():
                values[key][row, place] = value
        means = values["mean"][row, : len(case.samples)]
        for bound in ("printed",) if case.is_learned else ("printed", "granted"):
            crossings[f"{bound}_crossing"][row] = first_crossing(reading, case, bound, means)
    return xr.Dataset(
        {name: (("case", "place"), value) for name, value in values.items()}
        | {name: ("case", value) for name, value in crossings.items()},
        {"case": list(CASES), "place": np.arange(places)},
        provenance("generalization", "crossing", reading, replicates, seed, length, rounds=num_rounds),
    )


def experts_of(case: Case, num_samples: int) -> int:
    """T at this m."""
    return case.num_experts * num_samples if case.is_growing else case.num_experts


def _system(case: Case, num_samples: int) -> System:
    """Padded to the case's largest sample, for one program; B, which sorts, less."""
    padded = max(num_samples, LEAST_PADDED) if case.is_learned else max(case.samples)
    dims = Dims(experts_of(case, padded), COORDINATES if case.is_learned else 1, padded)
    return learned_cells(dims) if case.is_learned else cells(dims)


def _params(reading: ReadingLike, case: Case, num_samples: int) -> Any:
    return reading.params(num_experts=experts_of(case, num_samples), num_active=1, num_samples=num_samples)


def bounds_of(reading: ReadingLike, case: Case, num_samples: int) -> dict[str, float]:
    """Theorem 1 with the d_N of the case, and with 1 where it is 0 (NaN elsewhere), and the bound that holds."""
    params, num_experts = _params(reading, case, num_samples), experts_of(case, num_samples)
    router, norm, rademacher, patterns = "fixed", 1.0, constants(num_samples), 0.0
    if case.is_learned:
        router, norm = "linear", np.sqrt(num_samples / num_experts)
        rademacher = norm / np.sqrt(num_samples)
        patterns = corrected.log_mask_patterns(num_experts, 1, num_samples, COORDINATES)
    printed = theorem_1_at(params, rademacher, router, COORDINATES)
    granted = np.nan if case.is_learned else theorem_1_at(params, rademacher, router, COORDINATES, 1.0)
    complexity = corrected.product_complexity(num_experts, num_samples, norm)
    holds = corrected.uniform(complexity, patterns, num_samples, LIPSCHITZ, float(params.delta))
    return {"printed": printed, "granted": granted, "repaired": float(holds)}


def first_crossing(reading: ReadingLike, case: Case, bound: str, means: Float[np.ndarray, " P"]) -> float:
    """The smallest m at which the bound is below the mean gap, interpolated between the samples; NaN if none is."""
    logs = np.log(case.samples)

    def excess(num_samples: int) -> float:
        gap = np.exp(np.interp(np.log(num_samples), logs, np.log(means)))
        return bounds_of(reading, case, num_samples)[bound] - float(gap)

    low, high = case.samples[0], case.samples[-1]
    if excess(high) >= 0 or excess(low) < 0:
        return float("nan")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if excess(middle) >= 0 else (low, middle)
    return float(high)


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """A panel for each case."""
    axes = panel_row(figure, data.sizes["case"], sharey=True)
    for panel, (name, case) in zip(axes, CASES.items(), strict=True):
        here = data.sel(case=name).isel(place=slice(len(case.samples)))
        panel.set(xscale="log", yscale="log", xlabel="samples $m$", xlim=(case.samples[0], case.samples[-1]))
        panel.set_title(case.title, loc="left")
        panel.axhline(1, **STYLES["level"])
        panel.fill_between(here.samples, here.low, here.high, **STYLES["band"])
        panel.plot(here.samples, here["mean"], clip_on=False, **STYLES["mean"])
        for bound in BOUNDS:
            if bool(here[bound].notnull().any()):
                panel.plot(here.samples, here[bound], **STYLES[bound])
        _draw_crossings(panel, here)
    axes[0].set_ylabel("generalization error")
    _draw_legend(figure)


def _draw_crossings(panel: "Axes", here: xr.Dataset) -> None:
    samples, means = here.samples.values, here["mean"].values
    for bound, side in (("printed", "right"), ("granted", "left")):
        place = float(here[f"{bound}_crossing"])
        if np.isnan(place):
            continue
        gap = float(np.exp(np.interp(np.log(place), np.log(samples), np.log(means))))
        panel.plot([place], [gap], **STYLES["crossing"])
        panel.annotate(
            f"$m$ = {place:,.0f}",
            (place, gap),
            (-5 if side == "right" else 5, -6 if side == "right" else 6),
            textcoords="offset points",
            ha=side,
            va="top" if side == "right" else "bottom",
            color="C1",
        )


def _draw_legend(figure: "FigureBase") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(**STYLES[name], label=label) if name == "band" else Line2D([], [], **STYLES[name], label=label)
        for name, label in LEGEND.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)


def caption(data: xr.Dataset) -> str:
    """What is drawn, and how to draw it again."""
    return (
        "Largest gap sup |L_S − L_D| over a class, on fair labels that inputs say nothing about, so that L_D = 1/2; "
        "k = 1, ramp loss, δ = 0.05. Gap and L_D are exact for each sample drawn. (a), (b) A fixed router: x is "
        "uniform on [0, 1], cell ⌊T x⌋ has an expert of its own, +1 or −1, and R_m(H) is exact. One mask function has "
        "d_N = 0; with d_N = 1 the bound is crossed as well. (c) T experts in a ball of radius √(m/T) in an "
        "RKHS of orthonormal inputs, R_m(H) = 1/√T exactly, and all linear routers on one coordinate and a constant, "
        f"of d_N at most {_learned_dimension(data):g}. At k = 1 both readings of d_N agree. What holds: the corrected "
        "bound for k = 1; above 1 (dotted) a bound is vacuous. Circles: the m from which on Theorem 1 is below "
        "the mean gap.\n" + closing(data, replicates_and_seed(data))
    )


def _learned_dimension(data: xr.Dataset) -> float:
    return natarajan("linear", CASES["learned"].num_experts, 1, COORDINATES, data.attrs["reading"])


FIGURE = FigureSpec(
    name="crossing",
    title="Where Theorem 1's bound falls below the gap",
    summary="Measured gaps of two counterexamples over m, Theorem 1's bound that crosses them, and one that holds.",
    replicates=64,
    size=(7.2, 3.2),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=(
        "generalization.theorem-1.fixed-router",
        "generalization.theorem-1.learned-router",
        "generalization.theorem-1.dense",
        "generalization.repaired.fixed-router",
        "generalization.repaired.learned-router",
        "generalization.repaired.dense",
    ),
)


def overview_curves(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress, verdicts: Mapping[str, Any]
) -> Curves:
    """The gap of a fixed router with ten experts a sample, with (23) and the corrected bound."""
    del verdicts
    here = FIGURE.compute(reading, replicates, seed, progress).sel(case="growing").dropna("place", subset=["samples"])
    columns = (here.samples, here["mean"], here.low, here.high, here.printed, here.repaired)
    return Curves(*(column.values for column in columns))


OVERVIEW = Panel(
    title="Sparse MoE: generalization gap, $T = 10\\,m$ experts",
    note="A fixed router, k = 1, fair labels.",
    printed="generalization.theorem-1.fixed-router",
    printed_words="Theorem 1, (23)",
    right="generalization.repaired.symmetrization",
    right_words="symmetrization, cells counted",
    x_label="samples $m$",
    y_label="gap",
    log_axes="xy",
    curves=overview_curves,
)
