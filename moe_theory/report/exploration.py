"""A map of where a claim holds: the picture, the numbers behind it and the document with all verdicts."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.text import Text

from moe_theory.plot import legend
from moe_theory.plot.document import Document, Picture, read_written, to_csv
from moe_theory.plot.markdown import code, paragraphs
from moe_theory.report.panels import OBSERVED, PREDICTED
from moe_theory.runs.files import sealed, write_together
from moe_theory.verification.explore import Axis, Exploration, Point
from moe_theory.verification.verdict import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

SUFFIXES = (".svg", ".csv", ".json")
HEIGHT = 4.0  # inches, without the caption
WIDE_RATIO = 30  # values that span more than this are drawn on a logarithmic axis
MAX_DRAWN = 1e100  # matplotlib's axes overflow beyond
MARKERS = {  # which differ by shape and darkness as well as by colour
    Status.SUPPORTED: ("o", "#14355e"),
    Status.REFUTED: ("X", "#b34700"),
    Status.INCONCLUSIVE: ("d", "0.45"),
    Status.VACUOUS: ("^", "#2a86bb"),
    Status.INAPPLICABLE: ("s", "0.5"),
    Status.ERROR: ("*", "black"),
}


def paths_of(folder: Path, claim: str) -> list[Path]:
    """Return the files that an exploration is written to."""
    return [folder / f"{claim}{suffix}" for suffix in SUFFIXES]


def write_exploration(exploration: Exploration, folder: Path) -> list[Path]:
    """Write picture, numbers and document into `folder`; their paths. Raises: OutputError if it cannot take them."""
    names = [path.name for path in paths_of(folder, exploration.search.claim.id)]
    texts = (picture(exploration).rendered(), to_csv(rows(exploration), "{:.6g}"), sealed(exploration.to_json()))
    return write_together(folder, dict(zip(names, texts, strict=True)))


def document(exploration: Exploration, paths: Sequence[Path]) -> Document:
    """Return the exploration, and the paths that it was written to."""
    lines = (*exploration.summary(), *exploration.failures(), exploration.assurance())
    text = paragraphs([*lines, *(code(str(path)) for path in paths)])
    return Document(lambda: read_written(paths[2]), lambda _: text)


def live_counts(points: Sequence[Point], num_points: int) -> Text:
    """Return a line on the points that are judged so far."""
    counts = Counter(point.verdict.status for point in points)
    words = [f"{counts[status]} {status}" for status in Status if counts[status]]
    return Text(f"{len(points)} of {num_points} points{': ' if words else ''}{', '.join(words)}")


def rows(exploration: Exploration) -> list[dict[str, Any]]:
    """Return a row for each point: where it is, its verdict and why."""
    table = []
    for point in exploration.points:
        verdict = point.verdict
        settings = exploration.search.settings(point.coordinates)
        row: dict[str, Any] = {
            name: value if isinstance(value, str) else repr(value) for name, value in settings.items()
        }
        row |= {name: getattr(verdict, name) for name in ("status", "at", "predicted", "observed", "standard_error")}
        row["low"], row["high"] = verdict.interval
        row |= {name: getattr(verdict, name) for name in ("margin", "replicates", "stopped", "reason")}
        table.append(row)
    return table


def picture(exploration: Exploration) -> Picture:
    """Return a map of two parameters; of one, observed and predicted along it."""
    claim = exploration.search.claim
    axes = exploration.search.axes
    title = f"{claim.id} over {' and '.join(axis.name for axis in axes)}"
    draw = _draw_map if len(axes) == 2 else _draw_line
    return Picture(title, HEIGHT, lambda figure: draw(figure, exploration), caption(exploration))


def caption(exploration: Exploration) -> str:
    """Return what the picture shows."""
    search = exploration.search
    claim = search.claim
    lines = [
        f"{claim.id} ({claim.where}): {' '.join(claim.statement.split())}",
        "Each marker is a verdict of its own. Between markers nothing was judged. "
        + " ".join(f"{line}." for line in exploration.summary()),
    ]
    lines += [
        f"Cells that set {name} themselves keep their value: {', '.join(cells)}." for name, cells in search.kept.items()
    ]
    lines.append(
        f"Reading {search.reading.name} ({search.reading.summary}); at most "
        f"{search.replicates or claim.experiment.replicates} replicates a point, seed {search.seed}. "
        f"{exploration.assurance()}"
    )
    return "\n".join([*lines, exploration.command])


def _draw_map(figure: "FigureBase", exploration: Exploration) -> None:
    """The first axis to the right, the second upwards."""
    panel = figure.subplots()
    first, second = exploration.search.axes
    places = [exploration.search.places(point.coordinates) for point in exploration.points]
    _draw_statuses(panel, exploration.points, places)
    _set_axis(panel, first, "x")
    _set_axis(panel, second, "y")
    legend(figure, ncols=4)


def _draw_line(figure: "FigureBase", exploration: Exploration) -> None:
    """Observed with its interval, and predicted; statuses below them."""
    panel = figure.subplots()
    (axis,) = exploration.search.axes
    verdicts = [point.verdict for point in exploration.points]
    places = np.array([axis.place(point.coordinates[0]) for point in exploration.points], np.float64)
    observed = _drawable([verdict.observed for verdict in verdicts])
    predicted = _drawable([verdict.predicted for verdict in verdicts])
    # The interval is of observed - predicted.
    low, high = _drawable(np.transpose([verdict.interval for verdict in verdicts])) + predicted
    bars = np.nan_to_num(np.maximum([observed - low, high - observed], 0))
    panel.plot(places, predicted, **PREDICTED, label="predicted")
    panel.errorbar(places, observed, bars, **OBSERVED, label="observed, with interval")
    numbers = np.r_[observed, predicted]
    numbers = numbers[np.isfinite(numbers)]
    if numbers.size and numbers.min() > 0 and numbers.max() > WIDE_RATIO * numbers.min():
        panel.set_yscale("log")
    panel.set_ylabel("predicted and observed")
    _set_axis(panel, axis, "x")
    bottom = panel.get_ylim()[0]
    _draw_statuses(panel, exploration.points, [(place, bottom) for place in places])
    legend(figure, ncols=4)


def _drawable(values: Any) -> np.ndarray:
    """Return numbers that an axis can show; NaN for those that overflow."""
    numbers = np.array(values, np.float64)
    return np.where(np.abs(numbers) < MAX_DRAWN, numbers, np.nan)


def _draw_statuses(panel: "Axes", points: Sequence[Point], places: Sequence[tuple[float, ...]]) -> None:
    for status, (marker, colour) in MARKERS.items():
        markers = [place for point, place in zip(points, places, strict=True) if point.verdict.status is status]
        if markers:
            look: dict[str, Any] = {"marker": marker, "color": colour, "linestyle": "none", "clip_on": False}
            panel.plot(*np.transpose(markers), **look, label=str(status), zorder=3)


def _set_axis(panel: "Axes", axis: Axis, direction: str) -> None:
    if axis.is_log:
        panel.set(**{f"{direction}scale": "log"})
    if isinstance(axis.values[0], str):
        ticks = {f"{direction}ticks": range(len(axis.values)), f"{direction}ticklabels": axis.values}
        panel.set(**ticks)
    panel.set(**{f"{direction}label": axis.name})
