"""Pictures of Theorem 1 on generalization: where it breaks, how it and capacity depend on sparsity, how tight it is."""

from moe_theory import plot
from moe_theory.generalization.figures import capacity, crossing, sparsity, tightness

FIGURES = plot.figures(crossing.picture, capacity.picture, sparsity.picture, tightness.picture)
