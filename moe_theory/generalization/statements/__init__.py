"""The statements of the paper on generalization, in its order."""

from importlib import import_module

from moe_theory.generalization.experiments import DEFINITION_1
from moe_theory.verify.premises import rest_on
from moe_theory.verify.statement import suppose

suppose(DEFINITION_1)
rest_on(  # appendices A and B
    "generalization",
    {
        "equation-10": "lemma-7",
        "equation-16": "lemma-6",
        "lemma-8": "lemma-8-proof",
        "equation-31": "lemma-10",
        "lemma-5": "equation-31 lemma-8 lemma-9 lemma-10",
        "theorem-1": "lemma-5 equation-10 equation-15 equation-16 equation-20 equation-22 equation-23",
        "corollary-4": "theorem-1 lemma-2 lemma-3",
        "remark-fewer-active": "theorem-1",
        "remark-more-experts": "theorem-1 corollary-4",
    },
)
IN_ITS_ORDER = """
    theorem_1 lemma_02 lemma_03 corollary_4 remark equation_10 equation_15 equation_16 equation_20
    equation_22 lemma_05 lemma_06 lemma_07 lemma_08 lemma_09 lemma_10
"""
for name in IN_ITS_ORDER.split():  # which is that of the claims in every report
    import_module(f"{__name__}.{name}")
