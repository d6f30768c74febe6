"""Figs. 3 to 7 and Tables 1 and 2 of `continual`, for M experts with and without termination."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

from moe_theory import plot
from moe_theory.deep.experiments import describe, run_preset
from moe_theory.deep.presets import Preset, expert_cell, incremental_accuracy, preset, printed
from moe_theory.plot import roles
from moe_theory.verification.claim import Runs

SYMBOLS = {  # metrics' words and symbols
    "forgetting": "forgetting $F_t$",
    "generalization_error": "generalization error $G_t$",
    "accuracy": "test accuracy $A_t$",
}
TERMINATIONS = ("with", "without")  # each is called a `part` of the runs
SINGLE = roles.BASELINE
SEVERAL = (roles.MEASURED, roles.RIVAL(linestyle=roles.DASHED), roles.OTHER_RIVAL(linestyle=roles.DOTTED))
LETTERS = "abcdefgh"
BAND = "10–90 % of {replicates} runs"


def summarize(preset: Preset, runs: Runs, metrics: Sequence[str], experts: Sequence[int]) -> xr.Dataset:
    """Return means, bands and errors by round, with shares of terminated runs and accuracies."""
    table = printed(preset)

    def of_rounds(metric: str, part: str, size: int) -> dict[str, np.ndarray]:
        return plot.across_replicates(getattr(runs[expert_cell(size, part == "with")].records, metric))

    def of_cell(part: str, size: int) -> plot.Values:
        name = expert_cell(size, part == "with")
        records = runs[name].records
        total = plot.across_replicates(incremental_accuracy(records.accuracy))
        columns = {"terminated": records.terminated.mean(axis=1, dtype=np.float64)}
        columns |= {f"incremental_{end}": total[end] for end in ("mean", "low", "high")}
        return columns | ({} if table is None else {"printed": table.accuracies[name]})

    inner = {"round": runs[expert_cell(experts[0])].rounds}
    curves = plot.over(of_rounds, inner, metric=metrics, termination=TERMINATIONS, experts=experts)
    return curves.merge(plot.over(of_cell, inner, termination=TERMINATIONS, experts=experts))


def draw(data: xr.Dataset, canvas: plot.Canvas) -> None:
    has_table = "printed" in data
    widths = [1, 1, 0.72][: 2 + has_table]
    grid = canvas.add_gridspec(data.sizes["metric"], len(widths), width_ratios=widths)
    letters = iter(LETTERS)
    for row, metric in enumerate(data.metric.values):
        first_panel = None
        for column, part in enumerate(TERMINATIONS):
            panel = canvas.add_subplot(grid[row, column], sharey=first_panel)
            first_panel = first_panel or panel
            curves = data.sel(metric=metric, termination=part)
            _draw_panel(panel, curves)
            panel.set_title(f"({next(letters)}) {part} termination", loc="left")
            panel.tick_params(labelleft=column == 0, labelbottom=row == data.sizes["metric"] - 1)
            if column == 0:
                panel.set_ylabel(SYMBOLS[str(metric)])
            if row == data.sizes["metric"] - 1:
                panel.set_xlabel("round $t$")
    if has_table:
        _draw_table(canvas.add_subplot(grid[:, 2]), data, letter_of_table(data))
    plot.legend(canvas, 4)


def letter_of_table(data: xr.Dataset) -> str:
    return LETTERS[2 * data.sizes["metric"]]


def style_of(data: xr.Dataset, num_experts: int) -> roles.ArtistStyle:
    if num_experts == 1:
        return SINGLE
    sizes = [size for size in data.experts.values if size > 1]
    return SEVERAL[sizes.index(num_experts) % len(SEVERAL)]


def _draw_panel(panel: plot.Axes, selection: xr.Dataset) -> None:
    rounds = selection["round"].values
    band = BAND.format(replicates=selection.attrs.get("replicates", "the"))
    for size in selection.experts.values:
        label = "one expert ($M$ = 1)"
        if size > 1:
            label = f"$M$ = {size}"
        plot.curve(panel, rounds, selection.sel(experts=size), style_of(selection, size), label=label, band=band)
    for place, size in enumerate(selection.experts.values):
        is_half = selection.terminated.sel(experts=size).values >= 0.5
        if is_half.any() and size > 1:
            mark = roles.HALF_ENDED(color=style_of(selection, size)["color"], transform=panel.get_xaxis_transform())
            height = 0.03 + 0.05 * place  # share of the panel's height, apart from the marks of other sizes
            mark.plot(panel, rounds[is_half][:1], [height], label="half of the runs terminated")
    panel.set_xlim(0, rounds[-1] + 0.5)


def _draw_table(panel: plot.Axes, data: xr.Dataset, letter: str) -> None:
    labels = []
    for size in data.experts.values:
        for part in TERMINATIONS[: 1 if size == 1 else 2]:  # one expert has nothing to terminate
            curves = data.sel(experts=size, termination=part)
            place = len(labels)
            labels.append(f"$M$ = {size}" + (",\nwithout" if part == "without" else ""))
            color = style_of(data, size)["color"]
            low, mean, high = (float(curves[f"incremental_{end}"]) for end in ("low", "mean", "high"))
            panel.hlines(place, low, high, color=color, linewidth=3)
            panel.plot(mean, place, marker="o", color=color, markeredgecolor="white", markersize=6)
            roles.PRINTED_MARK.plot(panel, float(curves.printed), place, label="printed in the paper")
            panel.annotate(f"{mean:.3f}", (mean, place), (0, 6), textcoords="offset points", ha="center", fontsize=6.5)
    panel.set_yticks(range(len(labels)), labels)
    panel.set_ylim(len(labels) - 0.5, -0.6)
    panel.set_xlim(0, 1)
    panel.set_xlabel("average incremental accuracy")
    panel.set_title(f"({letter}) as the table", loc="left")
    panel.grid(axis="x", **roles.GROUND)


ERRORS = ("forgetting", "generalization_error")


def figure(
    name: str,
    preset_name: str,
    metrics: Sequence[str],
    *,
    title: str,
    summary: str,
    replicates: int,
    experts: Sequence[int] = (),
    table: str = "",
) -> plot.FigureSpec:
    """Return a figure of a preset's runs, related to the claims on the figure and on the table of these names."""
    small = preset(preset_name)
    sizes = experts or small.experts
    cell_names = {expert_cell(size, part == "with") for size, part in itertools.product(sizes, TERMINATIONS)}
    settings = {cell: overrides for cell, overrides in small.cells().items() if cell in cell_names}
    printed_table = printed(small)

    def compute(setup: plot.Setup) -> xr.Dataset:
        return summarize(small, run_preset(small, settings, setup), metrics, sizes)

    def caption_words(data: xr.Dataset) -> Mapping[str, str]:
        words = " and ".join(SYMBOLS[metric].split(" $")[0] for metric in metrics).capitalize()
        table_words = ""
        if printed_table is not None:
            num_classes = small.dims.num_classes
            table_words = (
                f"({letter_of_table(data)}) The accuracies A_t averaged over rounds (dot, with the band) beside "
                f"{printed_table.where} (diamond), of other data; a guess is right with probability 1/2 where experts "
                f"tell one class from the rest, and 1/{num_classes} = {1 / num_classes:.3f} where they tell all apart. "
            )
        return {"words": words, "about": table_words, "described": describe(small)}

    return plot.FigureSpec(
        "deep",
        name,
        data=compute,
        draw=draw,
        text="{words} of the tasks so far; errors are squared errors of test images; one expert needs no router. "
        "{about}{described}",
        words=caption_words,
        size=(7.2, 2.1 * len(metrics) + 0.6),
        rounds=small.num_rounds,
        title=title,
        summary=summary,
        replicates=replicates,
        claims=tuple(f"deep.{source}.*" for source in (name, table) if source),
    )


FIGURES = (
    figure(
        "figure-3",
        "continual-cifar10-small",
        ("generalization_error", "accuracy"),
        title="Generalization error and test accuracy of deep experts",
        summary="Fig. 3 on the digits: G_t and A_t of 1, 4 and 12 experts, with and without termination.",
        replicates=8,
    ),
    figure(
        "figure-4",
        "continual-cifar10-small",
        ("forgetting",),
        title="Forgetting of deep experts",
        summary="Fig. 4 on the digits: F_t of 1 and 4 experts, with and without termination.",
        replicates=8,
        experts=(1, 4),
    ),
    figure(
        "figure-5",
        "continual-mnist-small",
        ERRORS,
        title="Forgetting and generalization error of convolutional experts",
        summary="Fig. 5 on the digits: F_t and G_t of 1, 4 and 7 experts, with and without termination.",
        replicates=16,
    ),
    figure(
        "figure-6",
        "continual-cifar100-small",
        ERRORS,
        title="Six classes: errors and average incremental accuracy, as for CIFAR-100",
        summary="Fig. 6 and Table 1 on the digits: 1, 8 and 10 experts on six classes, with and without termination.",
        replicates=16,
        table="table-1",
    ),
    figure(
        "figure-7",
        "continual-tiny-imagenet-small",
        ERRORS,
        title="Six classes: errors and average incremental accuracy, as for Tiny ImageNet",
        summary="Fig. 7 and Table 2 on the digits: 1, 8 and 10 experts on six classes, with and without termination.",
        replicates=16,
        table="table-2",
    ),
)
