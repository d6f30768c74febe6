"""The definition of the regret, from the best weights."""

import numpy as np

from moe_theory.merging import policies
from moe_theory.merging.experiments import SURFACE, recorded
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.claim import Runs
from moe_theory.verification.statement import counterexample, identity

LEAST_LOSS = 1e-3  # largest sum of regrets that rounding may turn 0 into

REGRET = statement("regret", module=__name__)


@REGRET.literal(
    "regret.mean-of-bests", SURFACE["shares"].at(policies.MIX), counterexample(), instead="regret.best-weights"
)
def loses(run) -> np.ndarray:
    return recorded(run, "cumulative_regret")[-1] > LEAST_LOSS


@REGRET.charitable("regret.best-weights", SURFACE["shares"], identity(within=1e-5))
def largest_gain(runs: Runs) -> np.ndarray:
    return np.max([np.maximum(-recorded(run, "regret"), 0).max(axis=0) for run in runs.values()], axis=0)
