"""Fig. 2: forgetting and generalization error with and without termination, closed forms over the runs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from moe_theory.continual import corrected, theory
from moe_theory.continual.algorithm import system
from moe_theory.continual.experiments import (
    FIGURE_2,
    FIGURE_2_DIMS,
    FIGURE_2_EXPERTS,
    SINGLE,
    bounds_of,
    cell_name,
    gaps_of,
    observe_route,
    pools_of,
)
from moe_theory.continual.params import Dims
from moe_theory.runs import Cell, Progress, Run, quiet, run_cells
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import (
    Curves,
    FigureSpec,
    Panel,
    across_replicates,
    chosen_experts,
    closing,
    provenance,
    resized,
    run_for_log_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

METRICS = ("forgetting", "generalization_error")
SYMBOLS = {"forgetting": "forgetting $F_t$", "generalization_error": "generalization error $G_t$"}
TERMINATIONS = ("with", "without")
PANELS = tuple((metric, termination) for metric in METRICS for termination in TERMINATIONS)  # (a) to (d)
DIMENSIONS = ("termination", "experts", "metric", "round")

EQUATIONS = {
    ("forgetting", "proposition-4"): "(17)",
    ("generalization_error", "proposition-4"): "(18)",
    ("forgetting", "theorem-1"): "(19)",
    ("generalization_error", "theorem-1"): "(20)",
    ("forgetting", "theorem-2"): "(21)",
    ("generalization_error", "theorem-2"): "(22)",
}
PRINTED = {"proposition-4": "(17), (18)", "theorem-2": "(21), (22)", "theorem-1": "(19), (20)"}
STYLES: dict[str, dict[str, Any]] = {
    "mean": {"color": "C0", "linewidth": 1.6},
    "band": {"color": "C0", "linewidth": 0, "alpha": 0.16},
    "printed": {"color": "C1", "linewidth": 1.5, "linestyle": (0, (4, 1.6))},
    "exact": {
        "color": "black",
        "linewidth": 0.8,
        "marker": "o",
        "markersize": 3.2,
        "markerfacecolor": "white",
        "markeredgewidth": 0.8,
    },
    "with": {"color": "0.4", "linewidth": 0.9, "linestyle": (0, (1, 1))},
    "explored": {"color": "0.55", "linewidth": 0.7, "linestyle": (0, (1, 2.5)), "zorder": 0},
    "terminated": {"color": "0.25", "marker": "v", "markersize": 4, "linestyle": "none"},
}
LEGEND = {
    "mean": "mean over replicates",
    "band": "10–90 % of replicates",
    "printed": "closed form as printed",
    "exact": "exact, along the routes",
    "explored": "end of exploration $T_1$",
    "terminated": "half of the runs terminated",
    "with": "the mean with termination",
}

# Exact moments settle as ((d - s)/(d - 1))^t: here to 11 digits within these rounds, in every pool.
SETTLED = 32


def compute(
    reading: ReadingLike,
    replicates: int,
    seed: int,
    progress: Progress = quiet,
    *,
    num_rounds: int | None = None,
    experts: Sequence[int] | None = None,
    dims: Mapping[str, Any] | None = None,
) -> xr.Dataset:
    """Means, bands, closed forms and exact theory by termination and M, and the share of runs that have terminated."""
    length = FIGURE_2.num_rounds if num_rounds is None else num_rounds
    numbers = chosen_experts(experts, FIGURE_2_EXPERTS)
    sizes = resized(FIGURE_2_DIMS, dims, max(numbers))
    settings = {
        cell_name(number, each == "with"): reading.params(num_experts=number, terminate=each == "with")
        for number in numbers
        for each in TERMINATIONS
    }
    runs = run_for_log_axis(settings, system(sizes), FIGURE_2.observe, length, replicates, seed, progress, "figure-2")
    rounds = next(iter(runs.values())).rounds
    several = [Cell(name, system(sizes), params, length, 1, observe_route) for name, params in settings.items()]
    routes = run_cells([each for each in several if each.params.num_experts > 1], replicates, seed=seed)
    exact = {name: _along_routes(runs[name], run, sizes) for name, run in routes.items()}
    if 1 in numbers:
        exact |= dict.fromkeys((SINGLE, cell_name(1, False)), _exact_means(runs[SINGLE], sizes))
    cells = [
        [
            _values_of(runs[name], exact[name], sizes)
            for name in (cell_name(number, each == "with") for number in numbers)
        ]
        for each in TERMINATIONS
    ]
    of_cells = [settings[cell_name(number)] for number in numbers]
    explored = [int(theory.exploration_rounds(params.num_experts, params.learning_rate)) for params in of_cells]
    about = provenance(
        "continual", "figure-2", reading, replicates, seed, length, rounds=num_rounds, experts=experts, dims=dims
    )
    return xr.Dataset(
        {name: (DIMENSIONS, np.array([[cell[name] for cell in row] for row in cells])) for name in cells[0][0]},
        {
            "termination": list(TERMINATIONS),
            "experts": list(numbers),
            "metric": list(METRICS),
            "round": rounds,
            "explored": ("experts", explored),
        },
        about | {"num_tasks": sizes.num_tasks, "num_clusters": min(int(of_cells[0].num_clusters), sizes.num_tasks)},
    )


def _values_of(run: Run, exact: corrected.Exact, dims: Dims) -> dict[str, Float[np.ndarray, "2 R"]]:
    num_experts, is_terminating = int(run.params.num_experts), bool(run.params.terminate)
    silent = np.full((len(METRICS), len(run.rounds)), np.nan)
    parts = [across_replicates(getattr(run.records, metric)) for metric in METRICS]
    values = {name: np.stack([part[name] for part in parts]) for name in parts[0]}
    printed = _printed(run, dims) if is_terminating or num_experts == 1 else None
    return values | {
        "printed": np.stack([getattr(printed, metric).mean(axis=1) for metric in METRICS]) if printed else silent,
        "exact": np.stack([getattr(exact, metric) for metric in METRICS]),
        "terminated": np.broadcast_to(run.records.terminated.mean(axis=1), silent.shape),
    }


def _printed(run: Run, dims: Dims) -> theory.Bound | None:
    statement = statement_of(int(run.params.num_experts), dims.num_tasks)
    if statement is None:
        return None
    if statement == "proposition-4":
        ratio = theory.overparameterization_ratio(dims.num_features, dims.num_samples)
        return theory.proposition_4(gaps_of(run), ratio, run.rounds[:, None])
    return bounds_of(run, dims, theory.theorem_1 if statement == "theorem-1" else theory.theorem_2)


def statement_of(num_experts: int, num_tasks: int) -> str | None:
    """What the paper prints for so many experts: Theorem 1 supposes M > N and Theorem 2 M < N, and nothing M = N."""
    if num_experts == 1:
        return "proposition-4"
    if num_experts == num_tasks:
        return None
    return "theorem-1" if num_experts > num_tasks else "theorem-2"


def _along_routes(run: Run, routes: Run, dims: Dims) -> corrected.Exact:
    """What the tasks and routes of `routes`, which records every round, let expect in the recorded rounds of `run`."""
    expected = corrected.given_routes(routes.state.pool, dims.num_samples, *routes.records)
    return corrected.Exact(*(leaf[run.rounds - 1].mean(axis=1) for leaf in expected))


def _exact_means(run: Run, dims: Dims) -> corrected.Exact:
    """Exact theory of a single expert, averaged over the replicates' pools, at the recorded rounds."""
    length = min(SETTLED, int(run.rounds[-1]))
    pools = pools_of(run)
    moments = [corrected.single_expert(pool, dims.num_samples, length) for pool in pools]
    means = corrected.Exact(*(np.mean(leaves, axis=0) for leaves in zip(*moments, strict=True)))
    counts = np.arange(1, length + 1)
    return corrected.Exact(
        forgetting=_continued(means.forgetting * (counts - 1), run.rounds) / np.maximum(run.rounds - 1, 1),
        generalization_error=_continued(means.generalization_error * counts, run.rounds) / run.rounds,
        error=means.error[np.minimum(run.rounds, length) - 1],
    )


def _continued(sums: Float[np.ndarray, " T"], rounds: np.ndarray) -> Float[np.ndarray, " R"]:
    """Sums over rounds 1..t at `rounds`, which may lie beyond T: settled moments add the same every round."""
    last = len(sums)
    inside = sums[np.minimum(rounds, last) - 1]
    if last < 2:
        return inside
    return inside + (sums[-1] - sums[-2]) * np.maximum(rounds - last, 0)


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    axes = figure.subplots(len(PANELS), data.sizes["experts"], sharex=True, squeeze=False)
    for row, (metric, termination) in enumerate(PANELS):
        top = float(data.sel(metric=metric)[["high", "printed", "exact"]].to_array().max())
        for panel, num_experts in zip(axes[row], data.experts.values, strict=True):
            here = data.sel(metric=metric, termination=termination, experts=num_experts)
            panel.set_xscale("log")
            panel.set_xlim(here["round"][0], data.attrs["num_rounds"])
            panel.set_ylim(-0.18 * top, 1.06 * top)
            _draw_runs(panel, here)
            _draw_theory(panel, here, top)
            if termination == "without" and num_experts > 1:
                with_termination = data["mean"].sel(metric=metric, termination="with", experts=num_experts)
                panel.plot(data["round"], with_termination, **STYLES["with"])
            panel.label_outer()
        axes[row, 0].set_ylabel(f"({'abcd'[row]}) {termination} termination\n{SYMBOLS[metric]}")
    for column, num_experts in enumerate(data.experts.values):
        axes[0, column].set_title(f"$M$ = {num_experts}")
        axes[-1, column].set_xlabel("round $t$")
    _draw_legend(figure)


def _draw_runs(panel: "Axes", here: xr.Dataset) -> None:
    rounds = here["round"].values
    panel.axhline(0, color="0.7", linewidth=0.6, zorder=0)
    panel.axvline(int(here.explored), **STYLES["explored"])
    panel.fill_between(rounds, here.low, here.high, **STYLES["band"])
    panel.plot(rounds, here["mean"], **STYLES["mean"])
    half = rounds[here.terminated.values >= 0.5]
    if len(half) > 0 and int(here.experts) > 1:
        panel.plot(half[:1], 0.97 * panel.get_ylim()[1], **STYLES["terminated"])


def _draw_theory(panel: "Axes", here: xr.Dataset, top: float) -> None:
    rounds = here["round"].values
    if np.isfinite(here.printed).any():
        panel.plot(rounds, here.printed, **STYLES["printed"])
        last = float(here.printed[-1])
        is_below_mean = 0 < float(here["mean"][-1]) - last < 0.25 * top
        panel.annotate(
            EQUATIONS[str(here.metric.values), str(statement_of(int(here.experts), here.attrs["num_tasks"]))],
            (rounds[-1], last),
            (0, -3 if is_below_mean else 3),
            textcoords="offset points",
            color="C1",
            ha="right",
            va="top" if is_below_mean else "bottom",
        )
    elif int(here.experts) == here.attrs["num_tasks"] and here.termination == "with":
        words = {"transform": panel.transAxes, "color": "C1", "ha": "right", "va": "bottom", "in_layout": False}
        panel.text(0.97, 0.2, "none for\n$M = N$", **words)
    if np.isfinite(here.exact).any():
        marks = np.unique(np.geomspace(1, len(rounds), 9).astype(int) - 1)
        panel.plot(rounds, here.exact, markevery=list(marks), **STYLES["exact"])


def _draw_legend(figure: "FigureBase") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = {name: Patch if name == "band" else lambda **style: Line2D([], [], **style) for name in LEGEND}
    figure.legend(
        handles=[handles[name](**STYLES[name], label=label) for name, label in LEGEND.items()],
        loc="outside upper center",
        ncols=4,
    )


def caption(data: xr.Dataset) -> str:
    num_tasks, num_clusters = data.attrs["num_tasks"], data.attrs["num_clusters"]
    by_statement: dict[str | None, list[str]] = {}
    for number in data.experts.values:
        by_statement.setdefault(statement_of(int(number), num_tasks), []).append(str(number))
    printed = ", ".join(
        f"{equations} for M = {' and '.join(by_statement[statement])}"
        for statement, equations in PRINTED.items()
        if statement in by_statement
    )
    source = f"Printed: {printed}, from each replicate's pool and loads, averaged; " if printed else ""
    source += "nothing is printed for M = N; " if num_tasks in data.experts.values else ""
    return (
        f"Forgetting and overall generalization error (squared distances of models) of N = {num_tasks} tasks in K = "
        f"{num_clusters} clusters, with (a, c) and without (b, d) termination of the gate updates. Every replicate "
        f"draws a pool of its own. {source}without termination they claim nothing for M > 1, and M = 1 has nothing to "
        "terminate. Exact: the moment recursion, averaged over the same pools; for M > 1 that of each expert along "
        "the tasks it had in these runs, as if features did not depend on routes.\n" + closing(data)
    )


FIGURE = FigureSpec(
    name="figure-2",
    title="Forgetting and generalization error with and without termination",
    summary="Fig. 2 (a)-(d): means and bands against Proposition 4, Theorems 1 and 2, and the exact theory.",
    replicates=1000,
    size=(7.2, 7.0),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=(
        "continual.figure-2.*",
        "continual.proposition-4.*",
        "continual.exact.*",
        "continual.theorem-1.*",
        "continual.theorem-2.*",
    ),
)


def overview_curves(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress, verdicts: Mapping[str, Any]
) -> Curves:
    del verdicts
    data = FIGURE.compute(reading, replicates, seed, progress)
    here = data.sel(termination="with", experts=1, metric="forgetting")
    here = here.isel(round=(here["round"] >= 10).values)
    columns = (here["mean"], here.low, here.high, here.printed, here.exact)
    return Curves(here["round"].values, *(column.values for column in columns))


OVERVIEW = Panel(
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
