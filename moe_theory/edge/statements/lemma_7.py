"""Lemma 7: how evenly exploration spreads the tasks over the experts."""

import numpy as np

from moe_theory.edge.experiments import BY_RATE, BY_SERVERS, MARGIN, up_to_t1
from moe_theory.edge.interventions import FIRST_IDLE_BY_RATE
from moe_theory.edge.statements.setting import statement
from moe_theory.verification.statement import limit_rate

LEMMA_7 = statement("lemma-7", module=__name__)


@LEMMA_7.competitor("lemma-7.constant-router", FIRST_IDLE_BY_RATE, limit_rate(at_least=0.5, margin=MARGIN))
@LEMMA_7.charitable("lemma-7.learning-rate", BY_RATE, limit_rate(at_least=0.5, margin=MARGIN))
@LEMMA_7.charitable("lemma-7.loads", BY_SERVERS, limit_rate(at_most=-1, margin=MARGIN))
def largest_gap(run) -> np.ndarray:
    return up_to_t1(run, "load_gap")[-1]
