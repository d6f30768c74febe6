"""Corollary 1: routing probabilities of two arrivals with the same ground truth."""

import numpy as np

from moe_theory.continual.corrected import routing_probabilities
from moe_theory.continual.experiments import BY_SCALE_QUIET, gate_output_pairs
from moe_theory.continual.statements.setting import statement
from moe_theory.verification.statement import rate

COROLLARY_1 = statement("corollary-1", module=__name__)


@COROLLARY_1.literal(
    "corollary-1.probabilities",
    BY_SCALE_QUIET,
    rate(at_least=2.75),
    hypotheses=["small-noise"],
    instead="corollary-1.lipschitz",
)
@COROLLARY_1.charitable("corollary-1.lipschitz", BY_SCALE_QUIET, rate(at_least=0.25), hypotheses=["small-noise"])
def probability_gap(run) -> np.ndarray:
    probabilities = routing_probabilities(gate_output_pairs(run), float(run.params.perturbation_scale))
    return np.abs(np.diff(probabilities, axis=1)).max(axis=(1, 2))
