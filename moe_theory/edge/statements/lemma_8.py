"""Lemma 8: how far apart the gates of two experts are when exploration ends."""

import numpy as np

from moe_theory.edge import experiments, interventions
from moe_theory.edge.statements.setting import statement
from moe_theory.verification.statement import limit_rate

LEMMA_8 = statement("lemma-8", module=__name__, free=(*experiments.FREE, experiments.FREE_SERVERS))


@LEMMA_8.charitable("lemma-8.learning-rate", experiments.BY_RATE, limit_rate(at_least=-0.5, margin=experiments.MARGIN))
@LEMMA_8.competitor(
    "lemma-8.constant-router", interventions.FIRST_IDLE, limit_rate(at_least=0.75, margin=experiments.MARGIN)
)
@LEMMA_8.charitable("lemma-8.scale", experiments.BY_SCALE, limit_rate(at_least=0.75, margin=experiments.MARGIN))
def largest_difference(run) -> np.ndarray:
    return experiments.explored(run, "gate_gap")[-1]


EQUATION_33 = statement("equation-33", module=__name__, free=(*experiments.FREE, experiments.FREE_SERVERS))


@EQUATION_33.competitor(
    "equation-33.constant-router", interventions.FIRST_IDLE, limit_rate(at_least=0.75, margin=experiments.MARGIN)
)
@EQUATION_33.charitable(
    "equation-33.all-pairs", experiments.BY_SCALE, limit_rate(at_least=0.75, margin=experiments.MARGIN)
)
def gap_of_any(run) -> np.ndarray:
    return np.ptp(np.exp(experiments.log_probabilities(experiments.drives(run))), axis=0).max(axis=0)
