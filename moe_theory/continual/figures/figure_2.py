"""Fig. 2: forgetting and generalization error with and without termination, next to closed forms."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from jaxtyping import Float

from moe_theory import plot
from moe_theory.continual import corrected, experiments, theory
from moe_theory.continual.algorithm import system
from moe_theory.continual.params import Dims
from moe_theory.core.errors import enclosed
from moe_theory.plot import roles
from moe_theory.runs import Cell, Run

SYMBOLS = {"forgetting": "forgetting $F_t$", "generalization_error": "generalization error $G_t$"}
METRICS = tuple(SYMBOLS)
TERMINATIONS = ("with", "without")
PANELS = tuple(itertools.product(METRICS, TERMINATIONS))  # (a) to (d)
EQUATIONS = {  # numbers of equations, by statement and metric
    "proposition-4": dict(zip(METRICS, ("(17)", "(18)"), strict=True)),
    "theorem-2": dict(zip(METRICS, ("(21)", "(22)"), strict=True)),
    "theorem-1": dict(zip(METRICS, ("(19)", "(20)"), strict=True)),
}

# Exact moments converge as ((d - s)/(d - 1))^t. Within these rounds they reach 11 digits in every pool.
SETTLED = 32


def compute(setup: plot.Setup, terminations: Sequence[str] = TERMINATIONS) -> xr.Dataset:
    numbers = setup.experts
    dims = setup.dims
    length = setup.rounds
    settings = {}
    for number, termination in itertools.product(numbers, terminations):
        params = setup.params(num_experts=number, terminate=termination == "with")
        settings[_cell_of(number, termination)] = params
    runs = setup.run(plot.log_axis_cells(settings, system(dims), experiments.FIGURE_2.observe, length))
    route_cells = [
        Cell(name, system(dims), params, length, observe=experiments.observe_route)
        for name, params in settings.items()
        if params.num_experts > 1
    ]
    exact = {}
    for name, run in setup.run(route_cells).items():
        expected = corrected.given_routes(run.state.pool, dims.num_samples, run.records.task, run.records.expert)
        recorded = runs[name].rounds - 1
        exact[name] = corrected.Exact(*(leaf[recorded].mean(axis=1) for leaf in expected))
    if 1 in numbers:  # for one expert there are exact moments
        cells_of_one = [_cell_of(1, termination) for termination in terminations]
        exact |= dict.fromkeys(cells_of_one, _exact_means(runs[cells_of_one[0]], dims))

    def values_at(termination: str, number: int) -> plot.Values:
        name = _cell_of(number, termination)
        return _values_of(runs[name], exact[name], dims)

    rounds = next(iter(runs.values())).rounds
    data = plot.over(values_at, {"metric": METRICS, "round": rounds}, termination=terminations, experts=numbers)
    params_by_number = [settings[_cell_of(number, terminations[0])] for number in numbers]
    explored = [int(theory.exploration_rounds(params.num_experts, params.learning_rate)) for params in params_by_number]
    data = data.assign_coords(explored=("experts", explored))
    clusters = min(int(params_by_number[0].num_clusters), dims.num_tasks)
    return data.assign_attrs(num_tasks=dims.num_tasks, num_clusters=clusters)


def _cell_of(num_experts: int, termination: str) -> str:
    return experiments.cell_name(num_experts, terminate=termination == "with")


def _values_of(run: Run, exact: corrected.Exact, dims: Dims) -> dict[str, Float[np.ndarray, "2 R"]]:
    samples = np.stack([getattr(run.records, metric) for metric in METRICS])
    printed = None
    if run.params.terminate or int(run.params.num_experts) == 1:  # the paper's statements suppose termination
        printed = _printed(run, dims)
    missing = np.full(samples.shape[:2], np.nan)
    return plot.across_replicates(samples) | {
        "printed": np.stack([getattr(printed, metric).mean(axis=1) for metric in METRICS]) if printed else missing,
        "exact": np.stack([getattr(exact, metric) for metric in METRICS]),
        "terminated": np.broadcast_to(run.records.terminated.mean(axis=1), missing.shape),
    }


def _printed(run: Run, dims: Dims) -> theory.Bound | None:
    statement = statement_of(int(run.params.num_experts), dims.num_tasks)
    if statement is None:
        return None
    if statement == "proposition-4":
        ratio = theory.overparameterization_ratio(dims.num_features, dims.num_samples)
        return theory.proposition_4(experiments.gaps_of(run), ratio, run.rounds[:, None])
    theorem = theory.theorem_1 if statement == "theorem-1" else theory.theorem_2
    return experiments.bounds_of(run, dims, theorem)


def statement_of(num_experts: int, num_tasks: int) -> str | None:
    """Return the paper's statement about M experts and N tasks, or None for M = N."""
    if num_experts == 1:
        return "proposition-4"
    if num_experts == num_tasks:
        return None
    if num_experts > num_tasks:
        return "theorem-1"
    return "theorem-2"


def _exact_means(run: Run, dims: Dims) -> corrected.Exact:
    length = min(SETTLED, int(run.rounds[-1]))
    pools = experiments.pools_of(run)
    moments = [corrected.single_expert(pool, dims.num_samples, length) for pool in pools]
    means = corrected.Exact(*(np.mean(leaves, axis=0) for leaves in zip(*moments, strict=True)))
    counts = np.arange(1, length + 1)
    return corrected.Exact(
        forgetting=_continue_sums(means.forgetting * (counts - 1), run.rounds) / np.maximum(run.rounds - 1, 1),
        generalization_error=_continue_sums(means.generalization_error * counts, run.rounds) / run.rounds,
        error=means.error[np.minimum(run.rounds, length) - 1],
    )


def _continue_sums(sums: Float[np.ndarray, " T"], rounds: np.ndarray) -> Float[np.ndarray, " R"]:
    """Return sums at the rounds, which grow by the last increment after the last of `sums`."""
    last = len(sums)
    inside = sums[np.minimum(rounds, last) - 1]
    if last < 2:
        return inside
    return inside + (sums[-1] - sums[-2]) * np.maximum(rounds - last, 0)


def caption_words(data: xr.Dataset) -> Mapping[str, str]:
    num_tasks = data.attrs["num_tasks"]
    by_statement: dict[str | None, list[str]] = {}
    for number in data.experts.values:
        by_statement.setdefault(statement_of(int(number), num_tasks), []).append(str(number))
    printed = ", ".join(
        f"{', '.join(equations.values())} for M = {' and '.join(by_statement[statement])}"
        for statement, equations in EQUATIONS.items()
        if statement in by_statement
    )
    source = enclosed("Printed: ", printed, ", from each replicate's pool and loads, averaged; ")
    return {"source": source + ("nothing is printed for M = N; " if num_tasks in data.experts.values else "")}


@plot.figure(
    "continual.figure-2",
    compute,
    title="Forgetting and generalization error with and without termination",
    summary="Fig. 2 (a)-(d): means and bands against Proposition 4, Theorems 1 and 2, and the exact theory.",
    words=caption_words,
    replicates=1000,
    size=(7.2, 7.0),
    rounds=experiments.FIGURE_2.num_rounds,
    experts=experiments.FIGURE_2_EXPERTS,
    dims=experiments.FIGURE_2_DIMS,
    claims=(
        "continual.figure-2.*",
        "continual.proposition-4.*",
        "continual.exact.*",
        "continual.theorem-1.*",
        "continual.theorem-2.*",
    ),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Forgetting and overall generalization error (squared distances of models) of N = {num_tasks} tasks in K =
    {num_clusters} clusters, with (a, c) and without (b, d) termination of the gate updates. Every replicate draws a
    pool of its own. {source}without termination they claim nothing for M > 1, and M = 1 has nothing to terminate.
    Exact: the moment recursion, averaged over the same pools; for M > 1 that of each expert along the tasks it had in
    these runs, as if features did not depend on routes.
    """
    axes = canvas.subplots(len(PANELS), data.sizes["experts"], sharex=True, squeeze=False)
    for row, (metric, termination) in enumerate(PANELS):
        top = float(data.sel(metric=metric)[["high", "printed", "exact"]].to_array().max())
        for panel, num_experts in zip(axes[row], data.experts.values, strict=True):
            curves = data.sel(metric=metric, experts=num_experts)
            panel.set_xscale("log")
            panel.set_xlim(curves["round"][0], data.attrs["num_rounds"])
            panel.set_ylim(-0.18 * top, 1.06 * top)
            _draw_panel(panel, curves.sel(termination=termination), top)
            if termination == "without" and num_experts > 1:
                mean = curves["mean"].sel(termination="with")
                roles.RIVAL.plot(panel, data["round"], mean, label="the mean with termination")
            panel.label_outer()
        axes[row, 0].set_ylabel(f"({'abcd'[row]}) {termination} termination\n{SYMBOLS[metric]}")
    for column, num_experts in enumerate(data.experts.values):
        axes[0, column].set_title(f"$M$ = {num_experts}")
        axes[-1, column].set_xlabel("round $t$")
    plot.legend(canvas, 4)


def _draw_panel(panel: plot.Axes, selection: xr.Dataset, top: float) -> None:
    rounds = selection["round"].values
    number = int(selection.experts)
    num_tasks = selection.attrs["num_tasks"]
    roles.ZERO.hline(panel, 0)
    plot.curve(panel, rounds, selection, roles.MEASURED, label="mean over replicates", band="10–90 % of replicates")
    if np.isfinite(selection.printed).any():
        roles.PRINTED.plot(panel, rounds, selection.printed, label="closed form as printed")
        last = float(selection.printed[-1])
        is_below_mean = 0 < float(selection["mean"][-1]) - last < 0.25 * top
        name = EQUATIONS[str(statement_of(number, num_tasks))][str(selection.metric.values)]
        plot.note(panel, name, at=(rounds[-1], last), shift=(0, -3 if is_below_mean else 3), color="C1", ha="right")
    elif number == num_tasks and selection.termination == "with":
        corner = panel.text(0.97, 0.2, "none for\n$M = N$", color="C1", ha="right", va="bottom", in_layout=False)
        corner.set_transform(panel.transAxes)
    if np.isfinite(selection.exact).any():
        roles.RIGHT.plot(panel, rounds, selection.exact, label="exact, along the routes")
    roles.REFERENCE.vline(panel, int(selection.explored), label="end of exploration $T_1$")
    past_half = rounds[selection.terminated.values >= 0.5]
    if len(past_half) > 0 and number > 1:
        height = 0.97 * panel.get_ylim()[1]
        roles.HALF_ENDED.plot(panel, past_half[:1], height, label="half of the runs terminated")


def overview_curves(setup: plot.Setup) -> plot.Curves:
    setup_of_one = picture.setup(setup.reading, setup.replicates, setup.seed, progress=setup.progress, experts=[1])
    curves = compute(setup_of_one, ["with"]).sel(termination="with", experts=1, metric="forgetting")
    curves = curves.isel(round=(curves["round"] >= 10).values)
    columns = (curves["mean"], curves.low, curves.high, curves.printed, curves.exact)
    return plot.Curves(curves["round"].values, *(column.values for column in columns))


OVERVIEW = plot.Panel(
    title="Continual learning: forgetting of one expert",
    note="M = 1.",
    printed="continual.proposition-4.forgetting",
    printed_words="Proposition 4, (17)",
    right="continual.exact.forgetting",
    right_words="exact recursion",
    x_label="round $t$",
    y_label="$F_t$",
    log_axes="x",
    curves=overview_curves,
)
