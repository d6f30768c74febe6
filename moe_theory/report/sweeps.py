"""A sweep's results in a table and a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from moe_theory.core.errors import InvalidValueError, enclosed
from moe_theory.plot import legend, ramp
from moe_theory.plot.document import Document, Picture
from moe_theory.plot.markdown import paragraphs, table, table_width
from moe_theory.report import numbers
from moe_theory.sweep.grid import GridAxis
from moe_theory.sweep.results import MOMENTS, Results
from moe_theory.sweep.systems import ClosedForm
from moe_theory.verification.region import is_log

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

RESULTS = "results.nc"  # file of a finished sweep's labelled results
SCHEMA = "moe-theory/sweep-summary/2"
MAX_ROWS = 40  # rows of a table
MAX_LINES = 8  # lines in a panel
PANEL_HEIGHT = 1.65  # inches
FOOT_HEIGHT = 0.5


def cell_table(results: Results, width: int) -> str:
    """Return a table of the first forty cells' last round, with mean ± standard error of each scalar.

    A narrow table omits errors, and of a zip it shows only the first name.
    """
    cells = results.sweep.grid.cells
    means = [_last_means(results, place) for place in range(min(len(cells), MAX_ROWS))]
    columns: dict[str, list[str]] = {}
    for name in cells[0].settings:
        columns[name] = [numbers.setting(cell.settings[name]) for cell in cells[:MAX_ROWS]]
    for name in scalars(results):
        columns[name] = [numbers.with_error(*row[name]) for row in means]
    title = "mean ± standard error"
    if table_width(columns) > width:
        title = "mean (a wider terminal shows standard errors)"
        for name in scalars(results):
            columns[name] = [text.partition(" ± ")[0] for text in columns[name]]
        for axis in results.sweep.grid.axes:
            for name in list(axis.columns)[1:]:
                del columns[name]
    rows = zip(*columns.values(), strict=True)
    parts = [f"round {results.rounds[-1]}, {title}", table(list(columns), rows, list(columns))]
    if len(cells) > len(means):
        parts.append(f"{len(cells) - len(means)} more cells are in to_xarray")
    return paragraphs(parts)


def draw(results: Results, path: str | Path) -> Path:
    """Draw all scalar observables at the last round, as SVG or PNG by the suffix of `path`.

    The first axis is horizontal. Lines show up to eight values of the second axis. Other axes have their first value.
    """
    if not can_be_drawn(results):
        raise InvalidValueError(
            "a picture needs an axis of the grid and a scalar observable. Add them, or draw from to_xarray."
        )
    axis_names = " and ".join(axis.name for axis in results.sweep.grid.axes[:2])
    height = PANEL_HEIGHT * len(set(_panels(results).values())) + FOOT_HEIGHT
    title = f"{', '.join(scalars(results))} over {axis_names}"
    picture = Picture(title, height, lambda figure: _draw(figure, results), caption(results))
    return picture.save(Path(path))


def can_be_drawn(results: Results) -> bool:
    return bool(results.sweep.grid.axes and scalars(results))


def document(results: Results, lines: Sequence[str] = ()) -> Document:
    """Return a document with every cell's last statistics in JSON, and the table with lines below it."""
    return Document(
        lambda: _body(results), lambda width: paragraphs([Markup(cell_table(results, width)), *lines]), SCHEMA
    )


def _body(results: Results) -> dict[str, object]:
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
    return [name for name, quantity in results.sweep.quantities.items() if not quantity.axes]


def caption(results: Results) -> str:
    sweep = results.sweep
    reading = enclosed(" under ", sweep.reading)
    lines = [
        f"{sweep.system}{reading}. At round {results.rounds[-1]}: mean with ± 2 standard errors, {sweep.replicates} "
        "replicates per cell."
    ]
    if len(sweep.grid.axes) > 1:
        lines.append(f"Shows at most {MAX_LINES} values of the second axis, and the first value of every further axis.")
    if _overlaid(results):
        lines.append(f"Dashed: the closed forms {', '.join(_overlaid(results))}, as means over the replicates.")
    coverage = results.coverage
    if not coverage.is_complete:
        lines.append(f"Incomplete: {coverage.replicates} of {coverage.of_replicates} replicates exist.")
    return " ".join(lines)


def _draw(figure: "FigureBase", results: Results) -> None:
    first, *later = results.sweep.grid.axes
    panel_of = _panels(results)
    places = np.arange(len(results.sweep.grid)).reshape(*results.sweep.grid.shape[:2], -1)
    places = places[..., 0].reshape(first.num_values, -1)  # of cells with the first value of every further axis
    texts = [numbers.setting(value) for value in _values(later[0])[:MAX_LINES]] if later else [""]
    is_number = not isinstance(_values(first)[0], (str, bool))
    positions = _values(first) if is_number else range(first.num_values)
    panels = figure.subplots(len(set(panel_of.values())), 1, squeeze=False, sharex=True)[:, 0]
    for line, (text, color) in enumerate(zip(texts, ramp(len(texts)), strict=True)):
        last_means = [_last_means(results, int(place)) for place in places[:, line]]
        for name, index in panel_of.items():
            values = np.array([cell[name] for cell in last_means])
            means, standard_errors = np.where(np.isfinite(values), values, np.nan).T
            if name in _overlaid(results):
                panels[index].plot(positions, means, color=color, linestyle="dashed")
                continue
            bars = np.nan_to_num(2 * standard_errors)
            panels[index].errorbar(positions, means, bars, color=color, marker="o", label=text, capsize=1.5)
            panels[index].set_ylabel(name.replace("_", "\n"))
    panels[-1].set_xlabel(first.name)
    if not is_number:
        panels[-1].set_xticks(positions, [numbers.setting(value) for value in _values(first)])
    elif is_log(min(positions), max(positions)):
        panels[-1].set_xscale("log")
    if later:
        legend(figure, ncols=4, title=later[0].name, title_fontsize="small")
    figure.align_ylabels(panels)


def _overlaid(results: Results) -> dict[str, str]:
    """Return the closed forms by name, each with the quantity in whose panel it is drawn."""
    quantities = results.sweep.quantities
    forms = {name: form.beside for name, form in quantities.items() if isinstance(form, ClosedForm)}
    return {name: beside for name, beside in forms.items() if beside in quantities}


def _panels(results: Results) -> dict[str, int]:
    overlaid = _overlaid(results)
    panel_names = [name for name in scalars(results) if name not in overlaid]
    return {name: panel_names.index(overlaid.get(name, name)) for name in scalars(results)}


def _values(axis: GridAxis) -> Sequence[Any]:
    return next(iter(axis.columns.values()))  # of a zip only the first column


def _last_means(results: Results, place: int) -> dict[str, tuple[float, float]]:
    """Return the mean and standard error of each scalar in a cell's last round."""
    statistics = results.statistics_of(place)
    if statistics is None:
        return dict.fromkeys(scalars(results), (np.nan, np.nan))
    columns = [MOMENTS.index("mean"), MOMENTS.index("standard_error")]
    return {name: tuple(statistics[name][-1, columns]) for name in scalars(results)}
