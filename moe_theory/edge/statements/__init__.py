"""Statements of the edge-computing paper, in its order.

Left out: Assumption 1 and Definitions 1 and 2 say what is given and Algorithm 1 what is done with it, so none of them
asserts anything; and remarks after a statement, unless they say what a figure shows or how two statements compare.
What is said of networks (Fig. 4) is declared where networks are run.

O(), Omega() and "with probability 1 - o(1)" are judged in their limits (`experiments.LIMIT`): sigma_0 falls with
eta = sigma_0^0.5, and T_1 and r with them. What is said of Fig. 3 is judged in its settings.
"""

from moe_theory.verification.texts import import_statements

import_statements(__name__)
