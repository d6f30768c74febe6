"""Lemma 3: the distance of the reward network from its start."""

import numpy as np

from moe_theory.merging.experiments import DIMS, TANBR_ON, recorded
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.claim import excess
from moe_theory.verification.statement import identity

LEMMA_3 = statement("lemma-3", module=__name__)


@LEMMA_3.ours(
    "lemma-3.distance", TANBR_ON["peaked"], identity(within=0), labels=["largest excess"], hypotheses=["wide-network"]
)
@LEMMA_3.ours("lemma-3.distance-at-64", TANBR_ON["peaked"], identity(within=0), labels=["largest excess"])
def distance_beyond(run) -> np.ndarray:
    allowed = 2 * np.sqrt(run.rounds / (DIMS.width * float(run.params.regularization)))
    return excess(recorded(run, "distance"), allowed[:, None]).max(axis=0)
