"""Lemma 1: how many candidates there are.

Trees are run alone, their leaves picked by the rule that is worst for the statement, whose proof uses none.
"""

import numpy as np

from moe_theory.merging import corrected, theory
from moe_theory.merging.experiments import (
    EXACTLY,
    FREE_TREE,
    ON_TREES,
    TREES_BY_RATIO,
    by_ratio,
    candidates,
    worst_excess,
)
from moe_theory.verify.claim import Runs, excess
from moe_theory.verify.statement import statement

EQUATION_5 = r"N_t \le 2^{1/(1-\rho)} \frac{T \nu_1^2}{C^2 \log(T/\delta)}"
LEAVES = r"1 + \sum_h \min\left(2^h, \frac{T_h}{m_h}\right), \quad m_h = \max(1, \lceil \tau_h(e_h) \rceil)"


LEMMA_1 = statement(
    "lemma-1",
    where="Lemma 1, Eq. (5)",
    says=f"There are never more candidates than 2^(1/(1-rho)) T nu_1^2 / (C^2 log(T/delta)). $${EQUATION_5}$$",
    hypotheses=ON_TREES,
    why="""Where C^2 log(T/delta) is large against T the right side is below the number of candidates that the root and
    its halves are: T must be large against C^2. For rho above 1 - log 2, .307, the proof does not show it either, as 2
    to the power of (7) is a power of T above 1, not 2^(1/(1-rho)) times T.""",
    instance="C = 2, rho = 0.3, nu_1 = delta = 1, T = 2: the root is split in slot 1, which leaves 2 candidates in "
    "slot 2, and (5) says at most <1.94>.",
    corrected="There are at most 2 candidates, or half of what (5) says, whichever is more. Each split uses up pulls "
    "of its own, so that all leaves are at most one more than the splits that T pulls pay for, which grow more slowly "
    f"than T. $$N_T \\le {LEAVES}$$",
    disproof="large_constant.py",
    amendment="where its right side is at least 2",
    proof="lemma_01.py",
    derivation="leaves.py",
    free=FREE_TREE,
    note="At delta = 1 and T >= 2 nothing less will do, as the root is split in slot 1. While it is whole, 1 will do.",
)


@LEMMA_1.charitable(
    "lemma-1.candidates", by_ratio("in-turn"), EXACTLY, where="Lemma 1, Eq. (5), C = 1", instead="lemma-1.leaves"
).says("With C = 1 there are at no slot more candidates than (5) says, which is more than T for rho of 0.7 and 0.9.")
def candidates_beyond(run) -> np.ndarray:
    """Excess over (5) in the worst slot (B,)."""
    return excess(candidates(run), theory.leaf_bound(int(run.rounds[-1]), run.params)).max(axis=0)


@LEMMA_1.replacement("lemma-1.leaves", TREES_BY_RATIO, EXACTLY).says(
    "All leaves, inactive ones too, are no more than splits at their least thresholds leave, for either C. "
    f"$${LEAVES}$$"
)
def leaves_beyond(runs: Runs) -> np.ndarray:
    """Excess over `corrected.leaf_bound` (V, B)."""
    return worst_excess(runs, "in-turn", "num_leaves", corrected.leaf_bound)
