"""Verdicts as pictures, theorem over empirics: one a verdict for a page, or all of them in one file."""

import io
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moe_theory.report.output import write_text
from moe_theory.report.plots import PAGE_WIDTH, render, style
from moe_theory.report.words import allowed_sides, number
from moe_theory.verify.verdict import Curve, Status, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

PANEL_SIZE = (2.6, 1.3)  # of a verdict among all, in inches
PLOT_SIZE = (4.6, 2.0)  # of a verdict alone
NARROW_WIDTH = 2.8  # of a plot with few components
FEW_COMPONENTS = 3
PLOT_EDGES = {"left": 0.55, "right": 0.12, "bottom": 0.27, "top": 0.3}  # inches around a plot's axes
MAX_LABELS = 5  # on a panel's axis
FALLBACK_FONTS = "'DejaVu Sans', Verdana, sans-serif"  # of letters that are left to whoever shows the picture
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


def verdict_panels(verdicts: Sequence[Verdict], path: Path) -> None:
    """Write all verdicts as one SVG: a row a claim, a column a reading, observed over predicted for every component.

    Raises: OutputError if the folder cannot take it.
    """
    claims = list(dict.fromkeys(verdict.claim for verdict in verdicts))
    readings = list(dict.fromkeys(verdict.reading for verdict in verdicts))
    size = (max(PAGE_WIDTH, PANEL_SIZE[0] * len(readings)), PANEL_SIZE[1] * len(claims) + 0.5)
    title = f"{len(verdicts)} verdicts on {len(claims)} claims"
    write_text(path, render(title, size, lambda canvas: draw_verdicts(canvas, verdicts, claims, readings)))


def curve_pictures(verdicts: Sequence[Verdict]) -> Iterator[str | None]:
    """An SVG document for each verdict's curve, None for one without; letters stay text, which keeps them small."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    with style():
        rcParams["svg.fonttype"] = "none"
        figure = Figure()  # one for all: making another for each takes longer than drawing
        for verdict in verdicts:
            if verdict.curve is None or not verdict.curve.labels:
                yield None
                continue
            figure.clear()
            size = plot_size(verdict.curve)
            figure.set_size_inches(size)
            panel = figure.add_axes(_inside(*size))
            draw_curve(panel, verdict, verdict.curve)
            _add_legend(figure)
            document = io.StringIO()
            figure.savefig(document, format="svg", metadata={"Date": None, "Creator": None, "Type": None})
            yield document.getvalue().replace("'DejaVu Sans'", FALLBACK_FONTS)


def plot_size(curve: Curve) -> tuple[float, float]:
    """Width and height of a curve's picture in inches."""
    return (NARROW_WIDTH if len(curve.labels) <= FEW_COMPONENTS else PLOT_SIZE[0], PLOT_SIZE[1])


def picture_words(verdict: Verdict, curve: Curve) -> str:
    """What is to be seen in the picture of a verdict's curve, for those who do not see it."""
    labels, count = curve.labels, len(curve.labels)
    above = sum(observed > predicted for predicted, observed in zip(curve.predicted, curve.observed, strict=True))
    where = f"{count} components from {labels[0]} to {labels[-1]}" if count > 1 else f"one component, {labels[0]}"
    described = f"Plot of what was predicted and what was observed: {where}. "
    if verdict.kind == "identity":
        described += f"The largest error observed is {number(max(curve.observed))}"
        return described + f", against a tolerance of {number(verdict.margin)}."
    described += f"Observed is above predicted at {above} of {count}."
    if verdict.at in labels:
        place = labels.index(verdict.at)
        described += f" At {verdict.at}: predicted {number(curve.predicted[place])}, "
        described += f"observed {number(curve.observed[place])}."
    return described


def draw_verdicts(
    canvas: "FigureBase", verdicts: Sequence[Verdict], claims: Sequence[str], readings: Sequence[str]
) -> None:
    """A panel for each verdict, in the row of its claim and the column of its reading."""
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
        if verdict.curve is None or not verdict.curve.labels:
            reason = textwrap.fill(verdict.reason, 60)
            panel.text(
                0.5, 0.5, reason, transform=panel.transAxes, ha="center", va="center", size="small", parse_math=False
            )
            panel.set(xticks=[], yticks=[])
        else:
            draw_curve(panel, verdict, verdict.curve)
    canvas.legend(handles=_legend_handles(), loc="outside upper center", ncols=3)


def draw_curve(panel: "Axes", verdict: Verdict, curve: Curve) -> None:
    """Observed over predicted at each component, with the interval of their difference and what the claim allows."""
    if curve.abscissa is None:
        _draw_components(panel, verdict, curve)
    else:
        _draw_rate(panel, curve, np.array(curve.abscissa))
    step = -(-len(curve.labels) // MAX_LABELS)
    places = np.arange(len(curve.labels)) if curve.abscissa is None else np.array(curve.abscissa)
    panel.set_xticks(places[::step], [label.replace("$", r"\$") for label in curve.labels[::step]])


def _draw_components(panel: "Axes", verdict: Verdict, curve: Curve) -> None:
    from matplotlib.ticker import MaxNLocator

    places = np.arange(len(curve.labels))
    predicted, observed, margin = (np.array(part) for part in (curve.predicted, curve.observed, curve.margin))
    margin = np.nan_to_num(margin)
    if verdict.kind == "identity":  # its tolerance is what the error is compared with
        predicted, margin = predicted + margin, 0 * margin
    bars = _bars(curve) if verdict.kind != "identity" else np.zeros((2, len(places)))
    is_over_time = all(label.startswith("t = ") for label in curve.labels)
    line: dict[str, Any] = {} if is_over_time else {"linestyle": "none"}
    panel.plot(places, predicted, **(PREDICTED | line))
    panel.errorbar(places, observed, bars, **(OBSERVED | line))
    ends = np.r_[predicted, observed - bars[0], observed + bars[1]]
    ends = ends[np.isfinite(ends)]
    low, high = (ends.min(), ends.max()) if len(ends) else (0.0, 1.0)
    if 0 < low < 0.6 * high:
        low = 0.0
    room = 0.12 * (high - low) or 0.5
    bottom, top = low - room, high + room
    is_below, is_above = allowed_sides(verdict)
    wide = np.r_[-0.5, places, len(places) - 0.5]
    lower, upper = (np.r_[line[0], line, line[-1]] for line in (predicted - margin, predicted + margin))
    panel.fill_between(wide, bottom if is_below else lower, top if is_above else upper, **ALLOWED)
    panel.set(xlim=(-0.5, len(places) - 0.5), ylim=(bottom, top))
    panel.yaxis.set_major_locator(MaxNLocator(3))
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:.3g}")


def _draw_rate(panel: "Axes", curve: Curve, places: np.ndarray) -> None:
    """The means over the grid, and the claimed power law through their middle, on logarithmic axes."""
    predicted, observed, bars = np.array(curve.predicted), np.array(curve.observed), _bars(curve)
    panel.set(xscale="log", yscale="log")  # a bar that reaches below 0 is drawn to the panel's edge
    panel.plot(places, predicted, **PREDICTED)
    panel.errorbar(places, observed, bars, **OBSERVED)
    ends = np.r_[predicted, observed, observed + bars[1], observed - bars[0]]
    ends = ends[np.isfinite(ends) & (ends > 0)]
    low, high = (ends.min(), ends.max()) if len(ends) else (0.1, 1.0)
    room, side_room = max((high / low) ** 0.12, 1.05), (places.max() / places.min()) ** 0.06
    panel.set(xlim=(places.min() / side_room, places.max() * side_room), ylim=(low / room, high * room))
    panel.minorticks_off()
    panel.set_yticks(np.geomspace(low, high, 3))
    panel.yaxis.set_major_formatter(lambda value, _: f"{value:.3g}")


def _bars(curve: Curve) -> np.ndarray:
    """Lengths below and above each observation, (2, V); 0 where there is no interval or none on that side."""
    difference = np.array(curve.observed) - np.array(curve.predicted)
    bars = np.array([difference - np.array(curve.low), np.array(curve.high) - difference])
    return np.where(np.isfinite(bars), np.maximum(bars, 0), 0.0)


def _inside(width: float, height: float) -> tuple[float, float, float, float]:
    """The axes' place in a plot, as fractions of its size: fixed, because laying out takes longer than drawing."""
    left, bottom = PLOT_EDGES["left"], PLOT_EDGES["bottom"]
    across, up = width - left - PLOT_EDGES["right"], height - bottom - PLOT_EDGES["top"]
    return (left / width, bottom / height, across / width, up / height)


def _add_legend(figure: "FigureBase") -> None:
    for handle, label in zip(handles := _legend_handles(), ("predicted", "observed", "allowed"), strict=True):
        handle.set_label(label)
    figure.legend(handles=handles, loc="upper center", ncols=3, borderaxespad=0.1)


def _legend_handles() -> list[Any]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Line2D([], [], **PREDICTED, label="predicted (of an identity: its tolerance)"),
        Line2D([], [], **OBSERVED, label="observed, with the interval of observed − predicted"),
        Patch(**ALLOWED, label="what the claim allows"),
    ]
