"""The continual paper's figures, with the closed forms over the runs: what they show, computed and drawn.

Data is a labelled dataset, so that the numbers behind a figure can be kept beside it. Drawing takes any matplotlib
figure and names colours by their place in its cycle: style belongs to whoever makes the figure.
"""

from moe_theory.continual.figures import figure_2, figure_8, figure_9
from moe_theory.verify.figures import FigureSpec as FigureSpec

FIGURES: dict[str, FigureSpec] = {figure.name: figure for figure in (figure_2.FIGURE, figure_8.FIGURE, figure_9.FIGURE)}
