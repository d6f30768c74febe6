"""Tanbr over the number of experts: slots until its tree has 20 feasible leaves, and the time to choose among them."""

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from moe_theory.core.random import root_key
from moe_theory.core.system import check_replicates, check_run
from moe_theory.merging import costs
from moe_theory.merging.costs import MAX_SLOTS, NUM_LEAVES
from moe_theory.merging.uncertainty import DIAGONAL
from moe_theory.runs import Progress, quiet
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, closing, panel_row, provenance

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

EXPERTS = (4, 16, 64, 192)
REPEATS = 200  # of the timing
CLAIMED = 0.4e-3  # seconds at K = 192
BAND = (0.1, 0.5, 0.9)


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """Quantiles, over replicates, of the slots and, over repetitions, of the milliseconds, by number of experts.

    Raises: InvalidRunError for replicates or repetitions that cannot be run.
    """
    repeats = REPEATS if num_rounds is None else num_rounds
    check_replicates(replicates)
    check_run(repeats, 1)
    root_key(seed)
    settings = {num_experts: reading.params(num_experts=num_experts) for num_experts in EXPERTS}
    slots, programs = [], []
    for num_experts, params in settings.items():
        progress.running(f"scaling, {num_experts} experts")
        trees = costs.grow_trees(num_experts, replicates, seed, DIAGONAL, params)
        slots.append(np.quantile(trees.slots, BAND))
        programs.append(costs.choice_program(trees, DIAGONAL))
    with costs.on_one_core():
        seconds = costs.interleaved(programs, repeats, seed, time.process_time)
    return xr.Dataset(
        {
            "slots": (("experts", "quantile"), np.array(slots)),
            "milliseconds": (("experts", "quantile"), 1e3 * np.quantile(seconds, BAND, axis=0).T),
        },
        {"experts": list(EXPERTS), "quantile": list(BAND)},
        provenance("merging", "scaling", reading, replicates, seed, repeats, rounds=num_rounds),
    )


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """Slots on the left, milliseconds on the right."""
    left, right = panel_row(figure, 2)
    for panel, name in ((left, "slots"), (right, "milliseconds")):
        low, middle, high = (data[name].sel(quantile=quantile) for quantile in BAND)
        panel.fill_between(data.experts, low, high, color="C0", alpha=0.2, linewidth=0)
        panel.plot(data.experts, middle, color="C0", marker="o", markersize=3.5, linewidth=1.2)
        panel.set_xscale("log", base=2)
        panel.set_xticks(data.experts.values, [str(value) for value in data.experts.values])
        panel.minorticks_off()
        panel.set_xlabel("experts $K$")
        panel.set_ylim(0, 1.15 * float(max(high.max(), 1e3 * CLAIMED if panel is right else 0)))
    left.set_ylabel(f"slots until {NUM_LEAVES} feasible leaves")
    right.set_ylabel("milliseconds to choose weights")
    right.axhline(1e3 * CLAIMED, color="C1", linewidth=1.0, linestyle=(0, (4, 1.6)))
    where: dict[str, Any] = {"xytext": (0, 2), "textcoords": "offset points", "va": "bottom"}
    right.annotate("claimed for $K$ = 192", (data.experts.values[0], 1e3 * CLAIMED), color="C1", fontsize=7, **where)


def caption(data: xr.Dataset) -> str:
    """What is drawn, and how to draw it again."""
    late = float(data.slots.max()) > MAX_SLOTS
    beyond = f" Trees that had not grown them by then count as {MAX_SLOTS + 1} slots." if late else ""
    return (
        f"Left: slots until Tanbr's tree has {NUM_LEAVES} leaves with a feasible point, on peaked rewards.{beyond} "
        "Right: one compiled choice among these leaves (w = 64, V = 8, diagonal Z), processor time on one core, "
        f"{data.attrs['num_rounds']} interleaved repetitions. Lines: medians; bands: 10 to 90 % quantiles.\n"
        + closing(data)
    )


FIGURE = FigureSpec(
    name="scaling",
    title="Tanbr over the number of experts",
    summary="Slots until 20 feasible leaves, and the time of choosing among them.",
    replicates=8,
    size=(7.2, 2.6),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("merging.figure-6.*",),
)
