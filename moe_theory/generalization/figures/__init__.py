"""Figures of Theorem 1 on generalization: where it fails, the effect of sparsity, and its tightness."""

from moe_theory import plot
from moe_theory.generalization.figures import capacity, crossing, sparsity, tightness

FIGURES = plot.figures(crossing.picture, capacity.picture, sparsity.picture, tightness.picture)
