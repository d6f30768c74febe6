"""Fig. 7: effects of Tanbr's rho and of its network's learning rate, on a reward with one peak."""

import itertools

import numpy as np

from moe_theory.merging import experiments
from moe_theory.merging.statements.setting import statement

RUNS_BY_RATIO = experiments.ABLATION.over("smoothness_ratio").jointly()
RUNS_BY_RATE = experiments.ABLATION.over("learning_rate").jointly()
PAIRS = [f"rho = {low:g} against {high:g}" for low, high in itertools.pairwise(experiments.SMOOTHNESS_RATIOS)]

FIGURE_7 = statement("figure-7", module=__name__)


@FIGURE_7.ours("figure-7.conservative", RUNS_BY_RATIO, experiments.MOSTLY, labels=PAIRS)
def leaves_increase(*runs) -> np.ndarray:
    return experiments.increases([experiments.recorded(run, "num_leaves")[-1] for run in runs])


@FIGURE_7.ours("figure-7.small-ratio", RUNS_BY_RATIO, experiments.MOSTLY, labels=PAIRS)
def late_value_increases(*runs) -> np.ndarray:
    return experiments.increases([experiments.mean_value(run, 384, 512) for run in runs])


@FIGURE_7.ours("figure-7.fast-start", RUNS_BY_RATIO, experiments.MOSTLY, labels=PAIRS)
def early_value_decreases(*runs) -> np.ndarray:
    return experiments.increases([-experiments.mean_value(run, 0, 128) for run in runs])


@FIGURE_7.ours("figure-7.learning-rate", RUNS_BY_RATE, experiments.MOSTLY, labels=["0.5"])
def early_value_increases(*runs) -> np.ndarray:
    return experiments.increases([experiments.mean_value(run, 0, 128) for run in runs])
