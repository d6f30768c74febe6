"""Figs. 3 to 7 of `continual`, which compare several experts with one, and termination with none."""

from typing import NamedTuple

import numpy as np

from moe_theory.deep import experiments
from moe_theory.deep.experiments import MOSTLY
from moe_theory.deep.presets import STRONG, WEAK, expert_cell
from moe_theory.deep.statements.setting import statement
from moe_theory.verification import Experiment
from moe_theory.verification.claim import Selection


class Figure(NamedTuple):
    id: str
    experiment: Experiment
    sizes: tuple[int, ...]  # numbers M of experts above 1
    panels: tuple[str, ...]  # names of metrics, the last parts of claims' ids


final_error = experiments.final("generalization_error")
METRICS = {  # smaller is better
    "error": final_error,
    "forgetting": experiments.final("forgetting"),
    "accuracy": lambda run: 1 - experiments.final("accuracy")(run),
}
FIGURES = (
    Figure("figure-3-transfer", experiments.CIFAR10, (4, 12), ("error", "accuracy")),
    Figure("figure-4", experiments.CIFAR10, (4,), ("forgetting",)),
    Figure("figure-5", experiments.MNIST, (4, 7), ("forgetting", "error")),
    Figure("figure-6", experiments.CIFAR100, (8, 10), ("forgetting", "error")),
    Figure("figure-7", experiments.TINY_IMAGENET, (8, 10), ("forgetting", "error")),
)
STATEMENTS = {figure.id: statement(figure.id, module=__name__) for figure in FIGURES}


def claim_below(figure: Figure, panel: str, rival: str) -> None:
    """Claim that in most runs on the same tasks every number of experts ends below its rival.

    The rival for "moe" is one expert. The rival for "termination" is the same number of experts without termination.
    """
    metric = METRICS[panel]
    terminated = experiments.of_experts(metric, figure.sizes, terminate=True)
    if rival == "termination":
        rival_values = experiments.of_experts(metric, figure.sizes, terminate=False)
    else:
        rival_values = experiments.of_experts(metric, (1,) * len(figure.sizes))
    STATEMENTS[figure.id].ours(
        f"{figure.id.removesuffix('-transfer')}.{rival}-{panel}",
        figure.experiment,
        MOSTLY,
        labels=experiments.by_size(figure.sizes),
    )(lambda runs: terminated(runs) < rival_values(runs))


for figure in FIGURES:
    for panel in figure.panels:
        for rival in ("moe", "termination"):
            claim_below(figure, panel, rival)


FIGURE_3 = STATEMENTS["figure-3-transfer"]
DRIVE_EXPERTS = 4
NECESSARY = 1.25  # our reading of "poor performance" is an error that is larger by 25 %
HARMLESS = 1.1  # our reading of its absence is an error that is larger by at most 10 %


def endless_and_ended(scale: float) -> Selection:
    endless = expert_cell(DRIVE_EXPERTS, terminate=False, gate_scale=scale)
    ended = expert_cell(DRIVE_EXPERTS, terminate=True, gate_scale=scale)
    return experiments.DRIVE.together(endless, ended)


AT_WEAK = endless_and_ended(WEAK)
AT_STRONG = endless_and_ended(STRONG)
LABEL = [f"M = {DRIVE_EXPERTS}"]


@FIGURE_3.ours("drive.superfluous", AT_STRONG, MOSTLY, labels=LABEL, hypotheses=["large-gate-steps"])
def costs_little(endless, ended) -> np.ndarray:
    return final_error(endless) <= HARMLESS * final_error(ended)


@FIGURE_3.ours(
    "drive.strong", AT_STRONG, MOSTLY, labels=LABEL, hypotheses=["large-gate-steps"], instead="drive.superfluous"
)
@FIGURE_3.ours("drive.weak", AT_WEAK, MOSTLY, labels=LABEL, hypotheses=["small-gate-steps"])
def costs_a_quarter(endless, ended) -> np.ndarray:
    return final_error(endless) >= NECESSARY * final_error(ended)
