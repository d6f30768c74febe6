"""Proposition 1: experts keep their sets and their models after exploration.

There are six unrelated tasks (M > N), or three clusters of two (M < N). Sets follow (11), at the gates that route.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.continual.experiments import LIKELY
from moe_theory.continual.statements.setting import MORE_EXPERTS, statement
from moe_theory.continual.theory import error_contraction
from moe_theory.runs import Run
from moe_theory.verification.claim import Selection
from moe_theory.verification.statement import Criterion, Declared, bound, equality, limit_rate

UNCHANGED = 1e-3  # moves below this share of the truths' root mean square are rounding errors in float32
HARDLY = 0.9  # share of the error of random tasks that counts as no specialisation
LEARNED = 1e-4  # share of the truths' mean square below which rounding spoils ratios of squared errors
MANY = experiments.LIMIT_MANY
FEW = experiments.LIMIT_FEW
SMALLEST = MANY.experiment.at(experiments.specialization_cell(experiments.MANY_EXPERTS, experiments.LIMIT_SCALES[0]))

UNEARNED = {  # interventions that remove the cause that the paper gives for the sets
    "unexplored": interventions.UNEXPLORED,  # small random gates at T1, after no exploration
    "open": interventions.OPEN,  # gates that are never fixed
}

FREE = (experiments.FREE_SIGNALS, *experiments.FREE)
TASK_SETS = statement("proposition-1-more-experts-set", module=__name__, free=FREE)
TASK_MODELS = statement("proposition-1-more-experts-model", module=__name__)
CLUSTER_SETS = statement("proposition-1-fewer-experts-set", module=__name__, free=FREE)
CLUSTER_MODELS = statement("proposition-1-fewer-experts-model", module=__name__)
CLUSTER_MODELS.cite("proposition-1.contraction", role="corrected")


@TASK_SETS.charitable("proposition-1.sets-tasks", MANY, LIKELY)
@CLUSTER_SETS.charitable("proposition-1.sets-clusters", FEW, LIKELY)
def is_always_stable(run) -> np.ndarray:
    return run.state.is_stable


def claim_competitors(
    measure: Callable[[Run], np.ndarray],
    cases: Mapping[str, Declared],
    rivals: Mapping[str, Sequence[Selection]],
    criterion: Criterion = LIKELY,
) -> None:
    """Declare a claim for each rival in both cases, M > N and M < N, given by their claims' ids."""
    for name, runs in rivals.items():
        for (id, case), runs_of_case in zip(cases.items(), runs, strict=True):
            case.competitor(f"{id}-{name}", runs_of_case, criterion)(measure)


claim_competitors(
    is_always_stable, {"proposition-1.sets-tasks": TASK_SETS, "proposition-1.sets-clusters": CLUSTER_SETS}, UNEARNED
)


@TASK_MODELS.charitable(
    "proposition-1.unchanged", MANY, LIKELY, hypotheses=MORE_EXPERTS, instead="proposition-1.contraction"
)
@TASK_MODELS.intervention("proposition-1.unchanged-apart", interventions.APART_MANY, LIKELY, hypotheses=MORE_EXPERTS)
@TASK_MODELS.suspect("proposition-1.unchanged-at-once", interventions.AT_ONCE_MANY, LIKELY, hypotheses=MORE_EXPERTS)
def is_unchanged(run) -> np.ndarray:
    return run.state.drift <= UNCHANGED * experiments.truth_length(run)


@CLUSTER_MODELS.charitable("proposition-1.drift", FEW, limit_rate(at_least=1.5), instead="proposition-1.contraction")
@CLUSTER_MODELS.intervention("proposition-1.drift-apart", interventions.APART_FEW, limit_rate(at_least=1.5))
@CLUSTER_MODELS.suspect("proposition-1.drift-at-once", interventions.AT_ONCE_FEW, limit_rate(at_least=1.5))
def largest_drift(run) -> np.ndarray:
    return run.state.drift


def late_repeats(run) -> tuple[np.ndarray, np.ndarray]:
    """Return where an expert past T1 repeats a task that it has not learned, and its squared error before (T, B)."""
    # A move is orthogonal to the error after it, so the squared error before it is the sum of both squares.
    before = run.records.error + run.records.update_norm.astype(np.float64) ** 2
    repeats = experiments.repeats_of(run) & (before > LEARNED * experiments.truth_length(run) ** 2)
    repeats[: experiments.stage_rounds(run.params)] = False
    return repeats, before


def contracted_errors(run) -> np.ndarray:
    """Return the expectation of `remaining_errors` (B,)."""
    dims = experiments.SPECIALIZATION.dims
    repeats, _ = late_repeats(run)
    return error_contraction(dims.num_features, dims.num_samples) * np.sum(repeats, axis=0)


@TASK_MODELS.replacement(
    "proposition-1.contraction",
    experiments.SPECIALIZATION.over(experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2),
    equality(contracted_errors, margin=0.02),
)
def remaining_errors(run) -> np.ndarray:
    """Return the sum over late repeats of the share of the squared error that remains (B,)."""
    repeats, before = late_repeats(run)
    return np.sum(np.where(repeats, run.records.error / np.where(repeats, before, 1), 0), axis=0)


@TASK_SETS.step("proposition-1.order-tasks", MANY, LIKELY)
@CLUSTER_SETS.step("proposition-1.order-clusters", FEW, LIKELY)
def is_ordered_after_exploration(run) -> np.ndarray:
    return run.state.was_ordered


EQUATION_35 = statement("equation-35", module=__name__)


@EQUATION_35.charitable("equation-35", MANY, limit_rate(at_most=0.5), instead="equation-35.order")
@EQUATION_35.replacement("equation-35.order", MANY, limit_rate(at_least=1.0))
def largest_probability_gap(run) -> np.ndarray:
    return run.state.probability_gap


def most_of_blind_error(run) -> np.ndarray:
    return HARDLY * experiments.task_gap(run)


@EQUATION_35.ours("equation-35.nothing-specialises", SMALLEST, bound(at_least=most_of_blind_error))
def last_error(run) -> np.ndarray:
    return run.records.generalization_error[-1]
