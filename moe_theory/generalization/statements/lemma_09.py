"""Lemma 9: contraction by a Lipschitz loss."""

import numpy as np

from moe_theory.generalization.experiments import CLASSES, FREE_SAMPLES, TO_ROUNDING, all_cells, shown
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.generalization.statements.setting import statement
from moe_theory.verification.claim import excess


@statement("lemma-9", module=__name__, free=FREE_SAMPLES).charitable(
    "lemma-9.contraction", all_cells(CLASSES), TO_ROUNDING
)
def excess_of_composed(run) -> np.ndarray:
    return excess(shown(run, "composed"), LIPSCHITZ * shown(run, "complexity"))
