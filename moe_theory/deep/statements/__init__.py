"""Statements of two papers about networks, in the papers' order: sentences about figures and tables; and one of ours.

The runs here are on digits and mostly with smaller networks, which is our choice; the same claims are judged on the
papers' data by `moe-theory deep`. So they are `literal`: where the sentence is not seen here, it is open and not false.
"""

from importlib import import_module

IN_ITS_ORDER = """
    figures_3_to_7 tables_1_and_2 edge_figure_4 reinforced
"""
for name in IN_ITS_ORDER.split():  # which is that of the claims in every report
    import_module(f"{__name__}.{name}")
