"""Figures as SVG files with the numbers behind each, and all verdicts in one picture.

Drawing goes through `Figure` alone and never through pyplot. Style is set over matplotlib's own defaults, so that the
bytes of a picture depend neither on the user's configuration nor on the date.
"""

import importlib
import io
import textwrap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from moe_theory.core.errors import InvalidRunError, unknown_name
from moe_theory.core.random import root_key
from moe_theory.report.output import prepare_folder, write_text
from moe_theory.sweep import Progress, quiet
from moe_theory.verify.intervals import clopper_pearson
from moe_theory.verify.registry import PAPERS, SPECIAL_NAMES, select_readings
from moe_theory.verify.verdict import Curve, Status, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

    from moe_theory.verify.figures import FigureSpec

PAGE_WIDTH = 7.2  # inches
CAPTION_SIZE = 7.0  # points
PANEL_SIZE = (2.6, 1.3)  # of a verdict, in inches
MAX_LABELS = 5  # on a panel's axis
BOUND_SIDES = {  # where the observed should lie, by kind or, of a probability, by side
    "upper_bound": -1,
    "ordering": -1,
    "identity": -1,
    "lower_bound": 1,
    "at_most": -1,
    "at_least": 1,
}
PREDICTED: dict[str, Any] = {
    "color": "C1",
    "linewidth": 1,
    "linestyle": (0, (4, 1.6)),
    "marker": "D",
    "markersize": 4,
    "markerfacecolor": "white",
}
OBSERVED: dict[str, Any] = {"color": "C0", "linewidth": 1, "marker": "o", "markersize": 3}
ALLOWED: dict[str, Any] = {"color": "C1", "alpha": 0.12, "linewidth": 0}
BADGES: dict[Status, dict[str, Any]] = {  # told apart by darkness as well as by the word
    status: {
        "color": text,
        "size": "small",
        "weight": "bold",
        "bbox": {"facecolor": fill, "edgecolor": "0.2", "pad": 1.5, "linewidth": 0.6},
    }
    for status, text, fill in (
        (Status.SUPPORTED, "0.1", "white"),
        (Status.REFUTED, "white", "0.15"),
        (Status.INCONCLUSIVE, "0.1", "0.85"),
        (Status.VACUOUS, "0.1", "0.85"),
        (Status.INAPPLICABLE, "0.1", "0.85"),
        (Status.ERROR, "white", "0.5"),
    )
}
_STYLE_LOCK = threading.Lock()  # matplotlib's configuration is one for all threads


def figures_of(paper: str) -> Mapping[str, "FigureSpec"]:
    """A paper's figures by name. Raises: UnknownNameError, with the nearest paper suggested."""
    if paper not in PAPERS:
        raise unknown_name("paper", paper, PAPERS)
    return importlib.import_module(f"{PAPERS[paper]}.figures").FIGURES


def make_figures(
    paper: str = "continual",
    names: Sequence[str] = (),
    *,
    reading: str | None = None,
    replicates: int | None = None,
    seed: int = 0,
    out: str | Path = "figures",
    progress: Progress = quiet,
) -> list[Path]:
    """Compute and draw figures of a paper: `out`/`paper`/NAME.svg, and NAME.csv with the numbers behind it.

    Args:
        names: of figures; none, or `all`, for all of the paper's.
        reading: a name; None takes the paper's first default.
        replicates: for every figure; None takes each figure's own number.
    Returns: the paths, an SVG and its CSV in turn.
    Raises: UnknownNameError, InvalidRunError or OutputError before anything is computed.
    """
    figures = figures_of(paper)
    chosen = _selected(names, figures)
    if reading in SPECIAL_NAMES:
        raise unknown_name("reading", reading, [choice.name for choice in select_readings(paper, ["all"])])
    choice = select_readings(paper, None if reading is None else [reading])[0]
    if replicates is not None and replicates < 1:
        raise InvalidRunError(f"replicates={replicates} must be at least 1. Raise replicates.")
    root_key(seed)
    targets = [f"{figure.name}{suffix}" for figure in chosen for suffix in (".svg", ".csv")]
    folder = prepare_folder(Path(out) / paper, targets)
    paths = []
    for figure in chosen:
        data = figure.compute(choice, replicates or figure.replicates, seed, progress)
        svg = render(figure.title, figure.size, lambda canvas: figure.draw(data, canvas), figure.caption(data))  # noqa: B023
        for suffix, text in ((".svg", svg), (".csv", to_csv(data))):
            path = folder / f"{figure.name}{suffix}"
            write_text(path, text)
            paths.append(path)
    return paths


def _selected(names: Sequence[str], figures: Mapping[str, "FigureSpec"]) -> list["FigureSpec"]:
    for name in names:
        if name != "all" and name not in figures:
            raise unknown_name("figure", name, [*figures, "all"])
    wanted = figures if not names or "all" in names else names
    return [figure for name, figure in figures.items() if name in wanted]


def verdict_panels(verdicts: Sequence[Verdict], path: Path) -> None:
    """Write all verdicts as one SVG: a row a claim, a column a reading, observed over predicted for every component.

    Raises: OutputError if the folder cannot take it.
    """
    claims = list(dict.fromkeys(verdict.claim for verdict in verdicts))
    readings = list(dict.fromkeys(verdict.reading for verdict in verdicts))
    size = (max(PAGE_WIDTH, PANEL_SIZE[0] * len(readings)), PANEL_SIZE[1] * len(claims) + 0.5)
    title = f"{len(verdicts)} verdicts on {len(claims)} claims"
    write_text(path, render(title, size, lambda canvas: _draw_verdicts(canvas, verdicts, claims, readings)))


def to_csv(data: xr.Dataset) -> str:
    """The numbers behind a figure as a tidy table: a row for each point, a column for each variable."""
    table = data.to_dataframe().reset_index()
    for column in ("seed", "replicates", "reading"):
        table.insert(0, column, data.attrs[column])
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n")


@contextmanager
def style() -> Iterator[None]:
    """Our style over matplotlib's own defaults, whatever the user's configuration says; one thread at a time."""
    import matplotlib

    path = Path(__file__).with_name("style.mplstyle")
    settings = dict(matplotlib.rc_params_from_file(path, use_default_template=True))
    del settings["backend"]  # choosing one is the user's, and would load it
    with _STYLE_LOCK, matplotlib.rc_context(settings):
        yield


def render(title: str, size: tuple[float, float], draw: Callable[["FigureBase"], None], caption: str = "") -> str:
    """An SVG document of what `draw` puts on a figure of `size` inches, with the caption under it."""
    from matplotlib.figure import Figure

    width, height = size
    lines = _wrapped(caption, width)
    foot = 1.45 * CAPTION_SIZE / 72 * (len(lines) + 0.8) if lines else 0.0
    with style():
        figure = Figure(figsize=(width, height + foot), layout="constrained")
        share = foot / (height + foot)
        figure.set_layout_engine("constrained", rect=(0, share, 1, 1 - share))
        figure.text(0.012, 0.97 * share, "\n".join(lines), va="top", fontsize=CAPTION_SIZE, linespacing=1.3)
        draw(figure)
        _settle(figure)
        document = io.StringIO()
        about = {"Date": None, "Creator": "moe_theory", "Title": title, "Description": caption or title}
        figure.savefig(document, format="svg", metadata=about)
    return document.getvalue()


def _settle(figure: "Figure") -> None:
    """Lay out once and round what comes out: the solver's last digits, which vary, would end up in the file's ids."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(tuple(np.round(axes.get_position(original=True).bounds, 6)))


def _wrapped(text: str, width: float) -> list[str]:
    characters = int(width * 72 / (0.53 * CAPTION_SIZE))
    return [line for part in text.splitlines() for line in textwrap.wrap(part, characters, break_on_hyphens=False)]


def _draw_verdicts(
    canvas: "FigureBase", verdicts: Sequence[Verdict], claims: Sequence[str], readings: Sequence[str]
) -> None:
    axes = canvas.subplots(max(len(claims), 1), max(len(readings), 1), squeeze=False)
    for panel in axes.flat:
        panel.set_axis_off()
    named = set()
    for verdict in verdicts:
        panel = axes[claims.index(verdict.claim), readings.index(verdict.reading)]
        panel.set_axis_on()
        panel.set_title(f"{'' if verdict.claim in named else verdict.claim}\n{verdict.reading}", loc="left")
        named.add(verdict.claim)
        panel.text(
            1, 1.04, verdict.status, transform=panel.transAxes, ha="right", va="bottom", **BADGES[verdict.status]
        )
        if verdict.curve is None:
            reason = textwrap.fill(verdict.reason, 60)
            panel.text(0.5, 0.5, reason, transform=panel.transAxes, ha="center", va="center", size="small")
            panel.set(xticks=[], yticks=[])
        elif verdict.curve.abscissa is not None:
            _draw_rate(panel, verdict, verdict.curve, np.array(verdict.curve.abscissa))
        else:
            _draw_curve(panel, verdict, verdict.curve)
    _draw_verdict_legend(canvas)


def _draw_curve(panel: "Axes", verdict: Verdict, curve: Curve) -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    places = np.arange(len(curve.labels))
    predicted, observed = np.array(curve.predicted), np.array(curve.observed)
    if verdict.kind == "identity":
        predicted = np.full_like(observed, verdict.margin)
    bars = _bars(verdict, curve)
    is_over_time = all(label.startswith("t = ") for label in curve.labels)
    line: dict[str, Any] = {} if is_over_time else {"linestyle": "none"}
    panel.plot(places, predicted, **(PREDICTED | line))
    panel.errorbar(places, observed, bars, **(OBSERVED | line))
    low, high = min(predicted.min(), np.min(observed - bars[0])), max(predicted.max(), np.max(observed + bars[1]))
    if 0 < low < 0.6 * high:
        low = 0.0
    room = 0.12 * (high - low) or 0.5
    bottom, top = low - room, high + room
    side = BOUND_SIDES.get(verdict.side or verdict.kind)
    if side is not None:
        edge = bottom if side < 0 else top
        wide, tall = np.r_[-0.5, places, len(places) - 0.5], np.r_[predicted[0], predicted, predicted[-1]]
        panel.fill_between(wide, tall, edge, **ALLOWED)
    panel.set(xlim=(-0.5, len(places) - 0.5), ylim=(bottom, top))
    step = -(-len(places) // MAX_LABELS)
    panel.set_xticks(places[::step], curve.labels[::step])
    panel.yaxis.set_major_locator(MaxNLocator(3))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:.3g}"))


def _draw_rate(panel: "Axes", verdict: Verdict, curve: Curve, places: np.ndarray) -> None:
    """The means over the grid, and the claimed power law through their middle, on logarithmic axes."""
    from matplotlib.ticker import StrMethodFormatter

    predicted, observed = np.array(curve.predicted), np.array(curve.observed)
    half = _half_widths(verdict, curve)
    panel.set(xscale="log", yscale="log")  # a bar that reaches below 0 is drawn to the panel's edge
    panel.plot(places, predicted, **PREDICTED)
    panel.errorbar(places, observed, half, **OBSERVED)
    ends = np.r_[predicted, observed, observed + half, (observed - half)[observed > half]]
    low, high = ends.min(), ends.max()
    room, side_room = max((high / low) ** 0.12, 1.05), (places.max() / places.min()) ** 0.06
    panel.set(xlim=(places.min() / side_room, places.max() * side_room), ylim=(low / room, high * room))
    step = -(-len(places) // MAX_LABELS)
    panel.minorticks_off()
    panel.set_xticks(places[::step], curve.labels[::step])
    panel.set_yticks(np.geomspace(low, high, 3))
    panel.yaxis.set_major_formatter(StrMethodFormatter("{x:.3g}"))


def _bars(verdict: Verdict, curve: Curve) -> np.ndarray:
    """Lengths below and above each observation, (2, V); a probability's interval is not symmetric."""
    if verdict.kind != "probability":
        return np.tile(_half_widths(verdict, curve), (2, 1))
    observed, count = np.array(curve.observed), verdict.replicates
    low, high = clopper_pearson(np.rint(observed * count), count, verdict.error / len(observed))
    return np.maximum([observed - low, high - observed], 0)


def _half_widths(verdict: Verdict, curve: Curve) -> np.ndarray:
    """Half the simultaneous interval of each component; 0 where there is none."""
    low, high = verdict.interval
    critical = (high - low) / 2 / verdict.standard_error if verdict.standard_error > 0 else 0.0
    return np.nan_to_num(critical * np.array(curve.standard_error))


def _draw_verdict_legend(canvas: "FigureBase") -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Line2D([], [], **PREDICTED, label="predicted (of an identity: its tolerance)"),
        Line2D([], [], **OBSERVED, label="observed, with the interval of observed − predicted"),
        Patch(**ALLOWED, label="the side it allows"),
    ]
    canvas.legend(handles=handles, loc="outside upper center", ncols=3)
