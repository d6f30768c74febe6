"""Fig. 4 of `edge`, the generalization error of four routing policies, by number of servers."""

import xarray as xr

from moe_theory import plot
from moe_theory.core.errors import enclosed
from moe_theory.deep.experiments import describe, run_preset
from moe_theory.deep.figures.figures_3_to_7 import BAND
from moe_theory.deep.presets import Preset, preset, server_cell
from moe_theory.edge.policies import POLICIES
from moe_theory.plot import roles
from moe_theory.verification.claim import Runs

SMALL = preset("edge-mnist-small")
LOOKS = {
    "adaptive": (roles.MEASURED(zorder=2.1), "adaptive (Algorithm 1)"),
    "nearest": (roles.OTHER_RIVAL, "nearest idle server"),
    "fastest": (roles.RIVAL, "fastest idle server"),
    "uniform": (roles.BASELINE, "any idle server (not in the paper)"),
}


def summarize(preset: Preset, runs: Runs) -> xr.Dataset:
    def values_of(size: int, policy: str) -> plot.Values:
        run = runs[server_cell(size, policy)]
        lost = run.records.dropped[-1].mean() / run.rounds[-1]
        return plot.across_replicates(run.records.generalization_error) | {"dropped": lost}

    rounds = next(iter(runs.values())).rounds
    return plot.over(values_of, {"round": rounds}, experts=preset.experts, policy=list(POLICIES))


def compute(setup: plot.Setup) -> xr.Dataset:
    return summarize(SMALL, run_preset(SMALL, SMALL.cells(), setup))


def caption_words(data: xr.Dataset) -> dict[str, str]:
    lost = float(data.dropped.max())
    left_out = enclosed(" Up to ", lost and f"{lost:.0%}", " of the tasks found all servers busy and are left out.")
    return {"left_out": left_out, "described": describe(SMALL)}


@plot.figure(
    "deep.edge-figure-4",
    compute,
    title="Generalization error of adaptive, nearest and fastest routing",
    summary="Fig. 4 of mobile edge computing on the digits: adaptive routing against nearest and fastest, M = 5, 10.",
    words=caption_words,
    replicates=16,
    size=(7.2, 3.0),
    rounds=SMALL.num_rounds,
    claims=("deep.edge-figure-4.*",),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Generalization error (20) of the servers' current models on the tasks routed so far. {described} Of the servers'
    delays the paper gives only d_u = 4; ties for the fastest server go to the first.{left_out}
    """
    rounds = data["round"].values
    band = BAND.format(replicates=data.attrs.get("replicates", "the"))
    titles = [f"({letter}) $M$ = {size} servers" for letter, size in zip("abcdefgh", data.experts.values, strict=False)]
    ends = (0, rounds[-1] + 0.5)
    axes = plot.row(canvas, titles, ylabel="generalization error $G_t$", sharey=True, xlabel="round $t$", xlim=ends)
    for panel, size in zip(axes, data.experts.values, strict=False):
        for policy in data.policy.values:
            role, label = LOOKS[policy]
            plot.curve(panel, rounds, data.sel(experts=size, policy=policy), role, label=label, band=band)
    plot.legend(canvas, 3)
