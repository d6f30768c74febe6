"""Where Theorem 1's bound crosses the gap: counterexamples A and B over the number of samples.

Both have k = 1, where the readings of d_N agree. For A's fixed router d_N = 0. B's router is learned.
"""

import bisect
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from moe_theory import plot
from moe_theory.core.system import fields
from moe_theory.generalization import corrected
from moe_theory.generalization.complexity import constants, natarajan
from moe_theory.generalization.experiments import theorem_1_at
from moe_theory.generalization.instances import cells, learned_cells
from moe_theory.generalization.model import LIPSCHITZ, Dims
from moe_theory.plot import roles
from moe_theory.runs import Cell


class Case(NamedTuple):
    title: str
    is_learned: bool  # whether the router is learned (B) or fixed (A)
    samples: tuple[int, ...]
    num_experts: int
    is_growing: bool = False  # whether `num_experts` is a number per sample


ROUND_NUMBERS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
MULTIPLES = (256, 1024, 4096, 16384, 65536, 131072, 262144, 524288)  # multiples of T, for even cells
CASES: dict[str, Case] = {
    "growing": Case(
        r"(a) fixed router, $T = 10\,m$", is_learned=False, samples=ROUND_NUMBERS, num_experts=10, is_growing=True
    ),
    "fixed": Case(
        "(b) fixed router, $T = 5000$",
        is_learned=False,
        samples=(*ROUND_NUMBERS, 20000, 50000, 100000),
        num_experts=5000,
    ),
    "learned": Case("(c) learned router, $T = 64$", is_learned=True, samples=MULTIPLES, num_experts=64),
}
BOUNDS = {  # by the class's d_N, by d_N = 1 where it is 0, and corrected
    "printed": (roles.PRINTED, "Theorem 1, $d_N$ = 0; (c) $d_N$ of linear routers"),
    "granted": (roles.PRINTED_TOO, "Theorem 1, $d_N$ = 1"),
    "repaired": (roles.RIGHT, "what holds"),
}
LEAST_PADDED = 65536  # least length of B's arrays, so that B's smaller cases share one program
COORDINATES = 2  # inputs of B's router: an input's own coordinate and a constant
CROSSING = roles.PRINTED_MARK(marker="o", markersize=6, markeredgewidth=1.3, zorder=5)


def compute(setup: plot.Setup, names: Sequence[str] = tuple(CASES)) -> xr.Dataset:
    cases = {name: CASES[name] for name in names}
    length = setup.rounds
    observe = fields("info.gap")
    num_places = max(len(case.samples) for case in cases.values())
    cells_of_cases = []
    for name, case in cases.items():
        for samples in case.samples:
            if case.is_learned:
                padded = max(samples, LEAST_PADDED)
                dims = Dims(experts_of(case, padded), COORDINATES, padded)
                system = learned_cells(dims)
            else:
                padded = max(case.samples)
                dims = Dims(experts_of(case, padded), 1, padded)
                system = cells(dims)
            params = _params(setup, case, samples)
            name_of_cell = f"{name}, m = {samples}"
            cells_of_cases.append(Cell(name_of_cell, system, params, length, record_every=length, observe=observe))
    runs = setup.run(cells_of_cases)

    def values_of(name: str) -> plot.Values:
        case = CASES[name]
        rows = []
        for samples in case.samples:
            gaps = plot.across_replicates(runs[f"{name}, m = {samples}"].records.gap[0])
            rows.append(
                {"samples": samples, "experts": experts_of(case, samples)} | gaps | bounds_of(setup, case, samples)
            )
        columns = {key: np.array([row[key] for row in rows], float) for key in rows[0]}
        crossings = {f"{bound}_crossing": np.nan for bound in BOUNDS}
        crossings["printed_crossing"] = first_crossing(setup, case, "printed", columns["mean"])
        if not case.is_learned:
            crossings["granted_crossing"] = first_crossing(setup, case, "granted", columns["mean"])
        padding = (0, num_places - len(case.samples))
        return {key: np.pad(column, padding, constant_values=np.nan) for key, column in columns.items()} | crossings

    return plot.over(values_of, {"place": np.arange(num_places)}, case=names)


def experts_of(case: Case, num_samples: int) -> int:
    if case.is_growing:
        return case.num_experts * num_samples
    return case.num_experts


def _params(setup: plot.Setup, case: Case, num_samples: int) -> Any:
    return setup.params(num_experts=experts_of(case, num_samples), num_active=1, num_samples=num_samples)


def bounds_of(setup: plot.Setup, case: Case, num_samples: int) -> dict[str, float]:
    """Return Theorem 1 with the case's d_N, Theorem 1 with 1 where d_N is 0, and the corrected bound."""
    params = _params(setup, case, num_samples)
    num_experts = experts_of(case, num_samples)
    router = "fixed"
    norm = 1.0
    rademacher = constants(num_samples)
    patterns = 0.0
    if case.is_learned:
        router = "linear"
        norm = np.sqrt(num_samples / num_experts)  # as in `learned_cells`
        rademacher = norm / np.sqrt(num_samples)
        patterns = corrected.log_mask_patterns(num_experts, 1, num_samples, COORDINATES)
    printed = theorem_1_at(params, rademacher, router, COORDINATES)
    granted = np.nan
    if not case.is_learned:
        granted = theorem_1_at(params, rademacher, router, COORDINATES, least_natarajan=1.0)
    complexity = corrected.product_complexity(num_experts, num_samples, norm)
    repaired = corrected.uniform(complexity, patterns, num_samples, LIPSCHITZ, float(params.delta))
    return {"printed": printed, "granted": granted, "repaired": float(repaired)}


def first_crossing(setup: plot.Setup, case: Case, bound: str, means: Float[np.ndarray, " P"]) -> float:
    """Return the smallest m, interpolated, at which the bound is below the mean gap, or NaN."""
    logs = np.log(case.samples)

    def excess(num_samples: int) -> float:
        gap = np.exp(np.interp(np.log(num_samples), logs, np.log(means)))
        return bounds_of(setup, case, num_samples)[bound] - float(gap)

    low = case.samples[0]
    high = case.samples[-1]
    if excess(high) >= 0 or excess(low) < 0:
        return float("nan")
    return float(bisect.bisect_left(range(high + 1), True, lo=low + 1, hi=high, key=lambda size: excess(size) < 0))


def caption_words(data: xr.Dataset) -> dict[str, float]:
    num_experts = CASES["learned"].num_experts
    return {"dimension": natarajan("linear", num_experts, 1, COORDINATES, reading=data.attrs["reading"])}


@plot.figure(
    "generalization.crossing",
    compute,
    title="Where Theorem 1's bound falls below the gap",
    summary="Measured gaps of two counterexamples over m, Theorem 1's bound that crosses them, and one that holds.",
    words=caption_words,
    runs="{count}",
    replicates=64,
    size=(7.2, 3.2),
    rounds=1,
    claims=(
        "generalization.theorem-1.fixed-router",
        "generalization.theorem-1.learned-router",
        "generalization.theorem-1.dense",
        "generalization.repaired.fixed-router",
        "generalization.repaired.learned-router",
        "generalization.repaired.dense",
    ),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Largest gap sup |L_S − L_D| over a class, on fair labels that inputs say nothing about, so that L_D = 1/2; k = 1,
    ramp loss, δ = 0.05. Gap and L_D are exact for each sample drawn. (a), (b) A fixed router: x is uniform on [0, 1],
    cell ⌊T x⌋ has an expert of its own, +1 or −1, and R_m(H) is exact. One mask function has d_N = 0; with d_N = 1 the
    bound is crossed as well. (c) T experts in a ball of radius √(m/T) in an RKHS of orthonormal inputs, R_m(H) = 1/√T
    exactly, and all linear routers on one coordinate and a constant, of d_N at most {dimension:g}. At k = 1 both
    readings of d_N agree. What holds: the corrected bound for k = 1; above 1 (dotted) a bound is vacuous. Circles: the
    m from which on Theorem 1 is below the mean gap.
    """
    titles = [case.title for case in CASES.values()]
    label = "generalization error"
    axes = plot.row(canvas, titles, ylabel=label, sharey=True, xlabel="samples $m$", xscale="log", yscale="log")
    for panel, (name, case) in zip(axes, CASES.items(), strict=True):
        selection = data.sel(case=name).isel(place=slice(len(case.samples)))
        panel.set_xlim(case.samples[0], case.samples[-1])
        roles.REFERENCE.hline(panel, 1)
        marked = roles.MEASURED(marker="o", markersize=3, clip_on=False)
        plot.curve(panel, selection.samples, selection, marked, label="measured gap", band="10–90 % of replicates")
        for bound, (role, label) in BOUNDS.items():
            if bool(selection[bound].notnull().any()):
                role.plot(panel, selection.samples, selection[bound], label=label)
        _draw_crossings(panel, selection)
    plot.legend(canvas, 3)


def _draw_crossings(panel: plot.Axes, selection: xr.Dataset) -> None:
    samples = selection.samples.values
    means = selection["mean"].values
    for bound, shift in (("printed", (-5, -6)), ("granted", (5, 6))):  # shift of the note, in points
        place = float(selection[f"{bound}_crossing"])
        if np.isnan(place):
            continue
        gap = float(np.exp(np.interp(np.log(place), np.log(samples), np.log(means))))
        CROSSING.plot(panel, [place], [gap], label="falls below the gap")
        plot.note(panel, f"$m$ = {place:,.0f}", (place, gap), shift, color="C1")


def overview_curves(setup: plot.Setup) -> plot.Curves:
    """Return the gap of a fixed router with ten experts per sample, (23) and its correction."""
    overview_setup = picture.setup(setup.reading, setup.replicates, setup.seed, setup.progress)
    data = compute(overview_setup, ["growing"]).sel(case="growing").dropna("place", subset=["samples"])
    columns = (data.samples, data["mean"], data.low, data.high, data.printed, data.repaired)
    return plot.Curves(*(column.values for column in columns))


OVERVIEW = plot.Panel(
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
