"""The picture of any preset's runs: what `moe-theory deep` draws of those it has just made."""

from typing import TYPE_CHECKING

from moe_theory.deep.figures import edge_figure_4, figures_3_to_7
from moe_theory.deep.presets import EDGE, Preset
from moe_theory.verify.claim import Runs

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase


def draw_runs(preset: Preset, title: str, runs: Runs, figure: "FigureBase") -> None:
    """Draw a preset's runs, which its cells name, as the figures of its twin do; every metric there is.

    Args:
        title: above everything else.
    """
    if preset.paper == EDGE:
        edge_figure_4.draw(edge_figure_4.summary(preset, runs), figure)
    else:
        figures_3_to_7.draw(figures_3_to_7.summary(preset, runs, tuple(figures_3_to_7.SYMBOLS), preset.experts), figure)
    figure.legends[0].set_title(title)  # a suptitle would lie over a legend at the top
