"""Eqs. (13) to (15): a union over a sample's masks, in the proof of Theorem 1."""

import math

import numpy as np

from moe_theory.generalization import experiments
from moe_theory.generalization.experiments import CLASSES, LONE_POINT, LONE_SAMPLES, all_cells, shown
from moe_theory.generalization.instances import NUM_INPUTS, NUM_LONE
from moe_theory.generalization.statements.setting import statement
from moe_theory.verification.claim import excess
from moe_theory.verification.statement import probability

NUM_LONE_MASKS = sum(math.comb(2 * LONE_SAMPLES, size) for size in range(NUM_LONE + 1))  # Gamma for lone points
MOST_OF_ONE = 2 * LONE_SAMPLES * NUM_LONE / NUM_INPUTS  # bound for one mask, whose gap needs one of its lone inputs

EQUATION_15 = statement("equation-15", module=__name__)


@EQUATION_15.charitable(
    "equation-15.sample-dependent-masks",
    all_cells(LONE_POINT),
    probability(at_most=2 * NUM_LONE_MASKS * MOST_OF_ONE),
    instead="equation-15.centred-massart",
)
def has_gap(run) -> np.ndarray:
    return shown(run, "gap") >= NUM_LONE / LONE_SAMPLES


@EQUATION_15.replacement("equation-15.centred-massart", all_cells(CLASSES), experiments.TO_ROUNDING)
def massart_excess(run) -> np.ndarray:
    masks, _, samples = experiments.sizes_of(run.params)
    spread = math.sqrt(math.log(masks) / (2 * samples))
    return excess(shown(run, "composed"), shown(run, "largest_part") + spread)
