"""A map of where a claim holds: its picture, and the document of all verdicts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moe_theory.plot import legend
from moe_theory.plot.document import Document, Picture, read_written
from moe_theory.plot.markdown import code, paragraphs
from moe_theory.report.panels import PREDICTED
from moe_theory.runs.files import sealed, write_together
from moe_theory.verification.explore import Exploration
from moe_theory.verification.verdict import Status

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

HEIGHT = 4.0  # inches, without the caption
MAX_DRAWN = 1e100  # matplotlib's axes overflow beyond
MARKERS = {  # which differ by shape and darkness as well as by colour
    Status.SUPPORTED: ("o", "#14355e"),
    Status.REFUTED: ("X", "#b34700"),
    Status.INCONCLUSIVE: ("d", "0.45"),
    Status.VACUOUS: ("^", "#2a86bb"),
    Status.INAPPLICABLE: ("s", "0.5"),
    Status.ERROR: ("*", "black"),
}


def names_of(claim: str) -> list[str]:
    """Return an exploration's file names."""
    return [f"{claim}.svg", f"{claim}.json"]


def write_exploration(exploration: Exploration, folder: Path) -> list[Path]:
    """Write picture and document into `folder`, and return their paths. Raises: OutputError."""
    texts = (picture(exploration).rendered(), sealed(exploration.to_json()))
    return write_together(folder, dict(zip(names_of(exploration.search.claim.id), texts, strict=True)))


def document(exploration: Exploration, paths: Sequence[Path]) -> Document:
    """Return the exploration, and its paths."""
    lines = (*exploration.summary(), *exploration.failures(), exploration.assurance())
    text = paragraphs([*lines, *(code(str(path)) for path in paths)])
    return Document(lambda: read_written(paths[-1]), lambda _: text)


def picture(exploration: Exploration) -> Picture:
    axes = exploration.search.axes
    title = f"{exploration.search.claim.id} over {' and '.join(axis.name for axis in axes)}"
    return Picture(title, HEIGHT, lambda figure: _draw(figure, exploration), caption(exploration))


def caption(exploration: Exploration) -> str:
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
        f"{search.replicates} replicates a point, seed {search.seed}. "
        f"{exploration.assurance()}"
    )
    return "\n".join([*lines, exploration.command])


def _draw(figure: "FigureBase", exploration: Exploration) -> None:
    panel = figure.subplots()
    axes = exploration.search.axes
    verdicts = [point.verdict for point in exploration.points]
    places = np.array([exploration.search.places(point.coordinates) for point in exploration.points])
    for axis, direction in zip(axes, "xy", strict=False):
        if axis.is_log:
            panel.set(**{f"{direction}scale": "log"})
        if isinstance(axis.values[0], str):
            ticks = {f"{direction}ticks": range(len(axis.values)), f"{direction}ticklabels": axis.values}
            panel.set(**ticks)
        panel.set(**{f"{direction}label": axis.name})
    if len(axes) == 1:
        observed = _drawable([verdict.observed for verdict in verdicts])
        panel.plot(places[:, 0], _drawable([verdict.predicted for verdict in verdicts]), **PREDICTED, label="predicted")
        panel.set_ylabel("predicted and observed")
        places = np.c_[places, observed]
    for status, (marker, colour) in MARKERS.items():
        markers = places[[verdict.status is status for verdict in verdicts]]
        if len(markers):
            look: dict[str, Any] = {"marker": marker, "color": colour, "linestyle": "none", "clip_on": False}
            panel.plot(*markers.T, **look, label=str(status), zorder=3)
    legend(figure, ncols=4)


def _drawable(values: Sequence[float]) -> np.ndarray:
    numbers = np.array(values, np.float64)
    return np.where(np.abs(numbers) < MAX_DRAWN, numbers, np.nan)
