"""Proposition 1: how often an arriving task finds no idle server of its own kind, over the number of servers.

A server's kind is the one it specialises in (15). Counted in the second half of the runs, in two settings: the delays
of Fig. 3, and the worst case of the proof, in which every task takes d_u rounds.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Array, Bool
from scipy import stats

from moe_theory.edge import corrected, theory
from moe_theory.edge.algorithm import Info, State, system
from moe_theory.edge.experiments import FAILURE, MAX_DELAY, figure_3_dims
from moe_theory.runs import Cell, Progress, Run, quiet, run_cells
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, across_replicates, closing, panel_row, provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

EXPERTS = (10, 20, 30, 40, 50, 70, 90, 120)  # multiples of N: M / N is whole
DIMS = figure_3_dims(EXPERTS[-1])
ALL_DELAYS = ("min_transfer_delay", "max_transfer_delay", "min_execution_delay", "max_execution_delay")
DELAYS: dict[str, dict[str, int]] = {"Fig. 3": {}, "all d_u": dict.fromkeys(ALL_DELAYS, MAX_DELAY // 2)}
TITLES = {
    "Fig. 3": "(a) delays of Fig. 3, uniform on 0..5 + 1..5",
    "all d_u": f"(b) worst case, every delay $d_u$ = {MAX_DELAY}",
}
NUM_ROUNDS = 3000
SHARES = ("none_idle", "none_exists")
THEORY = ("tail", "unserved", "unserved_random")
FLOOR = 1e-4  # of the probability axis
Z = 1.96  # a 95 % interval at each point
STYLES: dict[str, dict[str, Any]] = {
    "none_idle": {"color": "C0", "linewidth": 1.6, "marker": "o", "markersize": 4},
    "none_exists": {"color": "C2", "linewidth": 1.2, "marker": "s", "markersize": 3.5},
    "tail": {"color": "C1", "linewidth": 1.0, "linestyle": (0, (1, 1.2)), "marker": ".", "markersize": 4},
    "unserved": {"color": "C1", "linewidth": 1.4, "linestyle": (0, (4, 1.6))},
    "unserved_random": {"color": "black", "linewidth": 1.0, "linestyle": (0, (4, 1.2, 1, 1.2))},
    "level": {"color": "0.3", "linewidth": 0.8, "linestyle": (0, (1, 1.5)), "zorder": 0},
    "enough": {"color": "0.55", "linewidth": 0.8, "zorder": 0},
    "unseen": {"linestyle": "none", "marker": "v", "markersize": 5, "color": "0.5", "clip_on": False},
}
LEGEND = {
    "none_idle": "simulation: no specialist is idle",
    "none_exists": "simulation: there is no specialist",
    "unseen": "not seen once",
    "tail": r"Appendix B: $P(A_n > M/N)$",
    "unserved": "$M/N$ specialists, all busy",
    "unserved_random": "Binomial($M$, 1/$N$) specialists, all busy",
}


class Supply(NamedTuple):
    """What an arrival finds."""

    none_idle: Bool[Array, ""]
    none_exists: Bool[Array, ""]


def observe(state: State, info: Info) -> Supply:
    """Whether an arrival of this kind has no idle specialist, and whether it has none at all."""
    del state
    return Supply(~info.specialist_idle, ~info.specialist_exists)


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """Shares of the later arrivals without an idle specialist, and without any, by delays and number of servers.

    Raises: InvalidRunError for replicates or rounds that cannot be run.
    """
    length = NUM_ROUNDS if num_rounds is None else num_rounds
    later = tuple(range(length // 2, length))
    cells = [
        Cell(_name(name, number), system(DIMS), params, length, 1, observe, keep=later)
        for name, delays in DELAYS.items()
        for number in EXPERTS
        for params in (reading.params(num_experts=number, **delays),)
    ]
    runs = run_cells(cells, replicates, seed=seed, progress=progress, what="availability")
    variables: dict[str, Any] = {}
    for share in SHARES:
        rows = [[_share(runs[_name(name, number)], share) for number in EXPERTS] for name in DELAYS]
        for name, statistic in ((share, "mean"), (f"{share}_error", "error")):
            variables[name] = (("delays", "experts"), [[cell[statistic] for cell in row] for row in rows])
    for name in THEORY:
        variables[name] = ("experts", [predicted(name, number) for number in EXPERTS])
    return xr.Dataset(
        variables,
        {"delays": list(DELAYS), "experts": list(EXPERTS)},
        provenance("edge", "availability", reading, replicates, seed, length, rounds=num_rounds),
    )


def _name(delays: str, num_experts: int) -> str:
    return f"{delays}, M = {num_experts}"


def _share(run: Run, name: str) -> dict[str, float]:
    """A share of the rounds: its mean over replicates, and the standard error of that."""
    shares = getattr(run.records, name).mean(axis=0)
    return {name: float(values[0]) for name, values in across_replicates(shares[None]).items()}


def predicted(name: str, num_experts: int) -> float:
    """What theory says of so many servers: with M/N specialists of each kind, or with Binomial(M, 1/N) of them."""
    num_tasks = DIMS.num_tasks
    if name == "tail":
        return theory.tail(MAX_DELAY, num_tasks, num_experts / num_tasks)
    if name == "unserved":
        return corrected.unserved(MAX_DELAY, num_tasks, num_experts / num_tasks)
    counts = np.arange(num_experts + 1)
    weights = stats.binom.pmf(counts, num_experts, 1 / num_tasks)
    return float(weights @ [corrected.unserved(MAX_DELAY, num_tasks, int(count)) for count in counts])


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """A panel for each law of the delays."""
    axes = panel_row(figure, data.sizes["delays"], sharey=True)
    experts = data.experts.values
    for panel, delays in zip(axes, data.delays.values, strict=True):
        panel.set(xscale="log", yscale="log", xlim=(0.93 * experts[0], 1.08 * experts[-1]), ylim=(FLOOR, 1.2))
        panel.set_title(TITLES[str(delays)], loc="left")
        panel.set_xlabel("servers $M$")
        panel.set_xticks(experts, [str(number) for number in experts])
        panel.minorticks_off()
        _draw_levels(panel)
        for name in THEORY:
            panel.plot(experts, data[name], **STYLES[name])
        for name in reversed(SHARES):
            _draw_share(panel, data.sel(delays=delays), name)
    axes[0].set_ylabel("probability at an arrival")
    _draw_legend(figure)


def _draw_levels(panel: "Axes") -> None:
    panel.axhline(FAILURE, **STYLES["level"])
    offset: dict[str, Any] = {"textcoords": "offset points"}
    panel.annotate(rf"$\delta$ = {FAILURE:g}", (0, FAILURE), (3, 2), xycoords=("axes fraction", "data"), **offset)
    for quantile, side, shift in (("normal", "right", -2), ("binomial", "left", 2)):
        number = theory.experts_needed(MAX_DELAY, DIMS.num_tasks, FAILURE, quantile)
        if not panel.get_xlim()[0] <= number <= panel.get_xlim()[1]:
            continue  # words beyond a panel would take its room
        panel.axvline(number, **STYLES["enough"])
        text = {"xycoords": ("data", "axes fraction"), "ha": side, "va": "top", "color": "0.35"}
        panel.annotate(f"{number}", (number, 1), (shift, 0), **text, **offset)


def _draw_share(panel: "Axes", here: xr.Dataset, name: str) -> None:
    experts, share = here.experts.values, here[name].values
    seen = share > 0
    error = Z * np.nan_to_num(here[f"{name}_error"].values)
    low = np.minimum(error, share * (1 - 1e-9))  # stays above 0 on the logarithmic axis
    panel.errorbar(experts, np.where(seen, share, np.nan), (low, error), elinewidth=0.9, **STYLES[name])
    unseen = experts[~seen]
    if len(unseen) > 0:  # an empty line without clipping would spoil the layout
        colour = {"color": STYLES[name]["color"]}
        panel.plot(unseen, np.full(len(unseen), FLOOR), **(STYLES["unseen"] | colour))


def _draw_legend(figure: "FigureBase") -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **STYLES[name], label=label) for name, label in LEGEND.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)


def caption(data: xr.Dataset) -> str:
    """What is drawn, and how to draw it again."""
    length = data.attrs["num_rounds"]
    return (
        "Share of arrivals that find no idle server specialised in their kind (15), and of those whose kind no server "
        f"specialises in at all, in rounds {length // 2 + 1} to {length}, with 95 % intervals over replicates; N = 10 "
        f"kinds, d_u = {MAX_DELAY}. Theory for delays of d_u and specialists that serve nothing else: the event of "
        "Appendix B, a window with more arrivals of one kind than specialists; all M/N specialists busy when a task "
        "arrives; the same for as many specialists as the proof supposes, Binomial(M, 1/N). Vertical: Proposition 1's "
        f"M at δ = {FAILURE:g} with its normal quantile, and with the binomial one.\n" + closing(data)
    )


FIGURE = FigureSpec(
    name="availability",
    title="How often no specialised server is idle",
    summary="Proposition 1: measured shares of arrivals without an idle specialist against binomial tails.",
    replicates=32,
    size=(7.2, 3.4),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("edge.proposition-1.*",),
)
