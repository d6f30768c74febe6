"""The statements of the paper on generalization, in its order."""

from importlib import import_module

from moe_theory.generalization.experiments import DEFINITION_1
from moe_theory.verify.statement import suppose

suppose(DEFINITION_1)
IN_ITS_ORDER = """
    theorem_1 lemma_02 lemma_03 corollary_4 remark equation_10 equation_15 equation_16 equation_20
    equation_22 lemma_05 lemma_06 lemma_07 lemma_08 lemma_09 lemma_10
"""
for name in IN_ITS_ORDER.split():  # which is that of the claims in every report
    import_module(f"{__name__}.{name}")
