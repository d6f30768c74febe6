"""Fig. 3 of `edge` with theory, and figures that the paper does not have."""

from moe_theory import plot
from moe_theory.edge.figures import availability, figure_3, phase, regimes

FIGURES = plot.figures(figure_3.picture, phase.picture, regimes.picture, availability.picture)
