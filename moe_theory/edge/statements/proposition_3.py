"""Proposition 3: once the router has converged, experts stay as they are."""

import numpy as np

from moe_theory.edge.experiments import BY_EXPLORED, CONVERGES, FAILURE, explored_record
from moe_theory.edge.params import SIGMA_0
from moe_theory.verify.statement import probability, statement

DRIFT = 3.0  # of sigma_0^2, a wide reading of O(): truths of a cluster are about 1 sigma_0^2 apart


@statement(
    "proposition-3",
    where="Proposition 3, Eq. (18)",
    says=r"""After T1 no expert's model moves by more than O(sigma_0^2) in any entry, except with vanishing probability.
    $$\left\lVert \mathbf{w}_t^{(m)} - \mathbf{w}_{T_1}^{(m)} \right\rVert_\infty = \mathcal{O}(\sigma_0^2)$$""",
    hypotheses=CONVERGES,
    why="""The proof needs every task after T1 at a specialist of its own cluster, which Proposition 2 does not give:
    one task of another cluster moves a model by the order of sigma_0.""",
    instance="In Fig. 3's settings, M = 30, some entry moves by more than 3 sigma_0^2 in every run.",
    note="(18) measures from a T_2 that the paper does not define; read as T1.",
).literal("proposition-3.experts", BY_EXPLORED, probability(at_most=FAILURE))
def has_drifted(run) -> np.ndarray:
    r"""From T1 to T no expert's model moves by more than 3 sigma_0^2 in any entry, but for chance delta.
    $$\mathbb{P}\left[ \underset{m \in \mathbb{M}}{\max}
    \left\lVert \mathbf{w}_T^{(m)} - \mathbf{w}_{T_1}^{(m)} \right\rVert_\infty > 3 \sigma_0^2 \right] \le \delta$$"""
    change = (run.records.experts[-1] - run.records.experts[explored_record(run)])[: int(run.params.num_experts)]
    return np.abs(change).max(axis=(0, 1)) > DRIFT * SIGMA_0**2
