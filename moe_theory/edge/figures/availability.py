"""Proposition 1: shares of tasks without an idle server of their type, over the number of servers."""

import itertools

import numpy as np
import xarray as xr
from scipy import stats

from moe_theory import plot
from moe_theory.core.system import fields
from moe_theory.edge import corrected, theory
from moe_theory.edge.algorithm import system
from moe_theory.edge.experiments import FAILURE, MAX_DELAY, figure_3_dims
from moe_theory.plot import roles
from moe_theory.runs import Cell

EXPERTS = (10, 20, 30, 40, 50, 70, 90, 120)  # multiples of N: M / N is whole
DIMS = figure_3_dims(EXPERTS[-1])
ALL_DELAYS = ("min_transfer_delay", "max_transfer_delay", "min_execution_delay", "max_execution_delay")
DELAYS: dict[str, dict[str, int]] = {
    "Fig. 3": {},
    "all d_u": dict.fromkeys(ALL_DELAYS, MAX_DELAY // 2),  # transfer and execution add up to d_u
}
TITLES = {
    "Fig. 3": "(a) delays of Fig. 3, uniform on 0..5 + 1..5",
    "all d_u": f"(b) worst case, every delay $d_u$ = {MAX_DELAY}",
}
FLOOR = 1e-4  # lowest value of the probability axis
SHARES = {
    "none_idle": (roles.MEASURED(marker="o", markersize=3.5, linewidth=1.4), "simulation: no specialist is idle"),
    "none_exists": (roles.RIVAL(marker="s", markersize=3.5, linewidth=1.4), "simulation: there is no specialist"),
}
THEORY = {
    "tail": (roles.PRINTED, r"Appendix B: $P(A_n > M/N)$"),
    "unserved": (roles.PRINTED_TOO, "$M/N$ specialists, all busy"),
    "unserved_random": (roles.RIGHT, "Binomial($M$, 1/$N$) specialists, all busy"),
}
UNSEEN = roles.ArtistStyle(marker="v", markersize=5, linestyle="none", clip_on=False)
observe = fields(
    none_idle=lambda state, info: ~info.specialist_idle,
    none_exists=lambda state, info: ~info.specialist_exists,
)


def compute(setup: plot.Setup) -> xr.Dataset:
    length = setup.rounds
    second_half = tuple(range(length // 2, length))
    runs = setup.run(
        Cell(
            name=_cell_name(law, number),
            system=system(DIMS),
            params=setup.params(num_experts=number, **overrides),
            num_rounds=length,
            record_every=1,
            observe=observe,
            keep=second_half,  # positions of recorded rounds
        )
        for (law, overrides), number in itertools.product(DELAYS.items(), EXPERTS)
    )

    def measure(law: str, number: int) -> plot.Values:
        records = runs[_cell_name(law, number)].records
        return plot.means({share: getattr(records, share).mean(axis=0) for share in SHARES})

    def predict_all(number: int) -> plot.Values:
        return {name: predict(name, number) for name in THEORY}

    data = plot.over(measure, delays=list(DELAYS), experts=EXPERTS)
    return data.merge(plot.over(predict_all, experts=EXPERTS))


def _cell_name(law: str, num_experts: int) -> str:
    return f"{law}, M = {num_experts}"


def predict(name: str, num_experts: int) -> float:
    """Return the value of one of `THEORY` for M servers."""
    num_tasks = DIMS.num_tasks
    if name == "tail":
        return theory.tail(MAX_DELAY, num_tasks, num_experts / num_tasks)
    if name == "unserved":
        return corrected.unserved(MAX_DELAY, num_tasks, num_experts / num_tasks)
    counts = np.arange(num_experts + 1)  # possible numbers of specialists, for "unserved_random"
    weights = stats.binom.pmf(counts, num_experts, 1 / num_tasks)
    chances = [corrected.unserved(MAX_DELAY, num_tasks, specialists=int(count)) for count in counts]
    return float(weights @ chances)


@plot.figure(
    "edge.availability",
    compute,
    title="How often no specialised server is idle",
    summary="Proposition 1: measured shares of arrivals without an idle specialist against binomial tails.",
    words=lambda data: {"first": data.attrs["num_rounds"] // 2 + 1},
    replicates=32,
    size=(7.2, 3.4),
    rounds=3000,
    claims=("edge.proposition-1.*",),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Share of arrivals that find no idle server specialised in their kind (15), and of those whose kind no server
    specialises in at all, in rounds {first} to {num_rounds}, with 95 % intervals over replicates; N = 10 kinds, d_u =
    {MAX_DELAY}. Theory for delays of d_u and specialists that serve nothing else: the event of Appendix B, a window
    with more arrivals of one kind than specialists; all M/N specialists busy when a task arrives; the same for as many
    specialists as the proof supposes, Binomial(M, 1/N). Vertical: Proposition 1's M at δ = {FAILURE:g} with its normal
    quantile, and with the binomial one.
    """
    experts = data.experts.values
    titles = [TITLES[law] for law in data.delays.values]
    ends = (0.93 * experts[0], 1.08 * experts[-1])  # the axis has room for marks
    axes = plot.row(canvas, titles, ylabel="probability at an arrival", sharey=True, xlabel="servers $M$")
    for panel, law in zip(axes, data.delays.values, strict=True):
        panel.set(xscale="log", yscale="log", xlim=ends, ylim=(FLOOR, 1.2))
        plot.name_values(panel.xaxis, experts)
        _draw_levels(panel)
        for name, (role, label) in SHARES.items():
            _draw_share(panel, data.sel(delays=law), name, role, label)
        for name, (role, label) in THEORY.items():
            role.plot(panel, experts, data[name], label=label)
    plot.legend(canvas, 3)


def _draw_levels(panel: plot.Axes) -> None:
    roles.REFERENCE.hline(panel, FAILURE)
    plot.note(panel, rf"$\delta$ = {FAILURE:g}", at=(0, FAILURE), shift=(3, 2), xycoords=("axes fraction", "data"))
    for quantile, shift in (("normal", -2), ("binomial", 2)):
        number = theory.experts_needed(MAX_DELAY, DIMS.num_tasks, FAILURE, quantile)
        if not panel.get_xlim()[0] <= number <= panel.get_xlim()[1]:
            continue  # text beyond a panel would shrink the panel
        roles.REFERENCE.vline(panel, number)
        at_top = ("data", "axes fraction")  # coordinates of `at`
        plot.note(panel, f"{number}", at=(number, 1), shift=(shift, 0), xycoords=at_top, va="top", color="0.35")


def _draw_share(panel: plot.Axes, selection: xr.Dataset, name: str, role: roles.ArtistStyle, label: str) -> None:
    experts = selection.experts.values
    share = selection[name].values
    positive = np.where(share > 0, share, np.nan)
    error = selection[f"{name}_error"].values
    plot.intervals(panel, experts, positive, error, style=role, label=label, log=True)
    unseen = experts[share == 0]
    if len(unseen) > 0:  # an empty line without clipping would spoil the layout
        UNSEEN(color=role["color"]).plot(panel, unseen, np.full(len(unseen), FLOOR), label="not seen once")
