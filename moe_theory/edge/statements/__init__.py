"""Statements of the edge-computing paper, in its order.

Left out: Assumption 1 and Definitions 1 and 2 say what is given and Algorithm 1 what is done with it, so none of them
asserts anything; and remarks after a statement, unless they say what a figure shows or how two statements compare.
What is said of networks (Fig. 4) is declared where networks are run.

O(), Omega() and "with probability 1 - o(1)" are judged in their limits (`experiments.LIMIT`): sigma_0 falls with
eta = sigma_0^0.5, and T_1 and r with them. What is said of Fig. 3 is judged in its settings.
"""

from importlib import import_module

from moe_theory.edge.experiments import SETTING
from moe_theory.verify.statement import suppose

suppose(*SETTING)
IN_ITS_ORDER = """
    lemma_1 lemma_2 proposition_1 proposition_2 proposition_3 proposition_4 theorem_1 figure_3
    lemma_3 lemma_4 lemma_5 lemma_6 lemma_7 lemma_8 lemma_9
"""
for name in IN_ITS_ORDER.split():  # which is that of the claims in every report
    import_module(f"{__name__}.{name}")
