"""Pictures of online expert merging.

Data is a labelled dataset, so that the numbers behind a figure can be kept beside it. Drawing takes any matplotlib
figure; style belongs to whoever makes the figure.
"""

from moe_theory.merging.figures import ablations, leaves, regret, scaling, simplex, tradeoff
from moe_theory.verify.figures import FigureSpec as FigureSpec

FIGURES: dict[str, FigureSpec] = {
    figure.name: figure
    for figure in (regret.FIGURE, tradeoff.FIGURE, simplex.FIGURE, leaves.FIGURE, scaling.FIGURE, ablations.FIGURE)
}
