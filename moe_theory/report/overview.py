"""One picture of all four papers: a printed statement, what holds instead and Monte-Carlo means, with both verdicts."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float

from moe_theory.continual.figures import FIGURES as CONTINUAL
from moe_theory.edge.figures import FIGURES as EDGE
from moe_theory.generalization.figures import FIGURES as GENERALIZATION
from moe_theory.merging.corrected import regret_exponent
from moe_theory.runs import Progress, quiet
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, provenance, replicates_and_seed
from moe_theory.verify.registry import select_readings
from moe_theory.verify.request import check_request
from moe_theory.verify.session import carry_out
from moe_theory.verify.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

NAME = "overview"
VALUES = ("x", "mean", "low", "high", "printed", "right")
LINE = 9.5  # points, between the lines over a panel
MERGING_RATIO = 0.9  # rho of the claims that the last panel shows

STYLES: dict[str, dict[str, Any]] = {
    "measured": {"color": "C0", "linewidth": 1.4, "marker": "o", "markersize": 2.6},
    "band": {"color": "C0", "alpha": 0.16, "linewidth": 0},
    "printed": {"color": "C1", "linewidth": 1.6, "linestyle": (0, (4, 1.6))},
    "right": {"color": "black", "linewidth": 1.1, "linestyle": (0, (4, 1.2, 1, 1.2))},
}


class Curves(NamedTuple):
    """What a panel draws: R points of each."""

    x: Float[np.ndarray, " R"]
    mean: Float[np.ndarray, " R"]  # measured
    low: Float[np.ndarray, " R"]  # 10 % of replicates; NaN where there is no band
    high: Float[np.ndarray, " R"]  # 90 %
    printed: Float[np.ndarray, " R"]
    right: Float[np.ndarray, " R"]


@dataclasses.dataclass(frozen=True)
class Panel:
    """A paper's panel: two claims, and what is drawn of them."""

    paper: str
    title: str
    printed: str  # id of the claim that is printed
    printed_words: str
    right: str  # id of the one that stands beside it
    right_words: str
    x_label: str
    y_label: str
    log_axes: str  # of "x" and "y" those that are logarithmic
    curves: Callable[[int, int, Progress, Mapping[str, Verdict]], Curves]


def _figure(spec: FigureSpec, paper: str, replicates: int, seed: int, progress: Progress) -> xr.Dataset:
    return spec.compute(select_readings(paper, None)[0], replicates, seed, progress)


def _forgetting(replicates: int, seed: int, progress: Progress, verdicts: Mapping[str, Verdict]) -> Curves:
    """F_t of one expert, with (17) and the exact recursion."""
    del verdicts
    data = _figure(CONTINUAL["figure-2"], "continual", replicates, seed, progress)
    here = data.sel(termination="with", experts=1, metric="forgetting")
    here = here.isel(round=(here["round"] >= 10).values)
    columns = (here["mean"], here.low, here.high, here.printed, here.exact)
    return Curves(here["round"].values, *(column.values for column in columns))


def _servers(replicates: int, seed: int, progress: Progress, verdicts: Mapping[str, Verdict]) -> Curves:
    """G_t per coordinate of the adaptive policy on 30 servers, with (23) and the bound that keeps early errors."""
    del verdicts
    data = _figure(EDGE["figure-3"], "edge", replicates, seed, progress)
    here = data.sel(policy="adaptive", experts=30)
    columns = (here["mean"], here.low, here.high, here.theorem_1, here.theorem_1_corrected)
    return Curves(here["round"].values, *(column.values for column in columns))


def _gap(replicates: int, seed: int, progress: Progress, verdicts: Mapping[str, Verdict]) -> Curves:
    """The gap of a fixed router with ten experts a sample, with (23) and the repaired bound."""
    del verdicts
    data = _figure(GENERALIZATION["crossing"], "generalization", replicates, seed, progress)
    here = data.sel(case="growing").dropna("place", subset=["samples"])
    columns = (here.samples, here["mean"], here.low, here.high, here.printed, here.repaired)
    return Curves(*(column.values for column in columns))


def _growth(replicates: int, seed: int, progress: Progress, verdicts: Mapping[str, Verdict]) -> Curves:
    """The sum of nu_1 rho^h over T slots, as its claim observed it, and both orders through the first point."""
    del replicates, seed, progress
    curve = verdicts["merging.remark.boxes"].curve
    if curve is None or curve.abscissa is None:
        raise RuntimeError("a rate has a curve with an abscissa")
    slots = np.array(curve.abscissa)
    logarithms, power = np.log(slots), regret_exponent(MERGING_RATIO)
    total = np.array(curve.observed) * logarithms  # the claim observes it over log T
    orders = (np.sqrt(slots) * logarithms, slots**power * logarithms ** (1 - power))
    none = np.full(len(slots), np.nan)
    return Curves(slots, total, none, none, *(order / order[0] * total[0] for order in orders))


PANELS = (
    Panel(
        "continual",
        "Continual learning: forgetting of one expert",
        "continual.proposition-4.forgetting",
        "Proposition 4, (17)",
        "continual.exact.forgetting",
        "exact recursion",
        "round $t$",
        "$F_t$",
        "x",
        _forgetting,
    ),
    Panel(
        "edge",
        "Mobile edge computing: error of 30 servers",
        "edge.theorem-1.generalization-error",
        "Theorem 1, (23)",
        "edge.theorem-1.early-tasks-keep-their-error",
        "early tasks keep their error",
        "round $t$",
        "$G_t / p$",
        "x",
        _servers,
    ),
    Panel(
        "generalization",
        "Sparse MoE: generalization gap, $T = 10\\,m$ experts",
        "generalization.theorem-1.fixed-router",
        "Theorem 1, (23)",
        "generalization.repaired.symmetrization",
        "symmetrization, cells counted",
        "samples $m$",
        "gap",
        "xy",
        _gap,
    ),
    Panel(
        "merging",
        "Expert merging: sum of box sizes, $\\rho = 0.9$",
        "merging.remark.boxes",
        "remark: $\\sqrt{T} \\log T$",
        "merging.remark.right-exponent",
        "$T^a (\\log T)^{1-a}$, $a$ = 0.88",
        "slots $T$",
        "$\\Sigma\\, \\nu_1 \\rho^h$",
        "xy",
        _growth,
    ),
)


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """What is drawn, by panel and place, and both verdicts of each panel, judged anew, under one error of 1 %.

    Args:
        reading: only its words are used: every paper is drawn under its first default.
        replicates: of what is drawn; verdicts take what they need.
    """
    ids = [id for panel in PANELS for id in (panel.printed, panel.right)]
    readings = [select_readings(panel.paper, None)[0].name for panel in PANELS]
    report = carry_out(check_request(ids, readings, seed=seed), progress=progress)
    verdicts = {verdict.claim: verdict for verdict in report.verdicts}
    made = [panel.curves(replicates, seed, progress, verdicts) for panel in PANELS]
    length = max(len(curves.x) for curves in made)
    filled = {
        value: [
            np.pad(getattr(curves, value).astype(float), (0, length - len(curves.x)), constant_values=np.nan)
            for curves in made
        ]
        for value in VALUES
    }
    return xr.Dataset(
        {value: (("panel", "place"), np.stack(rows)) for value, rows in filled.items()}
        | {
            f"{which}_verdict": ("panel", [str(verdicts[getattr(panel, which)].status) for panel in PANELS])
            for which in ("printed", "right")
        },
        {"panel": [panel.paper for panel in PANELS], "place": np.arange(length)},
        provenance(NAME, NAME, reading, replicates, seed, 0, is_shortened=False)
        | {"command": f"moe-theory figures {NAME} --replicates {replicates} --seed {seed}"},
    )


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """Two by two, a panel a paper; the verdicts stand in the panels."""
    axes = figure.subplots(2, 2).ravel()
    for letter, axis, panel in zip("abcd", axes, PANELS, strict=True):
        here = data.sel(panel=panel.paper).dropna("place", subset=["x"])
        _draw_panel(axis, panel, here)
        axis.set_title(f"({letter}) {panel.title}", loc="left", pad=2 * LINE + 3)
    _draw_legend(figure)


def _draw_panel(axis: "Axes", panel: Panel, here: xr.Dataset) -> None:
    if np.isfinite(here.low).any():
        axis.fill_between(here.x, here.low, here.high, **STYLES["band"])
    axis.plot(here.x, here["mean"], **STYLES["measured"], markevery=max(1, here.sizes["place"] // 12))
    for which in ("printed", "right"):
        axis.plot(here.x, here[which], **STYLES[which])
    for letter in panel.log_axes:
        (axis.set_xscale if letter == "x" else axis.set_yscale)("log")
    axis.set_xlim(float(here.x[0]), float(here.x[-1]))
    if "y" not in panel.log_axes:
        axis.set_ylim(0, None)
    axis.set(xlabel=panel.x_label, ylabel=panel.y_label)
    for row, which in enumerate(("right", "printed")):
        axis.annotate(
            f"{getattr(panel, f'{which}_words')}: {here[f'{which}_verdict'].item()}",
            (0, 1),
            xytext=(0, 2 + LINE * row),
            xycoords="axes fraction",
            textcoords="offset points",
            color=STYLES[which]["color"],
            fontweight="bold",
        )


def _draw_legend(figure: "FigureBase") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Line2D([], [], **STYLES["printed"], label="as printed"),
        Line2D([], [], **STYLES["right"], label="what holds"),
        Line2D([], [], **STYLES["measured"], label="Monte Carlo"),
        Patch(color="C0", alpha=0.3, linewidth=0, label="10–90 % of replicates"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4)


def caption(data: xr.Dataset) -> str:
    """What each panel shows, the claims judged, and the command."""
    judged = "; ".join(
        f"({letter}) {panel.printed}, {panel.right}" for letter, panel in zip("abcd", PANELS, strict=True)
    )
    return (
        "A statement of each paper and what stands beside it, over means of replicates that draw their own tasks. "
        "(a) M = 1. (b) Adaptive policy, per coordinate, bounds from each replicate's pool and loads. (c) A fixed "
        "router, k = 1, fair labels. (d) Leaves picked in turn; both orders are drawn through the first point. "
        f"Verdicts of {judged}, judged anew with an error of 1 % for all eight, each paper under its first "
        "default reading.\n"
        f"{replicates_and_seed(data)}.\n{data.attrs['command']}"
    )


FIGURE = FigureSpec(
    name=NAME,
    title="Theorem over empirics, with verdicts",
    summary="A printed statement of each paper, what holds instead and Monte-Carlo means, with both verdicts.",
    replicates=256,
    size=(7.2, 4.8),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=tuple(id for panel in PANELS for id in (panel.printed, panel.right)),
)
FIGURES = {NAME: FIGURE}


@dataclasses.dataclass(frozen=True)
class FirstDefaults:
    """The reading of the overview: each paper's own first default."""

    name: str = "of each paper"
    summary: str = "each paper's first default"

    def params(self, **overrides: Any) -> Any:
        raise NotImplementedError("every panel asks its own paper's reading")


FIRST_DEFAULTS: ReadingLike = FirstDefaults()
