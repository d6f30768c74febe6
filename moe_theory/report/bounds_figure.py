"""Bounds on the generalization error of one classifier over the number of samples, as a picture."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from moe_theory.core.errors import OutputError
from moe_theory.generalization.calculator import Bound, Setting
from moe_theory.generalization.theory import MOST_SAMPLES
from moe_theory.report.bounds import WORDS, count, facts, has_reading, status
from moe_theory.report.plots import PAGE_WIDTH, render_as
from moe_theory.report.sweeps import FORMS
from moe_theory.runs.files import write_whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

SIZE = (PAGE_WIDTH, 3.9)  # inches
POINTS = 129  # of a curve
SPAN = 30  # how far the picture reaches beyond what it marks, as a factor
LOWEST, HIGHEST = 1e-6, 10.0  # values shown at most
TITLE = "Bounds on the generalization error of a sparse mixture of experts over the number of samples"


class _Pen(NamedTuple):
    color: str
    line: str
    width: float


PENS = {  # the narrower of two that may coincide is drawn later
    "theorem-1.printed": _Pen("C1", "--", 2.0),
    "theorem-1.binomial": _Pen("C3", "--", 1.0),
    "corollary-4": _Pen("0.2", ":", 1.0),
    "given-router": _Pen("C0", "-", 1.3),
    "product": _Pen("C0", "-", 1.3),
    "lipschitz": _Pen("C0", "-", 1.3),
    "covering": _Pen("C2", "-", 1.3),
}


def require_drawable(path: Path) -> None:
    """Raise OutputError for a suffix that says nothing of how it is drawn."""
    if path.suffix not in FORMS:
        raise OutputError(f"{path} must end in .svg or .png: that says how it is drawn. Change the name.")


def draw(setting: Setting, bounds: Sequence[Bound], path: Path) -> Path:
    """Draw the bounds over m, log-log, with the setting's m and where each begins to inform.

    Raises: OutputError for another suffix than .svg and .png, or a place that cannot be written.
    """
    require_drawable(path)
    caption = " ".join(facts(setting))
    write_whole(
        path, render_as(FORMS[path.suffix], TITLE, SIZE, lambda figure: _draw(figure, setting, bounds), caption)
    )
    return path


def sample_counts(setting: Setting, bounds: Sequence[Bound]) -> np.ndarray:
    """Whole numbers m, evenly spread in the logarithm, around the setting's and where bounds begin to inform."""
    marks = [setting.num_samples, *(bound.smallest_num_samples or setting.num_samples for bound in bounds)]
    low, high = max(min(marks) // SPAN, 1), min(max(marks) * SPAN, MOST_SAMPLES)
    return np.unique(np.geomspace(low, high, POINTS).round().astype(np.int64))


def _draw(figure: "FigureBase", setting: Setting, bounds: Sequence[Bound]) -> None:
    axes: Axes = figure.subplots()
    counts = sample_counts(setting, bounds)
    lowest = setting.threshold
    for bound in bounds:
        values = np.array([bound.form.at(int(each)) for each in counts])
        lowest = min(lowest, values.min())
        _draw_curve(axes, setting, bound, counts, values)
    floor = 10.0 ** math.floor(math.log10(max(lowest, LOWEST)))
    axes.set(xscale="log", yscale="log", xlim=(counts[0], counts[-1]), ylim=(floor, HIGHEST))
    axes.set(xlabel="number of samples m", ylabel="bound on the generalization error")
    axes.axhspan(setting.threshold, HIGHEST, color="0.93", zorder=0, linewidth=0)
    axes.axhline(setting.threshold, color="0.4", linewidth=0.7, zorder=1)
    axes.axvline(setting.num_samples, color="0.4", linewidth=0.7, linestyle=":", zorder=1)
    _write(axes, setting, counts)
    figure.legend(loc="outside upper center", ncols=2)


def _draw_curve(axes: "Axes", setting: Setting, bound: Bound, counts: np.ndarray, values: np.ndarray) -> None:
    pen = PENS[bound.form.name]
    reading = f", d_N of the {bound.form.dimension}" if has_reading(bound) else ""
    label = f"{WORDS[bound.form.name].title}{reading}: {status(bound)}"
    line = "-." if bound.form.dimension == "router" and has_reading(bound) else pen.line
    (curve,) = axes.plot(counts, values, line, color=pen.color, linewidth=pen.width, label=label)
    curve.set_gid(bound.form.id)
    if bound.smallest_num_samples:
        axes.plot(bound.smallest_num_samples, setting.threshold, "o", color=pen.color, markersize=3.5)
    if bound.value <= HIGHEST:
        axes.plot(setting.num_samples, bound.value, "s", color=pen.color, markersize=3)


def _write(axes: "Axes", setting: Setting, counts: np.ndarray) -> None:
    """Words at the lines that mark the setting's m and the threshold, on the side where there is room."""
    is_right = setting.num_samples**2 > float(counts[0]) * float(counts[-1])
    axes.annotate(
        f"m = {count(setting.num_samples)}",
        (setting.num_samples, 0.02),
        (-3 if is_right else 3, 0),
        xycoords=axes.get_xaxis_transform(),
        textcoords="offset points",
        ha="right" if is_right else "left",
    )
    axes.annotate(
        "says nothing" if setting.threshold == 1 else f"not below {setting.threshold:g}",
        (0.99, setting.threshold),
        (0, 3),
        xycoords=axes.get_yaxis_transform(),
        textcoords="offset points",
        ha="right",
        color="0.35",
    )
