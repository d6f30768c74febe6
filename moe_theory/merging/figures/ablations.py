"""Fig. 7: Tanbr under other smoothness ratios and learning rates, on a reward whose best weights are known."""

import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from moe_theory import plot
from moe_theory.core.system import fields
from moe_theory.merging import policies, rewards
from moe_theory.merging.experiments import SMOOTHNESS_RATIOS
from moe_theory.merging.params import Dims
from moe_theory.merging.system import Info, State, system
from moe_theory.plot import roles

RATES = (0.005, 0.05, 0.5, 5.0)  # the paper's decades, for a mean loss in units of 1 / width
DIMS = Dims(max_rounds=500)
FIRST_SLOT = 10  # the first slot that is drawn
DASHES = (roles.DASH_DOTTED, roles.DOTTED, roles.DASHED, "solid")  # one for each of the four values, distinct in grey
PANELS = {  # MEASURE_by_AXIS -> symbol of the axis, title
    "mean_regret_by_ratio": (r"$\rho$", r"(a) smoothness ratio $\rho$"),
    "leaves_by_ratio": (r"$\rho$", r"(b) leaves to pick from, by $\rho$"),
    "mean_regret_by_rate": (r"$\eta w$", r"(c) learning rate $\eta$, of a mean loss"),
}


def mean_regret(state: State, info: Info) -> Float[Array, ""]:
    return info.cumulative_regret / state.round.astype(info.regret.dtype)


def compute(setup: plot.Setup) -> xr.Dataset:
    settings = {f"ratio {ratio}": setup.params(smoothness_ratio=ratio) for ratio in SMOOTHNESS_RATIOS}
    settings |= {f"rate {rate}": setup.params(learning_rate=rate) for rate in RATES}
    observe = fields(mean_regret=mean_regret, leaves="info.pick.num_candidates")
    cells = plot.log_axis_cells(settings, system(DIMS, rewards.PEAKED, policies.TANBR), observe, setup.rounds)
    runs = setup.run(cells)

    def data_over(axis: str, values: tuple[float, ...]) -> xr.Dataset:
        def values_of(value: float) -> dict[str, np.ndarray]:
            statistics = {}
            for measure, samples in runs[f"{axis} {value}"].records._asdict().items():
                across = plot.across_replicates(samples)
                statistics[f"{measure}_by_{axis}_mean"] = across["mean"]
                statistics[f"{measure}_by_{axis}_error"] = across["error"]
            return statistics

        return plot.over(values_of, {"slot": cells[0].rounds}, **{axis: values})

    data = data_over("ratio", SMOOTHNESS_RATIOS).merge(data_over("rate", RATES))
    return data.assign_attrs(smoothness_ratio=float(setup.params().smoothness_ratio))


@plot.figure(
    "merging.ablations",
    compute,
    title="Tanbr under other smoothness ratios and learning rates",
    summary="Mean regret and leaves over slots for four smoothness ratios and four learning rates, after Fig. 7.",
    replicates=6,
    size=(7.2, 2.6),
    rounds=DIMS.max_rounds,
    claims=("merging.figure-7.*",),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Tanbr on one peak for all tasks, K = V = {DIMS.num_tasks}, a fixed task mix that is known; bands: one standard
    error. (a), (b) The smaller ρ, the more pulls a split needs, and the fewer leaves there are to learn about. (c) η w,
    the step on the mean loss in units of 1/width, at ρ = {smoothness_ratio:g}; the paper's losses are summed over
    slots, so that its η are smaller.
    """
    late = data.sel(slot=data.slot >= min(FIRST_SLOT, int(data.slot[-1])))
    ends = (int(late.slot[0]), int(late.slot[-1]))
    axes = plot.row(canvas, [title for _, title in PANELS.values()], xlim=ends, xscale="log", xlabel="slots $t$")
    colours = list(reversed(plot.ramp(len(DASHES))))
    for panel, (name, (symbol, _)) in zip(axes, PANELS.items(), strict=True):
        axis = name.rpartition("_")[2]
        for value, colour, dashes in zip(data[axis].values, colours, DASHES, strict=True):
            mean = late[f"{name}_mean"].sel({axis: value})
            error = late[f"{name}_error"].sel({axis: value})
            band = xr.Dataset({"mean": mean, "low": mean - error, "high": mean + error})
            look = roles.ArtistStyle(color=colour, linewidth=1.5, linestyle=dashes)
            plot.curve(panel, band.slot, band, look, label=f"{symbol} = {value:g}")
        panel.set_ylim(0, None)
        panel.set_ylabel("mean regret so far, $R_t / t$")
        panel.legend(loc="upper left" if name.startswith("leaves") else "lower left")
    axes[1].set(yscale="log", ylim=(1, None), ylabel="candidates $N_t$")  # (b) alone shows no regret
