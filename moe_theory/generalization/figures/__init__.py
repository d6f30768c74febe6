"""Figures on Theorem 1: where it fails, and how sparsity acts."""

from moe_theory import plot
from moe_theory.generalization.figures import crossing, sparsity

FIGURES = plot.figures(crossing.picture, sparsity.picture)
