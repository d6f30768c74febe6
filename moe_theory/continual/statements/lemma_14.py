"""Lemma 14: the gates' gradients between T1 and t_1, if the gates are never fixed."""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.continual.statements.setting import FEWER_EXPERTS, MORE_EXPERTS, statement
from moe_theory.verification.statement import rate

MANY = experiments.NO_TERMINATION.over(experiments.MANY_CELLS)
FEW = experiments.NO_TERMINATION.over(experiments.FEW_CELLS)

LEMMA_14 = statement("lemma-14", module=__name__)


@LEMMA_14.charitable("lemma-14.tasks", MANY, rate(at_least=1.0), hypotheses=MORE_EXPERTS)
@LEMMA_14.charitable("lemma-14.clusters", FEW, rate(at_least=1.0), hypotheses=FEWER_EXPERTS)
def largest_gradient_gap(run) -> np.ndarray:
    return run.records.gradient_gap[experiments.router_learning(run)].max(axis=0).astype(np.float64)
