"""Fig. 7: Tanbr's rho and the step of its network, on a reward with one peak."""

import itertools

import numpy as np

from moe_theory.merging import experiments
from moe_theory.verify.statement import statement

RATIOS, RATES = (experiments.ABLATION.over(name).jointly() for name in ("smoothness_ratio", "learning_rate"))
PAIRS = [f"rho = {one:g} against {other:g}" for one, other in itertools.pairwise(experiments.SMOOTHNESS_RATIOS)]
WHERE = "Section V-D, Fig. 7"

FIGURE_7 = statement(
    "figure-7",
    where="Fig. 7 and Section V-D",
    says="A smaller rho splits later, learns faster at first and ends lower; a larger learning rate converges faster.",
    hypotheses=experiments.ON_REWARDS,
    untestable="The curves are of the paper's own model and mix, and are not given as numbers. Beside it: a reward of "
    "ours with one peak, over 512 slots.",
)


@FIGURE_7.ours("figure-7.conservative", RATIOS, experiments.MOSTLY, where=WHERE, labels=PAIRS)
def leaves_increase(*runs) -> np.ndarray:
    r"""A smaller rho makes the tree split later: in most worlds it has fewer candidates in the end.
    $$N_T(\rho) < N_T(\rho'), \quad \rho < \rho'$$"""
    return experiments.increases([experiments.recorded(run, "num_leaves")[-1] for run in runs])


@FIGURE_7.ours("figure-7.small-ratio", RATIOS, experiments.MOSTLY, where=WHERE, labels=PAIRS)
def late_value_increases(*runs) -> np.ndarray:
    r"""A smaller rho ends, in most worlds, in a lower mean reward over the last quarter of the slots.
    $$\bar{f}(\rho) < \bar{f}(\rho'), \quad \rho < \rho'$$"""
    return experiments.increases([experiments.mean_value(run, 384, 512) for run in runs])


@FIGURE_7.ours("figure-7.fast-start", RATIOS, experiments.MOSTLY, where=WHERE, labels=PAIRS)
def early_value_decreases(*runs) -> np.ndarray:
    r"""A smaller rho learns faster at first: in most worlds the mean reward of the first quarter is higher.
    $$\bar{f}(\rho') < \bar{f}(\rho), \quad \rho < \rho'$$"""
    return experiments.increases([-experiments.mean_value(run, 0, 128) for run in runs])


@FIGURE_7.ours("figure-7.learning-rate", RATES, experiments.MOSTLY, where=WHERE, labels=["0.5"])
def early_value_increases(*runs) -> np.ndarray:
    r"""A larger learning rate converges faster: in most worlds the mean reward of the first quarter is higher.
    $$\bar{f}(\eta) < \bar{f}(\eta'), \quad \eta < \eta'$$"""
    return experiments.increases([experiments.mean_value(run, 0, 128) for run in runs])
