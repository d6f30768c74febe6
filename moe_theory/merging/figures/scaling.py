"""Tanbr over the number of experts: slots until 20 feasible leaves, and the time to choose among them."""

import time

import numpy as np
import xarray as xr

from moe_theory import plot
from moe_theory.merging import costs
from moe_theory.merging.costs import MAX_SLOTS, NUM_LEAVES
from moe_theory.merging.uncertainty import DIAGONAL
from moe_theory.plot import roles

EXPERTS = (4, 16, 64, 192)
CLAIMED_SECONDS = 0.4e-3  # the paper's claim for K = 192
BAND = (0.1, 0.5, 0.9)  # quantiles: the median between the ends of the band


def compute(setup: plot.Setup) -> xr.Dataset:
    settings = {num_experts: setup.params(num_experts=num_experts) for num_experts in EXPERTS}
    slots = []
    programs = []
    for num_experts, params in settings.items():
        setup.progress.running(f"scaling, {num_experts} experts")
        trees = costs.grow_trees(num_experts, setup.replicates, setup.seed, DIAGONAL, params)
        slots.append(np.quantile(trees.slots, BAND))
        programs.append(costs.choice_program(trees, DIAGONAL))
    with costs.on_one_core():
        seconds = costs.interleaved(programs, setup.rounds, setup.seed, time.process_time)
    return xr.Dataset(
        {
            "slots": (("experts", "quantile"), np.array(slots)),
            "milliseconds": (("experts", "quantile"), 1e3 * np.quantile(seconds, BAND, axis=0).T),
        },
        {"experts": list(EXPERTS), "quantile": list(BAND)},
    )


def caption_words(data: xr.Dataset) -> dict[str, str]:
    is_beyond = float(data.slots.max()) > MAX_SLOTS
    return {"beyond": f" Trees that had not grown them by then count as {MAX_SLOTS + 1} slots." if is_beyond else ""}


@plot.figure(
    "merging.scaling",
    compute,
    title="Tanbr over the number of experts",
    summary="Slots until 20 feasible leaves, and the time of choosing among them.",
    words=caption_words,
    replicates=8,
    size=(7.2, 2.6),
    rounds=200,  # repeats of the timing
    claims=("merging.figure-6.*",),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Left: slots until Tanbr's tree has {NUM_LEAVES} leaves with a feasible point, on peaked rewards.{beyond} Right:
    one compiled choice among these leaves (w = 64, V = 8, diagonal Z), processor time on one core, {num_rounds}
    interleaved repetitions. Lines: medians; bands: 10 to 90 % quantiles.
    """
    left, right = plot.row(canvas, ("", ""), xlabel="experts $K$", ylabel=f"slots until {NUM_LEAVES} feasible leaves")
    right.set_ylabel("milliseconds to choose weights")
    for panel, name in ((left, "slots"), (right, "milliseconds")):
        parts = zip(("low", "mean", "high"), BAND, strict=True)  # the line of a curve is its "mean", here the median
        selection = xr.Dataset({part: data[name].sel(quantile=quantile, drop=True) for part, quantile in parts})
        plot.curve(panel, data.experts, selection, roles.MEASURED(marker="o", markersize=3.5))
        panel.set_xscale("log", base=2)
        plot.name_values(panel.xaxis, data.experts.values)
        largest = float(selection.high.max())
        if panel is right:
            largest = max(largest, 1e3 * CLAIMED_SECONDS)
        panel.set_ylim(0, 1.15 * largest)
    roles.PRINTED.hline(right, 1e3 * CLAIMED_SECONDS)
    left_end = (data.experts.values[0], 1e3 * CLAIMED_SECONDS)
    plot.note(right, "claimed for $K$ = 192", at=left_end, shift=(0, 2), color="C1", fontsize=7)
