"""A quick look at a sweep's results: a table in a terminal, and a picture."""

import dataclasses
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from markupsafe import Markup

from moe_theory.core.errors import InvalidValueError
from moe_theory.plot import legend, ramp
from moe_theory.plot.document import Document, Picture
from moe_theory.plot.markdown import paragraphs, table, words
from moe_theory.report import numbers
from moe_theory.sweep.estimate import SweepCost
from moe_theory.sweep.grid import GridAxis
from moe_theory.sweep.results import MOMENTS, Results
from moe_theory.sweep.runner import ChunkCounts
from moe_theory.verification.region import Span

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

RESULTS = "results.nc"  # what a finished sweep's labelled results are called in its folder
SCHEMA = "moe-theory/sweep-summary/2"
MAX_ROWS = 40  # of a table
MAX_LINES = 8  # of a panel
MAX_FAILURES = 10
PANEL_HEIGHT = 1.65  # inches
FOOT_HEIGHT = 0.5
MARKERS = "osD^vPX*"


class CellMean(NamedTuple):
    """An observable's mean over the replicates of a cell."""

    replicates: float
    mean: float
    error: float  # standard error


def cell_table(results: Results) -> str:
    """Return the last round: a row for each cell (of the first forty), mean ± standard error of each scalar."""
    cells = results.sweep.grid.cells
    columns = [*cells[0].settings, *scalars(results)]
    if not results.coverage.is_complete:
        columns.append("replicates")
    rows = []
    for place, cell in enumerate(cells[:MAX_ROWS]):
        means = _last_means(results, place).values()
        row = [numbers.setting(value) for value in cell.settings.values()]
        row += [numbers.with_error(value.mean, value.error) for value in means]
        if not results.coverage.is_complete:
            row.append(f"{max((value.replicates for value in means), default=0):g}")
        rows.append(row)
    num_left = len(cells) - len(rows)
    parts = [f"round {results.rounds[-1]}, mean ± standard error", table(columns, rows, columns)]
    if num_left:
        parts.append(f"{num_left} more cells: to_xarray has them all")
    return paragraphs(parts)


def draw(results: Results, path: str | Path) -> Path:
    """Draw a quick look at all scalar observables, as SVG or PNG by the suffix of `path`.

    Over rounds without axes, else at the last round: over the first axis, in lines for up to eight values of the
    second. Further axes stay at their first value.

    Raises: OutputError for another suffix or a place that cannot be written; InvalidValueError without an observable
        that is a scalar.
    """
    names = scalars(results)
    if not names:
        raise InvalidValueError(
            f"{', '.join(results.kept)} have axes of their own, and a quick look is of scalars. Keep another "
            "observable, or draw these from to_xarray."
        )
    over = " and ".join(axis.name for axis in results.sweep.grid.axes[:2]) or "rounds"
    title = f"{', '.join(names)} over {over}"
    height = PANEL_HEIGHT * len(names) + FOOT_HEIGHT
    return Picture(title, height, lambda figure: _draw(figure, results), caption(results)).save(Path(path))


def document(results: Results, lines: Sequence[str] = ()) -> Document:
    """Return the last round's statistics, of every cell as JSON, with lines below the table."""
    return Document(lambda: _body(results), lambda _: paragraphs([Markup(cell_table(results)), *lines]), SCHEMA)


def _body(results: Results) -> dict[str, Any]:
    cells = []
    for place, cell in enumerate(results.sweep.grid.cells):
        statistics = results.statistics_of(place) or {}
        last = {
            name: dict(zip(results.statistics, np.moveaxis(values[-1], -1, 0), strict=True))
            for name, values in statistics.items()
        }
        cells.append({"settings": dict(cell.settings), "reading": cell.reading, "statistics": last})
    return {
        "specification": results.sweep.to_json(),
        "digest": results.digest,
        "coverage": results.coverage._asdict(),
        "round": int(results.rounds[-1]),
        "cells": cells,
    }


def scalars(results: Results) -> list[str]:
    """Return the observables without axes of their own."""
    return [name for name in results.kept if not results.kind.observables[name].axes]


def caption(results: Results) -> str:
    """Return what the picture shows."""
    sweep = results.sweep
    axes = sweep.grid.axes
    reading = f" under {results.reading.name}" if sweep.reading is not None else ""
    moment = f"At round {results.rounds[-1]}" if axes else "Over rounds"
    lines = [f"{sweep.system}{reading}. {moment}: mean with ± 2 standard errors; {sweep.replicates} replicates a cell."]
    if len(axes) > 1 and axes[1].num_values > MAX_LINES:
        lines.append(f"Only the first {MAX_LINES} of {axes[1].num_values} values of {axes[1].name}.")
    if len(axes) > 2:
        values: list[str] = []
        for axis in axes[2:]:
            values += [f"{name} = {numbers.setting(column[0])}" for name, column in axis.columns.items()]
        lines.append(f"Only at {', '.join(values)}.")
    left_out = [name for name in results.kept if name not in scalars(results)]
    if left_out:
        lines.append(f"Not drawn, as they have axes of their own: {', '.join(left_out)}.")
    coverage = results.coverage
    if not coverage.is_complete:
        lines.append(f"Incomplete: {coverage.replicates} of {coverage.of_replicates} replicates are there.")
    return " ".join(lines)


def _draw(figure: "FigureBase", results: Results) -> None:
    axes = results.sweep.grid.axes
    names = scalars(results)
    panels = figure.subplots(len(names), 1, squeeze=False, sharex=True)[:, 0]
    for panel, name in zip(panels, names, strict=True):
        if axes:
            _draw_lines(panel, results, name)
        else:
            _draw_rounds(panel, results, name)
        panel.set_ylabel(name.replace("_", "\n"))
    panels[-1].set_xlabel(_label(axes[0]) if axes else "round")
    if len(axes) > 1:
        legend(figure, ncols=4, title=_label(axes[1]), title_fontsize="small")
    figure.align_ylabels(panels)


def _draw_rounds(panel: "Axes", results: Results, name: str) -> None:
    statistics = results.statistics_of(0)
    if statistics is None:
        return
    _, mean, error = _finite(statistics[name][:, : len(CellMean._fields)]).T
    panel.errorbar(results.rounds, mean, np.nan_to_num(2 * error), color="C0", marker="o", markersize=3, linewidth=1)


def _draw_lines(panel: "Axes", results: Results, name: str) -> None:
    """Draw the last round over the first axis, a line for each value of the second."""
    first, *later = results.sweep.grid.axes
    places = np.arange(len(results.sweep.grid)).reshape(*results.sweep.grid.shape[:2], -1)[..., 0]
    texts = [numbers.setting(value) for value in _values(later[0])[:MAX_LINES]] if later else [""]
    positions = _positions(first)
    for row, (text, colour) in enumerate(zip(texts, ramp(len(texts)), strict=True)):
        column = places[:, row] if later else places.reshape(-1)
        means = _finite(np.array([_last_means(results, int(place))[name] for place in column]))
        look: dict[str, Any] = {"color": colour, "marker": MARKERS[row], "label": text, "markersize": 3.5}
        errors = np.nan_to_num(2 * means[:, 2])
        panel.errorbar(positions, means[:, 1], errors, **look, linewidth=1, elinewidth=0.8, capsize=1.5)
    if isinstance(_values(first)[0], (str, bool)):
        panel.set_xticks(positions, [numbers.setting(value) for value in _values(first)])
    elif Span(min(positions), max(positions)).is_log:
        panel.set_xscale("log")


def _values(axis: GridAxis) -> Sequence[Any]:
    """Return the values of an axis; of a zip those of its first name."""
    return next(iter(axis.columns.values()))


def _positions(axis: GridAxis) -> list[float]:
    """Return where values are drawn: numbers as they are, everything else in their order."""
    values = _values(axis)
    return list(range(len(values))) if isinstance(values[0], (str, bool)) else [float(value) for value in values]


def _label(axis: GridAxis) -> str:
    name, *partners = axis.columns
    return f"{name} (with {', '.join(partners)})" if partners else name


def _last_means(results: Results, place: int) -> dict[str, CellMean]:
    """Return the last round's mean of each scalar observable; nan where there is no replicate."""
    statistics = results.statistics_of(place)
    if statistics is None:
        return {name: CellMean(0, np.nan, np.nan) for name in scalars(results)}
    indices = [MOMENTS.index(name) for name in ("count", "mean", "standard_error")]
    return {name: CellMean(*statistics[name][-1, indices]) for name in scalars(results)}


def _finite(values: np.ndarray) -> np.ndarray:
    """Return nan in place of what cannot be drawn."""
    return np.where(np.isfinite(values), values, np.nan)


def estimate(costs: SweepCost) -> Document:
    """Return what a sweep takes."""
    shape = " x ".join(f"{size} {name}" for name, size in costs.shape.items())
    rows = {
        "cells": f"{costs.cells:,}" + (f" ({shape})" if costs.shape else ""),
        "replicates": f"{costs.replicates:,} of each cell",
        "chunks": f"{costs.chunks:,} of {costs.width:,} replicates, {costs.present:,} of them there already",
        "compilations": f"{costs.programs:,} for each device or worker process",
        "memory": f"{numbers.size(costs.chunk_bytes)} a chunk, of which each worker has one",
        "disk": numbers.size(costs.disk_bytes),
        "work": f"{costs.replicate_rounds / 1e6:,.1f} M replicate-rounds",
    }
    items = [f"- **{name}** {words(text)}" for name, text in rows.items()]
    text = "\n".join(["# what this sweep takes", "", *items])
    return Document(lambda: dataclasses.asdict(costs), lambda _: text)


def failures(results: Results) -> list[str]:
    """Return lines on the cells that raised errors."""
    if not results.failed:
        return []
    lines = [f"{name}: {reason}" for name, reason in itertools.islice(results.failed.items(), MAX_FAILURES)]
    if len(results.failed) > len(lines):
        lines.append(f"and {len(results.failed) - len(lines):,} more cells")
    share = f"{len(results.failed):,} of {len(results.sweep.grid):,} cells raised errors"
    return [*lines, f"{share}: the same command tries them again"]


def closing_line(counts: ChunkCounts) -> str:
    """Return a line on what a run has computed."""
    facts = [f"{counts.computed:,} computed", f"{counts.present:,} reused"]
    if counts.failed:
        facts.append(f"{len(counts.failed):,} failed")
    return f"{counts.num_chunks:,} chunks: {', '.join(facts)}"
