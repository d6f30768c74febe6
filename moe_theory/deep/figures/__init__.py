"""The papers' figures of deep experiments, on the small twins that run on the digits in minutes.

Data is a labelled dataset, so that the numbers behind a figure can be kept beside it. Drawing takes any matplotlib
figure; style belongs to whoever makes the figure. `draw_runs` draws runs of any preset in the same layout.
"""

from moe_theory.deep.figures import drive, edge_figure_4, routing
from moe_theory.deep.figures.experiment import draw_runs as draw_runs
from moe_theory.deep.figures.figures_3_to_7 import FIGURES_3_TO_7
from moe_theory.verify.figures import FigureSpec as FigureSpec

FIGURES: dict[str, FigureSpec] = {
    figure.name: figure for figure in (*FIGURES_3_TO_7, edge_figure_4.FIGURE, routing.FIGURE, drive.FIGURE)
}
