"""A quick look at a sweep's results: a table in a terminal, and a picture."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from rich.table import Table

from moe_theory.core.errors import InvalidRunError, OutputError
from moe_theory.core.values import shown
from moe_theory.report.exploration import WIDE_RATIO
from moe_theory.report.output import write_bytes
from moe_theory.report.plots import PAGE_WIDTH, render_as
from moe_theory.sweep.grid import GridAxis
from moe_theory.sweep.results import MOMENTS, Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

MOST_ROWS = 40  # of a table
MOST_LINES = 8  # of a panel; a second axis with more values makes it a heat map
MOST_TICKS = 8
PANEL_HEIGHT, FOOT_HEIGHT = 1.65, 0.5  # inches
NAME_LENGTH = 20  # of a panel's name, before it goes on below
FORMS: dict[str, Literal["svg", "png"]] = {".svg": "svg", ".png": "png"}
MARKERS = "osD^vPX*"
COUNT, MEAN, ERROR = (MOMENTS.index(name) for name in ("count", "mean", "standard_error"))


def table(results: Results) -> Table:
    """The last round: a row for each cell (of the first forty), mean ± standard error of each scalar observable."""
    cells, is_complete = results.sweep.grid.cells, results.coverage.is_complete
    shown_cells, rest = range(min(len(cells), MOST_ROWS)), len(cells) - MOST_ROWS
    caption = f"{rest} more cells: to_xarray, to_netcdf, to_zarr or to_parquet has them all" if rest > 0 else None
    made = Table(
        title=f"round {results.rounds[-1]}, mean ± standard error",
        caption=caption,
        header_style="bold",
        pad_edge=False,
    )
    for name in [*cells[0].settings, *scalars(results)]:
        made.add_column(name, justify="right", overflow="fold")
    if not is_complete:
        made.add_column("replicates", justify="right")
    for place in shown_cells:
        last = _last(results, [place])
        numbers = [_with_error(values[0]) for values in last.values()]
        count = [] if is_complete else [f"{max((values[0, COUNT] for values in last.values()), default=0):g}"]
        made.add_row(*map(_text, cells[place].settings.values()), *numbers, *count)
    return made


def draw(results: Results, path: str | Path) -> Path:
    """Draw a quick look at all scalar observables, as SVG or PNG by the suffix of `path`.

    Over rounds without axes; else at the last round: over one axis, over the first in lines for each value of the
    second, or as a heat map where the second has more than eight. Further axes stay at their first value.

    Raises: OutputError for another suffix or a place that cannot be written; InvalidRunError without an observable
        that is a scalar.
    """
    path = Path(path)
    if path.suffix not in FORMS:
        raise OutputError(f"{path} must end in .svg or .png: that says how it is drawn. Mend the name.")
    names = scalars(results)
    if not names:
        raise InvalidRunError(
            f"{', '.join(results.sweep.kept)} have axes of their own, and a quick look is of scalars. Keep another "
            "observable, or draw these from to_xarray."
        )
    axes = results.sweep.grid.axes
    over = " and ".join(axis.name for axis in axes[:2]) or "rounds"
    height = PANEL_HEIGHT * len(names) + FOOT_HEIGHT
    picture = render_as(
        FORMS[path.suffix],
        f"{', '.join(names)} over {over}",
        (PAGE_WIDTH, height),
        lambda figure: _draw(figure, results, names),
        caption(results),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, picture)
    return path


def scalars(results: Results) -> list[str]:
    """The observables that have no axes of their own."""
    return [name for name in results.sweep.kept if not results.kind.observables[name].axes]


def caption(results: Results) -> str:
    """What is drawn, and what is not."""
    sweep, axes = results.sweep, results.sweep.grid.axes
    band = _outer_quantiles(results)
    spread = f"; lighter: {band[0]} to {band[1]} of the replicates" if band else ""
    what = {0: "Over rounds", 1: f"At round {results.rounds[-1]}"}.get(len(axes), f"At round {results.rounds[-1]}")
    is_map = _is_map(axes)
    drawn = "mean by colour" if is_map else f"mean, with a band or bars of ± 2 standard errors{spread}"
    lines = [f"{sweep.system} under {results.reading.name}. {what}: {drawn}; {sweep.replicates} replicates a cell."]
    if len(axes) > 2:
        fixed = (f"{name} = {_text(values[0])}" for axis in axes[2:] for name, values in axis.columns.items())
        lines.append(f"Only at {', '.join(fixed)}.")
    left_out = [name for name in sweep.kept if name not in scalars(results)]
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
    """An axis of the grid as an axis of a panel."""

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
    handles, labels = panels[0].get_legend_handles_labels()
    if len(axes) > 1 and handles:
        title = _scale(axes[1]).label
        figure.legend(handles, labels, loc="outside upper center", ncols=4, title=title, title_fontsize="small")


def _draw_rounds(panel: "Axes", results: Results, name: str) -> None:
    found = results.statistics_of(0)
    values = np.full((len(results.rounds), len(results.statistics)), np.nan) if found is None else found[name]
    _draw_curve(panel, results, results.rounds, values, "C0", "")
    _set_height(panel, values[:, MEAN])


def _draw_lines(panel: "Axes", results: Results, name: str) -> None:
    """The last round over the first axis, a line for each value of the second."""
    from matplotlib import colormaps

    first, *others = results.sweep.grid.axes
    scale = _scale(first)
    texts = _texts(others[0]) if others else [""]
    means = []
    for row, text in enumerate(texts):
        values = _last(results, _places(results, row))[name]
        colour = colormaps["viridis"](0.9 * row / max(len(texts) - 1, 1)) if others else "C0"
        shift = (row - (len(texts) - 1) / 2) * 0.06 if scale.texts is not None else 0.0
        _draw_curve(panel, results, scale.places + shift, values, colour, text, MARKERS[row], scale.texts is None)
        means.append(values[:, MEAN])
    _set_height(panel, np.concatenate(means))
    if scale.is_log:
        panel.set_xscale("log")


def _draw_curve(
    panel: "Axes",
    results: Results,
    places: np.ndarray,
    values: np.ndarray,
    colour: Any,
    label: str,
    marker: str = "",
    is_line: bool = True,
) -> None:
    """Means with twice their standard errors and, of a single curve, the spread of the replicates.

    Args:
        values: (places, statistics).
    """
    values = np.where(np.isfinite(values), values, np.nan)
    mean, error = values[:, MEAN], np.nan_to_num(2 * values[:, ERROR])
    band = _outer_quantiles(results)
    if is_line:
        panel.fill_between(places, mean - error, mean + error, color=colour, alpha=0.3, linewidth=0)
    if band and not label:
        low, high = (values[:, results.statistics.index(each)] for each in band)
        if is_line:
            panel.fill_between(places, low, high, color=colour, alpha=0.12, linewidth=0)
        else:
            panel.vlines(places, low, high, color=colour, alpha=0.2, linewidth=5)
    look: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 3, "linewidth": 1, "label": label}
    panel.errorbar(places, mean, error, **look | ({} if is_line else {"linestyle": "none"}), elinewidth=0.8)


def _draw_map(figure: "FigureBase", panel: "Axes", results: Results, name: str) -> None:
    """The last round's mean by colour: the first axis to the right, the second upwards, at the ranks of their values."""
    from matplotlib.colors import LogNorm

    first, second = results.sweep.grid.axes[:2]
    rows = len(_texts(second))
    means = np.array([_last(results, _places(results, row))[name][:, MEAN] for row in range(rows)])
    means = np.ma.masked_invalid(means)
    is_wide = means.count() and means.min() > 0 and means.max() > WIDE_RATIO * means.min()
    mesh = panel.pcolormesh(means, cmap="viridis", norm=LogNorm() if is_wide else None, edgecolors="face", linewidth=0.2)
    panel.set_facecolor("0.85")
    figure.colorbar(mesh, ax=panel, label=_wrapped(name), pad=0.01)
    scale = _scale(second, is_ranked=True)
    kept = _spread(rows)
    panel.set_yticks(scale.places[kept], [scale.texts[place] for place in kept] if scale.texts else None)
    panel.set_ylabel(_wrapped(scale.label))


def _set_scale(panel: "Axes", scale: _Scale) -> None:
    panel.set_xlabel(scale.label)
    if scale.texts is not None:
        kept = _spread(len(scale.texts))
        panel.set_xticks(scale.places[kept], [scale.texts[place] for place in kept])
    elif len(scale.places) <= MOST_TICKS:
        panel.set_xticks(scale.places, [f"{place:g}" for place in scale.places])
        panel.minorticks_off()


def _set_height(panel: "Axes", means: np.ndarray) -> None:
    """A logarithmic axis for positive values that span much."""
    known = means[np.isfinite(means)]
    if known.size and known.min() > 0 and known.max() > WIDE_RATIO * known.min():
        panel.set_yscale("log")


def _scale(axis: GridAxis, is_ranked: bool = False) -> _Scale:
    """Numbers stand at their values, and everything else at its rank."""
    name, values = next(iter(axis.columns.items()))
    others = [other for other in axis.columns if other != name]
    label = f"{name} (with {', '.join(others)})" if others else name
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
    quantiles = sorted(set(results.sweep.quantiles))
    return (f"q{100 * quantiles[0]:g}", f"q{100 * quantiles[-1]:g}") if len(quantiles) > 1 else None


def _spread(count: int) -> list[int]:
    """At most so many places as have room for a text."""
    return list(range(0, count, math.ceil(count / MOST_TICKS)))


def _texts(axis: GridAxis) -> list[str]:
    return [_text(value) for value in next(iter(axis.columns.values()))]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else shown(value)


def _with_error(values: np.ndarray) -> str:
    mean, error = values[MEAN], values[ERROR]
    return f"{mean:.4g} ± {error:.2g}" if math.isfinite(error) else f"{mean:.4g}" if not math.isnan(mean) else "-"


def _wrapped(name: str) -> str:
    """A name on several lines, broken at its underscores."""
    lines = [""]
    for word in name.replace("_", "_ ").split(" "):
        if lines[-1] and len(lines[-1]) + len(word) > NAME_LENGTH:
            lines.append("")
        lines[-1] += word
    return "\n".join(lines)
