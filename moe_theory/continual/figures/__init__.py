"""Figures of the continual paper: closed forms over simulated runs."""

from moe_theory.continual.figures import figure_2, figure_8, figure_9, regimes
from moe_theory.verify.figures import FigureSpec as FigureSpec

FIGURES: dict[str, FigureSpec] = {
    figure.name: figure for figure in (figure_2.FIGURE, figure_8.FIGURE, figure_9.FIGURE, regimes.FIGURE)
}
