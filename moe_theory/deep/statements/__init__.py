"""Statements of two papers about networks, in the papers' order: sentences about figures and tables.

The runs here are on digits and mostly with smaller networks, which is our choice; the same claims are judged on the
papers' data by `moe-theory deep`. So they are `literal`: where the sentence is not seen here, it is open and not false.
"""

# isort: off
from moe_theory.deep.statements import figures_3_to_7 as figures_3_to_7
from moe_theory.deep.statements import tables_1_and_2 as tables_1_and_2
from moe_theory.deep.statements import edge_figure_4 as edge_figure_4
