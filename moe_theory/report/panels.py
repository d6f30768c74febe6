"""Pictures of verdicts, which show observed and predicted values of the components."""

import math
import re
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from moe_theory.core.errors import InvalidValueError
from moe_theory.plot import roles, svg
from moe_theory.plot.style import our_style
from moe_theory.report.wording import allowed_sides
from moe_theory.runs.files import plain
from moe_theory.verification.verdict import Curve, Verdict

PLOT_SIZE = (4.6, 2.0)  # in inches
PLOT_EDGES = {"left": 0.55, "right": 0.3, "bottom": 0.27, "top": 0.3}  # inches around a plot's axes
MAX_LABELS = 5  # labels on a panel's axis
LETTER_POINTS = 4.4  # width of a letter of a label
LINE_INCHES = 0.13  # height of a line of a label
SIDE_ROOM = 0.06  # room on both sides of a rate's grid
SYMBOLS = {"sigma_0": "σ₀", "Gamma": "Γ"}
LARGEST_DRAWN = 1e150  # so that squares and ratios are finite
PREDICTED = roles.ArtistStyle(
    color="C1", linewidth=1, linestyle=(0, (4, 1.6)), marker="D", markersize=4, markerfacecolor="white"
)  # dashes of 4 and gaps of 1.6 line widths
OBSERVED = roles.ArtistStyle(color="C0", linewidth=1, marker="o", markersize=3)
ALLOWED = roles.ArtistStyle(color="C1", alpha=0.12, linewidth=0)


def svg_of(verdict: Verdict, figure: Figure) -> str | None:
    if verdict.curve is None or not verdict.curve.labels:
        return None
    with our_style():
        _fill(figure, verdict, verdict.curve)
        return svg.written(figure, {"Date": None, "Creator": None, "Type": None})  # equal pictures have equal texts


def figure_of(verdict: Verdict) -> Figure:
    """Draw a verdict's picture. Raises: InvalidValueError if the verdict has no curve."""
    from moe_theory.plot.layout import NotebookFigure

    if verdict.curve is None or not verdict.curve.labels:
        raise InvalidValueError(f"{verdict.claim} under {verdict.setting} is {verdict.status} and has nothing to plot.")
    figure = NotebookFigure()
    with our_style():
        _fill(figure, verdict, verdict.curve)
    return figure


def _fill(figure: Figure, verdict: Verdict, curve: Curve) -> None:
    figure.clear()
    width, height = plot_size(curve)
    figure.set_size_inches(width, height)
    bottom = PLOT_EDGES["bottom"] + height - PLOT_SIZE[1]  # labels of several lines make the figure higher
    axes_width = width - PLOT_EDGES["left"] - PLOT_EDGES["right"]
    axes_height = height - bottom - PLOT_EDGES["top"]
    # The layout is fixed, because computing it takes longer than drawing.
    panel = figure.add_axes((PLOT_EDGES["left"] / width, bottom / height, axes_width / width, axes_height / height))
    draw_curve(panel, verdict, curve)
    handles = [
        Line2D([], [], **PREDICTED, label="predicted"),
        Line2D([], [], **OBSERVED, label="observed"),
        Patch(**ALLOWED, label="allowed"),
    ]
    figure.legend(handles=handles, loc="upper center", ncols=3, borderaxespad=0.1)


def plot_size(curve: Curve) -> tuple[float, float]:
    ticks = tick_labels(curve)
    lines = max(words.count("\n") for words in ticks.words)
    return PLOT_SIZE[0], PLOT_SIZE[1] + LINE_INCHES * lines


class TickLabels(NamedTuple):
    step: int  # every `step`-th component has a label
    words: list[str]  # labels of these components


def tick_labels(curve: Curve) -> TickLabels:
    """Return at most five labels that fit side by side, with a line for each part."""
    labels = [label.replace(", ", "\n") for label in curve.labels]
    for name, symbol in SYMBOLS.items():
        labels = [label.replace(name, symbol) for label in labels]
    letters = 72 * (PLOT_SIZE[0] - PLOT_EDGES["left"] - PLOT_EDGES["right"]) / LETTER_POINTS  # an inch has 72 points
    longest = max(len(line) for line in "\n".join(labels).split("\n"))
    fitting = max(int(letters / (longest + 1)), 1)  # with a space between labels
    step = math.ceil(len(labels) / min(MAX_LABELS, fitting))
    return TickLabels(step, labels[::step])


def picture_words(curve: Curve) -> str:
    """Return a description of a verdict's curve for readers who cannot see the picture."""
    pairs = zip(curve.predicted, curve.observed, strict=True)
    num_above = sum(observed > predicted for predicted, observed in pairs)
    count = len(curve.labels)
    where = f"{count} components from {curve.labels[0]} to {curve.labels[-1]}" if count > 1 else curve.labels[0]
    return f"Plot of predicted and observed values: {where}. Observed is above predicted at {num_above} of {count}."


def draw_curve(panel: Axes, verdict: Verdict, curve: Curve) -> None:
    """Draw observed and predicted values, with the interval of the difference and the allowed range."""
    is_rate = curve.abscissa is not None
    predicted = _clip(curve.predicted)
    observed = _clip(curve.observed)
    margin = np.nan_to_num(_clip(curve.margin))
    difference = observed - predicted
    bars = np.array([difference - _clip(curve.low), _clip(curve.high) - difference])
    bars = np.where(np.isfinite(bars), np.maximum(bars, 0), 0.0)  # no bar on a side where the interval is infinite
    if verdict.kind == "identity":  # the predicted line shows the tolerance, with which errors are compared
        predicted = predicted + margin
        margin = 0 * margin
        bars = 0 * bars
    places = np.arange(len(curve.labels)) if curve.abscissa is None else _clip(curve.abscissa)
    is_line = is_rate or all(label.startswith("t = ") for label in curve.labels)
    predicted_style = PREDICTED if is_line else PREDICTED(linestyle="none")
    observed_style = OBSERVED if is_line else OBSERVED(linestyle="none")
    predicted_style.plot(panel, places, predicted)
    panel.errorbar(places, observed, bars, **observed_style)
    ends = np.r_[predicted, observed - bars[0], observed + bars[1]]
    ends = ends[np.isfinite(ends)]
    if is_rate:
        # Lower ends of bars may be negative, and have no logarithm. So observed values count themselves.
        log_ends = np.r_[ends, observed[np.isfinite(observed)]]
        _set_log_ranges(panel, np.maximum(places, 1 / LARGEST_DRAWN), log_ends)
    else:
        _shade_allowed(panel, verdict, predicted, margin, ends)
    # Exponents are short, 1e5 instead of 1e+05.
    panel.yaxis.set_major_formatter(lambda value, _: re.sub(r"e\+?(-?)0*", r"e\1", f"{value:.3g}"))
    ticks = tick_labels(curve)
    words = [plain(text.replace("$", r"\$")) for text in ticks.words]  # not a formula for Matplotlib
    panel.set_xticks(places[:: ticks.step], words)


def _clip(values: list[float]) -> np.ndarray:  # keeps infinities
    return np.where(np.isinf(values), values, np.clip(values, -LARGEST_DRAWN, LARGEST_DRAWN))


def _shade_allowed(panel: Axes, verdict: Verdict, predicted: np.ndarray, margin: np.ndarray, ends: np.ndarray) -> None:
    low = min(ends, default=0.0)
    high = max(ends, default=1.0)
    if 0 < low < 0.6 * high:  # the axis begins at 0 unless most of the panel would be empty
        low = 0.0
    # 12 % of the range, or 0.5 if all values are equal, but large enough for the precision of floats.
    room = max(0.12 * (high - low) or 0.5, 1e-12 * max(-low, high))
    count = len(predicted)
    may_be_low, may_be_high = allowed_sides(verdict)
    places = np.r_[0, :count, count - 1]  # out to the panel's edges
    lower = low - room if may_be_low else (predicted - margin)[places]
    upper = high + room if may_be_high else (predicted + margin)[places]
    ALLOWED.fill(panel, np.r_[-0.5, :count, count - 0.5], lower, upper)
    panel.set(xlim=(-0.5, count - 0.5), ylim=(low - room, high + room))
    panel.yaxis.set_major_locator(MaxNLocator(3))


def _set_log_ranges(panel: Axes, places: np.ndarray, ends: np.ndarray) -> None:
    ends = np.maximum(ends[ends > 0], 1 / LARGEST_DRAWN)
    low = min(ends, default=0.1)
    high = max(ends, default=1.0)
    room = max((high / low) ** 0.12, 1.05)  # a factor, also if all values are equal
    side_room = (places.max() / places.min()) ** SIDE_ROOM
    panel.set(xscale="log", yscale="log")
    panel.set(xlim=(places.min() / side_room, places.max() * side_room), ylim=(low / room, high * room))
    panel.minorticks_off()
    panel.set_yticks(np.geomspace(low, high, 3))
