"""Pictures of Theorem 1 on generalization: where it breaks, how it and capacity depend on sparsity, how tight it is.

Data is a labelled dataset, so that the numbers behind a figure can be kept beside it. Drawing takes any matplotlib
figure; style belongs to whoever makes the figure.
"""

from moe_theory.generalization.figures import capacity, crossing, sparsity, tightness
from moe_theory.verify.figures import FigureSpec as FigureSpec

FIGURES: dict[str, FigureSpec] = {
    figure.name: figure for figure in (crossing.FIGURE, capacity.FIGURE, sparsity.FIGURE, tightness.FIGURE)
}
