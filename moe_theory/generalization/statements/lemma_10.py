"""Lemma 10: convex combinations that are the same for all inputs."""

import numpy as np

from moe_theory.generalization.experiments import CLASSES, FREE_SAMPLES, TO_ROUNDING, shown
from moe_theory.verify.claim import excess
from moe_theory.verify.statement import statement


@statement(
    "lemma-10",
    where="Lemma 10, Eq. (42)",
    says="Convex combinations of a class's functions, the same for all inputs, have that class's Rademacher "
    "complexity.",
    proof="lemma_10.py",
    free=FREE_SAMPLES,
).charitable(
    "lemma-10.hull",
    CLASSES.together(*CLASSES.cells),
    TO_ROUNDING,
    labels=[f"{cell}, {part}" for part in ("random", "best") for cell in CLASSES.cells],
)
def beyond_best(*runs) -> np.ndarray:
    r"""A convex combination that is the same for all inputs adds nothing: none is beyond the best of its functions.
    $$\mathbb{E}_\sigma \sup_{\lambda \in \Delta,\, h_j \in \mathcal{H}} \frac{1}{m} \sum_{i=1}^{m} \sigma_i
    \sum_{j=1}^{T} \lambda_j h_j(\mathbf{x}_i) = \mathcal{R}_{\mathcal{S}}(\mathcal{H})$$"""
    random = [excess(shown(run, "mixtures"), shown(run, "complexity")) for run in runs]
    best = [shown(run, "vertex") - shown(run, "complexity") for run in runs]
    return np.stack(random + best)
