"""The statements of the paper on generalization, in its order."""

# isort: off
# The order of import is the order of the statements in every report.
from moe_theory.generalization.statements import theorem_1 as theorem_1
from moe_theory.generalization.statements import lemma_02 as lemma_02
from moe_theory.generalization.statements import lemma_03 as lemma_03
from moe_theory.generalization.statements import corollary_4 as corollary_4
from moe_theory.generalization.statements import remark as remark
from moe_theory.generalization.statements import equation_10 as equation_10
from moe_theory.generalization.statements import equation_15 as equation_15
from moe_theory.generalization.statements import equation_16 as equation_16
from moe_theory.generalization.statements import equation_20 as equation_20
from moe_theory.generalization.statements import equation_22 as equation_22
from moe_theory.generalization.statements import lemma_05 as lemma_05
from moe_theory.generalization.statements import lemma_06 as lemma_06
from moe_theory.generalization.statements import lemma_07 as lemma_07
from moe_theory.generalization.statements import lemma_08 as lemma_08
from moe_theory.generalization.statements import lemma_09 as lemma_09
from moe_theory.generalization.statements import lemma_10 as lemma_10
