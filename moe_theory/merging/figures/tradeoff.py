"""Accuracy, latency and memory of every method: Tables I and II, Fig. 3 and Fig. 4 in one figure."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from moe_theory.core.random import root_key
from moe_theory.core.system import check_replicates, check_run
from moe_theory.merging import evaluation
from moe_theory.merging.evaluation import BEST, POLICIES
from moe_theory.merging.serving.methods import METHODS
from moe_theory.merging.serving.routers import deployed
from moe_theory.merging.testbed.tasks import VALIDATION, Setting, examples
from moe_theory.runs import Progress, quiet
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, closing, provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

SETTING = Setting()
NUM_SLOTS = 600
REPEATS = 30  # of the timing
STATIC = ("average", "fisher", "regmean")
COLOURS = {"policy": "C0", "static": "C0", "task": "0.5", "token": "C2", "smear": "C3"}
MARKERS = {"policy": "o", "static": "s", "task": "v", "token": "^", "smear": "D"}  # told apart in grey
FAMILIES = {
    "policy": "one merged expert, weights by slot",
    "static": "one merged expert, fixed",
    "token": "experts by token",
    "smear": "merged by token or example (SMEAR)",
    "task": "experts by task, with tags",
}
LEAST_GAP = 0.055  # between labels, as a share of the axis


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """The summary of `evaluation.evaluate` on the digits: replicates are seeds of slots and policies.

    Raises: InvalidRunError for replicates or slots that cannot be run.
    """
    num_slots = NUM_SLOTS if num_rounds is None else num_rounds
    check_replicates(replicates)
    check_run(num_slots, 1)
    root_key(seed)
    progress.running("tradeoff")
    models = {SETTING.tasks: (deployed(SETTING), examples(SETTING, VALIDATION))}
    table = evaluation.evaluate(
        models, tuple(METHODS), tuple(POLICIES), replicates, num_slots, REPEATS, seed=seed, make_params=reading.params
    )
    data = evaluation.summary(table)
    about = provenance("merging", "tradeoff", reading, replicates, seed, num_slots, rounds=num_rounds)
    return data.assign_attrs(about)


def family(approach: str) -> str:
    """The key of an approach in `FAMILIES`."""
    if approach in POLICIES:
        return "policy"
    if approach in STATIC:
        return "static"
    return "token" if approach.startswith("rl") else approach.split("-")[0]


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """A panel for each law of the mix."""
    here = data.isel(model=0)
    axes = figure.subplots(data.sizes["mix"], 1, sharex=True, squeeze=False)[:, 0]
    for panel, mix in zip(axes, here.mix.values, strict=True):
        _draw_panel(panel, here.sel(mix=mix))
        panel.set_title(f"{mix} mix of tasks")
        panel.set_ylabel("accuracy")
    axes[-1].set_xlabel("seconds a batch, merging included / those of one merged expert")
    _draw_legend(figure, data)


def _draw_panel(panel: "Axes", here: xr.Dataset) -> None:
    names = [str(name) for name in here.approach.values if name != BEST]
    values = {name: here.sel(approach=name) for name in names}
    for name, value in values.items():
        panel.errorbar(
            float(value.ratio),
            float(value.accuracy),
            yerr=np.nan_to_num(float(value.accuracy_error)),
            color=COLOURS[family(name)],
            marker=MARKERS[family(name)],
            markerfacecolor="white" if family(name) == "static" else None,
            markersize=_diameter(float(value.loaded_bytes), here),
            alpha=0.9,
            linewidth=0.8,
        )
    best = float(here.accuracy.sel(approach=BEST))
    ratios = here.ratio.sel(approach=names)
    low, high = float(ratios.min()), float(ratios.max())
    panel.set_xscale("log")
    panel.set_xlim(low / 4, high * 3.2)
    panel.hlines(best, low / 1.2, high * 1.2, color="0.3", linewidth=0.8, linestyle=(0, (4, 1.6)), zorder=0)
    ticks = [tick for tick in (0.5, 1, 2, 5, 10, 20, 50) if low / 1.3 <= tick <= high * 1.3]
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.minorticks_off()
    panel.set_ylim(max(0.0, float(here.accuracy.min()) - 0.2), 1.03)
    panel.text(high * 1.2, best + 0.01, "best merge found", fontsize=6.5, color="0.3", va="bottom", ha="right")
    merged = [name for name in names if family(name) in ("policy", "static")]
    _label(panel, values, merged, low / 1.35, "right")
    for router, builds in _by_router(names).items():
        ordered = sorted(builds, key=lambda name: float(values[name].ratio))
        places = [(float(values[name].ratio), float(values[name].accuracy)) for name in ordered]
        panel.plot(*zip(*places, strict=True), color=COLOURS[family(router)], linewidth=0.7, alpha=0.6, zorder=1)
    dearest = {
        max(builds, key=lambda name: float(values[name].ratio)): router for router, builds in _by_router(names).items()
    }
    _label(panel, values, list(dearest), high * 1.35, "left", words=dearest)


def _by_router(names: Sequence[str]) -> dict[str, list[str]]:
    """Builds by what they build."""
    found: dict[str, list[str]] = {}
    for name in names:
        if name in METHODS and (router := METHODS[name].router) is not None:
            found.setdefault(router, []).append(name)
    return found


def _label(
    panel: "Axes",
    values: Mapping[str, xr.Dataset],
    names: Sequence[str],
    at: float,
    side: str,
    words: Mapping[str, str] | None = None,
) -> None:
    """Names in a column, each joined to its point by a line."""
    ordered = sorted(names, key=lambda name: float(values[name].accuracy))
    heights = spread([float(values[name].accuracy) for name in ordered], LEAST_GAP, 0.02, 1.0)
    for name, height in zip(ordered, heights, strict=True):
        value, colour = values[name], COLOURS[family(name)]
        panel.plot([at, float(value.ratio)], [height, float(value.accuracy)], color=colour, linewidth=0.4, zorder=0)
        text = name if words is None else words[name]
        panel.text(at, height, f" {text} ", ha=side, va="center", fontsize=6.5, color="0.1")


def spread(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Ascending heights moved apart as little as keeps `gap` between neighbours, within [low, high] if they fit."""
    count = len(heights)
    placed = np.asarray(heights, float) - gap * np.arange(count)
    blocks: list[list[float]] = []  # labels that touch: their mean and number
    for value in placed:
        blocks.append([float(value), 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            value, size = blocks.pop()
            before, other = blocks[-1]
            blocks[-1] = [(value * size + before * other) / (size + other), size + other]
    level = np.concatenate([[value] * int(size) for value, size in blocks]) if blocks else np.zeros(0)
    level = np.clip(level, low, max(low, high - gap * (count - 1)))
    return list(level + gap * np.arange(count))


def _diameter(loaded: float, here: xr.Dataset) -> float:
    """A marker's, whose area is in proportion to the bytes."""
    return 7.5 * float(np.sqrt(loaded / float(here.loaded_bytes.max())))


def _draw_legend(figure: "FigureBase", data: xr.Dataset) -> None:
    from matplotlib.lines import Line2D

    families = [
        Line2D(
            [],
            [],
            color=COLOURS[name],
            marker=MARKERS[name],
            markerfacecolor="white" if name == "static" else None,
            linestyle="none",
            markersize=5,
            label=words,
        )
        for name, words in FAMILIES.items()
    ]
    sizes = [float(data.loaded_bytes.min()), float(data.loaded_bytes.max())]
    families += [
        Line2D(
            [],
            [],
            color="0.7",
            marker="o",
            linestyle="none",
            markersize=_diameter(size, data),
            label=f"{size / 1e6:.2f} MB",
        )
        for size in sizes
    ]
    figure.legend(handles=families, loc="outside upper center", ncols=3)


def caption(data: xr.Dataset) -> str:
    """What is drawn, and how to draw it again."""
    about = data.attrs
    merged = data.isel(model=0).sel(approach=next(iter(POLICIES)))
    return (
        f"A two-layer transformer with 8 experts a layer on 8 conflicting tasks of the digits; slots of "
        f"{about['slot_size']} requests of a validation split. Accuracy: mean over {about['num_slots']} slots for "
        "policies, which learn while they serve, and over a part of these slots for the others; bars: standard error "
        "over seeds, of mixes too. Latency: processor time of a compiled batch on one core, median of paired, "
        f"interleaved repetitions ({about['device']}); one merged expert takes {1e3 * float(merged.serving):.2f} ms, "
        f"and its merge {1e3 * float(merged.merging):.2f} ms, here paid for every batch. Area: bytes in memory while a "
        "slot is served. Points that a line joins are builds of one router: with expert capacity (drops tokens), over "
        "all experts, sorted by expert; SMEAR by linearity or materialised. Dashed: the best weights that a search on "
        "the validation split itself finds.\n" + closing(data)
    )


FIGURE = FigureSpec(
    name="tradeoff",
    title="Accuracy, latency and memory of serving a mixture of experts",
    summary="All methods of the evaluation by accuracy, latency and loaded memory.",
    replicates=5,
    size=(7.2, 6.6),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("merging.table-1.*", "merging.table-2.*", "merging.figure-3.*", "merging.figure-5.*"),
)
