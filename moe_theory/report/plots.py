"""Figures as SVG files with the numbers behind each.

Drawing goes through `Figure` alone and never through pyplot. Style is set over matplotlib's own defaults, so that the
bytes of a picture depend neither on the user's configuration nor on the date.
"""

import importlib
import io
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr

from moe_theory.core.errors import InvalidRunError, unknown_name
from moe_theory.core.papers import find_paper, paper_names
from moe_theory.core.random import root_key
from moe_theory.runs import Progress, quiet
from moe_theory.runs.files import prepare_folder, write_together
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.registry import SPECIAL_NAMES, select_readings

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

    from moe_theory.verify.figures import FigureSpec

OVERVIEW = "overview"  # the figure of all papers, where a paper's name is asked for
PAGE_WIDTH = 7.2  # inches
PIXELS_PER_INCH = 200
EMPTY: Mapping[str, Any] = MappingProxyType({})
_STYLE_LOCK = threading.Lock()  # matplotlib's configuration is one for all threads


def figures_of(paper: str) -> Mapping[str, "FigureSpec"]:
    """A paper's figures by name, or that of all: `overview`. Raises: UnknownNameError, with the nearest suggested."""
    if paper == OVERVIEW:
        return importlib.import_module("moe_theory.report.overview").figures()
    if paper not in paper_names():
        raise unknown_name("paper", paper, [*paper_names(), OVERVIEW])
    return find_paper(paper).import_figures()


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
    choice = _reading_of(paper, reading)
    if replicates is not None and replicates < 1:
        raise InvalidRunError(f"replicates={replicates} must be at least 1. Raise replicates.")
    root_key(seed)
    targets = [f"{figure.name}{suffix}" for figure in chosen for suffix in (".svg", ".csv")]
    folder = prepare_folder(Path(out) / paper, targets)
    paths = []
    for figure in chosen:
        data = figure.compute(choice, replicates or figure.replicates, seed, progress)
        svg = render(figure.title, figure.size, lambda canvas: figure.draw(data, canvas), figure.caption(data))  # noqa: B023
        paths += write_together(folder, {f"{figure.name}.svg": svg, f"{figure.name}.csv": to_csv(data)})
    return paths


def _reading_of(paper: str, name: str | None) -> ReadingLike:
    if paper == OVERVIEW:
        if name is not None:
            raise InvalidRunError(
                f"reading={name!r} is of one paper, and {OVERVIEW} shows each under its first default. Leave it out."
            )
        return importlib.import_module("moe_theory.report.overview").FIRST_DEFAULTS
    if name in SPECIAL_NAMES:
        raise unknown_name("reading", name, [choice.name for choice in select_readings(paper, ["all"])])
    return select_readings(paper, None if name is None else [name])[0]


def _selected(names: Sequence[str], figures: Mapping[str, "FigureSpec"]) -> list["FigureSpec"]:
    for name in names:
        if name != "all" and name not in figures:
            raise unknown_name("figure", name, [*figures, "all"])
    wanted = figures if not names or "all" in names else names
    return [figure for name, figure in figures.items() if name in wanted]


def to_csv(data: xr.Dataset) -> str:
    """The numbers behind a figure as a tidy table: a row for each point, a column for each variable."""
    table = data.to_dataframe().reset_index()
    for column in ("seed", "replicates", "reading"):
        table.insert(0, column, data.attrs[column])
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n")


@contextmanager
def style(more: Mapping[str, Any] = EMPTY) -> Iterator[None]:
    """Our style over matplotlib's own defaults, whatever the user's configuration says; one thread at a time."""
    import matplotlib

    path = Path(__file__).with_name("style.mplstyle")
    settings: dict[Any, Any] = dict(matplotlib.rc_params_from_file(path, use_default_template=True)) | dict(more)
    del settings["backend"]  # choosing one is the user's, and would load it
    with _STYLE_LOCK, matplotlib.rc_context(settings):
        yield


def render(
    title: str,
    size: tuple[float, float],
    draw: Callable[["FigureBase"], None],
    caption: str = "",
    settings: Mapping[str, Any] = EMPTY,
) -> str:
    """An SVG document of what `draw` puts on a figure of `size` inches; the caption is its description.

    Args:
        settings: matplotlib's, on top of our style.
    """
    return render_as("svg", title, size, draw, caption, settings).decode()


def render_as(
    form: Literal["svg", "png"],
    title: str,
    size: tuple[float, float],
    draw: Callable[["FigureBase"], None],
    caption: str = "",
    settings: Mapping[str, Any] = EMPTY,
) -> bytes:
    from matplotlib.figure import Figure

    with style(settings):
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        # Laid out once and rounded: the solver's last digits, which vary, would end up in the file's ids.
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        for axes in figure.axes:
            axes.set_position(tuple(np.round(axes.get_position(original=True).bounds, 6)))
        document = io.BytesIO()
        about = {"Title": title, "Description": caption or title}
        about |= {"Date": None, "Creator": "moe_theory"} if form == "svg" else {"Software": "moe_theory"}
        figure.savefig(document, format=form, dpi=PIXELS_PER_INCH if form == "png" else "figure", metadata=about)
    return document.getvalue()
