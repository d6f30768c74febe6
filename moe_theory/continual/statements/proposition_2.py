"""Proposition 2: gate outputs if the gates are never fixed.

Gaps use the rounds' own features X_t, and are means over the 20 rounds up to t_1 or over ten of the last 200 up to t_2.
Sets follow (11), at the gates that route. A gap within a set is for the arriving task's set, as in the proof.
"""

from collections.abc import Callable, Sequence

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.continual.statements.proposition_1 import claim_competitors
from moe_theory.continual.statements.setting import statement
from moe_theory.runs import Run
from moe_theory.verification.statement import Criterion, bound, limit_rate

NUM_AVERAGED = 10  # records up to t_2 over which a gap is averaged, fewer in a short run
BY_MANY = experiments.ENDLESS_MANY
BY_FEW = experiments.ENDLESS_FEW
BY_MANY_LONG = experiments.RETURN_MANY
BY_FEW_LONG = experiments.RETURN_FEW
STATED = limit_rate(at_least=1.75)
APART = limit_rate(equal=0.75)
DIFFUSED = limit_rate(equal=1.375)  # the middle of the orders 1.5 (the gates' step eta sigma_0) and 1.25 (lambda)

SAME_SET = statement("proposition-2-more-experts-same-set", module=__name__)
OTHER_SET = statement("proposition-2-more-experts-other-set", module=__name__)
ALL = statement("proposition-2-more-experts-all", module=__name__)
SAME_SET_FEW = statement("proposition-2-fewer-experts-same-set", module=__name__)
OTHER_SET_FEW = statement("proposition-2-fewer-experts-other-set", module=__name__)
ALL_FEW = statement("proposition-2-fewer-experts-all", module=__name__)


def own_gap(run: Run) -> np.ndarray:
    return run.state.own_gap


def other_gap(run: Run) -> np.ndarray:
    return run.state.other_gap


def any_gap(run: Run) -> np.ndarray:
    t2 = experiments.stage_rounds(run.params, experiments.RETURN_POWER)
    end = np.searchsorted(run.rounds, t2, side="right")
    return run.records.any_gap[max(end - NUM_AVERAGED, end // 2) : end].mean(axis=0, dtype=np.float64)


def in_stated_units(measure: Callable[[Run], np.ndarray], runs: Sequence[Run]) -> np.ndarray:
    return np.stack([measure(run) / float(run.params.truth_scale) ** 1.75 for run in runs])


def at_smaller_scales(measure: Callable[[Run], np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda *runs: in_stated_units(measure, runs[:-1])


def no_growth(measure: Callable[[Run], np.ndarray]) -> Criterion:
    """Return the bound of at most 10 % growth from one sigma_0 to the next smaller one: an order of at least 1.69."""
    return bound(at_most=lambda *runs: in_stated_units(measure, runs[1:]), margin=0.1)


SMALLER_OWN = at_smaller_scales(own_gap)
OWN_STAYS = no_growth(own_gap)
SMALLER_ANY = at_smaller_scales(any_gap)
ANY_STAYS = no_growth(any_gap)

SAME_SET.charitable("proposition-2.same-set-slow", experiments.SLOW_MANY.jointly(), OWN_STAYS)(SMALLER_OWN)
SAME_SET_FEW.charitable("proposition-2.same-set-clusters-slow", experiments.SLOW_FEW.jointly(), OWN_STAYS)(SMALLER_OWN)
SAME_SET.literal("proposition-2.same-set", BY_MANY, STATED, instead="proposition-2.same-set-order")(own_gap)
SAME_SET.ours("proposition-2.same-set-still", interventions.STILL_MANY, STATED)(own_gap)
SAME_SET_FEW.ours("proposition-2.same-set-clusters-still", interventions.STILL_FEW, STATED)(own_gap)
SAME_SET_FEW.literal(
    "proposition-2.same-set-clusters", BY_FEW, STATED, instead="proposition-2.same-set-clusters-order"
)(own_gap)
SAME_SET.replacement("proposition-2.same-set-order", BY_MANY, DIFFUSED)(own_gap)
SAME_SET_FEW.replacement("proposition-2.same-set-clusters-order", BY_FEW, DIFFUSED)(own_gap)
OTHER_SET.charitable("proposition-2.other-set", BY_MANY, APART, instead="proposition-2.other-set-order")(other_gap)
OTHER_SET_FEW.charitable(
    "proposition-2.other-set-clusters", BY_FEW, APART, instead="proposition-2.other-set-clusters-order"
)(other_gap)
OTHER_SET.replacement("proposition-2.other-set-order", BY_MANY, limit_rate(at_least=0.75))(other_gap)
OTHER_SET_FEW.replacement("proposition-2.other-set-clusters-order", BY_FEW, limit_rate(at_least=0.75))(other_gap)
ALL.charitable("proposition-2.all-experts-slow", experiments.SLOW_RETURN_MANY.jointly(), ANY_STAYS)(SMALLER_ANY)
ALL_FEW.charitable("proposition-2.all-experts-clusters-slow", experiments.SLOW_RETURN_FEW.jointly(), ANY_STAYS)(
    SMALLER_ANY
)
BLIND_AND_SLOW = [runs.jointly() for runs in interventions.SLOW_BLIND]
claim_competitors(
    SMALLER_ANY,
    {"proposition-2.all-experts-slow": ALL, "proposition-2.all-experts-clusters-slow": ALL_FEW},
    {"blind": BLIND_AND_SLOW},
    ANY_STAYS,
)
ALL.literal("proposition-2.all-experts", BY_MANY_LONG, STATED, instead="proposition-2.all-experts-order")(any_gap)
ALL_FEW.literal(
    "proposition-2.all-experts-clusters", BY_FEW_LONG, STATED, instead="proposition-2.all-experts-clusters-order"
)(any_gap)
ALL.replacement("proposition-2.all-experts-order", BY_MANY_LONG, limit_rate(at_least=1.0))(any_gap)
ALL_FEW.replacement("proposition-2.all-experts-clusters-order", BY_FEW_LONG, limit_rate(at_least=1.0))(any_gap)
