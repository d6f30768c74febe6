"""Theorem 1: the bound on the regret, which holds at any width because it is above T."""

import dataclasses
from collections.abc import Callable

import numpy as np

from moe_theory.merging import corrected, theory
from moe_theory.merging.experiments import CONFIDENCE, NUM_ROUNDS, TANBR_ON, recorded
from moe_theory.merging.statements.setting import statement
from moe_theory.runs import Run
from moe_theory.verification.statement import probability

TANBR = dataclasses.replace(TANBR_ON["peaked"], labels=("R_T",))

THEOREM_1 = statement("theorem-1", module=__name__)


def neural_side(run, form: str = "printed") -> np.ndarray:
    """Return (6) or (10) without T + 1, with the determinant of Z for the picked weights in place of M's."""
    leaves = float(theory.leaf_bound(float(NUM_ROUNDS), run.params))
    information = np.log1p(NUM_ROUNDS * leaves / float(run.params.regularization))
    dimensions = recorded(run, "log_determinant")[-1] / information
    parts = [
        theory.theorem_1(NUM_ROUNDS, float(dimension), leaves, confidence=CONFIDENCE, form=form)
        for dimension in dimensions
    ]
    return np.array([part.confidence + part.norm for part in parts])


def corrected_side(run) -> np.ndarray:
    """Return (10) with the largest sum of nu_1 rho^h in place of T + 1 (B,)."""
    return np.array([corrected.regret_bound(NUM_ROUNDS, part, run.params) for part in neural_side(run, "appendix")])


def printed_side(run) -> np.ndarray:
    return neural_side(run) + (NUM_ROUNDS + 1)


def claim_bound(id: str, role: str, side: Callable[[Run], np.ndarray], instead: str | None = None) -> None:
    """Declare that the regret exceeds a right side with probability at most delta."""
    seldom = probability(at_least=1 - CONFIDENCE, trivial=lambda run: float(np.all(side(run) >= NUM_ROUNDS)))
    test_bound = THEOREM_1.claim(id, TANBR, seldom, role=role, instead=instead)
    test_bound(lambda run: recorded(run, "cumulative_regret")[-1] <= side(run))


claim_bound("theorem-1.regret", "charitable", printed_side, instead="theorem-1.right-form")
claim_bound("theorem-1.neural-part", "ours", neural_side)
claim_bound("theorem-1.right-form", "corrected", corrected_side)
