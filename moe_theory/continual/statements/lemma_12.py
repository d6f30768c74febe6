"""Lemma 12: the locality loss's gradient where a task goes to an expert of its set, by (11) at the gates that route."""

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.continual.statements.setting import statement
from moe_theory.verification.statement import identity, rate

NO_MOVE = identity(within=1e-3)  # in units of the truths' root mean square, for float32
STATED = rate(at_least=1.5)
BY_MANY = experiments.SPECIALIZATION.over(experiments.MANY_CELLS)
BY_FEW = experiments.SPECIALIZATION.over(experiments.FEW_CELLS)

TASKS = statement("lemma-12-more-experts", module=__name__)
CLUSTERS = statement("lemma-12-fewer-experts", module=__name__)
TASKS.cite("proposition-1.contraction", role="corrected")


@TASKS.charitable("lemma-12.tasks", BY_MANY, NO_MOVE, instead="proposition-1.contraction")
@TASKS.intervention("lemma-12.tasks-apart", interventions.LEARNED_APART.over(experiments.MANY_SMALLEST), NO_MOVE)
@TASKS.suspect("lemma-12.tasks-at-once", interventions.LEARNED_AT_ONCE.over(experiments.MANY_SMALLEST), NO_MOVE)
def largest_correct_gradient(run) -> np.ndarray:
    records = run.records
    late = experiments.past_exploration(run)
    largest = np.max(np.where(records.is_inside[late], records.locality_gradient[late], 0), axis=0)
    return largest / experiments.truth_length(run)


@CLUSTERS.charitable("lemma-12.clusters", BY_FEW, STATED, instead="lemma-12.clusters-order")
@CLUSTERS.intervention("lemma-12.clusters-apart", interventions.LEARNED_APART.over(experiments.FEW_CELLS), STATED)
@CLUSTERS.suspect("lemma-12.clusters-at-once", interventions.LEARNED_AT_ONCE.over(experiments.FEW_CELLS), STATED)
@CLUSTERS.replacement("lemma-12.clusters-order", BY_FEW, rate(at_least=1.0))
def correct_gradient(run) -> np.ndarray:
    """Return the mean locality gradient of arrivals of T1 + 1, ..., t_1 at an expert of their set."""
    rows = experiments.router_learning(run)
    gradients = run.records.locality_gradient[rows]
    is_inside = run.records.is_inside[rows]
    return np.sum(np.where(is_inside, gradients, 0.0), axis=0) / np.maximum(np.sum(is_inside, axis=0), 1)
