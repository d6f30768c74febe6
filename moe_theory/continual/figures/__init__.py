"""Figures of the continual paper, with closed forms drawn over simulated runs."""

from moe_theory import plot
from moe_theory.continual.figures import figure_2, figure_8, figure_9, regimes

FIGURES = plot.figures(figure_2.picture, figure_8.picture, figure_9.picture, regimes.picture)
