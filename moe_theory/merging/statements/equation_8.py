"""Eq. (8): the number of candidates in slot t, which follows from (7)."""

import numpy as np

from moe_theory.merging import theory
from moe_theory.merging.experiments import BY_RATIO, SMOOTHNESS_RATIOS, by_ratio, candidates, computed
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.claim import excess
from moe_theory.verification.statement import alike, identity

RATES = 1 / (1 - np.array(SMOOTHNESS_RATIOS))
X = 100.0  # x at which the powers are compared
POWER = 2 ** (RATES * np.log(X))

EQUATION_8 = statement("equation-8", module=__name__)


def excess_over_bound(run) -> np.ndarray:
    bound = theory.leaf_bound_at(run.rounds.astype(float), int(run.rounds[-1]), run.params)
    return excess(candidates(run), np.reshape(bound, (-1, 1)))


@EQUATION_8.charitable("equation-8.later", by_ratio("in-turn"), identity(within=0))
def later_candidates_beyond(run) -> np.ndarray:
    horizon = int(run.rounds[-1])
    allowed = theory.leaf_bound_at(run.rounds.astype(float), horizon, run.params)
    is_counted = (run.rounds >= horizon**0.5) & (allowed >= 2)
    return excess_over_bound(run)[is_counted].max(axis=0)


@EQUATION_8.literal("equation-8.early", by_ratio("in-turn"), identity(within=0), instead="lemma-1.leaves")
def candidates_beyond(run) -> np.ndarray:
    return excess_over_bound(run).max(axis=0)


@EQUATION_8.step("equation-8.power", computed(*BY_RATIO), identity(within=1e-9), instead="equation-8.right-power")
def power_error(run) -> np.ndarray:
    return alike(run, np.abs(POWER - 2**RATES * X) / np.maximum(POWER, 2**RATES * X))


@EQUATION_8.replacement("equation-8.right-power", computed(*BY_RATIO), identity(within=1e-9))
def right_power_error(run) -> np.ndarray:
    right_power = X ** (RATES * np.log(2))
    return alike(run, np.abs(POWER - right_power) / np.maximum(POWER, right_power))


EQUATION_8.cite("lemma-1.leaves", role="corrected")
