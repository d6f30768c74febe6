"""Lemma 4: how large gates become during exploration."""

import numpy as np

from moe_theory.edge.experiments import BY_SCALE, MARGIN, up_to_t1
from moe_theory.edge.statements.setting import statement
from moe_theory.verification.statement import limit_rate


@statement("lemma-4", module=__name__).charitable("lemma-4.gates", BY_SCALE, limit_rate(at_least=0.5, margin=MARGIN))
def largest_gate(run) -> np.ndarray:
    return up_to_t1(run, "gate_size").max(axis=0)
