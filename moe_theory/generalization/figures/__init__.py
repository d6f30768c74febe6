"""Figures on Theorem 1: where it fails, how sparsity acts, and how tight bounds are."""

from moe_theory import plot
from moe_theory.generalization.figures import capacity, crossing, sparsity, tightness

FIGURES = plot.figures(crossing.picture, capacity.picture, sparsity.picture, tightness.picture)
