"""Fig. 3: the generalization error of the adaptive policy and of three that ignore the task, with theory.

Errors are per coordinate, G_t / p: truths have deviation sigma_0 an entry, so |w|^2 is p sigma_0^2, and only G_t / p
compares with sigma_0^2 and sigma_0, as in Section VI. G_t is flushed: pending tasks count as completed.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from moe_theory.core.tasks import Pool
from moe_theory.edge import corrected, theory
from moe_theory.edge.algorithm import Info, State, generalization_error_flushed, system
from moe_theory.edge.experiments import (
    FAILURE,
    FIGURE_3_DIMS,
    FIGURE_3_EXPERTS,
    FIGURE_3_ROUNDS,
    cell_name,
    error_given_routes,
    exploration_rounds,
    gaps_of,
    loads_of,
    pools_of,
    proposition_4,
)
from moe_theory.edge.params import PROPORTIONAL, Dims
from moe_theory.edge.policies import POLICIES
from moe_theory.runs import Cell, Progress, Run, quiet, run_cells
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import (
    Curves,
    FigureSpec,
    Panel,
    across_replicates,
    chosen_experts,
    closing,
    log_axis_cells,
    provenance,
    resized,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

DIMS = FIGURE_3_DIMS
DIMENSIONS = ("policy", "experts", "round")
THEORY = ("theorem_1", "proposition_4", "exact")  # NaN for policies that it is not about
VALUES = ("mean", "low", "high", "error", *THEORY)

STYLES: dict[str, dict[str, Any]] = {
    "adaptive": {"color": "C0", "linewidth": 1.6},
    "nearest": {"color": "C3", "linewidth": 4.0},
    "uniform": {"color": "C2", "linewidth": 2.2},
    "fastest": {"color": "0.45", "linewidth": 1.2},
    "band": {"color": "C0", "linewidth": 0, "alpha": 0.16},
    "printed": {"color": "C1", "linewidth": 1.5, "linestyle": (0, (4, 1.6))},
    "exact": {"color": "black", "linestyle": "none", "marker": "o", "markersize": 3, "markerfacecolor": "white"}
    | {"clip_on": False, "zorder": 4},
    "level": {"color": "0.3", "linewidth": 0.8, "linestyle": (0, (1, 1.5)), "zorder": 0},
    "explored": {"color": "0.55", "linewidth": 0.8, "zorder": 0},
}
NOTE: dict[str, Any] = {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1}}

# A single expert's exact moments converge as ((p - s)/(p - 1))^L: here to 13 digits within so many arrivals.
CONVERGED = 32


class Records(NamedTuple):
    """What is recorded of a round."""

    flushed: Float[Array, ""]
    loads: Int[Array, " M"]


def observe(state: State, info: Info) -> Records:
    """The flushed error, computed at the recorded rounds alone, and the loads."""
    del info
    return Records(generalization_error_flushed(state), state.visits)


class Routes(NamedTuple):
    """What is recorded of every round of the adaptive policy."""

    truth: Float[Array, " p"]
    task: Int[Array, ""]
    expert: Int[Array, ""]


def observe_routes(state: State, info: Info) -> Routes:
    del state
    return Routes(info.truth, info.task, info.expert)


def compute(
    reading: ReadingLike,
    replicates: int,
    seed: int,
    progress: Progress = quiet,
    *,
    num_rounds: int | None = None,
    experts: Sequence[int] | None = None,  # numbers of servers
    dims: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Means and bands of G_t / p by policy and number of servers, with Theorem 1, Proposition 4 and exact theory.

    Raises: InvalidRunError, InvalidParamsError or InvalidDimsError for what cannot be run.
    """
    length = FIGURE_3_ROUNDS if num_rounds is None else num_rounds
    numbers = chosen_experts(experts, FIGURE_3_EXPERTS)
    sizes = resized(DIMS, dims, max(numbers))
    settings = {cell_name(number): reading.params(num_experts=number) for number in numbers}
    explored = [exploration_rounds(params, max_delay=longest_delay(sizes)) for params in settings.values()]
    cells = [
        cell
        for name, policy in POLICIES.items()
        for cell in log_axis_cells(
            {f"{name}, {key}": params for key, params in settings.items()},
            system(sizes, policy),
            observe,
            length,
            also=explored,
        )
    ]
    cells += [
        Cell(f"routes, {key}", system(sizes, POLICIES["adaptive"]), params, length, 1, observe_routes)
        for key, params in settings.items()
    ]
    runs = run_cells(cells, replicates, seed=seed, progress=progress, what="figure-3")
    first = next(iter(runs.values()))
    single = np.stack([single_expert_errors(pool, sizes, first.params, length) for pool in pools_of(first)])
    rows = [
        [_values_of(runs[f"{name}, {key}"], name, single, sizes, runs[f"routes, {key}"]) for key in settings]
        for name in POLICIES
    ]
    about = provenance(
        "edge", "figure-3", reading, replicates, seed, length, rounds=num_rounds, experts=experts, dims=dims
    )
    return xr.Dataset(
        {value: (DIMENSIONS, np.array([[cell[value] for cell in row] for row in rows])) for value in VALUES},
        {
            "policy": list(POLICIES),
            "experts": list(numbers),
            "round": first.rounds,
            "explored": ("experts", explored),
        },
        about
        | {"within": float(np.mean(gaps_of(first).within_gap)) / sizes.num_features}
        | {name: getattr(sizes, name) for name in ("num_tasks", "num_features", "num_samples", "max_delay")}
        | {name: float(getattr(first.params, name)) for name in ("learning_rate", "truth_scale")},
    )


def _values_of(
    run: Run, policy: str, single: Float[np.ndarray, "B L"], dims: Dims, routes: Run
) -> dict[str, Float[np.ndarray, " R"]]:
    """The errors of a cell per coordinate, and theory; NaN for a theory that is not about its policy.

    Args:
        routes: the adaptive policy's of the same replicates, in every round.
    """
    scale, missing = 1 / dims.num_features, np.full(len(run.rounds), np.nan)
    if policy == "adaptive":
        along_routes = error_given_routes(routes, dims.num_samples)[run.rounds - 1]
        samples = {"theorem_1": theorem_1_of(run, dims), "exact": along_routes}
    else:
        loads = loads_of(run)
        errors = [corrected.by_loads(by_load, loads[:, index]) for index, by_load in enumerate(single)]
        samples = {"proposition_4": proposition_4(run, dims), "exact": np.stack(errors, axis=1)}
    theories = {name: np.mean(samples[name], axis=1) * scale if name in samples else missing for name in THEORY}
    return across_replicates(run.records.flushed.astype(np.float64) * scale) | theories


def longest_delay(dims: Dims) -> int:
    """d_u of a figure's sizes, which name it."""
    assert dims.max_delay is not None
    return dims.max_delay


def theorem_1_of(run: Run, dims: Dims) -> Float[np.ndarray, "R B"]:
    """(23) from each replicate's pool and loads, with the gap inside a cluster for its term G^4."""
    loads, pool_gaps = loads_of(run), gaps_of(run)
    ratio = theory.overparameterization_ratio(dims.num_features, dims.num_samples)
    ends = np.minimum(run.rounds, exploration_rounds(run.params, max_delay=longest_delay(dims)))
    explored = loads[np.searchsorted(run.rounds, ends, side="right") - 1]
    return np.asarray(theory.theorem_1(pool_gaps, ratio, loads, explored, loads.sum(axis=-1), pool_gaps.within_gap))


def single_expert_errors(pool: Pool, dims: Dims, params: Any, max_load: int) -> Float[np.ndarray, " L"]:
    """g(L) for L = 0..`max_load`; once it has converged, L g(L) grows by the same at each arrival."""
    last = min(CONVERGED, max_load)
    follows_truth = int(params.signal_law) == PROPORTIONAL
    errors = corrected.generalization_error(pool, dims.num_samples, last, float(params.cluster_spread), follows_truth)
    sums = errors * np.arange(last + 1)
    counts = np.arange(last + 1, max_load + 1)
    return np.concatenate([errors, (sums[-1] + (sums[-1] - sums[-2]) * (counts - last)) / counts])


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """Rows (a) the adaptive policy and (b) the others, a column for each number of servers."""
    axes = figure.subplots(2, data.sizes["experts"], sharex=True, sharey=True, squeeze=False)
    top = float(data[["high", *THEORY]].to_array().max())
    for column, num_experts in enumerate(data.experts.values):
        here = data.sel(experts=num_experts)
        for row, draw_panel in enumerate((_draw_adaptive, _draw_blind)):
            panel = axes[row, column]
            panel.set_xscale("log")
            panel.set_xlim(here["round"][0], data.attrs["num_rounds"])
            panel.set_ylim(0, 1.06 * top)
            draw_panel(panel, here)
        axes[0, column].set_title(f"$M$ = {num_experts}")
        axes[1, column].set_xlabel("round $t$")
    axes[0, 0].set_ylabel("(a) adaptive\n$G_t/p$")
    axes[1, 0].set_ylabel("(b) nearest, uniform, fastest\n$G_t/p$")
    _draw_legend(figure)


def _draw_adaptive(panel: "Axes", here: xr.Dataset) -> None:
    run, rounds, scale = here.sel(policy="adaptive"), here["round"].values, here.attrs["truth_scale"]
    panel.axhline(scale**2, **STYLES["level"])
    _note(panel, rounds[0], scale**2, r"$\sigma_0^2$", 2)
    panel.axvline(int(here.explored), **STYLES["explored"])
    panel.fill_between(rounds, run.low, run.high, **STYLES["band"])
    panel.plot(rounds, run["mean"], **STYLES["adaptive"])
    panel.plot(rounds, run.theorem_1, **STYLES["printed"])
    panel.plot(rounds, run.exact, markevery=_marks(rounds), **STYLES["exact"])
    text = f"$G_T/p$ = {float(run['mean'][-1]):.2f}"
    panel.text(0.98, 1.0, text, transform=panel.transAxes, ha="right", va="top", **NOTE)


def _draw_blind(panel: "Axes", here: xr.Dataset) -> None:
    rounds, scale = here["round"].values, here.attrs["truth_scale"]
    panel.axhline(scale, **STYLES["level"])
    _note(panel, rounds[0], scale, r"$\sigma_0$", -5)  # below where Proposition 4 begins
    panel.fill_between(rounds, here.low.sel(policy="nearest"), here.high.sel(policy="nearest"), **STYLES["band"])
    for policy in ("nearest", "uniform", "fastest"):
        run = here.sel(policy=policy)
        panel.plot(rounds, run["mean"], **STYLES[policy])
    for policy in ("nearest", "fastest"):
        run = here.sel(policy=policy)
        panel.plot(rounds, run.exact, markevery=_marks(rounds), **STYLES["exact"])
        panel.plot(rounds, run.proposition_4, **STYLES["printed"])


def _marks(rounds: Int[np.ndarray, " R"]) -> list[int]:
    """Places of about ten rounds, evenly spread on the axis."""
    return np.unique(np.searchsorted(rounds, np.geomspace(rounds[0], rounds[-1], 10).astype(int))).tolist()


def _note(panel: "Axes", x: float, y: float, text: str, shift: float) -> None:
    place = "bottom" if shift > 0 else "top"
    panel.annotate(text, (x, y), (3, shift), textcoords="offset points", va=place)


def _draw_legend(figure: "FigureBase") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    labels = {
        "adaptive": "adaptive: mean",
        "nearest": "nearest: mean",
        "uniform": "uniform: mean",
        "fastest": "fastest: mean",
        "band": "10–90 % of replicates",
        "printed": "(a) Theorem 1, (b) Proposition 4",
        "exact": "(a) theory along routes, (b) of loads",
        "explored": "(a) end of exploration $T_1$",
    }
    handles = [
        Patch(**STYLES[name], label=label) if name == "band" else Line2D([], [], **STYLES[name], label=label)
        for name, label in labels.items()
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)


def caption(data: xr.Dataset) -> str:
    """What is drawn, and how to draw it again."""
    explored = ", ".join(str(int(rounds)) for rounds in data.explored)
    about, last = data.attrs, data.attrs["num_rounds"]
    beyond = [str(int(number)) for number in data.experts[data.explored.values > last]]
    which = f", beyond the last round for M = {', '.join(beyond)}" if beyond else ""
    return (
        f"Overall generalization error per coordinate, G_t/p, of N = {about['num_tasks']} kinds of tasks on M servers "
        f"with delays of up to d_u = {about['max_delay']} rounds (Section VI: p = {about['num_features']}, s = "
        f"{about['num_samples']}, η = {about['learning_rate']:g}). Pending tasks count as completed. Every "
        "replicate draws a pool of its own. (a) The paper's policy. Theorem 1 is (23) from each replicate's pool and "
        f"loads, with the gap inside a cluster, {about['within']:.2f}, for its O(σ₀²), and T₁ = {explored} at "
        f"δ = {FAILURE:g}{which}. (b) Policies that ignore the task. Proposition 4 is (22) from each replicate's pool "
        "and loads; of each pair the upper is for fastest, the lower for nearest. Circles: the moment recursion, (a) "
        "given which tasks came and who had them, (b) given the loads.\n" + closing(data)
    )


FIGURE = FigureSpec(
    name="figure-3",
    title="Generalization error of the adaptive policy and of policies that do not look at the task",
    summary="Fig. 3 (a), (b): means and bands against Theorem 1, Proposition 4 and the moment recursion.",
    replicates=64,
    size=(7.2, 4.4),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("edge.figure-3.*", "edge.theorem-1.*", "edge.proposition-4.*", "edge.exact.*"),
)


def overview_curves(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress, verdicts: Mapping[str, Any]
) -> Curves:
    """G_t per coordinate of the adaptive policy on 30 servers, with (23) and the recursion along its routes."""
    del verdicts
    here = FIGURE.compute(reading, replicates, seed, progress).sel(policy="adaptive", experts=30)
    columns = (here["mean"], here.low, here.high, here.theorem_1, here.exact)
    return Curves(here["round"].values, *(column.values for column in columns))


OVERVIEW = Panel(
    title="Mobile edge computing: error of 30 servers",
    note="Adaptive policy, per coordinate, bounds from each replicate's pool and loads.",
    printed="edge.theorem-1.generalization-error",
    printed_words="(23), floor of Sec. V",
    right="edge.theorem-1.given-routes",
    right_words="recursion along routes",
    x_label="round $t$",
    y_label="$G_t / p$",
    log_axes="x",
    curves=overview_curves,
)
