"""Algorithm 1 with a baseline in its locality loss beside the printed one, at Fig. 2's sizes and as sigma_0 falls."""

from typing import Any

import numpy as np
import xarray as xr

from moe_theory import plot
from moe_theory.continual import repaired
from moe_theory.continual.algorithm import system
from moe_theory.continual.experiments import FIGURE_2, FIGURE_2_DIMS
from moe_theory.core.locality import distance_moved
from moe_theory.plot import roles
from moe_theory.runs import Cell

NUM_EXPERTS, LIMIT_EXPERTS, LIMIT_TASKS, LAW = 20, 12, 6, "orthogonal"
SCALES = repaired.SCALES[:5]
LOOKS = {  # of the variants: words, and how they are drawn
    "printed": ("Algorithm 1", roles.MEASURED),
    "endless": ("never fixed, no auxiliary loss", roles.RIVAL),
    "repaired": ("likewise, with a baseline", roles.OTHER_RIVAL),
}
METRICS = {"forgetting": "(a) forgetting $F_t$", "generalization_error": "(b) error $G_t$"}  # at Fig. 2's sizes
OVER_SCALES = {"relative_error": r"(c) error $G_T/\Delta$", "own_share": "(d) own arrivals"}  # over sigma_0


def compute(setup: plot.Setup) -> xr.Dataset:
    """F_t and G_t at Fig. 2's sizes by variant, and G_T / Delta and own arrivals by variant and sigma_0."""
    settings = {name: (*repaired.VARIANTS[name], NUM_EXPERTS) for name in LOOKS}
    settings["single"] = (distance_moved, {}, 1)
    about = setup.rounds, FIGURE_2.record_every, FIGURE_2.observe
    cells = [
        Cell(name, system(FIGURE_2_DIMS, locality=locality), setup.params(num_experts=number, **changes), *about)
        for name, (locality, changes, number) in settings.items()
    ]
    names = {
        (variant, scale): repaired.cell_name(variant, LAW, LIMIT_EXPERTS, scale)
        for variant in LOOKS
        for scale in SCALES
    }
    limit = {cell.name: cell for cell in repaired.REPAIRED[LIMIT_TASKS].cells_under(setup.reading)}
    runs = {**setup.run(cells), **setup.run(limit[name] for name in names.values())}

    def along(variant: str) -> dict[str, Any]:
        records = runs[variant].records
        return plot.across_replicates(np.stack([getattr(records, metric) for metric in METRICS]))

    def late(variant: str, scale: float) -> dict[str, Any]:
        return plot.means({name: getattr(repaired, name)(runs[names[variant, scale]]) for name in OVER_SCALES})

    data = plot.over(along, {"metric": list(METRICS), "round": runs["single"].rounds}, setting=list(settings))
    return data.merge(plot.over(late, variant=list(LOOKS), scale=SCALES))


@plot.figure(
    "continual.baseline",
    compute,
    title="Algorithm 1 with a baseline in its locality loss",
    summary="G and own arrivals with a move's cost against a baseline, beside Algorithm 1 as printed.",
    replicates=64,
    size=(7.4, 2.9),
    rounds=FIGURE_2.num_rounds,
    claims=("continual.proposition-1.*", "continual.proposition-3.*", "continual.theorem-1.*"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Forgetting (a) and overall generalization error (b) at Fig. 2's sizes, M = {NUM_EXPERTS}, with 10–90 % of
    replicates. With N = {LIMIT_TASKS} orthogonal signals, M = {LIMIT_EXPERTS} and Algorithm 1's orders in σ₀: (c) the
    error at the end over the task gap Δ, (d) the share of the last quarter's arrivals whose expert met the same task
    last, with 95 % intervals. The baseline is a mean of an expert's own last move and of all moves
    (continual.baseline.repaired).
    """
    axes = plot.row(canvas, [*METRICS.values(), *OVER_SCALES.values()], xscale="log")
    for variant, (words, role) in LOOKS.items():
        here = data.sel(variant=variant)
        for panel, metric in zip(axes, METRICS, strict=False):
            plot.curve(panel, data["round"], data.sel(setting=variant, metric=metric), words, **role)
        for panel, name in zip(axes[2:], OVER_SCALES, strict=True):
            plot.intervals(panel, data.scale, here[name], here[f"{name}_error"], **role(marker="o", markersize=3))
    for panel, metric in zip(axes, METRICS, strict=False):
        single = data.sel(setting="single", metric=metric)
        plot.curve(panel, data["round"], single, "one expert", **roles.BASELINE)
        panel.set_xlabel("round $t$")
    for panel in axes[2:]:
        panel.set_xlabel(r"$\sigma_0$")
        panel.invert_xaxis()
        panel.set_ylim(0, 1.1)
    axes[3].axhline(1 / LIMIT_TASKS, **roles.REFERENCE(label="by chance, $1/N$"))
    plot.legend(canvas, 3)
