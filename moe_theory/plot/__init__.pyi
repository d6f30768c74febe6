import matplotlib.axes
import matplotlib.figure

from .numbers import Values as Values
from .numbers import across_replicates as across_replicates
from .numbers import log_axis_cells as log_axis_cells
from .numbers import log_edges as log_edges
from .numbers import means as means
from .numbers import over as over
from .numbers import over_rounds as over_rounds
from .panels import curve as curve
from .panels import intervals as intervals
from .panels import legend as legend
from .panels import name_values as name_values
from .panels import note as note
from .panels import row as row
from .roles import ramp as ramp
from .spec import Curves as Curves
from .spec import FigureSpec as FigureSpec
from .spec import Panel as Panel
from .spec import Setup as Setup
from .spec import figure as figure
from .spec import figures as figures

Axes = matplotlib.axes.Axes
Canvas = matplotlib.figure.FigureBase
