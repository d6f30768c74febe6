"""Statements of the edge-computing paper, in its order.

We omit Assumption 1, Definitions 1 and 2 and Algorithm 1, which assert nothing, and remarks after a statement, unless
they are about a figure or a comparison. Statements on networks (Fig. 4) are declared where networks are run.

O(), Omega() and "with probability 1 - o(1)" are tested in a limit (`experiments.LIMIT`), where sigma_0 falls, eta =
sigma_0^0.5, and T_1 and r follow. Statements on Fig. 3 are tested in its settings.
"""

from moe_theory.verification.texts import import_statements

import_statements(__name__)
