"""Lemma 8: how far apart the gates of two experts are when exploration ends."""

import numpy as np

from moe_theory.edge import experiments
from moe_theory.edge.experiments import BY_RATE, BY_SCALE, FREE, FREE_SERVERS, MARGIN
from moe_theory.edge.interventions import FIRST_IDLE
from moe_theory.edge.statements.setting import statement
from moe_theory.verification.statement import limit_rate

LEMMA_8 = statement("lemma-8", module=__name__, free=(*FREE, FREE_SERVERS))
STATED_ORDER = limit_rate(at_least=0.75, margin=MARGIN)  # sigma_0 eta^-0.5 at eta = sigma_0^0.5


@LEMMA_8.charitable("lemma-8.learning-rate", BY_RATE, limit_rate(at_least=-0.5, margin=MARGIN))
@LEMMA_8.competitor("lemma-8.constant-router", FIRST_IDLE, STATED_ORDER)
@LEMMA_8.charitable("lemma-8.scale", BY_SCALE, STATED_ORDER)
def largest_difference(run) -> np.ndarray:
    return experiments.up_to_t1(run, "gate_gap")[-1]


EQUATION_33 = statement("equation-33", module=__name__, free=(*FREE, FREE_SERVERS))


@EQUATION_33.competitor("equation-33.constant-router", FIRST_IDLE, STATED_ORDER)
@EQUATION_33.charitable("equation-33.all-pairs", BY_SCALE, STATED_ORDER)
def gap_of_any(run) -> np.ndarray:
    return np.ptp(np.exp(experiments.log_probabilities(experiments.signal_outputs(run))), axis=0).max(axis=0)
