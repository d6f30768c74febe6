"""One picture of all papers, with a printed statement, its status, the correction and measured means."""

import dataclasses
import functools
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from moe_theory.core.papers import Reading, all_papers
from moe_theory.plot import Axes, Canvas, Curves, FigureSpec, Panel, Setup, curve, legend, over
from moe_theory.plot.roles import MEASURED, PRINTED, RIGHT
from moe_theory.report.cards import LABELS
from moe_theory.report.wording import BY_READING, statement_status
from moe_theory.verification import recorded
from moe_theory.verification.catalog import OVERVIEW, OVERVIEW_TITLE
from moe_theory.verification.registry import select_readings
from moe_theory.verification.verdict import Status

NARROW = (5.0, 4.6)  # inches, for a phone, with two panels per row


class Theme(NamedTuple):
    ink: str
    soft: str
    measured: str
    printed: str
    neutral: tuple[str, str]  # background and text colour of statuses without their own badge
    badges: dict[str, tuple[str, str]]  # background and text colour, by status


LIGHT = Theme(
    ink="#1c1d20",
    soft="#55585f",
    measured="#14457f",
    printed="#c24d00",
    neutral=("#ffffff", "#55585f"),
    badges={
        "holds": ("#e0f0e5", "#14512c"),
        "holds amended": ("#fbe3d9", "#7a2e0c"),
        "false": ("#9c1c22", "#ffffff"),
        "vacuous": ("#e3eaf5", "#1d3d6b"),
        **dict.fromkeys(("open", BY_READING), ("#fbefc8", "#624400")),
    },
)


def panels() -> dict[str, Panel]:
    by_paper = {name: paper.import_overview() for name, paper in all_papers().items()}
    return {name: panel for name, panel in by_paper.items() if panel is not None}


def compute(setup: Setup) -> xr.Dataset:
    by_paper: dict[str, Curves] = {}
    for paper, panel in panels().items():
        by_paper[paper] = panel.curves(dataclasses.replace(setup, reading=select_readings(paper, None)[0]))
    length = max(len(curves.x) for curves in by_paper.values())

    def padded_curves(paper: str) -> dict[str, np.ndarray]:
        columns = by_paper[paper]._asdict()
        padding = (0, length - len(by_paper[paper].x))  # NaN after the paper's own points
        return {name: np.pad(column.astype(float), padding, constant_values=np.nan) for name, column in columns.items()}

    data = over(padded_curves, {"place": np.arange(length)}, panel=list(by_paper))
    return data.assign_attrs(command=command(setup.replicates, setup.seed))


def command(replicates: Any, seed: Any) -> str:
    return f"moe-theory figures {OVERVIEW} --replicates {replicates} --seed {seed}"


def draw(data: xr.Dataset, figure: Canvas, theme: Theme = LIGHT, columns: int = 2) -> None:
    by_paper = panels()
    num_rows = -(-len(by_paper) // columns)  # rounded up
    axes = figure.subplots(num_rows, columns, squeeze=False).ravel()
    for axis, (paper, panel) in zip(axes, by_paper.items(), strict=False):  # a last row may have room left
        _draw_panel(axis, panel, data.sel(panel=paper).dropna("place", subset=["x"]), theme)
    legend(figure, 4, labelcolor=theme.ink, fontsize=7.5, handlelength=1.9, columnspacing=1.0, borderpad=0.7)


def _draw_panel(axis: Axes, panel: Panel, data: xr.Dataset, theme: Theme) -> None:
    PRINTED(color=theme.printed).plot(axis, data.x, data.printed, "paper")
    if replacement_holds(panel):
        RIGHT(color=theme.ink, markerfacecolor="none").plot(axis, data.x, data.right, "corrected")
    measured = MEASURED(color=theme.measured, zorder=1.9)  # below both lines
    if np.isfinite(data.low).any():
        curve(axis, data.x, data, measured, label="measured", band="10–90 % of runs")
    else:
        measured.plot(axis, data.x, data["mean"], "measured")
    for letter in panel.log_axes:
        axis.set(**{f"{letter}scale": "log"})
    axis.set_xlim(float(data.x[0]), float(data.x[-1]))
    if "y" not in panel.log_axes:
        axis.set_ylim(0, None)
    axis.minorticks_off()
    axis.spines[["left", "bottom"]].set_color(theme.soft)
    axis.tick_params(color=theme.soft, labelcolor=theme.soft, labelsize=7.5)
    axis.set_xlabel(panel.x_label, color=theme.soft, fontsize=8)
    axis.set_ylabel(panel.y_label, color=theme.soft, fontsize=8)
    write = functools.partial(
        axis.annotate, xycoords="axes fraction", textcoords="offset points", va="baseline", annotation_clip=False
    )
    area, _, quantity = panel.title.partition(": ")
    # From the axes' upper corner (0, 1), three lines begin at these heights in points.
    write(area, (0, 1), (0, 31), color=theme.ink, fontsize=9.5, fontweight="bold")
    write(quantity, (0, 1), (0, 19.5), color=theme.soft, fontsize=8)
    write(panel.printed_words, (0, 1), (0, 7), color=theme.printed, fontsize=8, fontweight="bold")
    status = status_of(panel)
    if status is not None:
        fill, ink = theme.badges.get(status, theme.neutral)
        box = {"boxstyle": "round,pad=0.3,rounding_size=0.4", "facecolor": fill, "edgecolor": ink, "linewidth": 0.5}
        write(LABELS[status], (1, 1), (-3, 7), color=ink, fontsize=7.5, fontweight="bold", ha="right", bbox=box)


def status_of(panel: Panel) -> str | None:
    """Return the status of the first statement with the panel's printed claim, if it was judged."""
    judgements = recorded.judged_statements(panel.printed.partition(".")[0])
    of_claim = [judgement for judgement in judgements if panel.printed in judgement.statement.roles]
    if of_claim and of_claim[0].by_reading:
        return statement_status(of_claim[0])
    return None


def replacement_holds(panel: Panel) -> bool:
    """Return whether the correction is supported under the first default reading, or has no recorded verdict."""
    paper = panel.right.partition(".")[0]
    run = recorded.read().get(paper)
    verdict = run and run.of(panel.right).get(select_readings(paper, None)[0].name)
    return verdict is None or verdict["status"] == Status.SUPPORTED


def figures() -> dict[str, FigureSpec]:
    areas = [(panel.title.partition(":")[0], panel) for panel in panels().values()]
    words = {
        "claims": "; ".join(f"{area}: {panel.printed}, {panel.right}" for area, panel in areas),
        "notes": " ".join(f"{area}: {panel.note} What holds instead: {panel.right_words}." for area, panel in areas),
    }
    claims: list[str] = []
    for _, panel in areas:
        claims += [panel.printed, panel.right]
    spec = FigureSpec(
        paper=OVERVIEW,
        name=OVERVIEW,
        title=OVERVIEW_TITLE,
        summary="A printed statement of each paper with its status, the correction and Monte-Carlo means.",
        data=compute,
        draw=draw,
        text="A statement of each paper, its status by the recorded runs, and what stands beside it, over means of "
        "replicates that draw their own tasks. {notes} Claims of {claims}. Each paper is drawn under its first default "
        "reading.",
        words=lambda _: words,
        closing="{count}.\n{command}",
        replicates=256,
        size=NARROW,
        claims=tuple(claims),
    )
    return {OVERVIEW: spec}


FIRST_DEFAULTS = Reading("of each paper", "each paper's first default", defaults=None)  # panels have their own
