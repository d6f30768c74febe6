"""Accuracy, latency and memory of every method: Tables I and II, Figs. 3 and 4."""

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from scipy import optimize

from moe_theory import plot
from moe_theory.merging import evaluation
from moe_theory.merging.evaluation import BEST, POLICIES
from moe_theory.merging.serving.methods import METHODS
from moe_theory.merging.serving.routers import deployed
from moe_theory.merging.testbed.tasks import VALIDATION, Recipe, examples
from moe_theory.plot import roles

SETTING = Recipe()
REPEATS = 30  # repeats of the timing
STATIC = ("average", "fisher", "regmean")
FAMILIES = {  # name -> words in the legend and style. Styles are distinct in grey
    "policy": ("one merged expert, weights by slot", roles.ArtistStyle(color="C0", marker="o")),
    "static": ("one merged expert, fixed", roles.ArtistStyle(color="C0", marker="s", markerfacecolor="white")),
    "token": ("experts by token", roles.ArtistStyle(color="C2", marker="^")),
    "smear": ("merged by token or example (SMEAR)", roles.ArtistStyle(color="C3", marker="D")),
    "task": ("experts by task, with tags", roles.ArtistStyle(color="0.5", marker="v")),
}
LEAST_GAP = 0.055  # least distance between labels, in units of accuracy


def compute(setup: plot.Setup) -> xr.Dataset:
    setup.progress.running(setup.name)
    table = evaluation.evaluate(
        deployed(SETTING),
        examples(SETTING, VALIDATION),
        methods=tuple(METHODS),
        chosen_policies=tuple(POLICIES),
        seeds=setup.replicates,
        num_slots=setup.rounds,
        repeats=REPEATS,
        seed=setup.seed,
        make_params=setup.params,
    )
    return table.expand_dims(model=["digits"])


def family(approach: str) -> str:
    """Return the name in `FAMILIES` of a policy or method."""
    if approach in POLICIES:
        return "policy"
    if approach in STATIC:
        return "static"
    if approach.startswith("rl"):
        return "token"
    return approach.split("-")[0]


def caption_words(data: xr.Dataset) -> dict[str, float]:
    merged = data.isel(model=0).sel(approach=next(iter(POLICIES)))
    return {"serving": 1e3 * float(merged.serving), "merging": 1e3 * float(merged.merging)}


@plot.figure(
    "merging.tradeoff",
    compute,
    title="Accuracy, latency and memory of serving a mixture of experts",
    summary="All methods of the evaluation by accuracy, latency and loaded memory.",
    words=caption_words,
    replicates=5,
    size=(7.2, 6.6),
    rounds=600,
    claims=("merging.table-1.*", "merging.table-2.*", "merging.figure-3.*", "merging.figure-5.*"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """A two-layer transformer with 8 experts a layer on 8 conflicting tasks of the digits; slots of {slot_size}
    requests of a validation split. Accuracy: mean over {num_slots} slots for policies, which learn while they serve,
    and over a part of these slots for the others; bars: standard error over seeds, of mixes too. Latency: processor
    time of a compiled batch on one core, median of paired, interleaved repetitions ({device}); one merged expert takes
    {serving:.2f} ms, and its merge {merging:.2f} ms, here paid for every batch. Area: bytes in memory while a slot is
    served. Points that a line joins are builds of one router: with expert capacity (drops tokens), over all experts,
    sorted by expert; SMEAR by linearity or materialised. Dashed: the best weights that a search on the validation split
    itself finds.
    """
    selection = data.isel(model=0)
    axes = canvas.subplots(data.sizes["mix"], 1, sharex=True, squeeze=False)[:, 0]
    for panel, mix in zip(axes, selection.mix.values, strict=True):
        _draw_panel(panel, selection.sel(mix=mix))
        panel.set_title(f"{mix} mix of tasks")
        panel.set_ylabel("accuracy")
    axes[-1].set_xlabel("seconds a batch, merging included / those of one merged expert")
    for words, look in FAMILIES.values():
        look(linestyle="none", markersize=5).plot(axes[0], [], [], label=words)
    for size in (float(data.loaded_bytes.min()), float(data.loaded_bytes.max())):
        look = roles.ArtistStyle(color="0.7", marker="o", linestyle="none", markersize=_diameter(size, data))
        look.plot(axes[0], [], [], label=f"{size / 1e6:.2f} MB")
    plot.legend(canvas, 3)


def _draw_panel(panel: plot.Axes, selection: xr.Dataset) -> None:
    names = [str(name) for name in selection.approach.values if name != BEST]
    values = {name: selection.sel(approach=name) for name in names}
    for name, value in values.items():
        panel.errorbar(
            float(value.ratio),
            float(value.accuracy),
            yerr=np.nan_to_num(float(value.accuracy_error)),
            markersize=_diameter(float(value.loaded_bytes), selection),
            alpha=0.9,
            linewidth=0.8,
            **FAMILIES[family(name)][1],
        )
    best = float(selection.accuracy.sel(approach=BEST))
    ratios = selection.ratio.sel(approach=names)
    low = float(ratios.min())
    high = float(ratios.max())
    lowest = max(0.0, float(selection.accuracy.min()) - 0.2)
    panel.set(xscale="log", xlim=(low / 4, high * 3.2), ylim=(lowest, 1.03))  # labels need room on both sides
    roles.BASELINE(zorder=0).plot(panel, [low / 1.2, high * 1.2], [best, best])
    panel.text(high * 1.2, best + 0.01, "best merge found", fontsize=6.5, color="0.3", va="bottom", ha="right")
    plot.name_values(panel.xaxis, (tick for tick in (0.5, 1, 2, 5, 10, 20, 50) if low / 1.3 <= tick <= high * 1.3))
    own_labels = {name: name for name in names if family(name) in ("policy", "static")}
    _label(panel, values, own_labels, at=low / 1.35, side="right")
    router_labels = {}  # labels stand at each router's most expensive build
    for router, builds in _by_router(names).items():
        ordered = sorted(builds, key=lambda name: float(values[name].ratio))
        ratios_of_builds = [float(values[name].ratio) for name in ordered]
        heights = [float(values[name].accuracy) for name in ordered]
        colour = FAMILIES[family(router)][1]["color"]
        panel.plot(ratios_of_builds, heights, color=colour, linewidth=0.7, alpha=0.6, zorder=1)
        router_labels[ordered[-1]] = router
    _label(panel, values, router_labels, at=high * 1.35, side="left")


def _by_router(names: Sequence[str]) -> dict[str, list[str]]:
    methods: dict[str, list[str]] = {}
    for name in names:
        router = METHODS[name].router if name in METHODS else None
        if router is not None:
            methods.setdefault(router, []).append(name)
    return methods


def _label(panel: plot.Axes, values: Mapping[str, xr.Dataset], labels: Mapping[str, str], at: float, side: str) -> None:
    """Write the labels below one another at a ratio, each with a line to its approach."""
    ordered = sorted(labels, key=lambda name: float(values[name].accuracy))
    heights = spread([float(values[name].accuracy) for name in ordered], gap=LEAST_GAP, low=0.02, high=1.0)
    for name, height in zip(ordered, heights, strict=True):
        value = values[name]
        colour = FAMILIES[family(name)][1]["color"]
        panel.plot([at, float(value.ratio)], [height, float(value.accuracy)], color=colour, linewidth=0.4, zorder=0)
        panel.text(at, height, f" {labels[name]} ", ha=side, va="center", fontsize=6.5, color="0.1")


def spread(heights: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move ascending heights apart until neighbours have a `gap`, within [low, high] if they fit."""
    steps = gap * np.arange(len(heights))
    levels = optimize.isotonic_regression(np.asarray(heights, float) - steps).x
    return list(np.clip(levels, low, max(low, high - steps[-1])) + steps)


def _diameter(loaded_bytes: float, selection: xr.Dataset) -> float:
    return 7.5 * float(np.sqrt(loaded_bytes / float(selection.loaded_bytes.max())))  # in points
