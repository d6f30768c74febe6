"""Proposition 3: once the router has converged, experts stay as they are."""

import numpy as np

from moe_theory.edge.experiments import BY_SCALE, CONVERGES, MARGIN, explored_record
from moe_theory.edge.interventions import OF_THE_SET, OWN_KIND
from moe_theory.verify.statement import limit_rate, statement

PROPOSITION_3 = statement(
    "proposition-3",
    where="Proposition 3, Eq. (18)",
    says=r"""After T1 no expert's model moves by more than O(sigma_0^2) in any entry, except with vanishing probability.
    $$\left\lVert \mathbf{w}_t^{(m)} - \mathbf{w}_{T_1}^{(m)} \right\rVert_\infty = \mathcal{O}(\sigma_0^2)$$""",
    hypotheses=CONVERGES,
    why="""The proof needs servers that keep to one kind: a task of another one moves a model by the order of sigma_0,
    as is seen at any sigma_0. With servers that take one kind each it holds. That tasks go to servers of other sets
    (15), which Proposition 2 excludes, is not the cause: without it models move by that order too.""",
    instance="M = 13, N = 2, orthonormal signals: within T1 / 4 rounds some entry moves by 13 sigma_0^2 at sigma_0 "
    "= 0.2, by 121 sigma_0^2 at 0.02.",
    corrected=r"""Where the kinds' data conflict, models are as large as truths, and move by as much, if no two signals
    are nearly parallel. Then, with one sample, independent signals and wide r, (18) holds, with truths of a cluster
    O(sigma_0^2) apart too: models fit all kinds together.
    $$\left\lVert \mathbf{w}_t^{(m)} - \mathbf{w}_{T_1}^{(m)} \right\rVert_\infty = \mathcal{O}(\sigma_0)$$""",
    note="(18) measures from a T_2 that the paper does not define; read as T1.",
    witness="limit.py",
    disproof="opposite_truths_routing.py",
)

MOVE = r"""$$\underset{m \in \mathbb{M}}{\max}
\left\lVert \mathbf{w}_T^{(m)} - \mathbf{w}_{T_1}^{(m)} \right\rVert_\infty = \mathcal{O}(\sigma_0^2)$$"""
SECOND_ORDER = limit_rate(at_least=2, margin=MARGIN)
OF_ONE_KIND = "Without servers of several kinds, as server m takes kind m mod N alone,"
IN_THEIR_SETS = "Without tasks at servers of other sets, as the router looks the sets (15) up,"


@PROPOSITION_3.replacement("proposition-3.order", BY_SCALE, limit_rate(at_least=1, margin=MARGIN)).says(
    r"""From T1 to T the largest move of an entry of any expert's model is O(sigma_0).
    $$\underset{m \in \mathbb{M}}{\max}
    \left\lVert \mathbf{w}_T^{(m)} - \mathbf{w}_{T_1}^{(m)} \right\rVert_\infty = \mathcal{O}(\sigma_0)$$"""
)
@PROPOSITION_3.intervention("proposition-3.own-kind", OWN_KIND, SECOND_ORDER).says(
    f"{OF_ONE_KIND} the largest move is O(sigma_0^2).{MOVE}"
)
@PROPOSITION_3.suspect("proposition-3.of-the-set", OF_THE_SET, SECOND_ORDER).says(
    f"{IN_THEIR_SETS} the largest move is O(sigma_0^2).{MOVE}"
)
@PROPOSITION_3.charitable("proposition-3.experts", BY_SCALE, SECOND_ORDER, instead="proposition-3.order").says(
    f"From T1 to T the largest move of an entry of any expert's model is O(sigma_0^2).{MOVE}"
)
def drift(run) -> np.ndarray:
    change = (run.records.experts[-1] - run.records.experts[explored_record(run)])[: int(run.params.num_experts)]
    return np.abs(change).max(axis=(0, 1))
