"""Lemma 8: symmetrization."""

import numpy as np

from moe_theory.generalization import experiments
from moe_theory.generalization.experiments import CLASSES, COIN, FREE_SAMPLES, all_cells, risk_difference, shown
from moe_theory.generalization.statements.setting import statement
from moe_theory.verification.claim import excess
from moe_theory.verification.statement import equality, ranged


@statement("lemma-8", module=__name__, free=FREE_SAMPLES).charitable(
    "lemma-8.symmetrization", all_cells(CLASSES), experiments.TO_ROUNDING
)
def excess_of_exchanges(run) -> np.ndarray:
    return excess(shown(run, "swapped"), shown(run, "complexity") + shown(run, "ghost_complexity"))


PROOF = statement("lemma-8-proof", module=__name__)
BY_SAMPLES = COIN.over("num_samples")


@ranged(low=0, high=1)
def absolute_difference(run) -> np.ndarray:
    return np.abs(risk_difference(run))


LIKE_ABSOLUTE = equality(absolute_difference, margin=0.05)


@PROOF.charitable("lemma-8.mirrored", BY_SAMPLES, LIKE_ABSOLUTE)
@ranged(low=0, high=1)
def mirrored_difference(run) -> np.ndarray:
    return np.maximum(risk_difference(run), -risk_difference(run))


@PROOF.literal("lemma-8.absolute-values", BY_SAMPLES, LIKE_ABSOLUTE, instead="lemma-8.symmetrization")
@ranged(low=-1, high=1)
def signed_difference(run) -> np.ndarray:
    return risk_difference(run)
