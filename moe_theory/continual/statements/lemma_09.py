"""Lemma 9: distance between two experts' gates at the end of exploration."""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.continual.statements.setting import statement
from moe_theory.verification.statement import rate

LEMMA_9 = statement("lemma-9", module=__name__, free=experiments.FREE_AT_LEVEL)


@LEMMA_9.charitable("lemma-9.scale", experiments.BY_SCALE, rate(at_least=0.75))
@LEMMA_9.charitable("lemma-9.learning-rate", experiments.BY_RATE, rate(at_least=-0.5))
@LEMMA_9.charitable("lemma-9.experts", experiments.BY_EXPERTS, rate(at_most=0.0))
def final_gate_gap(run) -> np.ndarray:
    """Return max |theta_T1^(m) - theta_T1^(m')|, by the gates after round T1 - 1, which route in round T1."""
    return experiments.up_to_t1(run, "gate_gap")[-2]
