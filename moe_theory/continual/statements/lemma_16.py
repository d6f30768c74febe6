"""Lemma 16: the error of an arrival's expert, after T1 and up to T1."""

from collections.abc import Callable

import numpy as np

from moe_theory.continual import experiments, interventions, theory
from moe_theory.continual.statements.setting import statement
from moe_theory.runs import Run
from moe_theory.verification.region import Size
from moe_theory.verification.statement import equality, identity

NO_CHANGE = identity(within=1e-3)  # in units of the truths' mean square, for float32
BY_MANY = experiments.SPECIALIZATION.over(experiments.MANY_CELLS)
LARGEST_CELLS = experiments.MANY_LARGEST + experiments.FEW_LARGEST
AT_LARGEST = experiments.NO_TERMINATION.over(LARGEST_CELLS)  # sigma_0

FROZEN = statement("lemma-16-frozen", module=__name__)
FREE_SAMPLES = Size("num_samples", low=1, high=9)
FREE_HISTORY = (FREE_SAMPLES, experiments.FREE_NOISE, experiments.FREE_BETA)
HISTORY = statement("lemma-16-history", module=__name__, free=FREE_HISTORY)
FROZEN.cite("proposition-1.contraction", role="corrected")


@FROZEN.charitable("lemma-16.distance", BY_MANY, NO_CHANGE, instead="proposition-1.contraction")
@FROZEN.intervention("lemma-16.distance-apart", interventions.LEARNED_APART.over(experiments.MANY_SMALLEST), NO_CHANGE)
@FROZEN.suspect("lemma-16.distance-at-once", interventions.LEARNED_AT_ONCE.over(experiments.MANY_SMALLEST), NO_CHANGE)
def largest_distance_change(run) -> np.ndarray:
    past_t1 = slice(experiments.stage_rounds(run.params), None)
    return run.records.distance_change[past_t1].max(axis=0) / experiments.truth_length(run) ** 2


def history_error(run) -> np.ndarray:
    rows = slice(experiments.stage_rounds(run.params))
    truths = run.state.pool.truths.astype(np.float64)
    ratio = theory.overparameterization_ratio(run.dims.num_features, run.dims.num_samples)
    return theory.lemma_16(run.records.task[rows], run.records.expert[rows], truths, ratio)


AS_BY_HISTORY = equality(history_error, margin=0.02)


@HISTORY.charitable("lemma-16.history", AT_LARGEST, AS_BY_HISTORY, instead="lemma-16.step")
@HISTORY.intervention("lemma-16.history-gaussian", interventions.EXPLORED.over(LARGEST_CELLS), AS_BY_HISTORY)
@HISTORY.suspect("lemma-16.history-blind", interventions.EXPLORED_BLINDLY.over(LARGEST_CELLS), AS_BY_HISTORY)
def explored_error(run) -> np.ndarray:
    return experiments.up_to_t1(run, "generalization_error")[-1]


def mean_up_to_t1(name: str) -> Callable[[Run], np.ndarray]:
    return lambda run: getattr(run.records, name)[: experiments.stage_rounds(run.params)].mean(axis=0, dtype=np.float64)


HISTORY.replacement("lemma-16.step", AT_LARGEST, equality(mean_up_to_t1("step_expected"), margin=0.02))(
    mean_up_to_t1("step_error")
)
