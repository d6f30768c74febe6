"""Figures at any width: legends, titles, labels and ticks that fit, and a height that follows."""

import io
import itertools
import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import xarray as xr
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import MaxNLocator, NullFormatter

if TYPE_CHECKING:
    from moe_theory.plot.spec import FigureSpec

FORMULA = re.compile(r"\$[^$]*\$")  # no line breaks in one
HELD = "\N{WORD JOINER}"  # in place of a space
GAP = 3  # pixels at least between words
LEAST_FONT = 5  # points
NARROWER = 0.4  # the height falls as this power of the width
TALLER = 1.6  # at most, to have room for the words beside panels
IN_TEX = {"%": r"\%", "&": r"\&", "#": r"\#", "κ": r"$\kappa$", "λ": r"$\lambda$", "σ": r"$\sigma$", "–": "--"}


class NotebookFigure(Figure):
    """A figure that a notebook shows, whether pyplot was imported or not."""

    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=2 * self.dpi)
        return picture.getvalue()


def drawn(spec: "FigureSpec", data: xr.Dataset, width: float | None) -> Figure:
    """A figure in the style that is in force: of its own size, or fitted to a width in inches."""
    wide, high = spec.size
    size = spec.size if width is None else (width, high * (width / wide) ** NARROWER)
    figure = NotebookFigure(figsize=size, layout="constrained")
    spec.draw(data, figure)
    if rcParams["text.usetex"]:
        for text in figure.findobj(Text):
            assert isinstance(text, Text)
            text.set_text(for_tex(text.get_text()))
    if width is not None:
        fit(figure)
    return figure


def for_tex(words: str) -> str:
    """Words with what LaTeX would take for a command escaped; formulas between dollars are left alone."""
    parts = re.split(r"(\$[^$]*\$)", words)
    plain = re.compile("|".join(IN_TEX))
    return "".join(part if part.startswith("$") else plain.sub(lambda sign: IN_TEX[sign[0]], part) for part in parts)


def fit(figure: Figure) -> None:
    """Keep all words of a figure that is drawn on its canvas and apart; its height grows where they need it."""
    for legend in list(figure.legends):
        _fit_legend(figure, legend)
    figure.draw_without_rendering()
    before = [axes.bbox.height for axes in figure.axes]
    for axes in figure.axes:
        _fit_titles(figure, axes)
    figure.draw_without_rendering()
    lost = max([0.0, *(high - axes.bbox.height for high, axes in zip(before, figure.axes, strict=True))])
    rows = len({round(axes.bbox.y0) for axes in figure.axes})
    figure.set_figheight(figure.get_figheight() + lost * rows / figure.dpi)
    figure.draw_without_rendering()
    beside = [axes.yaxis.label.get_window_extent().height / axes.bbox.height for axes in _visible(figure)]
    figure.set_figheight(figure.get_figheight() * min(max([1.0, *beside]), TALLER))
    figure.draw_without_rendering()
    for axes in _visible(figure):
        _wrap(axes.yaxis.label, axes.bbox.height + 2 * GAP, is_upright=True)
        for axis in (axes.xaxis, axes.yaxis):
            _fit_ticks(axis)


def _visible(figure: Figure) -> Iterator[Axes]:
    return (axes for axes in figure.axes if axes.axison)


def _fit_legend(figure: Figure, legend: Legend) -> None:
    """As many columns as have room, then smaller words; what it grows by, the figure grows by."""
    columns: int = legend._ncols  # pyright: ignore[reportAttributeAccessIssue]
    before = legend.get_window_extent().height
    texts, title = legend.get_texts(), legend.get_title().get_text()
    size = float(texts[0].get_fontsize()) if texts else 0.0
    while legend.get_window_extent().width > figure.bbox.width - 2 * GAP and (columns > 1 or size > LEAST_FONT):
        columns, size = (columns - 1, size) if columns > 1 else (1, 0.9 * size)
        made = figure.legend(
            handles=legend.legend_handles,
            labels=[text.get_text() for text in texts],
            loc="outside upper center",
            ncols=columns,
            fontsize=size,
            title=title or None,
            columnspacing=legend.columnspacing,
            handlelength=legend.handlelength,
        )
        legend.remove()
        legend = made
    grown = (legend.get_window_extent().height - before) / figure.dpi
    figure.set_figheight(figure.get_figheight() + max(grown, 0.0))


def _fit_titles(figure: Figure, axes: Axes) -> None:
    """Titles and the label below in lines that end before the next panel begins."""
    left, right = _slot(figure, axes)
    at_left: Text = axes._left_title  # pyright: ignore[reportAttributeAccessIssue]
    at_right: Text = axes._right_title  # pyright: ignore[reportAttributeAccessIssue]
    both = [axes.get_title("left"), axes.get_title("right")]
    aside = sum(text.get_window_extent().width for text in (at_left, at_right))
    if all(both) and aside + 4 * GAP > axes.bbox.width:
        axes.set_title("\n".join(both), loc="left")
        axes.set_title("", loc="right")
    _wrap(at_left, right - axes.bbox.x0)
    _wrap(at_right, axes.bbox.x1 - left)
    middle = (axes.bbox.x0 + axes.bbox.x1) / 2
    for text in (axes.title, axes.xaxis.label):
        _wrap(text, 2 * min(middle - left, right - middle))


def _slot(figure: Figure, axes: Axes) -> tuple[float, float]:
    """From where to where there is room for a panel's words, in pixels."""
    beside = [other.bbox for other in figure.axes if other.bbox.y0 < axes.bbox.y1 and other.bbox.y1 > axes.bbox.y0]
    before = [(box.x1 + axes.bbox.x0) / 2 for box in beside if box.x1 <= axes.bbox.x0]
    after = [(box.x0 + axes.bbox.x1) / 2 for box in beside if box.x0 >= axes.bbox.x1]
    return max([GAP, *before]), min([figure.bbox.width - GAP, *after])


def _wrap(text: Text, room: float, is_upright: bool = False) -> None:
    """Break a text's lines where they are longer than `room` pixels."""
    lines = []
    for line in text.get_text().split("\n"):
        text.set_text(line)
        box = text.get_window_extent()
        length = max(box.height if is_upright else box.width, 1.0)
        if length <= room:
            lines.append(line)
            continue
        words = FORMULA.sub(lambda formula: formula[0].replace(" ", HELD), line)
        letters = max(int(len(line) * room / length), 1)
        lines += textwrap.wrap(words, letters, break_long_words=False, break_on_hyphens=False)
    text.set_text("\n".join(lines).replace(HELD, " "))


def _fit_ticks(axis: Axis) -> None:
    """Fewer numbers where they overlap."""
    if _overlap(axis, "both"):
        axis.set_minor_formatter(NullFormatter())
    for every in range(2, 9):
        if not _overlap(axis, "major"):
            return
        places, labels = axis.get_majorticklocs(), [label.get_text() for label in axis.get_majorticklabels()]
        if axis.get_scale() == "linear" and isinstance(axis.get_major_locator(), MaxNLocator):
            axis.set_major_locator(MaxNLocator(max(8 // every, 1)))
        else:
            kept: list[Any] = [label if index % every == 0 else "" for index, label in enumerate(labels)]
            axis.set_ticks(places, kept)


def _overlap(axis: Axis, which: Any) -> bool:
    is_across = isinstance(axis, XAxis)
    labels = axis.get_ticklabels(minor=False) + (axis.get_ticklabels(minor=True) if which == "both" else [])
    low, high = sorted(axis.get_view_interval())
    boxes = [
        label.get_window_extent()
        for label in labels
        if label.get_text() and label.get_visible() and low <= label.get_position()[0 if is_across else 1] <= high
    ]
    ends = sorted((box.x0, box.x1) if is_across else (box.y0, box.y1) for box in boxes)
    return any(after[0] - before[1] < (GAP if is_across else -GAP) for before, after in itertools.pairwise(ends))
