"""Proposition 2: when the router has converged."""

import numpy as np

from moe_theory.core.gating import pairs_of
from moe_theory.edge import experiments, interventions
from moe_theory.edge.experiments import BY_SCALE, MARGIN, misrouted_share
from moe_theory.edge.statements.setting import statement
from moe_theory.verification.statement import identity, limit_probability, limit_rate

VANISHING = limit_rate(at_least=0.4, margin=0.2)  # a share that falls slower than sigma_0^(0.4 - 0.2) stays


def probabilities_of(run) -> tuple[np.ndarray, np.ndarray]:
    """Return pi of every expert for every type at T1, and who specialises in the type, both (M, N, B)."""
    outputs = experiments.signal_outputs(run)
    return np.exp(experiments.log_probabilities(outputs)), experiments.is_specialist(outputs)


SAME_SET = statement("proposition-2-same-set", module=__name__, free=(*experiments.FREE, experiments.FREE_SERVERS))
FIRST_ORDER = limit_rate(at_least=1, margin=MARGIN)


@SAME_SET.competitor("proposition-2.same-set-constant-router", interventions.FIRST_IDLE, FIRST_ORDER)
@SAME_SET.charitable("proposition-2.same-set", BY_SCALE, FIRST_ORDER)
def gap_in_a_set(run) -> np.ndarray:
    probabilities, is_own = probabilities_of(run)
    highest = np.max(np.where(is_own, probabilities, -np.inf), axis=0)
    lowest = np.min(np.where(is_own, probabilities, np.inf), axis=0)
    return np.maximum(highest - lowest, 0).max(axis=0)  # 0 where a set is empty


OTHER_SET = statement("proposition-2-other-set", module=__name__)
OTHER_SET.cite("equation-33.all-pairs", role="corrected")
SETS_APART = limit_rate(at_most=0.5, margin=MARGIN)


@OTHER_SET.intervention("proposition-2.other-set-long-signals", interventions.WITHOUT_SMALL_OUTPUTS, SETS_APART)
@OTHER_SET.suspect("proposition-2.other-set-no-noise", interventions.WITHOUT_NOISE, SETS_APART)
@OTHER_SET.charitable("proposition-2.other-set", BY_SCALE, SETS_APART, instead="equation-33.all-pairs")
def gap_between_sets(run) -> np.ndarray:
    probabilities, is_own = probabilities_of(run)
    gaps = []  # how far the highest probability inside a set is above the lowest outside, and the reverse
    for is_upper_side in (is_own, ~is_own):
        highest = np.max(np.where(is_upper_side, probabilities, -np.inf), axis=0)
        lowest = np.min(np.where(is_upper_side, np.inf, probabilities), axis=0)
        gaps.append(highest - lowest)
    return np.maximum(np.maximum(*gaps), 0).max(axis=0)  # 0 where a set is empty


EQUATION_30 = statement("equation-30", module=__name__)


@EQUATION_30.suspect("equation-30.long-signals", interventions.WITHOUT_SMALL_OUTPUTS, VANISHING)
@EQUATION_30.charitable("equation-30.pairs", BY_SCALE, VANISHING, instead="equation-30.one-of-two")
def share_out_of_order(run) -> np.ndarray:
    pairs = pairs_of(experiments.signal_outputs(run))
    num_pairs = np.maximum(pairs.exist.sum(axis=(0, 1)), 1)
    return np.sum(pairs.exist & (pairs.trail | pairs.swapped), axis=(0, 1)) / num_pairs


@EQUATION_30.replacement("equation-30.one-of-two", BY_SCALE, identity(within=0))
def num_without_order(run) -> np.ndarray:
    pairs = pairs_of(experiments.signal_outputs(run))
    return np.sum(pairs.exist & pairs.trail & pairs.swapped, axis=(0, 1)).astype(float)


ROUTING = statement("proposition-2-routing", module=__name__)
ROUTING.charitable("proposition-2.routing", BY_SCALE, VANISHING, instead="proposition-2.share-stays")(misrouted_share)
for name, runs in (
    ("long-signals", interventions.WITHOUT_SMALL_OUTPUTS),
    ("no-noise", interventions.WITHOUT_NOISE),
    ("above-own-mean", interventions.ABOVE_OWN_MEAN),
):
    ROUTING.suspect(f"proposition-2.routing-{name}", runs, VANISHING)(misrouted_share)
ROUTING.replacement("proposition-2.share-stays", BY_SCALE, limit_rate(equal=0, margin=0.1))(misrouted_share)


@statement("proposition-2-exploration", module=__name__).charitable(
    "proposition-2.exploration", BY_SCALE, limit_probability(to=0, margin=0.1)
)
def is_rarely_explored(run) -> np.ndarray:
    loads = run.records.loads[experiments.explored_record(run)][: int(run.params.num_experts)]
    stated = float(run.params.learning_rate) ** -1 * float(run.params.truth_scale) ** -0.5
    return loads.min(axis=0) < stated
