"""Tanbr under other smoothness ratios and learning rates: the paper's Fig. 7, on a reward whose best is known."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Array, Float, Int

from moe_theory.merging import policies, rewards
from moe_theory.merging.experiments import SMOOTHNESS_RATIOS
from moe_theory.merging.params import Dims
from moe_theory.merging.system import Info, State, system
from moe_theory.runs import Progress, quiet, run_cells
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import (
    FigureSpec,
    across_replicates,
    closing,
    log_axis_cells,
    panel_row,
    provenance,
    ramp,
)

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

RATES = (0.005, 0.05, 0.5, 5.0)  # of a mean loss, in units of 1 / width: the paper's decades, higher as it sums losses
DIMS = Dims(max_rounds=500)
FIRST_SLOT = 10  # that is drawn
STYLES: tuple[dict[str, Any], ...] = (
    {"linewidth": 1.4, "linestyle": (0, (4, 1.2, 1, 1.2))},
    {"linewidth": 1.4, "linestyle": (0, (1, 1.1))},
    {"linewidth": 1.4, "linestyle": (0, (4, 1.4))},
    {"linewidth": 1.8},
)


class Shown(NamedTuple):
    """Observables of a slot."""

    mean_regret: Float[Array, ""]  # R_t / t
    leaves: Int[Array, ""]  # N_t


def observe(state: State, info: Info) -> Shown:
    """Mean regret so far and the candidates of the slot."""
    return Shown(info.cumulative_regret / state.round.astype(info.regret.dtype), info.pick.num_candidates)


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """Mean regret so far and candidates, by smoothness ratio and by learning rate, the other as in the reading.

    Raises: InvalidRunError for replicates or rounds that cannot be run.
    """
    length = DIMS.max_rounds if num_rounds is None else num_rounds
    settings = {f"ratio {ratio}": reading.params(smoothness_ratio=ratio) for ratio in SMOOTHNESS_RATIOS}
    settings |= {f"rate {rate}": reading.params(learning_rate=rate) for rate in RATES}
    parts = log_axis_cells(settings, system(DIMS, rewards.PEAKED, policies.TANBR), observe, length)
    runs = run_cells(parts, replicates, seed=seed, progress=progress, what="ablations")
    by_axis: dict[str, tuple[tuple[str, str], np.ndarray]] = {}
    for axis, values in (("ratio", SMOOTHNESS_RATIOS), ("rate", RATES)):
        for measure in Shown._fields:
            found = [across_replicates(getattr(runs[f"{axis} {value}"].records, measure)) for value in values]
            for statistic in ("mean", "error"):
                stacked = np.stack([one[statistic] for one in found])
                by_axis[f"{measure}_by_{axis}_{statistic}"] = ((axis, "slot"), stacked)
    return xr.Dataset(
        by_axis,
        {"ratio": list(SMOOTHNESS_RATIOS), "rate": list(RATES), "slot": parts[0].rounds},
        provenance("merging", "ablations", reading, replicates, seed, length, rounds=num_rounds)
        | {"smoothness_ratio": float(reading.params().smoothness_ratio)},
    )


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """Mean regret by ratio, candidates by ratio, mean regret by learning rate."""
    axes = panel_row(figure, 3)
    shown = data.sel(slot=data.slot >= min(FIRST_SLOT, int(data.slot[-1])))
    panels: Sequence[tuple[str, str, str, str]] = (
        ("mean_regret_by_ratio", "ratio", r"$\rho$ = ", r"(a) smoothness ratio $\rho$"),
        ("leaves_by_ratio", "ratio", r"$\rho$ = ", r"(b) leaves to pick from, by $\rho$"),
        ("mean_regret_by_rate", "rate", r"$\eta w$ = ", r"(c) learning rate $\eta$, of a mean loss"),
    )
    for panel, (name, axis, symbol, title) in zip(axes, panels, strict=True):
        for value, colour, look in zip(data[axis].values, reversed(ramp(len(STYLES))), STYLES, strict=True):
            style: dict[str, Any] = {"color": colour} | look
            mean = shown[f"{name}_mean"].sel({axis: value})
            error = shown[f"{name}_error"].sel({axis: value})
            panel.plot(shown.slot, mean, label=f"{symbol}{value:g}", **style)
            panel.fill_between(shown.slot, mean - error, mean + error, color=style["color"], alpha=0.15, linewidth=0)
        panel.set(xscale="log", xlabel="slots $t$", xlim=(int(shown.slot[0]), int(shown.slot[-1])), ylim=(0, None))
        panel.set_title(title, loc="left")
        panel.legend(loc="upper left" if name.startswith("leaves") else "lower left")
    axes[0].set_ylabel("mean regret so far, $R_t / t$")
    axes[1].set_ylabel("candidates $N_t$")
    axes[1].set(yscale="log", ylim=(1, None))
    axes[2].set_ylabel("mean regret so far, $R_t / t$")


def caption(data: xr.Dataset) -> str:
    """What is drawn, and how to draw it again."""
    return (
        f"Tanbr on one peak for all tasks, K = V = {DIMS.num_tasks}, a fixed task mix that is known; bands: one "
        "standard error. (a), (b) The smaller ρ, the more pulls a split needs, and the fewer leaves there are to learn "
        "about. (c) η w, the step on the mean loss in units of 1/width, at ρ = "
        f"{data.attrs['smoothness_ratio']:g}; the paper's losses are summed over slots, so that its η are smaller.\n"
        + closing(data)
    )


FIGURE = FigureSpec(
    name="ablations",
    title="Tanbr under other smoothness ratios and learning rates",
    summary="Mean regret and leaves over slots for four smoothness ratios and four learning rates, after Fig. 7.",
    replicates=6,
    size=(7.2, 2.6),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("merging.figure-7.*",),
)
