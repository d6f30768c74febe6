"""The edge-computing paper's Fig. 3, with theory over the runs, and three pictures that the paper lacks.

Data is a labelled dataset, so that the numbers behind a figure can be kept beside it. Drawing takes any matplotlib
figure; style belongs to whoever makes the figure.
"""

from moe_theory.edge.figures import availability, figure_3, phase, timeline
from moe_theory.verify.figures import FigureSpec as FigureSpec

FIGURES: dict[str, FigureSpec] = {
    figure.name: figure for figure in (figure_3.FIGURE, phase.FIGURE, availability.FIGURE, timeline.FIGURE)
}
