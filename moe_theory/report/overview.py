"""One picture of all papers: a printed statement, what holds instead and Monte-Carlo means, with both verdicts."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from moe_theory.core.papers import Reading, all_papers
from moe_theory.runs import Progress, quiet
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, Panel, provenance, replicates_and_seed
from moe_theory.verify.registry import select_readings
from moe_theory.verify.request import check_request
from moe_theory.verify.session import carry_out

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

NAME = "overview"
VALUES = ("x", "mean", "low", "high", "printed", "right")
LINE = 9.5  # points, between the lines over a panel
LETTERS = "abcdefghijklmnopqrstuvwxyz"

STYLES: dict[str, dict[str, Any]] = {
    "measured": {"color": "C0", "linewidth": 1.4, "marker": "o", "markersize": 2.6},
    "band": {"color": "C0", "alpha": 0.16, "linewidth": 0},
    "printed": {"color": "C1", "linewidth": 1.6, "linestyle": (0, (4, 1.6))},
    "right": {"color": "black", "linewidth": 1.1, "linestyle": (0, (4, 1.2, 1, 1.2))},
}


def panels() -> dict[str, Panel]:
    made = {name: paper.import_overview() for name, paper in all_papers().items()}
    return {name: panel for name, panel in made.items() if panel is not None}


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """What is drawn, by panel and place, and both verdicts of each panel, judged anew, under one error of 1 %.

    Every paper is drawn under its first default, whatever the reading; verdicts take the replicates that they need.
    """
    shown = panels()
    ids = [id for panel in shown.values() for id in (panel.printed, panel.right)]
    readings = {paper: select_readings(paper, None)[0] for paper in shown}
    names = [each.name for each in readings.values()]
    report = carry_out(check_request(ids, names, seed=seed), progress=progress)
    verdicts = {verdict.claim: verdict for verdict in report.verdicts}
    made = [panel.curves(readings[paper], replicates, seed, progress, verdicts) for paper, panel in shown.items()]
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
            f"{which}_verdict": ("panel", [str(verdicts[getattr(panel, which)].status) for panel in shown.values()])
            for which in ("printed", "right")
        },
        {"panel": list(shown), "place": np.arange(length)},
        provenance(NAME, NAME, reading, replicates, seed, 0, is_shortened=False)
        | {"command": f"moe-theory figures {NAME} --replicates {replicates} --seed {seed}"},
    )


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """Two by two, a panel a paper; the verdicts stand in the panels."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shown = panels()
    axes = figure.subplots(-(-len(shown) // 2), 2).ravel()
    for letter, axis, (paper, panel) in zip(LETTERS, axes, shown.items(), strict=False):
        _draw_panel(axis, panel, data.sel(panel=paper).dropna("place", subset=["x"]))
        axis.set_title(f"({letter}) {panel.title}", loc="left", pad=2 * LINE + 3)
    handles: list[Any] = [
        Line2D([], [], **STYLES["printed"], label="as printed"),
        Line2D([], [], **STYLES["right"], label="what holds"),
        Line2D([], [], **STYLES["measured"], label="Monte Carlo"),
        Patch(color="C0", alpha=0.3, linewidth=0, label="10–90 % of replicates"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=4)


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


def caption(data: xr.Dataset) -> str:
    shown = list(zip(LETTERS, panels().values(), strict=False))
    judged = "; ".join(f"({letter}) {panel.printed}, {panel.right}" for letter, panel in shown)
    notes = " ".join(f"({letter}) {panel.note}" for letter, panel in shown)
    return (
        "A statement of each paper and what stands beside it, over means of replicates that draw their own tasks. "
        f"{notes} Verdicts of {judged}, judged anew with an error of 1 % for all of them, each paper under its first "
        f"default reading.\n{replicates_and_seed(data)}.\n{data.attrs['command']}"
    )


def figures() -> dict[str, FigureSpec]:
    """The overview by its name, as a paper has its figures."""
    shown = panels().values()
    spec = FigureSpec(
        name=NAME,
        title="Theorem over empirics, with verdicts",
        summary="A printed statement of each paper, what holds instead and Monte-Carlo means, with both verdicts.",
        replicates=256,
        size=(7.2, 2.4 * -(-len(shown) // 2)),
        compute=compute,
        draw=draw,
        caption=caption,
        claims=tuple(id for panel in shown for id in (panel.printed, panel.right)),
    )
    return {NAME: spec}


FIRST_DEFAULTS = Reading("of each paper", "each paper's first default", None)  # panels have their own parameters
