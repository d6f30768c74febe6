"""Lemma 9: contraction by a Lipschitz loss."""

import numpy as np

from moe_theory.generalization.experiments import CLASSES, FREE_SAMPLES, TO_ROUNDING, every, shown
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.verify.claim import excess
from moe_theory.verify.statement import statement


@statement(
    "lemma-9",
    where="Lemma 9, used in (28)",
    says="A C-Lipschitz loss raises the Rademacher complexity by a factor of C at most."
    r"$$\mathcal{R}_m(\ell \circ \mathcal{H}) \le C\, \mathcal{R}_m(\mathcal{H})$$",
    proof="lemma_09.py",
    free=FREE_SAMPLES,
).charitable("lemma-9.contraction", every(CLASSES), TO_ROUNDING)
def excess_of_composed(run) -> np.ndarray:
    r"""For random finite classes and random labels the ramp loss at least halves the empirical Rademacher complexity.
    $$\mathcal{R}_{\mathcal{S}}(\ell \circ \mathcal{H}) \le C\, \mathcal{R}_{\mathcal{S}}(\mathcal{H}),
    \quad C = \frac{1}{2}$$"""
    return excess(shown(run, "composed"), LIPSCHITZ * shown(run, "complexity"))
