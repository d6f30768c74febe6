"""Fig. 3: the generalization error of the adaptive policy and of three task-independent ones, with theory.

Errors are per coordinate, G_t / p, because entries of w_n have the deviation sigma_0 and Section VI compares with
sigma_0^2 and sigma_0. In G_t pending tasks count as completed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from moe_theory import plot
from moe_theory.core.errors import enclosed
from moe_theory.core.system import fields
from moe_theory.core.tasks import Pool
from moe_theory.edge import corrected, experiments, theory
from moe_theory.edge.algorithm import system
from moe_theory.edge.params import PROPORTIONAL, Dims
from moe_theory.edge.policies import POLICIES
from moe_theory.plot import roles
from moe_theory.runs import Cell, Run

THEORY = ("theorem_1", "proposition_4", "exact")  # NaN for policies that the statement is not about
BLIND = {  # widths, because these lines lie on each other
    "nearest": roles.OTHER_RIVAL(linewidth=4.0),
    "uniform": roles.RIVAL(linewidth=2.2),
    "fastest": roles.BASELINE(linestyle="solid"),
}
LABELS = {"theory": "(a) Theorem 1, (b) Proposition 4", "exact": "(a) theory along routes, (b) of loads"}

# A single expert's exact moments converge as ((p - s)/(p - 1))^L, to 13 digits within this many arrivals.
CONVERGED = 32

observe = fields(flushed=experiments.flushed_error, loads="state.visits")
observe_routes = fields("info.truth", "info.task", "info.expert")  # recorded in every round, for the adaptive policy


def compute(setup: plot.Setup, policies: Sequence[str] = tuple(POLICIES)) -> xr.Dataset:
    numbers = setup.experts
    dims = setup.dims
    length = setup.rounds
    settings = {experiments.cell_name(number): setup.params(num_experts=number) for number in numbers}
    explored = [experiments.exploration_rounds(params, max_delay=longest_delay(dims)) for params in settings.values()]
    cells = []
    for name in policies:
        settings_of_cells = {f"{name}, {key}": params for key, params in settings.items()}
        cells += plot.log_axis_cells(settings_of_cells, system(dims, POLICIES[name]), observe, length, also=explored)
    cells += [
        Cell(f"routes, {key}", system(dims, POLICIES["adaptive"]), params, length, observe=observe_routes)
        for key, params in settings.items()
    ]
    runs = setup.run(cells)
    first_run = next(iter(runs.values()))  # all runs have the same pools
    pools = experiments.pools_of(first_run)
    errors_by_load = np.stack([single_expert_errors(pool, dims, first_run.params, length) for pool in pools])

    def values_at(policy: str, number: int) -> dict[str, Float[np.ndarray, " R"]]:
        key = experiments.cell_name(number)
        return _values_of(runs[f"{policy}, {key}"], policy, errors_by_load, dims, routes=runs[f"routes, {key}"])

    data = plot.over(values_at, {"round": first_run.rounds}, policy=policies, experts=numbers)
    return data.assign_coords(explored=("experts", explored)).assign_attrs(
        {"within": float(np.mean(experiments.gaps_of(first_run).within_gap)) / dims.num_features}
        | {name: getattr(dims, name) for name in ("num_tasks", "num_features", "num_samples", "max_delay")}
        | {name: float(getattr(first_run.params, name)) for name in ("learning_rate", "truth_scale")}
    )


def _values_of(
    run: Run, policy: str, errors_by_load: Float[np.ndarray, "B L"], dims: Dims, routes: Run
) -> dict[str, Float[np.ndarray, " R"]]:
    """Return the curves of a panel: the error over replicates, and each theory, which is NaN for other policies."""
    scale = 1 / dims.num_features
    missing = np.full(len(run.rounds), np.nan)
    if policy == "adaptive":
        along_routes = experiments.error_given_routes(routes, dims.num_samples)[run.rounds - 1]
        samples = {"theorem_1": theorem_1_of(run, dims), "exact": along_routes}
    else:
        loads = experiments.loads_of(run)
        errors = [corrected.by_loads(by_load, loads[:, index]) for index, by_load in enumerate(errors_by_load)]
        samples = {"proposition_4": experiments.proposition_4(run, dims), "exact": np.stack(errors, axis=1)}
    theories = {name: np.mean(samples[name], axis=1) * scale if name in samples else missing for name in THEORY}
    return plot.across_replicates(run.records.flushed.astype(np.float64) * scale) | theories


def longest_delay(dims: Dims) -> int:
    assert dims.max_delay is not None
    return dims.max_delay


def theorem_1_of(run: Run, dims: Dims) -> Float[np.ndarray, "R B"]:
    """Return (23) from each replicate's pool and loads, with the gap inside a cluster for G^4."""
    loads = experiments.loads_of(run)
    pool_gaps = experiments.gaps_of(run)
    ratio = theory.overparameterization_ratio(dims.num_features, dims.num_samples)
    explored_rounds = np.minimum(run.rounds, experiments.exploration_rounds(run.params, max_delay=longest_delay(dims)))
    explored = loads[np.searchsorted(run.rounds, explored_rounds, side="right") - 1]
    routed = loads.sum(axis=-1)
    return np.asarray(theory.theorem_1(pool_gaps, ratio, loads, explored, round=routed, floor=pool_gaps.within_gap))


def single_expert_errors(pool: Pool, dims: Dims, params: Any, max_load: int) -> Float[np.ndarray, " L"]:
    """Return g(L) for L = 0..`max_load`, by equal increments of L g(L) after convergence."""
    last = min(CONVERGED, max_load)
    follows_truth = int(params.signal_law) == PROPORTIONAL
    errors = corrected.generalization_error(
        pool, dims.num_samples, max_load=last, cluster_spread=float(params.cluster_spread), follows_truth=follows_truth
    )
    sums = errors * np.arange(last + 1)
    later_loads = np.arange(last + 1, max_load + 1)
    later_sums = sums[-1] + (sums[-1] - sums[-2]) * (later_loads - last)
    return np.concatenate([errors, later_sums / later_loads])


def caption_words(data: xr.Dataset) -> Mapping[str, float | str]:
    last = data.attrs["num_rounds"]
    beyond = [str(int(number)) for number in data.experts[data.explored.values > last]]
    return {
        "failure": experiments.FAILURE,
        "explored": ", ".join(str(int(rounds)) for rounds in data.explored),
        "which": enclosed(", beyond the last round for M = ", ", ".join(beyond)),
    }


@plot.figure(
    "edge.figure-3",
    compute,
    title="Generalization error of the adaptive policy and of policies that do not look at the task",
    summary="Fig. 3 (a), (b): means and bands against Theorem 1, Proposition 4 and the moment recursion.",
    words=caption_words,
    size=(7.2, 4.4),
    rounds=experiments.FIGURE_3_ROUNDS,
    experts=experiments.FIGURE_3_EXPERTS,  # numbers of servers
    dims=experiments.FIGURE_3_DIMS,
    claims=("edge.figure-3.*", "edge.theorem-1.*", "edge.proposition-4.*", "edge.exact.*"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Overall generalization error per coordinate, G_t/p, of N = {num_tasks} kinds of tasks on M servers with delays of
    up to d_u = {max_delay} rounds (Section VI: p = {num_features}, s = {num_samples}, η = {learning_rate:g}). Pending
    tasks count as completed. Every replicate draws a pool of its own. (a) The paper's policy. Theorem 1 is (23) from
    each replicate's pool and loads, with the gap inside a cluster, {within:.2f}, for its O(σ₀²), and T₁ = {explored} at
    δ = {failure:g}{which}. (b) Policies that ignore the task. Proposition 4 is (22) from each replicate's pool and
    loads; of each pair the upper is for fastest, the lower for nearest. Circles: the moment recursion, (a) given which
    tasks came and who had them, (b) given the loads.
    """
    axes = canvas.subplots(2, data.sizes["experts"], sharex=True, sharey=True, squeeze=False)
    top = float(data[["high", *THEORY]].to_array().max())
    for num_experts, column in zip(data.experts.values, axes.T, strict=True):
        curves = data.sel(experts=num_experts)
        for panel, draw_panel in zip(column, (_draw_adaptive, _draw_blind), strict=True):
            panel.set(xscale="log", xlim=(curves["round"][0], data.attrs["num_rounds"]), ylim=(0, 1.06 * top))
            draw_panel(panel, curves)
        column[0].set_title(f"$M$ = {num_experts}")
        column[1].set_xlabel("round $t$")
    axes[0, 0].set_ylabel("(a) adaptive\n$G_t/p$")
    axes[1, 0].set_ylabel("(b) nearest, uniform, fastest\n$G_t/p$")
    plot.legend(canvas, 3)


def _draw_adaptive(panel: plot.Axes, selection: xr.Dataset) -> None:
    run = selection.sel(policy="adaptive")
    rounds = selection["round"].values
    scale = selection.attrs["truth_scale"]
    roles.REFERENCE.hline(panel, scale**2)
    plot.note(panel, r"$\sigma_0^2$", at=(rounds[0], scale**2), shift=(3, 2))
    plot.curve(panel, rounds, run, roles.MEASURED, label="adaptive: mean", band="10–90 % of replicates")
    roles.PRINTED.plot(panel, rounds, run.theorem_1, label=LABELS["theory"])
    roles.RIGHT.plot(panel, rounds, run.exact, label=LABELS["exact"])
    roles.REFERENCE.vline(panel, int(selection.explored), label="(a) end of exploration $T_1$")
    text = f"$G_T/p$ = {float(run['mean'][-1]):.2f}"
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1}
    panel.text(0.98, 1.0, text, transform=panel.transAxes, ha="right", va="top", bbox=box)


def _draw_blind(panel: plot.Axes, selection: xr.Dataset) -> None:
    rounds = selection["round"].values
    scale = selection.attrs["truth_scale"]
    roles.REFERENCE.hline(panel, scale)
    plot.note(panel, r"$\sigma_0$", at=(rounds[0], scale), shift=(3, -5))  # below the beginning of Proposition 4
    nearest = selection.sel(policy="nearest")
    roles.BAND.fill(panel, rounds, nearest.low, nearest.high)
    for policy, role in BLIND.items():
        role.plot(panel, rounds, selection["mean"].sel(policy=policy), label=f"{policy}: mean")
    for policy in ("nearest", "fastest"):
        roles.PRINTED.plot(panel, rounds, selection.proposition_4.sel(policy=policy), label=LABELS["theory"])
        roles.RIGHT.plot(panel, rounds, selection.exact.sel(policy=policy), label=LABELS["exact"])


def overview_curves(setup: plot.Setup) -> plot.Curves:
    """Return the adaptive policy's G_t per coordinate on 30 servers, with (23) and the recursion."""
    setup_of_30 = picture.setup(setup.reading, setup.replicates, setup.seed, progress=setup.progress, experts=[30])
    curves = compute(setup_of_30, ["adaptive"]).sel(policy="adaptive", experts=30)
    columns = (curves["mean"], curves.low, curves.high, curves.theorem_1, curves.exact)
    return plot.Curves(curves["round"].values, *(column.values for column in columns))


OVERVIEW = plot.Panel(
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
