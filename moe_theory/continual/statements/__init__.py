"""Statements of the continual-learning paper, a file a number, and the claims that test them."""

# isort: off
# In the paper's order, in which reports list them.
from moe_theory.continual.statements import lemma_01 as lemma_01
from moe_theory.continual.statements import proposition_1 as proposition_1
from moe_theory.continual.statements import proposition_2 as proposition_2
from moe_theory.continual.statements import proposition_3 as proposition_3
from moe_theory.continual.statements import proposition_4 as proposition_4
from moe_theory.continual.statements import theorem_1 as theorem_1
from moe_theory.continual.statements import theorem_2 as theorem_2
from moe_theory.continual.statements import figure_2 as figure_2
from moe_theory.continual.statements import figure_8 as figure_8
from moe_theory.continual.statements import figure_9 as figure_9
from moe_theory.continual.statements import lemma_02 as lemma_02
from moe_theory.continual.statements import corollary_1 as corollary_1
from moe_theory.continual.statements import lemma_03 as lemma_03
from moe_theory.continual.statements import lemma_04 as lemma_04
from moe_theory.continual.statements import lemma_05 as lemma_05
from moe_theory.continual.statements import lemma_06 as lemma_06
from moe_theory.continual.statements import lemma_07 as lemma_07
from moe_theory.continual.statements import lemma_08 as lemma_08
from moe_theory.continual.statements import lemma_09 as lemma_09
from moe_theory.continual.statements import lemma_10 as lemma_10
from moe_theory.continual.statements import lemma_11 as lemma_11
from moe_theory.continual.statements import lemma_12 as lemma_12
from moe_theory.continual.statements import lemma_13 as lemma_13
from moe_theory.continual.statements import lemma_14 as lemma_14
from moe_theory.continual.statements import lemma_15 as lemma_15
from moe_theory.continual.statements import lemma_16 as lemma_16
