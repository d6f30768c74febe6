"""Statements of the paper on expert merging, one file a number, each with the right statement where it is wrong."""

# isort: off
# The paper's order, which is that of every report.
from moe_theory.merging.statements import abstract as abstract
from moe_theory.merging.statements import table_1 as table_1
from moe_theory.merging.statements import equation_1 as equation_1
from moe_theory.merging.statements import equation_3 as equation_3
from moe_theory.merging.statements import assumption_1 as assumption_1
from moe_theory.merging.statements import lemma_1 as lemma_1
from moe_theory.merging.statements import regret as regret
from moe_theory.merging.statements import assumption_2 as assumption_2
from moe_theory.merging.statements import theorem_1 as theorem_1
from moe_theory.merging.statements import remark as remark
from moe_theory.merging.statements import figure_2 as figure_2
from moe_theory.merging.statements import figure_3 as figure_3
from moe_theory.merging.statements import table_2 as table_2
from moe_theory.merging.statements import figure_4 as figure_4
from moe_theory.merging.statements import figure_5 as figure_5
from moe_theory.merging.statements import figure_6 as figure_6
from moe_theory.merging.statements import figure_7 as figure_7
from moe_theory.merging.statements import assumption_3 as assumption_3
from moe_theory.merging.statements import lemma_2 as lemma_2
from moe_theory.merging.statements import equation_8 as equation_8
from moe_theory.merging.statements import lemma_3 as lemma_3
from moe_theory.merging.statements import lemma_4 as lemma_4
