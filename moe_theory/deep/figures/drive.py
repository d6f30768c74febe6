"""Where early termination matters, and where the router freezes by itself: G_T by the drive kappa of the gates."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from moe_theory.continual.theory import exploration_rounds
from moe_theory.deep.experiments import describe, run_preset
from moe_theory.deep.figures.figures_3_to_7 import BAND_ALPHA, SINGLE, TERMINATIONS, band_handle
from moe_theory.deep.gate import FREEZING_DRIVES
from moe_theory.deep.presets import expert_cell, preset
from moe_theory.runs import Progress, Run, quiet
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, across_replicates, closing, panel_row, provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

NAME, PRESET, NUM_EXPERTS = "drive", "continual-mnist-small", 4
SCALES = tuple(float(scale) for scale in np.round(np.geomspace(5, 160, 8), 1))
DIMENSIONS = ("termination", "gate_scale")
STYLES: dict[str, dict[str, Any]] = {
    "with": {"color": "C0", "linewidth": 1.5, "marker": "o", "markersize": 4},
    "without": {"color": "C2", "linewidth": 1.5, "marker": "s", "markersize": 3.8, "linestyle": (0, (4, 1.2))},
}


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    small = preset(PRESET)
    single = expert_cell(1)
    own = {part: small.cells()[expert_cell(NUM_EXPERTS, part == "with")] for part in TERMINATIONS}
    settings = {(part, scale): {**own[part], "gate_scale": scale} for part in TERMINATIONS for scale in SCALES}
    named = {_name(*key): parameters for key, parameters in settings.items()} | {single: small.cells()[single]}
    runs = run_preset(small, named, reading, replicates, seed, progress, num_rounds, NAME)
    last = {name: run.records.generalization_error[-1].astype(np.float64) for name, run in runs.items()}
    values = [[_across(last[_name(part, scale)]) for scale in SCALES] for part in TERMINATIONS]
    saved = [_across(last[_name("without", scale)] - last[_name("with", scale)]) for scale in SCALES]
    about_single = _across(last[single])
    variables: dict[str, Any] = {
        name: (DIMENSIONS, np.array([[value[name] for value in row] for row in values])) for name in about_single
    }
    variables |= {f"saved_{name}": ("gate_scale", [value[name] for value in saved]) for name in ("mean", "error")}
    variables |= {f"single_{name}": about_single[name] for name in ("mean", "low", "high")}
    variables["drive"] = ("gate_scale", [drive_while_exploring(runs[_name("with", scale)]) for scale in SCALES])
    length = len(runs[single].rounds)
    return xr.Dataset(
        variables,
        {"termination": list(TERMINATIONS), "gate_scale": list(SCALES)},
        provenance("deep", NAME, reading, replicates, seed, length, rounds=num_rounds),
    )


def drive_while_exploring(run: Run) -> float:
    """Median of kappa over replicates and rounds 2 .. T1, before any termination."""
    last = int(exploration_rounds(int(run.params.num_experts), run.params.learning_rate))
    drives = run.records.drive[:last]
    return float(np.median(drives[1:] if len(drives) > 1 else drives))


def _name(part: str, scale: float) -> str:
    return f"{expert_cell(NUM_EXPERTS, part == 'with')}, gate scale {scale:g}"


def _across(samples: Float[np.ndarray, " B"]) -> dict[str, float]:
    return {name: float(value[0]) for name, value in across_replicates(samples[None]).items()}


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    errors, saved = panel_row(figure, 2, sharex=True)
    errors.axhspan(float(data.single_low), float(data.single_high), color=SINGLE["color"], alpha=0.1, linewidth=0)
    errors.axhline(float(data.single_mean), **SINGLE)
    for part in data.termination.values:
        here = data.sel(termination=part)
        errors.fill_between(data.drive, here.low, here.high, color=STYLES[part]["color"], alpha=BAND_ALPHA, linewidth=0)
        errors.plot(data.drive, here["mean"], **STYLES[part])
    errors.set_ylabel("generalization error $G_T$")
    errors.set_ylim(bottom=0)
    errors.set_title("(a) after the last round", loc="left")
    bars = 2 * np.nan_to_num(data.saved_error.values)
    saved.axhline(0, color="0.7", linewidth=0.6)
    saved.errorbar(data.drive, data.saved_mean, yerr=bars, color="C0", marker="o", markersize=4, linewidth=1.2)
    saved.set_ylabel("$G_T$ without minus with termination")
    saved.set_title("(b) reduction by termination", loc="left")
    for panel in (errors, saved):
        _finish(panel, data.drive.values)
    handles: list[Any] = [
        Line2D([], [], **STYLES[part], label=f"$M$ = {NUM_EXPERTS}, {part} termination")
        for part in data.termination.values
    ]
    handles += [
        Line2D([], [], **SINGLE, label="one expert ($M$ = 1)"),
        band_handle(data),
        Patch(color="C3", alpha=0.3, linewidth=0, label="κ from 10 to 20"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)


def _finish(panel: "Axes", drives: Float[np.ndarray, " S"]) -> None:
    panel.set_xscale("log")
    panel.axvspan(*FREEZING_DRIVES, color="C3", alpha=0.3, linewidth=0, zorder=0)
    ends = np.log10([min(FREEZING_DRIVES[0], *drives[drives > 0]), max(FREEZING_DRIVES[1], *drives)])
    ticks = 10.0 ** np.arange(np.floor(ends[0]), np.ceil(ends[1]))
    panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    panel.set_xlabel("drive κ of the gates, median during exploration")


def caption(data: xr.Dataset) -> str:
    scales = data.gate_scale.values
    return (
        "Generalization error after the last round against the drive κ = η|g|²|w_t - w_{t-1}| of the gates: how far a "
        f"step on a task moves its own gate output. The gate input's scale goes from {scales[0]:g} to {scales[-1]:g}; "
        f"κ is the median over replicates and rounds 2 to T1, before any termination. Bars in (b): two standard "
        "errors of the paired difference. Far above κ = 10 to 20 the first steps freeze the router, and nothing is "
        f"left to terminate. {describe(preset(PRESET))}\n" + closing(data)
    )


FIGURE = FigureSpec(
    name=NAME,
    title="Generalization error against the drive of the gates",
    summary="Where early termination matters and where the router freezes by itself: G_T by the drive of the gates.",
    replicates=8,
    size=(7.2, 3.0),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("deep.drive.*",),
)
