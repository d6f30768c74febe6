"""Capacity over the number of active experts, against the paper's growth with k, sqrt(k (1 + log(T/k))).

(a) A given linear router, with linear experts: the supremum over the experts is exact. (b) Experts and router both
fitted to random labels. Capacities are in units of R_m(H), that of one expert, which by Eq. (32) bounds (a).
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from moe_theory.generalization import theory
from moe_theory.generalization.experiments import FIT_RATE, best_gaps, cell_name
from moe_theory.generalization.instances import linear_router
from moe_theory.generalization.model import Dims
from moe_theory.runs import Cell, Progress, Run, quiet, run_cells
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, closing, panel_row, provenance, ramp, replicates_and_seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

DIMS = Dims(max_experts=16, num_features=10, max_samples=256)
ACTIVE = (1, 2, 3, 4, 6, 8, 12, 16)
NORMS = (1.0, 4.0, 16.0, 64.0)  # W of the router
NUM_STEPS = 400
INSTANCES = 16  # of (a) per replicate of (b), as they are cheap
DIMENSIONS = ("norm", "active")
LINES: tuple[dict[str, Any], ...] = (
    {"marker": "o"},
    {"marker": "s"},
    {"marker": "^"},
    {"marker": "D"},
)
STYLES: dict[str, dict[str, Any]] = {
    "paper": {"color": "C1", "linewidth": 1.4, "linestyle": (0, (4, 1.6))},
    "theory": {"color": "black", "linewidth": 1.0, "linestyle": (0, (1, 1.2)), "zorder": 3},
    "level": {"color": "0.3", "linewidth": 0.8, "linestyle": (0, (1, 1.5)), "zorder": 0},
}
Z = 1.96  # a 95 % interval at each point


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """Both capacities in units of R_m(H) by router norm and number of active experts, and the paper's curve.

    Raises: InvalidRunError for replicates or steps that cannot be run.
    """
    length = NUM_STEPS if num_rounds is None else num_rounds
    params = {(norm, active): _params(reading, norm, active) for norm in NORMS for active in ACTIVE}
    names = {(norm, active): cell_name(W=norm, k=active) for norm, active in params}
    settings = {names[place]: (DIMS, values) for place, values in params.items()}
    gaps = best_gaps(settings, length, replicates, seed, progress, "capacity")
    router = linear_router(DIMS)
    parts = [Cell(names[place], router, values, 1) for place, values in params.items()]
    runs = run_cells(parts, INSTANCES * replicates, seed=seed, progress=progress, what="capacity")
    lone = float(np.mean(next(iter(runs.values())).records.lone, dtype=np.float64))
    learned = 2 * by_inclusion(np.array([[gaps[names[norm, active]] for active in ACTIVE] for norm in NORMS])) / lone
    fixed = np.array([[_routed(runs[names[norm, active]]) for active in ACTIVE] for norm in NORMS]) / lone
    squares = [[_mean_square_gate(runs[names[norm, active]]) for active in ACTIVE] for norm in NORMS]
    growth = np.asarray(theory.sparsity_term(DIMS.max_experts, np.array(ACTIVE)))
    growth = growth / theory.sparsity_term(DIMS.max_experts, 1)
    variables: dict[str, Any] = {}
    for name, samples in (("fixed", fixed), ("learned", learned)):
        variables[name] = (DIMENSIONS, samples.mean(axis=-1))
        variables[f"{name}_error"] = (DIMENSIONS, _error(samples))
        variables[f"{name}_paper"] = ("active", samples[..., 0, :].mean() * growth / growth[0])
    variables["fixed_theory"] = (DIMENSIONS, np.sqrt(DIMS.max_experts * np.array(squares)))
    return xr.Dataset(
        variables,
        {"norm": list(NORMS), "active": list(ACTIVE)},
        provenance("generalization", "capacity", reading, replicates, seed, length, rounds=num_rounds),
    )


def by_inclusion(gaps: Float[np.ndarray, "W k B"]) -> Float[np.ndarray, "W k B"]:
    """The best of each class and those inside it: a class includes those of smaller norms.

    At k = 1 the norm is irrelevant, as a mask depends on the order of the logits alone: all norms give one class.
    """
    best = np.maximum.accumulate(gaps, axis=0)
    best[:, 0] = best[-1, 0]
    return best


def _params(reading: ReadingLike, norm: float, active: int) -> Any:
    sizes = {"num_experts": DIMS.max_experts, "num_active": active, "num_samples": DIMS.max_samples}
    return reading.params(**sizes, router_norm=norm, learning_rate=FIT_RATE)


def _routed(run: Run) -> Float[np.ndarray, " B"]:
    return run.records.routed[-1].astype(np.float64)


def _mean_square_gate(run: Run) -> float:
    return float(np.mean(run.records.mean_square_gate, dtype=np.float64))


def _error(samples: Float[np.ndarray, "W k B"]) -> Float[np.ndarray, "W k"]:
    """Standard errors of the means; NaN for one replicate."""
    count = samples.shape[-1]
    return samples.std(axis=-1, ddof=1) / np.sqrt(count) if count > 1 else np.full(samples.shape[:-1], np.nan)


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """(a) the given router, (b) the learned one; a line for each norm."""
    axes = panel_row(figure, 2)
    titles = {"fixed": "(a) router given: exact", "learned": "(b) router learned: lower estimates"}
    for panel, (name, title) in zip(axes, titles.items(), strict=True):
        panel.set_title(title, loc="left")
        panel.set(xlabel="active experts $k$", xscale="log")
        panel.set_xticks(data.active.values, [str(active) for active in data.active.values])
        panel.minorticks_off()
        panel.axhline(1, **STYLES["level"])
        panel.plot(data.active, data[f"{name}_paper"], **STYLES["paper"])
        _draw_lines(panel, data, name)
        panel.set_ylim(0, 1.05 * float(data[f"{name}_paper"].max()))
    for norm in data.norm.values:
        axes[0].plot(data.active, data.fixed_theory.sel(norm=norm), **STYLES["theory"])
    axes[0].set_ylabel("capacity, in units of one expert's, $R_m(H)$")
    _draw_legend(figure, data)


def _lines() -> list[dict[str, Any]]:
    return [{"color": colour} | line for colour, line in zip(ramp(len(LINES)), LINES, strict=True)]


def _draw_lines(panel: "Axes", data: xr.Dataset, name: str) -> None:
    for norm, line in zip(data.norm.values, _lines(), strict=False):
        here = data.sel(norm=norm)
        error = Z * np.nan_to_num(here[f"{name}_error"].values)
        panel.errorbar(here.active, here[name], error, linewidth=1.5, elinewidth=0.9, markersize=3.5, **line)


def _draw_legend(figure: "FigureBase", data: xr.Dataset) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linewidth=1.5, markersize=3.5, **line, label=f"$W$ = {norm:g}")
        for norm, line in zip(data.norm.values, _lines(), strict=False)
    ]
    handles.append(Line2D([], [], **STYLES["paper"], label=r"$\propto\sqrt{k(1+\log(T/k))}$, the paper"))
    handles.append(Line2D([], [], **STYLES["theory"], label=r"(a) $\sqrt{T\,E|a|^2}$"))
    figure.legend(handles=handles, loc="outside upper center", ncols=6, columnspacing=1.1, handlelength=2.0)


def caption(data: xr.Dataset) -> str:
    """What is drawn, and how to draw it again."""
    return (
        f"Rademacher complexity of T = {DIMS.max_experts} linear experts (|w| ≤ 1), k of them active, on m = "
        f"{DIMS.max_samples} inputs from the unit sphere in d = {DIMS.num_features} dimensions; 95 % intervals over "
        "replicates, mostly within the marks. (a) A random linear router with rows of norm W: for given signs the "
        f"supremum over the experts is exact; {INSTANCES} instances a replicate. It falls with k, the faster the "
        "smaller W, as √(T E|a|²) predicts; by Eq. (32) it would be at most that of one expert (dotted level). (b) "
        "Router rows with |v| ≤ W "
        "and experts both fitted to random labels: lower estimates, each the best fit known to be in its class "
        "(classes grow with W; at k = 1 they do not depend on W). As W → ∞ every k comes to contain k = 1. Dashed: "
        "the remark's growth with k, scaled to agree at k = 1. No d_N enters.\n"
        + closing(data, f"{replicates_and_seed(data)}, {data.attrs['num_rounds']} steps")
    )


FIGURE = FigureSpec(
    name="capacity",
    title="Capacity over the number of active experts",
    summary="Exact and fitted capacities over k at several router norms against the paper's sqrt(k(1+log(T/k))).",
    replicates=16,
    size=(7.2, 3.3),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("generalization.remark.*-learned-*", "generalization.equation-31.*"),
)
