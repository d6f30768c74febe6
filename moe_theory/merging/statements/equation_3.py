"""Eq. (3): how many parameters the reward network has."""

import numpy as np

from moe_theory.merging.experiments import DIMS, MERGES, computed
from moe_theory.verify.statement import alike, identity, statement

DEPTHS = (2, 3)  # L

EQUATION_3 = statement(
    "equation-3",
    where="below Eq. (3)",
    says="The reward network has wK + wV + w^2 (L-1) parameters. $$p = wK + wV + w^2 (L - 1)$$",
    hypotheses=[MERGES],
    note="Literal: with L for the number of hidden layers the formula is right, with L for that of the matrices in (3) "
    "it has one w^2 too many. Both are sizes here: Dims.num_hidden = 1 is what (3) multiplies at L = 2, 2 has the "
    "number that is given.",
)


@EQUATION_3.literal(
    "equation-3.parameters",
    computed(*(f"L = {depth}" for depth in DEPTHS)),
    identity(within=0),
    where="below Eq. (3): the number of parameters",
    exact=True,
)
def difference(run) -> np.ndarray:
    """The number of parameters that the paper gives is that of the L matrices that (3) multiplies.
    $$p = wK + wV + w^2 (L - 1)$$"""
    width, ends = DIMS.width, DIMS.width * (DIMS.max_experts + DIMS.num_tasks)
    # The matrices of (3): (w, K), L - 2 times (w, w), and (V, w).
    return alike(run, [abs(ends + width**2 * (depth - 1) - (ends + width**2 * (depth - 2))) for depth in DEPTHS])
