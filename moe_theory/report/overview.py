"""One picture of all papers: a printed statement, its status, what holds instead and Monte-Carlo means."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from moe_theory.core.papers import Reading, all_papers
from moe_theory.report import plots, svg
from moe_theory.report.palette import DARK as DARK
from moe_theory.report.palette import LIGHT, Theme
from moe_theory.report.wording import statement_status
from moe_theory.runs import Progress, quiet
from moe_theory.verify import recorded
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, Panel, provenance, replicates_and_seed
from moe_theory.verify.registry import select_readings
from moe_theory.verify.request import FAMILY_ERROR, check_request
from moe_theory.verify.session import carry_out
from moe_theory.verify.verdict import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

NAME = "overview"
VALUES = ("x", "mean", "low", "high", "printed", "right")
NARROW, WIDE = (5.0, 4.6), (10.4, 3.0)  # inches, two panels a row for a phone or all of them in one
FONTS = "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"  # as narrow as what was laid out, or more


def panels() -> dict[str, Panel]:
    made = {name: paper.import_overview() for name, paper in all_papers().items()}
    return {name: panel for name, panel in made.items() if panel is not None}


def compute(reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet) -> xr.Dataset:
    """What is drawn, by panel and place, and both verdicts of each panel, judged anew, under one error of 1 %.

    Every paper is drawn under its first default, whatever the reading; verdicts take the replicates that they need.
    """
    shown = panels()
    ids = [id for panel in shown.values() for id in (panel.printed, panel.right)]
    readings = {paper: select_readings(paper, None)[0] for paper in shown}
    report = carry_out(
        check_request(ids, ["quick"], seed=seed, error=FAMILY_ERROR), progress=progress
    )  # each paper's first default
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
        provenance(NAME, NAME, reading, replicates, seed, 0)
        | {"command": f"moe-theory figures {NAME} --replicates {replicates} --seed {seed}"},
    )


def read(path: Path) -> xr.Dataset:
    """What `compute` returned, from the CSV that it was written to."""
    table = pd.read_csv(path)
    about = {name: table.pop(name)[0] for name in ("reading", "replicates", "seed")}
    papers = list(dict.fromkeys(table.panel))
    by_panel = table.groupby("panel")[["printed_verdict", "right_verdict"]].first().loc[papers]
    data = table.drop(columns=list(by_panel)).set_index(["panel", "place"]).to_xarray().sel(panel=papers)
    about["command"] = f"moe-theory figures {NAME} --replicates {about['replicates']} --seed {about['seed']}"
    return data.assign({name: ("panel", list(column)) for name, column in by_panel.items()}).assign_attrs(about)


def draw(data: xr.Dataset, figure: "FigureBase", theme: Theme = LIGHT, columns: int = 2) -> None:
    """A panel a paper, under its title, what is printed and the status that the recorded runs give the statement."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shown = panels()
    axes = figure.subplots(-(-len(shown) // columns), columns, squeeze=False).ravel()
    for axis, (paper, panel) in zip(axes, shown.items(), strict=False):
        _draw_panel(axis, panel, data.sel(panel=paper).dropna("place", subset=["x"]), theme)
    styles = line_styles(theme)
    handles: list[Any] = [
        Line2D([], [], **styles["printed"], label="as printed"),
        Line2D([], [], **styles["right"], label="what holds instead"),
        Line2D([], [], **styles["measured"], label="measured"),
        Patch(**styles["band"], label="10–90 % of runs"),
    ]
    labels = {"labelcolor": theme.ink, "fontsize": 7.5, "handlelength": 1.7, "columnspacing": 1.0, "borderpad": 0.7}
    figure.legend(handles=handles, loc="outside upper left", ncols=4, **labels)


def line_styles(theme: Theme) -> dict[str, dict[str, Any]]:
    return {
        "measured": {"color": theme.measured, "linewidth": 1.8},
        "band": {"color": theme.measured, "alpha": 0.18, "linewidth": 0},
        "printed": {"color": theme.printed, "linewidth": 1.9, "linestyle": (0, (4, 1.6))},
        "right": {"color": theme.ink, "linewidth": 1.4, "linestyle": (0, (1, 1.4))},
    }


def _draw_panel(axis: "Axes", panel: Panel, here: xr.Dataset, theme: Theme) -> None:
    styles = line_styles(theme)
    if np.isfinite(here.low).any():
        axis.fill_between(here.x, here.low, here.high, **styles["band"])
    axis.plot(here.x, here["mean"], **styles["measured"])
    axis.plot(here.x, here.printed, **styles["printed"])
    if replacement_holds(panel):
        axis.plot(here.x, here.right, **styles["right"])
    for letter in panel.log_axes:
        (axis.set_xscale if letter == "x" else axis.set_yscale)("log")
    axis.set_xlim(float(here.x[0]), float(here.x[-1]))
    if "y" not in panel.log_axes:
        axis.set_ylim(0, None)
    axis.minorticks_off()
    axis.spines[["left", "bottom"]].set_color(theme.soft)
    axis.tick_params(color=theme.soft, labelcolor=theme.soft, labelsize=7.5)
    axis.set_xlabel(panel.x_label, color=theme.soft, fontsize=8)
    axis.set_ylabel(panel.y_label, color=theme.soft, fontsize=8)
    above = {"xycoords": "axes fraction", "textcoords": "offset points", "va": "baseline", "annotation_clip": False}
    area, _, quantity = panel.title.partition(": ")
    axis.annotate(area, (0, 1), (0, 31), color=theme.ink, fontsize=9.5, fontweight="bold", **above)
    axis.annotate(quantity, (0, 1), (0, 19.5), color=theme.soft, fontsize=8, **above)
    axis.annotate(panel.printed_words, (0, 1), (0, 7), color=theme.printed, fontsize=8, fontweight="bold", **above)
    status = status_of(panel)
    if status is not None:
        badge, words = theme.statuses[status]
        box = {"boxstyle": "round,pad=0.3,rounding_size=0.4", "facecolor": badge, "edgecolor": words, "linewidth": 0.5}
        style = {"fontsize": 7.5, "fontweight": "bold", "ha": "right", "bbox": box}
        axis.annotate(status, (1, 1), (-3, 7), color=words, **style, **above)


def status_of(panel: Panel) -> str | None:
    """The recorded status of the statement whose claim a panel shows; None where no run is recorded."""
    paper = panel.printed.partition(".")[0]
    judged = [each for each in recorded.judged_statements(paper) if panel.printed in each.statement.roles]
    return statement_status(judged[0]) if judged and judged[0].by_reading else None


def replacement_holds(panel: Panel) -> bool:
    """Whether the recorded run supports what stands beside the printed statement, under the reading that is drawn."""
    paper = panel.right.partition(".")[0]
    run = recorded.read().get(paper)
    found = run.of(panel.right).get(select_readings(paper, None)[0].name) if run else None
    return found is None or found["status"] == Status.SUPPORTED


def picture(data: xr.Dataset, theme: Theme, size: tuple[float, float], note: str) -> str:
    """The overview as an SVG without a background, its words as text: for a light or a dark page, in either size.

    Args:
        note: a line of the description.
    """
    columns = len(panels()) if size is WIDE else 2
    (spec,) = figures().values()
    about = f"{spec.caption(data)}\n{note}"
    drawn = plots.render(spec.title, size, lambda canvas: draw(data, canvas, theme, columns), about)
    return drawn.replace(svg.FONTS, FONTS)


def caption(data: xr.Dataset) -> str:
    shown = [(panel.title.partition(":")[0], panel) for panel in panels().values()]
    judged = "; ".join(f"{area}: {panel.printed}, {panel.right}" for area, panel in shown)
    notes = " ".join(f"{area}: {panel.note} What holds instead: {panel.right_words}." for area, panel in shown)
    return (
        "A statement of each paper, its status by the recorded runs, and what stands beside it, over means of "
        f"replicates that draw their own tasks. {notes} Verdicts of {judged}, judged anew with an error of 1 % for all "
        f"of them, each paper under its first default reading.\n{replicates_and_seed(data)}.\n{data.attrs['command']}"
    )


def figures() -> dict[str, FigureSpec]:
    """The overview by its name, as a paper has its figures."""
    shown = panels().values()
    spec = FigureSpec(
        name=NAME,
        title="Theorem over empirics, with verdicts",
        summary="A printed statement of each paper, what holds instead and Monte-Carlo means, with both verdicts.",
        replicates=256,
        size=NARROW,
        compute=compute,  # pyright: ignore[reportArgumentType] - each panel has rounds of its own
        draw=draw,
        caption=caption,
        claims=tuple(id for panel in shown for id in (panel.printed, panel.right)),
    )
    return {NAME: spec}


FIRST_DEFAULTS = Reading("of each paper", "each paper's first default", None)  # panels have their own parameters
