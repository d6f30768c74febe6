"""Proposition 3: once the router has converged, experts stay as they are."""

import numpy as np

from moe_theory.edge.experiments import BY_SCALE, MARGIN, explored_record
from moe_theory.edge.interventions import OF_THE_SET, OWN_KIND
from moe_theory.edge.statements.setting import statement
from moe_theory.verification.statement import limit_rate

PROPOSITION_3 = statement("proposition-3", module=__name__)
SECOND_ORDER = limit_rate(at_least=2, margin=MARGIN)


@PROPOSITION_3.replacement("proposition-3.order", BY_SCALE, limit_rate(at_least=1, margin=MARGIN))
@PROPOSITION_3.intervention("proposition-3.own-kind", OWN_KIND, SECOND_ORDER)
@PROPOSITION_3.suspect("proposition-3.of-the-set", OF_THE_SET, SECOND_ORDER)
@PROPOSITION_3.charitable("proposition-3.experts", BY_SCALE, SECOND_ORDER, instead="proposition-3.order")
def drift(run) -> np.ndarray:
    change = (run.records.experts[-1] - run.records.experts[explored_record(run)])[: int(run.params.num_experts)]
    return np.abs(change).max(axis=(0, 1))
