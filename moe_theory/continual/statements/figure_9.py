"""Sentences about Fig. 9: how the threshold of termination affects learning."""

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.continual.statements.setting import statement
from moe_theory.verification.statement import equality, ordering

THRESHOLDS = list(experiments.THRESHOLDS)  # cells: two with Gamma > lambda, and two with Gamma <= lambda
FORGETTING_MARGIN = 0.05  # share of the gap between tasks, our reading of "robust"

FORGETTING = statement("figure-9-forgetting", module=__name__)
GENERALIZATION_ERROR = statement("figure-9-generalization-error", module=__name__)
DIVERSITY = statement("figure-9-diversity", module=__name__)

final_forgetting = experiments.final("forgetting")
final_error = experiments.final("generalization_error")


def mean_error(runs) -> np.ndarray:
    return np.mean([final_error(run) for run in runs], axis=0)


@FORGETTING.figure(
    "figure-9.forgetting",
    experiments.FIGURE_9.together(*THRESHOLDS),
    equality(
        lambda first, *others: final_forgetting(first)[None],
        margin=FORGETTING_MARGIN,
        scale=lambda first, *others: experiments.task_gap(first)[None],
    ),
    labels=THRESHOLDS[1:],
)
def forgetting_of_others(first, *others) -> np.ndarray:
    return np.stack([final_forgetting(run) for run in others])


below_large = ordering(below=lambda *runs: mean_error(runs[:2]))  # runs with Gamma > lambda


@GENERALIZATION_ERROR.figure(
    "figure-9.generalization", experiments.FIGURE_9.together(*THRESHOLDS), below_large, labels=["Gamma at most lambda"]
)
@GENERALIZATION_ERROR.literal(
    "figure-9.generalization-short",
    interventions.FIGURE_9_SHORT.together(*THRESHOLDS),
    below_large,
    labels=["Gamma at most lambda"],
)
def error_of_small(*runs) -> np.ndarray:
    return mean_error(runs[2:])


CELL_OF_FIVE = experiments.threshold_name(experiments.PERTURBATION_POWER)
below_one = ordering(below=lambda five, single: final_error(single))


@DIVERSITY.competitor(
    "figure-9.diversity-blind", interventions.FIGURE_9_BLIND.together(CELL_OF_FIVE, experiments.SINGLE), below_one
)
@DIVERSITY.figure(
    "figure-9.diversity",
    experiments.FIGURE_9.together(CELL_OF_FIVE, experiments.SINGLE),
    below_one,
    labels=[CELL_OF_FIVE],
)
def error_of_five(five, single) -> np.ndarray:
    return final_error(five)
