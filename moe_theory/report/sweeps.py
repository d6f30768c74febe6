"""A quick look at a sweep's results: a table in a terminal, and a picture."""

import dataclasses
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.table import Table

from moe_theory.core.errors import InvalidRunError, OutputError
from moe_theory.plot import legend, ramp
from moe_theory.plot.document import Document, Picture, ruled
from moe_theory.report import numbers
from moe_theory.report.exploration import WIDE_RATIO
from moe_theory.sweep.estimate import SweepCost
from moe_theory.sweep.grid import GridAxis
from moe_theory.sweep.results import MOMENTS, Results
from moe_theory.sweep.runner import ChunkCounts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

RESULTS = "results.nc"  # what a finished sweep's labelled results are called in its folder
SCHEMA = "moe-theory/sweep-summary/2"
MOST_ROWS = 40  # of a table
MOST_LINES = 8  # of a panel; a second axis with more values makes it a heat map
MOST_FAILURES = 10
MOST_TICKS = 8
MOST_INTERVALS = 5  # between the ticks of a panel's height
PANEL_HEIGHT, FOOT_HEIGHT = 1.65, 0.5  # inches
NAME_LENGTH = 20  # of a panel's name, before it goes on below
MARKERS = "osD^vPX*"
COUNT, MEAN, ERROR = (MOMENTS.index(name) for name in ("count", "mean", "standard_error"))


def table(results: Results) -> Table:
    """The last round: a row for each cell (of the first forty), mean ± standard error of each scalar observable."""
    cells, is_complete = results.sweep.grid.cells, results.coverage.is_complete
    shown_cells, rest = range(min(len(cells), MOST_ROWS)), len(cells) - MOST_ROWS
    caption = f"{rest} more cells: to_xarray, to_netcdf, to_zarr or to_parquet has them all" if rest > 0 else None
    title = f"round {results.rounds[-1]}, mean ± standard error"
    columns = [*cells[0].settings, *scalars(results), *([] if is_complete else ["replicates"])]
    rows = []
    for place in shown_cells:
        last = _last(results, [place])
        means = []
        for values in last.values():
            mean, error = values[0, MEAN], values[0, ERROR]
            shown_mean = "-" if math.isnan(mean) else f"{mean:.4g}"
            means.append(f"{mean:.4g} ± {error:.2g}" if math.isfinite(error) else shown_mean)
        count = [] if is_complete else [f"{max((values[0, COUNT] for values in last.values()), default=0):g}"]
        rows.append((*map(numbers.setting, cells[place].settings.values()), *means, *count))
    return ruled(columns, rows, columns, folded=columns, title=title, caption=caption)


def draw(results: Results, path: str | Path) -> Path:
    """Draw a quick look at all scalar observables, as SVG or PNG by the suffix of `path`.

    Over rounds without axes; else at the last round: over one axis, over the first in lines for each value of the
    second, or as a heat map where the second has more than eight. Further axes stay at their first value.

    Raises: OutputError for another suffix or a place that cannot be written; InvalidRunError without an observable
        that is a scalar.
    """
    names = scalars(results)
    if not names:
        raise InvalidRunError(
            f"{', '.join(results.kept)} have axes of their own, and a quick look is of scalars. Keep another "
            "observable, or draw these from to_xarray."
        )
    axes = results.sweep.grid.axes
    over = " and ".join(axis.name for axis in axes[:2]) or "rounds"
    title, height = f"{', '.join(names)} over {over}", PANEL_HEIGHT * len(names) + FOOT_HEIGHT
    return Picture(title, height, lambda figure: _draw(figure, results, names), caption(results)).save(Path(path))


def export(results: Results, path: str | Path) -> Path:
    """Write all results as netCDF, Zarr or Parquet, by the suffix of `path`. Raises: OutputError for another suffix;
    otherwise as `Results.to_netcdf` and its neighbours.
    """
    path = Path(path)
    writers = {".nc": results.to_netcdf, ".zarr": results.to_zarr, ".parquet": results.to_parquet}
    if path.suffix not in writers:
        raise OutputError(f"{path} must end in {', '.join(writers)}: that says what is written. Change the name.")
    return writers[path.suffix](path)


def document(results: Results, lines: Sequence[str] = ()) -> Document:
    """The last round's statistics, of every cell as JSON, with lines below the table."""
    return Document(lambda: _body(results), lambda _: (table(results), *lines), SCHEMA)


def _body(results: Results) -> dict[str, Any]:
    sweep, coverage = results.sweep, results.coverage
    cells = []
    for place, cell in enumerate(sweep.grid.cells):
        found = results.statistics_of(place) or {}
        last = {
            name: {each: values[-1, ..., i] for i, each in enumerate(results.statistics)}
            for name, values in found.items()
        }
        cells.append({"settings": dict(cell.settings), "reading": cell.reading, "statistics": last})
    return {
        "specification": sweep.to_json(),
        "digest": results.digest,
        "coverage": coverage._asdict(),
        "round": int(results.rounds[-1]),
        "cells": cells,
    }


def scalars(results: Results) -> list[str]:
    return [name for name in results.kept if not results.kind.observables[name].axes]


def caption(results: Results) -> str:
    sweep, axes = results.sweep, results.sweep.grid.axes
    band, is_map = _outer_quantiles(results), _is_map(axes)
    what = f"At round {results.rounds[-1]}" if axes else "Over rounds"
    drawn = f"mean with ± 2 standard errors ({'bars' if axes else 'band'})"
    if is_map:
        drawn = "mean by colour, values of both axes at equal distances"
    elif band and len(axes) < 2:
        drawn += f"; lighter: {band[0]} to {band[1]} of the replicates"
    reading = f" under {results.reading.name}" if sweep.reading is not None else ""
    lines = [f"{sweep.system}{reading}. {what}: {drawn}; {sweep.replicates} replicates a cell."]
    if len(axes) > 2:
        fixed = (f"{name} = {numbers.setting(values[0])}" for axis in axes[2:] for name, values in axis.columns.items())
        lines.append(f"Only at {', '.join(fixed)}.")
    left_out = [name for name in results.kept if name not in scalars(results)]
    if left_out:
        lines.append(f"Not drawn, as they have axes of their own: {', '.join(left_out)}.")
    if not results.coverage.is_complete:
        coverage = results.coverage
        lines.append(
            f"Incomplete: {coverage.replicates} of {coverage.of_replicates} replicates are there; what has none "
            f"{'is grey' if is_map else 'is left out'}."
        )
    return " ".join(lines)


class _Scale(NamedTuple):
    label: str
    places: np.ndarray  # of the values, along it
    texts: list[str] | None  # of values that are no numbers, or stand at their ranks
    is_log: bool


def _draw(figure: "FigureBase", results: Results, names: Sequence[str]) -> None:
    axes = results.sweep.grid.axes
    panels = figure.subplots(len(names), 1, squeeze=False, sharex=True)[:, 0]
    for panel, name in zip(panels, names, strict=True):
        if _is_map(axes):
            _draw_map(figure, panel, results, name)
        elif axes:
            _draw_lines(panel, results, name)
        else:
            _draw_rounds(panel, results, name)
        if not _is_map(axes):
            panel.set_ylabel(_wrapped(name))
    if axes:
        _set_scale(panels[-1], _scale(axes[0], is_ranked=_is_map(axes)))
    else:
        panels[-1].set_xlabel("round")
    if len(axes) > 1 and not _is_map(axes):
        legend(figure, ncols=4, title=_scale(axes[1]).label, title_fontsize="small")
    figure.align_ylabels(panels)


def _draw_rounds(panel: "Axes", results: Results, name: str) -> None:
    found = results.statistics_of(0)
    values = np.full((len(results.rounds), len(results.statistics)), np.nan) if found is None else found[name]
    values = _finite(values)
    mean, error = values[:, MEAN], 2 * values[:, ERROR]
    _draw_spread(panel, results, results.rounds, values)
    panel.fill_between(results.rounds, mean - error, mean + error, color="C0", alpha=0.4, linewidth=0)
    panel.plot(results.rounds, mean, color="C0", linewidth=1, marker="o" if len(mean) == 1 else "", markersize=3)
    _set_height(panel, mean)


def _draw_lines(panel: "Axes", results: Results, name: str) -> None:
    """The last round over the first axis, a line for each value of the second."""
    first, *others = results.sweep.grid.axes
    scale = _scale(first)
    texts = _texts(others[0]) if others else [""]
    means, colours = [], ramp(len(texts))
    for row, text in enumerate(texts):
        values = _finite(_last(results, _places(results, row))[name])
        look: dict[str, Any] = {"color": "C0", "marker": MARKERS[row], "markersize": 3.5, "linewidth": 1}
        shift = 0.0
        if others:
            look |= {"color": colours[row], "label": text}
            shift = (row - (len(texts) - 1) / 2) * 0.06 if scale.texts else 0.0
        else:
            _draw_spread(panel, results, scale.places, values, is_line=not scale.texts)
        look |= {"linestyle": "none"} if scale.texts else {}
        errors = np.nan_to_num(2 * values[:, ERROR])
        panel.errorbar(scale.places + shift, values[:, MEAN], errors, **look, elinewidth=0.8, capsize=1.5)
        means.append(values[:, MEAN])
    _set_height(panel, np.concatenate(means))
    if scale.is_log:
        panel.set_xscale("log")


def _draw_spread(panel: "Axes", results: Results, places: np.ndarray, values: np.ndarray, is_line: bool = True) -> None:
    """From the lowest to the highest quantile of the replicates, if there are two."""
    band = _outer_quantiles(results)
    if band is None:
        return
    low, high = (values[:, results.statistics.index(each)] for each in band)
    if is_line and len(places) > 1:
        panel.fill_between(places, low, high, color="C0", alpha=0.14, linewidth=0)
    else:
        panel.vlines(places, low, high, color="C0", alpha=0.2, linewidth=5)


def _draw_map(figure: "FigureBase", panel: "Axes", results: Results, name: str) -> None:
    """The last round's mean by colour: the first axis to the right, the second upwards, values at their ranks."""
    from matplotlib.colors import LogNorm

    second = results.sweep.grid.axes[1]
    rows = len(_texts(second))
    means = np.array([_last(results, _places(results, row))[name][:, MEAN] for row in range(rows)])
    means = np.ma.masked_invalid(means)
    is_wide = means.count() and means.min() > 0 and means.max() > WIDE_RATIO * means.min()
    mesh = panel.pcolormesh(
        means, cmap="viridis", norm=LogNorm() if is_wide else None, edgecolors="face", linewidth=0.2
    )
    panel.set_facecolor("0.85")
    bar = figure.colorbar(mesh, ax=panel, label=_wrapped(name), pad=0.01)
    if not is_wide:
        bar.ax.locator_params(axis="y", nbins=MOST_INTERVALS)
    scale = _scale(second, is_ranked=True)
    kept = _spread(rows)
    panel.set_yticks(scale.places[kept], [scale.texts[place] for place in kept] if scale.texts else None)
    panel.set_ylabel(_wrapped(scale.label))


def _set_scale(panel: "Axes", scale: _Scale) -> None:
    panel.set_xlabel(scale.label)
    if scale.texts:
        kept = _spread(len(scale.texts))
        panel.set_xticks(scale.places[kept], [scale.texts[place] for place in kept])
        if scale.places[0] == 0:
            panel.set_xlim(-0.5, len(scale.places) - 0.5)
    elif len(scale.places) <= MOST_TICKS:
        places = np.sort(np.log(scale.places) if scale.is_log else scale.places)
        if len(places) < 2 or float(np.diff(places).min()) > 0.06 * (places[-1] - places[0]):  # room for each text
            panel.set_xticks(scale.places, [numbers.setting(place) for place in scale.places])
            panel.minorticks_off()


def _set_height(panel: "Axes", means: np.ndarray) -> None:
    """A logarithmic axis for positive values that span much; ticks whose number the layout does not change."""
    known = means[np.isfinite(means)]
    if known.size and known.min() > 0 and known.max() > WIDE_RATIO * known.min():
        panel.set_yscale("log")
    else:
        panel.locator_params(axis="y", nbins=MOST_INTERVALS)


def _scale(axis: GridAxis, is_ranked: bool = False) -> _Scale:
    """Numbers stand at their values, and everything else at its rank."""
    name, values = next(iter(axis.columns.items()))
    others = [other for other in axis.columns if other != name]
    label = f"{name} (with {', '.join(others)})" if others else name
    label = _in_words(label)
    are_numbers = not any(isinstance(value, (str, bool)) for value in values)
    if is_ranked or not are_numbers or len(set(values)) < len(values):
        return _Scale(label, np.arange(len(values)) + (0.5 if is_ranked else 0.0), _texts(axis), False)
    places = np.array(values, np.float64)
    return _Scale(label, places, None, _is_log_spread(places))


def _is_log_spread(values: np.ndarray) -> bool:
    """Whether neighbours differ by a ratio rather than by a distance."""
    values = np.sort(values)
    if values[0] <= 0 or len(values) < 2:
        return False
    if len(values) == 2:
        return bool(values[1] >= 10 * values[0])
    steps, ratios = np.diff(values), np.diff(np.log(values))
    return bool(ratios.std() / ratios.mean() < steps.std() / steps.mean() - 1e-9)


def _is_map(axes: Sequence[GridAxis]) -> bool:
    return len(axes) > 1 and len(_texts(axes[1])) > MOST_LINES


def _places(results: Results, row: int) -> list[int]:
    """Places in the grid along its first axis, with the second at `row` and all others at their first value."""
    shape = results.sweep.grid.shape
    rest = (row, *(0 for _ in shape[2:]))[: len(shape) - 1]
    return [int(np.ravel_multi_index((index, *rest), shape)) for index in range(shape[0])]


def _last(results: Results, places: Sequence[int]) -> Mapping[str, np.ndarray]:
    """Statistics of the last round (places, statistics) of each scalar observable; nan where there are none."""
    found = [results.statistics_of(place) for place in places]
    nothing = np.full(len(results.statistics), np.nan)
    nothing[COUNT] = 0
    return {
        name: np.array([nothing if each is None else each[name][-1] for each in found]) for name in scalars(results)
    }


def _outer_quantiles(results: Results) -> tuple[str, str] | None:
    """Names of the lowest and the highest quantile, if there are two."""
    names = dict(zip(results.sweep.quantiles, results.statistics[len(MOMENTS) :], strict=True))
    return (names[min(names)], names[max(names)]) if len(names) > 1 else None


def _spread(count: int) -> list[int]:
    """Places of labels, at most `MOST_TICKS`."""
    return list(range(0, count, math.ceil(count / MOST_TICKS)))


def _texts(axis: GridAxis) -> list[str]:
    return [numbers.setting(value) for value in next(iter(axis.columns.values()))]


def _finite(values: np.ndarray) -> np.ndarray:
    """nan in place of what cannot be drawn."""
    return np.where(np.isfinite(values), values, np.nan)


def _in_words(names: str) -> str:
    return re.sub(r"\bnum_", "number of ", names).replace("_", " ")


def _wrapped(name: str) -> str:
    """A name in words, on several lines."""
    lines = [""]
    for word in re.findall(r"[^ ]* ?", _in_words(name)):
        if lines[-1] and len(lines[-1]) + len(word) > NAME_LENGTH:
            lines.append("")
        lines[-1] += word
    return "\n".join(line.rstrip() for line in lines)


def estimate(costs: SweepCost) -> Document:
    """What a sweep takes."""
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
    table = ruled(("", ""), rows.items(), title="what this sweep takes", show_header=False)
    return Document(lambda: dataclasses.asdict(costs), lambda _: [table])


def failures(results: Results) -> list[str]:
    """Lines on the cells that raised errors."""
    if not results.failed:
        return []
    lines = [f"{name}: {said}" for name, said in itertools.islice(results.failed.items(), MOST_FAILURES)]
    left = len(results.failed) - len(lines)
    more = [f"and {left:,} more cells"] if left else []
    few = f"{len(results.failed):,} of {len(results.sweep.grid):,} cells raised errors"
    return [*lines, *more, f"{few}: the same command tries them again"]


def closing_line(counts: ChunkCounts) -> str:
    """Return a line on what a run has computed."""
    facts = [f"{counts.computed:,} computed", f"{counts.present:,} reused"]
    if counts.failed:
        facts.append(f"{len(counts.failed):,} failed")
    return f"{counts.num_chunks:,} chunks: {', '.join(facts)}"
