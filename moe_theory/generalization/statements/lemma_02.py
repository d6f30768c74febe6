"""Lemma 2: the Natarajan dimension of networks, for a class in which it is known exactly."""

import numpy as np

from moe_theory.generalization import complexity
from moe_theory.generalization.experiments import LONE_CELL, LONE_POINT
from moe_theory.generalization.statements.setting import statement
from moe_theory.verification.claim import Selection
from moe_theory.verification.statement import alike, rate

NUM_FEATURES = (2, 4, 8, 16)
LABELS = [f"d = {features}" for features in NUM_FEATURES]
NUM_PARAMETERS = tuple(2 * features for features in NUM_FEATURES)  # parameters of a linear router, T = 2
BY_PARAMETERS = Selection(LONE_POINT, cells=(LONE_CELL,), abscissa=NUM_PARAMETERS)


@statement("lemma-2", module=__name__).charitable(
    "lemma-2.linear-router", BY_PARAMETERS, rate(at_most=2.0, margin=0.01), labels=LABELS, exact=True
)
def dimension(run) -> np.ndarray:
    return alike(run, [complexity.natarajan("linear", 2, 1, features) for features in NUM_FEATURES])
