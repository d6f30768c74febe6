"""Theorem 1 over the number of active experts: Eq. (22) against Eq. (23), and the smallest bound that holds.

(23) bounds log binom(T, k) by k (1 + log(T/k)), which grows up to k = T. The binomial itself, in (22), is the same for
k and T - k. Everything is a closed form, for linear experts and linear routers.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from moe_theory.core.random import root_key
from moe_theory.core.system import check_replicates, check_run
from moe_theory.generalization import theory
from moe_theory.generalization.complexity import natarajan
from moe_theory.generalization.experiments import corrected_bounds_at
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.runs import Progress, quiet
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, closing, panel_row, provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

EXPERTS = (8, 16, 64)
NUM_SAMPLES = 1_000_000  # enough for the bounds to be informative
NUM_FEATURES = 10
CURVES = ("printed", "binomial", "repaired")
OWN = ("printed_own", "binomial_own")  # with the dimension that the class has at this k
STYLES: dict[str, dict[str, Any]] = {
    "printed": {"color": "C1", "linewidth": 1.4, "linestyle": (0, (4, 1.6))},
    "binomial": {"color": "C1", "linewidth": 1.4, "linestyle": (0, (1, 1.2))},
    "repaired": {"color": "black", "linewidth": 1.0, "linestyle": (0, (4, 1.2, 1, 1.2))},
    "printed_own": {"color": "C1", "linestyle": "none", "marker": "s", "markersize": 5, "markerfacecolor": "white"},
    "binomial_own": {"color": "C1", "linestyle": "none", "marker": "o", "markersize": 3},
}
LEGEND = {
    "printed": "Theorem 1, (23)",
    "binomial": "Theorem 1, (22)",
    "printed_own": "(23), $d_N$ at this $k$",
    "binomial_own": "(22), $d_N$ at this $k$",
    "repaired": "what holds",
}


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """Bounds by number of experts and of active ones, NaN where k > T; nothing is drawn, whatever the replicates.

    Raises: InvalidRunError for replicates or rounds that cannot be run.
    """
    del progress
    check_replicates(replicates)
    check_run(1 if num_rounds is None else num_rounds, 1)
    root_key(seed)
    active = np.arange(1, max(EXPERTS) + 1)
    values = {name: np.full((len(EXPERTS), len(active)), np.nan) for name in (*CURVES, *OWN, "natarajan")}
    for row, num_experts in enumerate(EXPERTS):
        own = [natarajan("linear", num_experts, k, NUM_FEATURES, reading.name) for k in range(1, num_experts + 1)]
        for column, dimension in enumerate(own):
            for name, value in _bounds_of(reading, num_experts, column + 1, max(own), dimension).items():
                values[name][row, column] = value
    return xr.Dataset(
        {name: (("experts", "active"), value) for name, value in values.items()},
        {"experts": list(EXPERTS), "active": active},
        provenance("generalization", "sparsity", reading, replicates, seed, 0, rounds=num_rounds)
        | {"router_norm": float(reading.params().router_norm), "delta": float(reading.params().delta)},
    )


def _bounds_of(reading: ReadingLike, num_experts: int, num_active: int, fixed: float, own: float) -> dict[str, float]:
    params = reading.params(num_experts=num_experts, num_active=num_active, num_samples=NUM_SAMPLES)
    norm, delta = float(params.expert_norm), float(params.delta)
    sizes = (num_experts, num_active, NUM_SAMPLES)
    values = {"natarajan": own}
    for suffix, dimension in (("", fixed), ("_own", own)):
        for form in theory.FORMS:
            values[form + suffix] = float(
                theory.theorem_1(*sizes, norm / np.sqrt(NUM_SAMPLES), dimension, LIPSCHITZ, delta, form)
            )
    return values | {"repaired": corrected_bounds_at(params, NUM_FEATURES).best}


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """A panel for each number of experts."""
    axes = panel_row(figure, data.sizes["experts"])
    for panel, num_experts in zip(axes, data.experts.values, strict=True):
        here = data.sel(experts=num_experts, active=slice(1, int(num_experts)))
        panel.set_title(f"$T$ = {num_experts}")
        panel.set(xlabel="active experts $k$", ylim=(0, 1.06 * float(here[list(CURVES)].to_array().max())))
        panel.set_xticks([1, *(num_experts * share // 4 for share in (1, 2, 3, 4))])
        for name in CURVES:
            panel.plot(here.active, here[name], clip_on=False, **STYLES[name])
        _draw_own(panel, here)
    axes[0].set_ylabel("bound on the generalization error")
    _draw_legend(figure)


def _draw_own(panel: "Axes", here: xr.Dataset) -> None:
    """Points where d_N at this k is below that of the curves."""
    differs = here.isel(active=here.natarajan.values < float(here.natarajan.max()))
    for name in OWN:
        panel.plot(differs.active, differs[name], clip_on=False, zorder=4, **STYLES[name])


def _draw_legend(figure: "FigureBase") -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **STYLES[name], label=label) for name, label in LEGEND.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=5)


def caption(data: xr.Dataset) -> str:
    """What is drawn, and how to draw it again."""
    about = data.attrs
    fixed = ", ".join(f"{float(value):g}" for value in data.natarajan.max("active"))
    return (
        f"Bounds for linear experts and linear routers in d = {NUM_FEATURES} dimensions, |w| ≤ 1, |x| ≤ 1, W = "
        f"{about['router_norm']:g}, ramp loss, m = {NUM_SAMPLES:,}, δ = {about['delta']:g}; R_m(H) is set to its "
        "upper bound 1/√m, d_N to the upper bound of this reading. Curves hold d_N fixed at its largest over k "
        f"({fixed}), as the remark on sparsity does: (23) grows with k, and (22) falls again beyond T/2, since there "
        "are as many ways to leave k experts out as to choose k. At k = T there is one mask, and the first term of "
        "(22) is 0. Points: with d_N at this k, where it is smaller. What holds: the smallest of the corrected bounds. "
        "All of it is evaluated exactly.\n" + closing(data, "closed forms")
    )


FIGURE = FigureSpec(
    name="sparsity",
    title="Theorem 1 over the number of active experts",
    summary="(22) against (23) over k, and the smallest of the bounds that hold.",
    replicates=1,
    size=(7.2, 2.9),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=(
        "generalization.remark.monotone",
        "generalization.remark.factor-*",
        "generalization.equation-22.grows-*",
        "generalization.equation-23.*",
    ),
)
