"""A map of where a claim holds: the picture, the numbers behind it and the document with all verdicts."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.text import Text

from moe_theory.plot import legend
from moe_theory.plot.document import Document, Picture, to_csv
from moe_theory.report.document import written
from moe_theory.report.panels import ALLOWED, OBSERVED, PREDICTED
from moe_theory.report.wording import allowed_sides
from moe_theory.runs.files import sealed, write_together
from moe_theory.verify.explore import Axis, Exploration, Point
from moe_theory.verify.verdict import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

SUFFIXES = (".svg", ".csv", ".json")
MAP_HEIGHT, LINE_HEIGHT = 4.3, 4.0  # inches, without the caption
MARKER_SIZES = (5.5, 4.2, 3.4, 2.8)  # of the coarse grid and of each refinement; the last also of those after it
WIDE_RATIO = 30  # values that span more than this are drawn on a logarithmic axis
MOST_DRAWN = 1e100  # matplotlib's axes overflow beyond


class StatusMarker(NamedTuple):
    """Marker of a status, which differs from others by shape and darkness as well as by colour."""

    marker: str
    colour: str
    shade: str


LOOKS: dict[Status, StatusMarker] = {
    Status.SUPPORTED: StatusMarker("o", "#14355e", "#a9bfdd"),
    Status.REFUTED: StatusMarker("X", "#b34700", "#f8d2b5"),
    Status.INCONCLUSIVE: StatusMarker("d", "0.45", "0.93"),
    Status.VACUOUS: StatusMarker("^", "#2a86bb", "#d6ecf8"),
    Status.INAPPLICABLE: StatusMarker("s", "0.5", "white"),
    Status.ERROR: StatusMarker("*", "black", "0.75"),
}
OWN: dict[str, Any] = {
    "color": "black",
    "marker": "+",
    "markersize": 11,
    "markeredgewidth": 1.4,
    "linestyle": "none",
    "clip_on": False,
    "zorder": 4,
}


def paths_of(folder: Path, claim: str) -> list[Path]:
    return [folder / f"{claim}{suffix}" for suffix in SUFFIXES]


def write_exploration(exploration: Exploration, folder: Path) -> list[Path]:
    """Write picture, numbers and document into `folder`; their paths. Raises: OutputError if it cannot take them."""
    names = [path.name for path in paths_of(folder, exploration.claim)]
    texts = (picture(exploration).rendered(), to_csv(rows(exploration), "{:.6g}"), sealed(exploration.to_json()))
    return write_together(folder, dict(zip(names, texts, strict=True)))


def document(exploration: Exploration, paths: Sequence[Path]) -> Document:
    """The exploration, and the paths that it was written to."""
    said = (*exploration.summary(), *exploration.failures(), exploration.assurance(), *map(str, paths))
    return Document(lambda: written(paths[2]), lambda _: said)


def picture(exploration: Exploration) -> Picture:
    """A map of two parameters; of one, observed and predicted along it."""
    draw, height = (_draw_map, MAP_HEIGHT) if len(exploration.axes) == 2 else (_draw_line, LINE_HEIGHT)
    over = " and ".join(axis.name for axis in exploration.axes)
    title = f"{exploration.claim} over {over}"
    return Picture(title, height, lambda figure: draw(figure, exploration), caption(exploration))


def rows(exploration: Exploration) -> list[dict[str, Any]]:
    """A row for each point: where it is, what is said there and why."""
    found = []
    for point in exploration.points:
        verdict = point.verdict
        low, high = verdict.interval
        said = [(axis, axis.said(value)) for axis, value in zip(exploration.axes, point.coordinates, strict=True)]
        place = {axis.name: value if axis.labels else repr(value) for axis, value in said}
        about = ("status", "at", "predicted", "observed", "standard_error")
        numbers = {name: getattr(verdict, name) for name in about} | {"low": low, "high": high}
        ends = {name: getattr(verdict, name) for name in ("margin", "replicates", "stopped", "reason")}
        found.append(place | {"level": point.level} | numbers | ends)
    return found


def caption(exploration: Exploration) -> str:
    lines = [
        f"{exploration.claim} ({exploration.where}): {' '.join(exploration.statement.split())}",
        "Each marker is a verdict of its own; between markers nothing was judged, and the shade is the nearest one's. "
        "Markers of the coarse grid are the largest. Where INCONCLUSIVE begins, and how ragged, depends on the "
        "replicates. Cross: the reading's own setting, where it is on the map. "
        + " ".join(f"{line}." for line in exploration.summary()),
    ]
    if len(exploration.axes) == 1:
        counts = Counter(point.verdict.at for point in exploration.points if point.verdict.at)
        decide = ", ".join(f"{name} ({count})" for name, count in counts.most_common(6)) or "none"
        lines[-1] += f" Shown is the component that decides: {decide}."
    lines += [
        f"Cells that set {name} themselves keep their value: {', '.join(cells)}."
        for name, cells in exploration.kept.items()
    ]
    lines.append(
        f"Reading {exploration.reading} ({exploration.reading_summary}); at most {exploration.replicates} replicates a "
        f"point, seed {exploration.seed}. {exploration.assurance()}"
    )
    return "\n".join([*lines, exploration.command])


def live_counts(points: Sequence[Point], most: int) -> Text:
    counts = Counter(point.verdict.status for point in points)
    found = ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])
    return Text(f"{len(points)} points (at most {most}){': ' if found else ''}{found}")


def _draw_map(figure: "FigureBase", exploration: Exploration) -> None:
    """The first axis to the right, the second upwards."""
    panel = figure.subplots()
    first, second = exploration.axes
    borders, nearest = exploration.nearest()
    edges = [axis.span.value_at(border) for axis, border in zip(exploration.axes, borders, strict=True)]
    panel.pcolormesh(*edges, _shades(exploration, nearest.T), edgecolors="face", linewidth=0.2, zorder=0)
    for point in _by_status(exploration):
        panel.plot(*(float(value) for value in point.coordinates), **_marker(point))
    _set_axis(panel, first, "x")
    _set_axis(panel, second, "y")
    is_shown = all(axis.low <= own <= axis.high for axis, own in zip(exploration.axes, exploration.own, strict=True))
    if is_shown:
        panel.plot(*(float(value) for value in exploration.own), **OWN, label=f"reading {exploration.reading}")
    legend(figure, ncols=4)


def _draw_line(figure: "FigureBase", exploration: Exploration) -> None:
    """Statuses as a strip, then what was observed and predicted, then their difference and where it should lie."""
    strip, values, differences = figure.subplots(3, 1, sharex=True, height_ratios=(0.12, 1, 1))
    (axis,) = exploration.axes
    borders, nearest = exploration.nearest()
    strip.pcolormesh(
        axis.span.value_at(borders[0]), [-1, 1], _shades(exploration, nearest[None]), edgecolors="face", linewidth=0.2
    )
    for point in _by_status(exploration):
        strip.plot(float(point.coordinates[0]), 0, **_marker(point))
    strip.set(yticks=[], ylim=(-1, 1))
    places = np.array([float(point.coordinates[0]) for point in exploration.points])
    _draw_values(values, places, exploration)
    _draw_differences(differences, places, exploration)
    for panel in (strip, values, differences):
        _set_axis(panel, axis, "x")
    for panel in (strip, values):
        panel.tick_params(labelbottom=False)
        panel.set_xlabel("")
    own = float(exploration.own[0])
    is_shown = axis.low <= own <= axis.high
    if is_shown:
        strip.plot(own, 0, **OWN, label=f"reading {exploration.reading}")
    legend(figure, ncols=4)


def _draw_values(panel: "Axes", places: np.ndarray, exploration: Exploration) -> None:
    verdicts = [point.verdict for point in exploration.points]
    is_identity = exploration.kind == "identity"
    predicted = _drawable([verdict.margin if is_identity else verdict.predicted for verdict in verdicts])
    observed = _drawable([verdict.observed for verdict in verdicts])
    panel.plot(places, predicted, **PREDICTED, label="predicted")
    panel.plot(places, observed, **OBSERVED, label="observed, with interval")
    known = np.r_[predicted, observed]
    known = known[np.isfinite(known)]
    if known.size and known.min() > 0 and known.max() > WIDE_RATIO * known.min():
        panel.set_yscale("log")
    panel.set_ylabel("tolerance and\nlargest error" if is_identity else "predicted\nand observed")


def _draw_differences(panel: "Axes", places: np.ndarray, exploration: Exploration) -> None:
    """Observed - predicted with its interval, over the side and the margin that the claim allows."""
    verdicts = [point.verdict for point in exploration.points]
    middle = _drawable([verdict.observed - verdict.predicted for verdict in verdicts])
    low, high = _drawable(np.transpose([verdict.interval for verdict in verdicts]))
    margin = _drawable([verdict.margin for verdict in verdicts])
    reach = np.nanmax(np.abs(np.r_[middle, low, high, margin, 0.0])) or 1.0
    bars = np.nan_to_num(np.maximum([middle - low, high - middle], 0), nan=2 * reach)  # out of the panel
    panel.errorbar(places, middle, bars, **OBSERVED)
    known = np.abs(np.r_[middle, low, high])
    known = known[np.isfinite(known) & (known > 0)]
    if known.size and known.max() > WIDE_RATIO * np.median(known):
        panel.set_yscale("symlog", linthresh=float(np.quantile(known, 0.2)))
    ends = np.r_[panel.get_ylim(), 0.0, 1.5 * margin[np.isfinite(margin)], -1.5 * margin[np.isfinite(margin)]]
    bottom, top = ends.min(), ends.max()
    is_below, is_above = allowed_sides(verdicts[0])
    lowest = np.full_like(margin, bottom) if is_below else -margin
    highest = np.full_like(margin, top) if is_above else margin
    panel.fill_between(places, lowest, highest, **ALLOWED, label="where it should lie")
    panel.set_ylim(bottom, top)
    panel.axhline(0, color="0.4", linewidth=0.6, zorder=0)
    panel.set_ylabel("observed\n− predicted")


def _drawable(values: Any) -> np.ndarray:
    """Numbers that an axis can show; NaN for those that overflow, such as the ends of an infinite interval."""
    numbers = np.array(values, np.float64)
    return np.where(np.abs(numbers) < MOST_DRAWN, numbers, np.nan)


def _shades(exploration: Exploration, nearest: np.ndarray) -> np.ndarray:
    from matplotlib.colors import to_rgb

    colours = [to_rgb(LOOKS[point.verdict.status].shade) for point in exploration.points]
    return np.array(colours)[nearest]


def _by_status(exploration: Exploration) -> list[Point]:
    return sorted(exploration.points, key=lambda point: list(LOOKS).index(point.verdict.status))


def _marker(point: Point) -> dict[str, Any]:
    look = LOOKS[point.verdict.status]
    size = MARKER_SIZES[min(point.level, len(MARKER_SIZES) - 1)]
    return {
        "label": str(point.verdict.status),
        "marker": look.marker,
        "color": look.colour,
        "markersize": 1.6 * size if look.marker == "*" else size,
        "markeredgecolor": "white",
        "markeredgewidth": 0.4,
        "linestyle": "none",
        "clip_on": False,
        "zorder": 3,
    }


def _set_axis(panel: "Axes", axis: Axis, direction: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    along = panel.xaxis if direction == "x" else panel.yaxis
    set_ = {name: getattr(panel, f"set_{direction}{name}") for name in ("scale", "lim", "label", "ticks")}
    if axis.is_log:
        set_["scale"]("log")
        steps = (1.0, 2.0, 5.0) if axis.high < 1000 * axis.low else (1.0,)
        along.set_major_locator(LogLocator(subs=steps))
        along.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        along.set_minor_formatter(NullFormatter())
    if axis.is_listed:
        labels = axis.labels or [
            str(value).lower() if isinstance(value, bool) else f"{value:g}" for value in axis.values
        ]
        set_["ticks"]([float(value) for value in axis.values], labels)
    set_["lim"](*axis.span.value_at([-0.02, 1.02]))
    set_["label"](axis.name, labelpad=4)
