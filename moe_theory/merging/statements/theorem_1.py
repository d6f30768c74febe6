"""Theorem 1: the regret. The width that it supposes is out of reach, but its bound is above T and so holds anyway."""

import dataclasses
from collections.abc import Callable

import numpy as np

from moe_theory.merging import corrected, theory
from moe_theory.merging.experiments import CONFIDENCE, NUM_ROUNDS, ON_REWARDS, TANBR_ON, recorded
from moe_theory.runs import Run
from moe_theory.verify.statement import probability, statement

TANBR = dataclasses.replace(TANBR_ON["peaked"], labels=("R_T",))
ROOT = r"R \le 3 \sqrt{T} \sqrt{\tilde{d} \log(1 + TN/\lambda) + 2} \left[ v \sqrt{\tilde{d} \log(1 + TN/\lambda) + 2"
NEURAL = (
    ROOT + r"} - 2 \log \delta + (\lambda + C_3 T L)(1 - \eta w \lambda)^{J/2} \sqrt{T/\lambda} + 2 \sqrt{\lambda S} "
    r"\right]"
)
RIGHT = ROOT + r" - 2 \log \delta} + 2 \sqrt{\lambda} S \right]" + r" + \max \sum_{t \le T} \nu_1 \rho^{h_t}"

THEOREM_1 = statement(
    "theorem-1",
    where="Theorem 1, Eq. (6)",
    says="With probability 1 - delta the regret is at most sqrt(T) times what the network's effective dimension gives, "
    f"plus T + 1. $${NEURAL} + T + 1$$",
    hypotheses=ON_REWARDS,
    why="Rewards are in [0, 1], so that no policy's regret exceeds T, and the right side has + T + 1: it is what is "
    "left of 2 T Gamma-bar and the sum of nu_1 rho^h in (10).",
    instance="T = 1: (6) allows more than 2, and a slot loses at most 1.",
    corrected="Of a network so wide that 2 sum Gamma-bar is small, and trained until its error is, the largest sum of "
    "nu_1 rho^h over T slots is in place of T + 1, and grows more slowly than T; log delta and S as gamma_t has them. "
    f"$${RIGHT}$$",
    proof="theorem_1.py",
    derivation="remark_sum.py",
)


def neural(run) -> np.ndarray:
    """(6) without T + 1, with the determinant of Z, of the gradients of the weights picked, for that of M (B,)."""
    leaves = float(theory.leaf_bound(float(NUM_ROUNDS), run.params))
    information = np.log1p(NUM_ROUNDS * leaves / float(run.params.regularization))
    dimensions = recorded(run, "log_determinant")[-1] / information
    parts = [theory.theorem_1(NUM_ROUNDS, float(each), leaves, confidence=CONFIDENCE) for each in dimensions]
    return np.array([part.confidence + part.norm for part in parts])


def corrected_side(run) -> np.ndarray:
    """The same and the largest sum of nu_1 rho^h (B,)."""
    return np.array([corrected.regret_bound(NUM_ROUNDS, part, run.params) for part in neural(run)])


def printed_side(run) -> np.ndarray:
    """(6), its term with J taken as 0 (B,)."""
    return neural(run) + (NUM_ROUNDS + 1)


def claim_bound(id: str, role: str, side: Callable[[Run], np.ndarray], where: str, says: str, **about) -> None:
    """That the regret exceeds a right side with probability delta at most: trivial where no regret of T slots can."""
    seldom = probability(at_least=1 - CONFIDENCE, trivial=lambda run: float(np.all(side(run) >= NUM_ROUNDS)))
    THEOREM_1.claim(id, TANBR, seldom, role=role, where=where, **about).says(says)(
        lambda run: recorded(run, "cumulative_regret")[-1] <= side(run)
    )


claim_bound(
    "theorem-1.regret",
    "charitable",
    printed_side,
    "Theorem 1, Eq. (6), its term with J taken as 0, of a network of width 64",
    "Tanbr's regret is at most the right side of (6), with probability 1 - delta.",
    instead="theorem-1.right-form",
)
claim_bound(
    "theorem-1.neural-part",
    "ours",
    neural,
    "Theorem 1, Eq. (6) without T + 1, of a network of width 64",
    f"Tanbr's regret is at most the right side of (6) without T + 1, with probability 1 - delta. $${NEURAL}$$",
)
claim_bound(
    "theorem-1.right-form",
    "corrected",
    corrected_side,
    "replaces Theorem 1: the worst sum of nu_1 rho^h in place of T + 1, which says little at this T too",
    "Tanbr's regret is at most the neural part of (6) and the largest sum of nu_1 rho^h, without 2 sum Gamma-bar, with "
    "probability 1 - delta.",
)
