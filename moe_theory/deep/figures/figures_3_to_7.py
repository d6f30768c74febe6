"""Figs. 3 to 7 and Tables 1 and 2 of the continual-learning paper: M experts with and without termination."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from moe_theory.deep.experiments import describe, run_preset
from moe_theory.deep.presets import Preset, expert_cell, incremental_accuracy, preset, printed
from moe_theory.runs import Progress, quiet
from moe_theory.verify.claim import ReadingLike, Runs
from moe_theory.verify.figures import FigureSpec, across_replicates, closing, provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase
    from matplotlib.patches import Patch

SYMBOLS = {
    "forgetting": "forgetting $F_t$",
    "generalization_error": "generalization error $G_t$",
    "accuracy": "test accuracy $A_t$",
}
TERMINATIONS = ("with", "without")
DIMENSIONS = ("metric", "termination", "experts", "round")
STYLES: tuple[dict[str, Any], ...] = (
    {"color": "C0", "linewidth": 1.5},
    {"color": "C2", "linewidth": 1.5, "linestyle": (0, (4, 1.2))},
    {"color": "C3", "linewidth": 1.5, "linestyle": (0, (1.2, 0.8))},
)
SINGLE: dict[str, Any] = {"color": "0.45", "linewidth": 1.2, "linestyle": (0, (4, 1.2, 1, 1.2))}
LETTERS = "abcdefgh"
BAND_ALPHA = 0.14
TERMINATED: dict[str, Any] = {"marker": "v", "markersize": 5.5, "markeredgecolor": "white", "linestyle": "none"}
PRINTED: dict[str, Any] = {"color": "C1", "marker": "D", "markersize": 4, "fillstyle": "none", "linestyle": "none"}


def summarize(preset: Preset, runs: Runs, metrics: Sequence[str], experts: Sequence[int]) -> xr.Dataset:
    """Means, bands and errors by round, the share of terminated runs, and average incremental accuracies."""
    cells = [[runs[expert_cell(size, part == "with")] for size in experts] for part in TERMINATIONS]
    rounds = cells[0][0].rounds
    values = [[[across_replicates(getattr(run.records, metric)) for run in row] for row in cells] for metric in metrics]
    variables: dict[str, Any] = {
        name: (DIMENSIONS, np.array([[[cell[name] for cell in row] for row in part] for part in values]))
        for name in values[0][0][0]
    }
    shares = [[run.records.terminated.mean(axis=1, dtype=np.float64) for run in row] for row in cells]
    variables["terminated"] = (DIMENSIONS[1:], np.array(shares))
    totals = [[across_replicates(incremental_accuracy(run.records.accuracy)[None]) for run in row] for row in cells]
    for name in ("mean", "low", "high"):
        variables[f"incremental_{name}"] = (
            DIMENSIONS[1:3],
            np.array([[cell[name][0] for cell in row] for row in totals]),
        )
    if (table := printed(preset)) is not None:
        values = [[table.accuracies[expert_cell(size, part == "with")] for size in experts] for part in TERMINATIONS]
        variables["printed"] = (DIMENSIONS[1:3], np.array(values))
    coordinates = {
        "metric": list(metrics),
        "termination": list(TERMINATIONS),
        "experts": list(experts),
        "round": rounds,
    }
    return xr.Dataset(variables, coordinates)


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    has_table = "printed" in data
    grid = figure.add_gridspec(data.sizes["metric"], 2 + has_table, width_ratios=[1, 1, 0.72][: 2 + has_table])
    letters = iter(LETTERS)
    for row, metric in enumerate(data.metric.values):
        left = None
        for column, part in enumerate(TERMINATIONS):
            panel = figure.add_subplot(grid[row, column], sharey=left)
            left = left or panel
            here = data.sel(metric=metric, termination=part)
            _draw_panel(panel, here)
            panel.set_title(f"({next(letters)}) {part} termination", loc="left")
            panel.tick_params(labelleft=column == 0, labelbottom=row == data.sizes["metric"] - 1)
            if column == 0:
                panel.set_ylabel(SYMBOLS[str(metric)])
            if row == data.sizes["metric"] - 1:
                panel.set_xlabel("round $t$")
    if has_table:
        _draw_table(figure.add_subplot(grid[:, 2]), data, letter_of_table(data))
    _draw_legend(data, figure)


def letter_of_table(data: xr.Dataset) -> str:
    return LETTERS[2 * data.sizes["metric"]]


def style_of(data: xr.Dataset, num_experts: int) -> dict[str, Any]:
    if num_experts == 1:
        return SINGLE
    return STYLES[[size for size in data.experts.values if size > 1].index(num_experts) % len(STYLES)]


def _draw_panel(panel: "Axes", here: xr.Dataset) -> None:
    rounds = here["round"].values
    for num_experts in here.experts.values:
        curve = here.sel(experts=num_experts)
        style = style_of(here, num_experts)
        panel.fill_between(rounds, curve.low, curve.high, color=style["color"], alpha=BAND_ALPHA, linewidth=0)
        panel.plot(rounds, curve["mean"], **style)
        half = np.flatnonzero(curve.terminated.values >= 0.5)
        if len(half) > 0 and num_experts > 1:
            height = 0.03 + 0.05 * int(np.flatnonzero(here.experts.values == num_experts)[0])
            at_foot = panel.get_xaxis_transform()
            panel.plot(rounds[half[:1]], [height], color=style["color"], transform=at_foot, **TERMINATED)
    panel.set_xlim(0, rounds[-1] + 0.5)


def _draw_table(panel: "Axes", data: xr.Dataset, letter: str) -> None:
    labels = []
    for size in data.experts.values:
        for part in TERMINATIONS[: 1 if size == 1 else 2]:
            here = data.sel(experts=size, termination=part)
            place = len(labels)
            labels.append(f"$M$ = {size}" + (",\nwithout" if part == "without" else ""))
            colour, mean = style_of(data, size)["color"], float(here.incremental_mean)
            panel.hlines(place, float(here.incremental_low), float(here.incremental_high), color=colour, linewidth=3)
            panel.plot(mean, place, marker="o", color=colour, markeredgecolor="white", markersize=6)
            panel.plot(float(here.printed), place, **PRINTED)
            panel.annotate(f"{mean:.3f}", (mean, place), (0, 6), textcoords="offset points", ha="center", fontsize=6.5)
    panel.set_yticks(range(len(labels)), labels)
    panel.set_ylim(len(labels) - 0.5, -0.6)
    panel.set_xlim(0, 1)
    panel.set_xlabel("average incremental accuracy")
    panel.set_title(f"({letter}) as the table", loc="left")
    panel.grid(axis="x", color="0.9", linewidth=0.5)


def _draw_legend(data: xr.Dataset, figure: "FigureBase") -> None:
    from matplotlib.lines import Line2D

    sizes = [int(size) for size in data.experts.values]
    handles: list[Any] = [
        Line2D([], [], **style_of(data, size), label=f"$M$ = {size}" if size > 1 else "one expert ($M$ = 1)")
        for size in sizes
    ]
    handles.append(band_handle(data))
    several = data.terminated.sel(termination="with", experts=[size for size in sizes if size > 1])
    if bool((several >= 0.5).any()):
        handles.append(Line2D([], [], color="0.25", **TERMINATED, label="half of the runs terminated"))
    if "printed" in data:
        handles.append(Line2D([], [], **PRINTED, label="printed in the paper"))
    figure.legend(handles=handles, loc="outside upper center", ncols=min(len(handles), 4))


def band_handle(data: xr.Dataset) -> "Patch":
    from matplotlib.patches import Patch

    label = f"10–90 % of {data.attrs.get('replicates', 'the')} runs"
    return Patch(color="0.45", alpha=2 * BAND_ALPHA, linewidth=0, label=label)


ERRORS = ("forgetting", "generalization_error")


def figure(
    name: str,
    of: str,
    metrics: Sequence[str],
    title: str,
    summary: str,
    replicates: int,
    experts: Sequence[int] | None = None,
    claims: tuple[str, ...] = (),
) -> FigureSpec:
    """The figure of a small preset."""
    small = preset(of)
    sizes = small.experts if experts is None else tuple(experts)
    names = {expert_cell(size, part == "with") for size in sizes for part in TERMINATIONS}
    settings = {cell: own for cell, own in small.cells().items() if cell in names}
    table = printed(small)

    def compute(
        reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
    ) -> xr.Dataset:
        runs = run_preset(small, settings, reading, replicates, seed, progress, num_rounds, name)
        data = summarize(small, runs, metrics, sizes)
        length = int(data["round"][-1])
        return data.assign_attrs(provenance("deep", name, reading, replicates, seed, length, rounds=num_rounds))

    def caption(data: xr.Dataset) -> str:
        about = "" if table is None else _about_table(table.where, letter_of_table(data), small.dims.num_classes)
        words = " and ".join(SYMBOLS[metric].split(" $")[0] for metric in metrics).capitalize()
        return (
            f"{words} of the tasks so far; errors are squared errors of test images; one expert needs no router. "
            f"{about}{describe(small)}\n{closing(data)}"
        )

    height = 2.1 * len(metrics) + 0.6
    return FigureSpec(name, title, summary, compute, draw, replicates, (7.2, height), caption, claims)


def _about_table(where: str, letter: str, num_classes: int) -> str:
    return (
        f"({letter}) The accuracies A_t averaged over rounds (dot, with the band) beside {where} "
        f"(diamond), of other data; a guess is right with probability 1/2 where experts tell one class from the "
        f"rest, and 1/{num_classes} = {1 / num_classes:.3f} where they tell all apart. "
    )


FIGURES = (
    figure(
        "figure-3",
        "continual-cifar10-small",
        ("generalization_error", "accuracy"),
        "Generalization error and test accuracy of deep experts",
        "Fig. 3 on the digits: G_t and A_t of 1, 4 and 12 experts, with and without termination.",
        replicates=8,
        claims=("deep.figure-3.*",),
    ),
    figure(
        "figure-4",
        "continual-cifar10-small",
        ("forgetting",),
        "Forgetting of deep experts",
        "Fig. 4 on the digits: F_t of 1 and 4 experts, with and without termination.",
        replicates=8,
        experts=(1, 4),
        claims=("deep.figure-4.*",),
    ),
    figure(
        "figure-5",
        "continual-mnist-small",
        ERRORS,
        "Forgetting and generalization error of convolutional experts",
        "Fig. 5 on the digits: F_t and G_t of 1, 4 and 7 experts, with and without termination.",
        replicates=16,
        claims=("deep.figure-5.*",),
    ),
    figure(
        "figure-6",
        "continual-cifar100-small",
        ERRORS,
        "Six classes: errors and average incremental accuracy, as for CIFAR-100",
        "Fig. 6 and Table 1 on the digits: 1, 8 and 10 experts on six classes, with and without termination.",
        replicates=16,
        claims=("deep.figure-6.*", "deep.table-1.*"),
    ),
    figure(
        "figure-7",
        "continual-tiny-imagenet-small",
        ERRORS,
        "Six classes: errors and average incremental accuracy, as for Tiny ImageNet",
        "Fig. 7 and Table 2 on the digits: 1, 8 and 10 experts on six classes, with and without termination.",
        replicates=16,
        claims=("deep.figure-7.*", "deep.table-2.*"),
    ),
)
