"""Theorem 1 over the number of active experts: Eq. (22), Eq. (23), and the smallest corrected bound.

(23) bounds log binom(T, k) by k (1 + log(T/k)), which grows up to k = T. The binomial in (22) is the same for T - k.
"""

from typing import Any

import numpy as np
import xarray as xr

from moe_theory import plot
from moe_theory.generalization import theory
from moe_theory.generalization.complexity import natarajan
from moe_theory.generalization.experiments import corrected_bounds_at
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.plot import roles

EXPERTS = (8, 16, 64)
NUM_SAMPLES = 1_000_000  # enough for the bounds to be informative
NUM_FEATURES = 10
CURVES = {
    "printed": (roles.PRINTED, "Theorem 1, (23)"),
    "binomial": (roles.PRINTED_TOO, "Theorem 1, (22)"),
    "repaired": (roles.RIGHT, "what holds"),
}
AT_EACH_K = {  # bounds by the class's d_N at this k
    "printed_own": (roles.PRINTED_MARK(marker="s", markersize=5), "(23), $d_N$ at this $k$"),
    "binomial_own": (roles.PRINTED_MARK(marker="o", markersize=3, markerfacecolor="C1"), "(22), $d_N$ at this $k$"),
}


def compute(setup: plot.Setup) -> xr.Dataset:
    dimensions_of = {  # d_N for each k, by T
        number: [natarajan("linear", number, k, NUM_FEATURES, setup.reading.name) for k in range(1, number + 1)]
        for number in EXPERTS
    }

    def bounds_of(num_experts: int, active: int) -> dict[str, float]:
        if active > num_experts:
            return {}
        dimensions = dimensions_of[num_experts]
        return _bounds_of(setup, num_experts, active, largest=max(dimensions), at_this_k=dimensions[active - 1])

    data = plot.over(bounds_of, experts=EXPERTS, active=np.arange(1, max(EXPERTS) + 1))
    params = setup.params()
    return data.assign_attrs(num_rounds=0, router_norm=float(params.router_norm), delta=float(params.delta))


def _bounds_of(
    setup: plot.Setup, num_experts: int, num_active: int, largest: float, at_this_k: float
) -> dict[str, float]:
    """Return the corrected bound, and Theorem 1 with d_N `largest` and `at_this_k`."""
    params = setup.params(num_experts=num_experts, num_active=num_active, num_samples=NUM_SAMPLES)
    norm = float(params.expert_norm)
    delta = float(params.delta)

    def theorem_1(form: Any, dimension: float) -> float:
        sizes = (num_experts, num_active, NUM_SAMPLES)
        rademacher = norm / np.sqrt(NUM_SAMPLES)
        return float(theory.theorem_1(*sizes, rademacher, dimension, lipschitz=LIPSCHITZ, delta=delta, form=form))

    curves = {form: theorem_1(form, largest) for form in theory.FORMS}
    curves["repaired"] = corrected_bounds_at(params, NUM_FEATURES).best
    return curves | {f"{form}_own": theorem_1(form, at_this_k) for form in theory.FORMS} | {"natarajan": at_this_k}


def caption_words(data: xr.Dataset) -> dict[str, str]:
    return {"fixed": ", ".join(f"{float(value):g}" for value in data.natarajan.max("active"))}


@plot.figure(
    "generalization.sparsity",
    compute,
    title="Theorem 1 over the number of active experts",
    summary="(22) against (23) over k, and the smallest of the bounds that hold.",
    words=caption_words,
    runs="closed forms",
    replicates=1,
    size=(7.2, 2.9),
    rounds=1,
    claims=(
        "generalization.remark.monotone",
        "generalization.remark.factor-*",
        "generalization.equation-22.grows-*",
        "generalization.equation-23.*",
    ),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Bounds for linear experts and linear routers in d = {NUM_FEATURES} dimensions, |w| ≤ 1, |x| ≤ 1, W =
    {router_norm:g}, ramp loss, m = {NUM_SAMPLES:,}, δ = {delta:g}; R_m(H) is set to its upper bound 1/√m, d_N to the
    upper bound of this reading. Curves hold d_N fixed at its largest over k ({fixed}), as the remark on sparsity does:
    (23) grows with k, and (22) falls again beyond T/2, since there are as many ways to leave k experts out as to choose
    k. At k = T there is one mask, and the first term of (22) is 0. Points: with d_N at this k, where it is smaller.
    What holds: the smallest of the corrected bounds. All of it is evaluated exactly.
    """
    titles = [f"$T$ = {number}" for number in data.experts.values]
    axes = plot.row(canvas, titles, xlabel="active experts $k$", ylabel="bound on the generalization error")
    for panel, num_experts in zip(axes, data.experts.values, strict=True):
        selection = data.sel(experts=num_experts, active=slice(1, int(num_experts)))
        panel.set_ylim(0, 1.06 * float(selection[list(CURVES)].to_array().max()))  # room for markers
        panel.set_xticks([1, *(num_experts * share // 4 for share in (1, 2, 3, 4))])
        is_smaller = selection.natarajan.values < float(selection.natarajan.max())
        for part, styles in ((selection, CURVES), (selection.isel(active=is_smaller), AT_EACH_K)):
            for name, (role, label) in styles.items():
                role(clip_on=False).plot(panel, part.active, part[name], label)
    plot.legend(canvas, 5)
