"""Figures of Theorem 1: failure, the effect of sparsity, and tightness."""

from moe_theory import plot
from moe_theory.generalization.figures import capacity, crossing, sparsity, tightness

FIGURES = plot.figures(crossing.picture, capacity.picture, sparsity.picture, tightness.picture)
