"""Lemma 3: the effect of one completed task on the gates."""

import itertools

import numpy as np

from moe_theory.edge.experiments import BY_SCALE, BY_SERVERS, MARGIN, up_to_t1
from moe_theory.edge.statements.lemma_1 import UPDATES
from moe_theory.edge.statements.setting import statement
from moe_theory.verification.statement import alike, identity, limit_rate


def largest_step(run, name: str, sign: int) -> np.ndarray:
    """Return the largest change of this sign by a gate step, over recorded rounds up to T1 with one completion (B,)."""
    return float(run.params.learning_rate) * np.nanmax(sign * up_to_t1(run, name), axis=0)


LEMMA_3_OWN = statement("lemma-3-own", module=__name__)


@LEMMA_3_OWN.charitable("lemma-3.own", BY_SCALE, limit_rate(at_least=1, margin=MARGIN))
def own_step(run) -> np.ndarray:
    return largest_step(run, "own_change", sign=-1)


LEMMA_3_OTHERS = statement("lemma-3-others", module=__name__)


@LEMMA_3_OTHERS.charitable("lemma-3.others-scale", BY_SCALE, limit_rate(at_least=1, margin=MARGIN))
@LEMMA_3_OTHERS.charitable("lemma-3.others", BY_SERVERS, limit_rate(at_most=-1, margin=MARGIN))
def step_of_others(run) -> np.ndarray:
    return largest_step(run, "others_change", sign=1)


@statement("lemma-3-sum", module=__name__).charitable(
    "lemma-3.sum", UPDATES.at("M = 4"), identity(within=1e-15), exact=True
)
def sum_of_slopes(run) -> np.ndarray:
    worst = 0.0
    for outputs in itertools.product((-20.0, -1.0, 0.0, 0.5, 20.0), repeat=3):
        probabilities = np.exp(outputs) / np.exp(outputs).sum()
        for one_hot in np.eye(3):
            slopes = (probabilities @ one_hot) * (one_hot - probabilities)
            worst = max(worst, abs(float(slopes.sum())))
    return alike(run, worst)
