"""Proposition 3: once the router has converged, experts stay as they are."""

import numpy as np

from moe_theory.edge.experiments import BY_SCALE, CONVERGES, MARGIN, explored_record
from moe_theory.verify.statement import limit_rate, statement

PROPOSITION_3 = statement(
    "proposition-3",
    where="Proposition 3, Eq. (18)",
    says=r"""After T1 no expert's model moves by more than O(sigma_0^2) in any entry, except with vanishing probability.
    $$\left\lVert \mathbf{w}_t^{(m)} - \mathbf{w}_{T_1}^{(m)} \right\rVert_\infty = \mathcal{O}(\sigma_0^2)$$""",
    hypotheses=CONVERGES,
    why="""The proof needs every task after T1 at a specialist of its own cluster, which Proposition 2 does not give:
    one task of another cluster moves a model by the order of sigma_0. That is what is seen, at any sigma_0.""",
    instance="M = 13, N = 2, orthonormal signals: within T1 / 4 rounds some entry moves by 13 sigma_0^2 at sigma_0 "
    "= 0.2, by 121 sigma_0^2 at 0.02.",
    corrected=r"""Models are as large as truths, and move by as much.
    $$\left\lVert \mathbf{w}_t^{(m)} - \mathbf{w}_{T_1}^{(m)} \right\rVert_\infty = \mathcal{O}(\sigma_0)$$""",
    note="(18) measures from a T_2 that the paper does not define; read as T1.",
    witness="limit.py",
    disproof="opposite_truths_routing.py",
)


@PROPOSITION_3.replacement("proposition-3.order", BY_SCALE, limit_rate(at_least=1, margin=MARGIN)).says(
    r"""From T1 to T the largest move of an entry of any expert's model is O(sigma_0).
    $$\underset{m \in \mathbb{M}}{\max}
    \left\lVert \mathbf{w}_T^{(m)} - \mathbf{w}_{T_1}^{(m)} \right\rVert_\infty = \mathcal{O}(\sigma_0)$$"""
)
@PROPOSITION_3.charitable(
    "proposition-3.experts", BY_SCALE, limit_rate(at_least=2, margin=MARGIN), instead="proposition-3.order"
)
def drift(run) -> np.ndarray:
    r"""From T1 to T the largest move of an entry of any expert's model is O(sigma_0^2).
    $$\underset{m \in \mathbb{M}}{\max}
    \left\lVert \mathbf{w}_T^{(m)} - \mathbf{w}_{T_1}^{(m)} \right\rVert_\infty = \mathcal{O}(\sigma_0^2)$$"""
    change = (run.records.experts[-1] - run.records.experts[explored_record(run)])[: int(run.params.num_experts)]
    return np.abs(change).max(axis=(0, 1))
