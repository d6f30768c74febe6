"""Lemma 5: the order of the gates' gradients. The slope of log means over a grid of sigma_0 tests an O() or Omega()."""

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.continual.statements.setting import statement
from moe_theory.verification.statement import rate

EXPLORATION = statement("lemma-5-exploration", module=__name__, free=(experiments.FREE_ETA, *experiments.FREE_AT_LEVEL))


@EXPLORATION.charitable("lemma-5.exploration", experiments.BY_SCALE, rate(at_most=1.0))
@EXPLORATION.competitor("lemma-5.exploration-quiet", interventions.QUIET_BY_SCALE, rate(at_most=1.0))
def least_explored_gradient(run) -> np.ndarray:
    return experiments.up_to_t1(run, "least_balance_gradient").min(axis=0)


ROUTING = statement("lemma-5-router-learning", module=__name__, free=experiments.FREE_AT_LEVEL)


@ROUTING.charitable("lemma-5.routing", experiments.BY_SCALE, rate(at_least=1.0))
def largest_routed_gradient(run) -> np.ndarray:
    t1 = experiments.stage_rounds(run.params)
    gradients = experiments.from_to(run, "largest_gradient", t1 + 1, t1 + experiments.ROUNDS_PAST_EXPLORATION)
    return gradients.max(axis=0)
