"""Figures of online expert merging: labelled data, and functions that draw it into any matplotlib figure."""

from moe_theory.merging.figures import ablations, leaves, regret, scaling, simplex, tradeoff
from moe_theory.verify.figures import FigureSpec as FigureSpec

FIGURES: dict[str, FigureSpec] = {
    figure.name: figure
    for figure in (regret.FIGURE, tradeoff.FIGURE, simplex.FIGURE, leaves.FIGURE, scaling.FIGURE, ablations.FIGURE)
}
