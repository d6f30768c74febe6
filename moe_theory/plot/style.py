"""The style of pictures, and pictures in SVG, PDF or PNG."""

import io
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from moe_theory.core.errors import InvalidValueError
from moe_theory.runs.files import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure, FigureBase

Form = Literal["svg", "pdf", "png"]
FORMS: tuple[Form, ...] = ("svg", "pdf", "png")
UNITS = {"in": 1.0, "cm": 2.54, "mm": 25.4}  # units per inch
FONTS = ("font.size", "axes.titlesize", "axes.labelsize", "xtick.labelsize", "ytick.labelsize", "legend.fontsize")
LEAST_SHARE = 0.8  # smallest relative size of words in a narrow figure
WIDTHS = (2.0, 40.0)  # smallest and largest width of a figure in inches
PAGE_WIDTH = 7.2  # inches
PIXELS_PER_INCH = 200
_STYLE_LOCK = threading.Lock()  # all threads share matplotlib's configuration


@contextmanager
def our_style(sizes: Mapping[str, float] | None = None) -> Iterator[None]:
    """Apply our style and font sizes to matplotlib's defaults, in one thread at a time."""
    import matplotlib

    path = Path(__file__).with_name("style.mplstyle")
    settings: dict[Any, Any] = dict(matplotlib.rc_params_from_file(path, use_default_template=True)) | dict(sizes or {})
    del settings["backend"]  # the user chooses the backend, and setting it would load it
    with _STYLE_LOCK, matplotlib.rc_context(settings):
        yield


def render_as(
    form: Form, title: str, size: tuple[float, float], draw: Callable[["FigureBase"], None], caption: str = ""
) -> bytes:
    from matplotlib.figure import Figure

    with our_style():
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        return saved(figure, form, title, caption)


def saved(figure: "Figure", form: Form, title: str, caption: str) -> bytes:
    """Return a figure's picture in the current style. Equal figures have equal bytes."""
    if figure.get_layout_engine() is not None:
        # We lay the figure out once and round, because the solver's last digits vary and would change ids in the file.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes in figure.axes:
            axes.set_position(tuple(np.round(axes.get_position(original=True).bounds, 6)))
    title = plain(title)
    caption = plain(caption)
    metadata: dict[str, dict[str, str | None]] = {
        "svg": {"Title": title, "Description": caption or title, "Date": None, "Creator": "moe_theory"},
        "pdf": {"Title": title, "Subject": caption or title, "CreationDate": None, "Creator": "moe_theory"},
        "png": {"Title": title, "Description": caption or title, "Software": "moe_theory"},
    }
    if form == "svg":
        from moe_theory.plot import svg  # imports matplotlib

        return svg.written(figure, metadata["svg"]).encode()
    document = io.BytesIO()
    dpi = {"png": PIXELS_PER_INCH}.get(form, "figure")  # PDF has no pixels
    figure.savefig(document, format=form, dpi=dpi, metadata=metadata[form])
    return document.getvalue()


def inches(width: float | str | None) -> float | None:
    """Return a width in inches from a number or a text such as "3.25in", "8cm" or "80mm"."""
    if width is None:
        return None
    match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(in|cm|mm)?\s*", str(width))
    if match is None:
        raise InvalidValueError(f"width={width} is not a width. Write it as 3.25in, 8cm or 80mm.", argument="width")
    number = float(match[1]) / UNITS[match[2] or "in"]
    least, most = WIDTHS
    if not least <= number <= most:
        raise InvalidValueError(
            f"width={width} must be from {least:g}in to {most:g}in. Change width.", argument="width"
        )
    return number


def font_sizes(width: float | None) -> dict[str, float]:
    """Return font sizes that fall as the fifth root of a width below `PAGE_WIDTH`, to `LEAST_SHARE` at least."""
    if width is None:
        return {}
    share = min(1.0, max(width / PAGE_WIDTH, LEAST_SHARE**5) ** 0.2)
    with our_style():
        from matplotlib import rcParams

        return {name: share * rcParams[name] for name in FONTS}
