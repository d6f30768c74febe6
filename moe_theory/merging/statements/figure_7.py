"""Fig. 7: Tanbr's rho and the step of its network, on a reward with one peak."""

import itertools

import numpy as np

from moe_theory.merging import experiments
from moe_theory.merging.statements.setting import statement

RATIOS, RATES = (experiments.ABLATION.over(name).jointly() for name in ("smoothness_ratio", "learning_rate"))
PAIRS = [f"rho = {one:g} against {other:g}" for one, other in itertools.pairwise(experiments.SMOOTHNESS_RATIOS)]

FIGURE_7 = statement("figure-7", module=__name__)


@FIGURE_7.ours("figure-7.conservative", RATIOS, experiments.MOSTLY, labels=PAIRS)
def leaves_increase(*runs) -> np.ndarray:
    return experiments.increases([experiments.recorded(run, "num_leaves")[-1] for run in runs])


@FIGURE_7.ours("figure-7.small-ratio", RATIOS, experiments.MOSTLY, labels=PAIRS)
def late_value_increases(*runs) -> np.ndarray:
    return experiments.increases([experiments.mean_value(run, 384, 512) for run in runs])


@FIGURE_7.ours("figure-7.fast-start", RATIOS, experiments.MOSTLY, labels=PAIRS)
def early_value_decreases(*runs) -> np.ndarray:
    return experiments.increases([-experiments.mean_value(run, 0, 128) for run in runs])


@FIGURE_7.ours("figure-7.learning-rate", RATES, experiments.MOSTLY, labels=["0.5"])
def early_value_increases(*runs) -> np.ndarray:
    return experiments.increases([experiments.mean_value(run, 0, 128) for run in runs])
