"""The edge-computing paper's figures, and three that it lacks: what they show, computed and drawn."""

from moe_theory.edge.figures import figure_3
from moe_theory.verify.figures import FigureSpec as FigureSpec

FIGURES: dict[str, FigureSpec] = {figure.name: figure for figure in (figure_3.FIGURE,)}
