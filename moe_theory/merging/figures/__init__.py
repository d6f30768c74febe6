"""Figures of online expert merging."""

from moe_theory import plot
from moe_theory.merging.figures import ablations, leaves, regret, scaling, simplex, tradeoff

FIGURES = plot.figures(
    regret.picture, tradeoff.picture, simplex.picture, leaves.picture, scaling.picture, ablations.picture
)
