"""Figures at any width, with a legend that fits and a height that follows."""

import io
from typing import TYPE_CHECKING

import xarray as xr
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

if TYPE_CHECKING:
    from moe_theory.plot.spec import FigureSpec

GAP = 3  # least pixels next to a legend
LEAST_FONT = 5  # points
HEIGHT_POWER = 0.4  # height falls as this power of width


class NotebookFigure(Figure):
    def _repr_png_(self) -> bytes:
        picture = io.BytesIO()
        self.savefig(picture, format="png", dpi=2 * self.dpi)
        return picture.getvalue()


def drawn(spec: "FigureSpec", data: xr.Dataset, width: float | None) -> Figure:
    """Return a figure in the current style, in its own size or with a width in inches."""
    default_width, height = spec.size
    size = spec.size if width is None else (width, height * (width / default_width) ** HEIGHT_POWER)
    figure = NotebookFigure(figsize=size, layout="constrained")
    spec.draw(data, figure)
    _fix_colours(figure)
    if width is not None:
        fit(figure)
    return figure


def _fix_colours(figure: Figure) -> None:
    for line in figure.findobj(Line2D):  # in another style, in which it may be drawn later, C0 is another colour
        for part in ("color", "markerfacecolor", "markeredgecolor"):
            colour = getattr(line, f"get_{part}")()
            if isinstance(colour, str) and colour != "none":
                getattr(line, f"set_{part}")(to_rgba(colour))


def fit(figure: Figure) -> None:
    """Wrap the words of a figure to its canvas, and write numbers only at major ticks."""
    for legend in list(figure.legends):
        _fit_legend(figure, legend)
    for axes in figure.axes:
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.yaxis.set_minor_formatter(NullFormatter())
        title = axes.get_title("left")
        right_title = axes.get_title("right")
        if title and right_title:
            axes.set_title("", loc="right")
            title = f"{title}\n{right_title}"
        axes.set_title(title, loc="left", wrap=True)
        axes.title.set_wrap(True)
        axes.xaxis.label.set_wrap(True)


def _fit_legend(figure: Figure, legend: Legend) -> None:
    columns: int = legend._ncols  # no public attribute has it  # pyright: ignore[reportAttributeAccessIssue]
    first_height = legend.get_window_extent().height
    texts = legend.get_texts()
    size = next((float(text.get_fontsize()) for text in texts), 0.0)
    while legend.get_window_extent().width > figure.bbox.width - 2 * GAP and (columns > 1 or size > LEAST_FONT):
        if columns > 1:
            columns -= 1
        else:
            size *= 0.9
        narrower = figure.legend(
            handles=legend.legend_handles,
            labels=[text.get_text() for text in texts],
            loc="outside upper center",
            ncols=columns,
            fontsize=size,
            title=legend.get_title().get_text() or None,
            columnspacing=legend.columnspacing,
            handlelength=legend.handlelength,
        )
        legend.remove()
        legend = narrower
    growth = (legend.get_window_extent().height - first_height) / figure.dpi
    figure.set_figheight(figure.get_figheight() + max(growth, 0.0))
