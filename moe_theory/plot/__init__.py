"""Figures: roles that are drawn one way everywhere, panels, legends, and data that know where they come from.

`docs/pages/figures.md` adds one step by step.
"""

from typing import TYPE_CHECKING, Any

from moe_theory.plot.numbers import across_replicates as across_replicates
from moe_theory.plot.numbers import log_axis_cells as log_axis_cells
from moe_theory.plot.numbers import over as over
from moe_theory.plot.numbers import over_rounds as over_rounds
from moe_theory.plot.panels import curve as curve
from moe_theory.plot.panels import intervals as intervals
from moe_theory.plot.panels import legend as legend
from moe_theory.plot.panels import name_values as name_values
from moe_theory.plot.panels import note as note
from moe_theory.plot.panels import row as row
from moe_theory.plot.roles import ramp as ramp
from moe_theory.plot.spec import Curves as Curves
from moe_theory.plot.spec import FigureSpec as FigureSpec
from moe_theory.plot.spec import Panel as Panel
from moe_theory.plot.spec import Setup as Setup
from moe_theory.plot.spec import figure as figure
from moe_theory.plot.spec import figures as figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import FigureBase as Canvas
else:  # importing matplotlib takes longer than listing the figures
    Axes = Canvas = Any
