"""Lemma 8: evenness of exploration over the experts."""

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.continual.experiments import RARELY
from moe_theory.continual.statements.setting import statement
from moe_theory.verification.statement import limit_rate, rate

LEMMA_8 = statement("lemma-8", module=__name__)


def share_gaps(run) -> np.ndarray:
    count = int(run.params.num_experts)
    visits = getattr(run.state, "state", run.state).explored_visits[:count]  # a tally contains the algorithm's state
    return np.abs(visits.astype(np.float64) / experiments.stage_rounds(run.params) - 1 / count)


@LEMMA_8.charitable("lemma-8.learning-rate", experiments.LIMIT_MANY, limit_rate(at_least=0.25))
@LEMMA_8.intervention("lemma-8.small-alpha", interventions.QUIET_MANY, limit_rate(at_least=0.25))
@LEMMA_8.suspect("lemma-8.at-once", interventions.AT_ONCE_MANY, limit_rate(at_least=0.25))
def mean_gap(run) -> np.ndarray:
    return share_gaps(run).mean(axis=0)


@LEMMA_8.literal("lemma-8.experts", experiments.BY_EXPERTS, rate(at_most=-1.0), instead="lemma-8.independent")
@LEMMA_8.step("lemma-8.experts-proved", experiments.BY_EXPERTS, rate(at_most=-0.5), instead="lemma-8.independent")
@LEMMA_8.replacement(
    "lemma-8.independent", experiments.BY_EXPERTS_BLIND, rate(at_most=-0.5), hypotheses=["large-perturbation"]
)
def largest_gap(run) -> np.ndarray:
    return share_gaps(run).max(axis=0)


@LEMMA_8.step("lemma-8.hoeffding", experiments.BY_EXPERTS, RARELY, instead="lemma-8.independent-hoeffding")
@LEMMA_8.replacement(
    "lemma-8.independent-hoeffding", experiments.BY_EXPERTS_BLIND, RARELY, hypotheses=["large-perturbation"]
)
def exceeds_hoeffding(run) -> np.ndarray:
    rounds = experiments.stage_rounds(run.params)
    return largest_gap(run) > np.sqrt(np.log(2 * int(run.params.num_experts) / experiments.FAILURE) / (2 * rounds))
