"""Effects of early termination, and of a router that freezes by itself, on G_T by the gate drive kappa."""

import itertools

import numpy as np
import xarray as xr

from moe_theory import plot
from moe_theory.continual.theory import exploration_rounds
from moe_theory.deep.experiments import describe, run_preset
from moe_theory.deep.figures.figures_3_to_7 import BAND, SINGLE, TERMINATIONS
from moe_theory.deep.gate import FREEZING_DRIVES
from moe_theory.deep.presets import expert_cell, preset
from moe_theory.plot import roles
from moe_theory.runs import Run

SMALL = preset("continual-mnist-small")
NUM_EXPERTS = 4
SCALES = tuple(float(scale) for scale in np.round(np.geomspace(5, 160, 8), 1))
LOOKS = {  # by termination
    "with": roles.MEASURED(marker="o", markersize=4),
    "without": roles.RIVAL(marker="s", markersize=3.8, linestyle=roles.DASHED),
}


def compute(setup: plot.Setup) -> xr.Dataset:
    single = expert_cell(1)
    params_of = {part: SMALL.cells()[expert_cell(NUM_EXPERTS, part == "with")] for part in TERMINATIONS}
    settings = {
        _name(part, scale): params_of[part] | {"gate_scale": scale}
        for part, scale in itertools.product(TERMINATIONS, SCALES)
    }
    runs = run_preset(SMALL, settings | {single: SMALL.cells()[single]}, setup)
    final_errors = {name: run.records.generalization_error[-1].astype(np.float64) for name, run in runs.items()}

    def saved(scale: float) -> plot.Values:
        reductions = final_errors[_name("without", scale)] - final_errors[_name("with", scale)]
        statistics = plot.across_replicates(reductions)
        return {"saved_mean": statistics["mean"], "saved_error": statistics["error"]}

    alone = plot.across_replicates(final_errors[single])
    data = plot.over(
        lambda part, scale: plot.across_replicates(final_errors[_name(part, scale)]),
        termination=TERMINATIONS,
        gate_scale=SCALES,
    ).merge(plot.over(saved, gate_scale=SCALES))
    drives = plot.over(lambda scale: {"drive": drive_while_exploring(runs[_name("with", scale)])}, gate_scale=SCALES)
    return data.assign({f"single_{name}": alone[name] for name in ("mean", "low", "high")}).merge(drives)


def drive_while_exploring(run: Run) -> float:
    """Return the median of kappa over replicates and rounds 2 .. T1, which precede any termination."""
    num_exploring = int(exploration_rounds(int(run.params.num_experts), run.params.learning_rate))
    drives = run.records.drive[:num_exploring]
    return float(np.median(drives[1:] if len(drives) > 1 else drives))


def _name(part: str, scale: float) -> str:  # part of `TERMINATIONS`
    return f"{expert_cell(NUM_EXPERTS, part == 'with')}, gate scale {scale:g}"


@plot.figure(
    "deep.drive",
    compute,
    title="Generalization error against the drive of the gates",
    summary="Where early termination matters and where the router freezes by itself: G_T by the drive of the gates.",
    words=lambda data: {"first": SCALES[0], "last": SCALES[-1], "described": describe(SMALL)},
    replicates=8,
    size=(7.2, 3.0),
    rounds=SMALL.num_rounds,
    claims=("deep.drive.*",),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Generalization error after the last round against the drive κ = η|g|²|w_t - w_{{t-1}}| of the gates: how far a
    step on a task moves its own gate output. The gate input's scale goes from {first:g} to {last:g}; κ is the median
    over replicates and rounds 2 to T1, before any termination. Bars in (b): 95 % intervals of the paired difference.
    Far above κ = 10 to 20 the first steps freeze the router, and nothing is left to terminate. {described}
    """
    drives = data.drive.values
    label = "drive κ of the gates, median during exploration"
    titles = ("(a) after the last round", "(b) reduction by termination")
    errors, saved = plot.row(canvas, titles, sharex=True, xscale="log", xlabel=label)
    band = BAND.format(replicates=data.attrs["replicates"])
    for part in data.termination.values:
        selection = data.sel(termination=part)
        words = f"$M$ = {NUM_EXPERTS}, {part} termination"
        plot.curve(errors, drives, selection, LOOKS[part], label=words, band=band)
    SINGLE.hline(errors, float(data.single_mean), label="one expert ($M$ = 1)")
    errors.axhspan(float(data.single_low), float(data.single_high), **roles.BAND(color=SINGLE["color"]))
    errors.set_ylabel("generalization error $G_T$")
    errors.set_ylim(bottom=0)
    roles.ZERO.hline(saved, 0)
    plot.intervals(saved, drives, data.saved_mean, data.saved_error.values, style=LOOKS["with"])
    saved.set_ylabel("$G_T$ without minus with termination")
    least = min(FREEZING_DRIVES[0], *drives[drives > 0])
    most = max(FREEZING_DRIVES[1], *drives)
    ticks = 10.0 ** np.arange(np.floor(np.log10(least)), np.ceil(np.log10(most)))
    for panel in (errors, saved):
        panel.axvspan(*FREEZING_DRIVES, color="C3", alpha=0.3, linewidth=0, zorder=0, label="κ from 10 to 20")
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    plot.legend(canvas, 3)
