"""Claims about the papers' deep experiments; importing the modules registers them."""

# isort: off
# Reports list claims in the order of these imports.
from moe_theory.deep.claims import figures_3_to_7 as figures_3_to_7
from moe_theory.deep.claims import drive as drive
from moe_theory.deep.claims import edge_figure_4 as edge_figure_4
