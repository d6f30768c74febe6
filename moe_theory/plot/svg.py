"""SVG documents that look the same in every viewer."""

import codecs
import io
import re
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG

from moe_theory.plot.symbols import linear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FONTS = "'DejaVu Sans', Verdana, sans-serif"  # figures are laid out for the first. The second has the same widths
POINTS = 72  # points per inch
PLACES = 2  # decimal places of points in the file
CONTROL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML excludes
PATH = re.compile(r'(?<=<path d=")[^"]*')
REAL = re.compile(r"-?\d+\.\d+")


def written(figure: "Figure", metadata: dict[str, str | None]) -> str:
    """Return a figure as SVG, whose points have `PLACES` decimal places."""
    document = io.BytesIO()
    figure.savefig(document, format="svg", backend=f"module://{__name__}", metadata=metadata, transparent=True)
    text = CONTROL.sub("\N{REPLACEMENT CHARACTER}", document.getvalue().decode())
    return PATH.sub(_shorten_path, text.replace("'DejaVu Sans'", FONTS))


class Renderer(RendererSVG):  # draws formulas as paths with a title, which screen readers read
    def draw_text(
        self, gc: Any, x: float, y: float, s: str, prop: Any, angle: float, ismath: Any = False, mtext: Any = None
    ) -> None:
        if not ismath:
            super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)
            return
        self.writer.start("g", role="img")
        title = re.sub(r"\$([^$]*)\$", lambda formula: linear(formula[1]), s)
        self.writer.element("title", title)
        self._draw_text_as_path(gc, x, y, s, prop, angle, ismath, mtext)  # pyright: ignore[reportAttributeAccessIssue]
        self.writer.end("g")


class FigureCanvas(FigureCanvasSVG):
    """The canvas that makes this module a backend of `Figure.savefig`."""

    def print_svg(self, filename: Any, *, metadata: Any = None, **options: Any) -> None:
        del options
        image_dpi = self.figure.dpi
        self.figure.dpi = POINTS
        width, height = self.figure.get_size_inches()
        document = codecs.getwriter("utf-8")(filename)
        vector = Renderer(POINTS * width, POINTS * height, document, image_dpi=round(image_dpi), metadata=metadata)
        renderer = MixedModeRenderer(self.figure, width, height, image_dpi, vector)
        self.figure.draw(renderer)  # pyright: ignore[reportArgumentType] - it has what a renderer has
        renderer.finalize()


def _shorten_path(path: re.Match[str]) -> str:
    """Return the points of a path in one line, rounded."""
    rounded = REAL.sub(lambda number: f"{round(float(number[0]), PLACES):g}", path[0])
    return rounded.replace(" \n", "").replace("\n", "")
