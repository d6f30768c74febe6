"""Statements of the edge-computing paper, in its order.

Left out: Assumption 1 and Definitions 1 and 2 say what is given and Algorithm 1 what is done with it, so none of them
asserts anything; and remarks after a statement, unless they say what a figure shows or how two statements compare.
What is said of networks (Fig. 4) is declared in `deep.statements`.

An O() that is tested over the grids here is `literal`: they span less than a decade of sigma_0, eta or M, and where
sigma_0 is fixed at Fig. 3's 0.6 its constant is ours.
"""

# isort: off
from moe_theory.edge.statements import lemma_1 as lemma_1
from moe_theory.edge.statements import lemma_2 as lemma_2
from moe_theory.edge.statements import proposition_1 as proposition_1
from moe_theory.edge.statements import proposition_2 as proposition_2
from moe_theory.edge.statements import proposition_3 as proposition_3
from moe_theory.edge.statements import proposition_4 as proposition_4
from moe_theory.edge.statements import theorem_1 as theorem_1
from moe_theory.edge.statements import figure_3 as figure_3
from moe_theory.edge.statements import lemma_3 as lemma_3
from moe_theory.edge.statements import lemma_4 as lemma_4
from moe_theory.edge.statements import lemma_5 as lemma_5
from moe_theory.edge.statements import lemma_6 as lemma_6
from moe_theory.edge.statements import lemma_7 as lemma_7
from moe_theory.edge.statements import lemma_8 as lemma_8
from moe_theory.edge.statements import lemma_9 as lemma_9
