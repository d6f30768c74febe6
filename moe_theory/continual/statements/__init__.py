"""Statements of the continual-learning paper, a file a number, and the claims that test them."""

from importlib import import_module

from moe_theory.continual.experiments import IN_RANGE
from moe_theory.verify.statement import suppose

suppose(IN_RANGE)
IN_ITS_ORDER = """
    lemma_01 proposition_1 proposition_2 proposition_3 proposition_4 theorem_1 theorem_2 figure_2
    figure_8 figure_9 lemma_02 corollary_1 lemma_03 lemma_04 lemma_05 lemma_06 lemma_07 lemma_08
    lemma_09 lemma_10 lemma_11 lemma_12 lemma_13 lemma_14 lemma_15 lemma_16
"""
for name in IN_ITS_ORDER.split():  # which is that of the claims in every report
    import_module(f"{__name__}.{name}")
