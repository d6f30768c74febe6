"""Proposition 2: when the router has converged."""

import numpy as np

from moe_theory.edge.experiments import BY_EXPLORED, CONVERGES, FAILURE, misrouted_share, specialists
from moe_theory.edge.params import SIGMA_0
from moe_theory.verify.statement import bound, identity, probability, statement

CONSTANT = 1.0  # of sigma_0^e in an O() or Omega()


def probabilities_of(run) -> np.ndarray:
    """pi of the existing experts at the last round (M, B)."""
    return run.records.gate_probabilities[-1][: int(run.params.num_experts)].astype(np.float64)


@statement(
    "proposition-2-same-set",
    where="Proposition 2, Eq. (17), first case",
    says=r"""After T1 the gate probabilities of two specialists of the arriving kind are within O(sigma_0).
    $$\left\lvert \pi_m - \pi_{m'} \right\rvert = \mathcal{O}(\sigma_0), \quad m, m' \in \mathcal{M}_n$$""",
    hypotheses=CONVERGES,
    note="Judged at sigma_0 = 0.6 with 1 for the constant: the limit is not taken.",
).literal(
    "proposition-2.same-set", BY_EXPLORED, probability(at_most=FAILURE), where="Proposition 2, Eq. (17), first line"
)
def same_gaps(run) -> np.ndarray:
    r"""Past T1 all specialists of the arriving kind have gate probabilities within sigma_0, but for chance delta.
    $$\mathbb{P}\left[ \underset{m, m' \in \mathcal{M}_n}{\max}
    \left\lvert \pi_m - \pi_{m'} \right\rvert > \sigma_0 \right] \le \delta,
    \quad \mathbf{w}_t \in \mathcal{W}_n, \; t > T_1$$"""
    own, probabilities = specialists(run), probabilities_of(run)
    highest = np.max(np.where(own, probabilities, -np.inf), axis=0)
    return (
        highest - np.min(np.where(own, probabilities, np.inf), axis=0) > CONSTANT * SIGMA_0
    )  # -inf where there is none


OTHER_SET = statement(
    "proposition-2-other-set",
    where="Proposition 2, Eq. (17), second case",
    says=r"""After T1 the gate probabilities of a specialist of the arriving kind and of any other expert are
    Omega(sigma_0^0.5) apart. $$\left\lvert \pi_m - \pi_{m'} \right\rvert = \Omega(\sigma_0^{1/2}), \quad
    m \in \mathcal{M}_n, m' \notin \mathcal{M}_n$$""",
    hypotheses=CONVERGES,
    why="""The proof rests on (28), where the upper bound O(sigma_0^0.5) of Lemma 4 becomes Omega(sigma_0^0.5). Its own
    (33) bounds the gap of any two experts at T1 by O(sigma_0), which leaves no room for sigma_0^0.5.""",
    instance="In Fig. 3's settings, M = 50, some pair is closer than sigma_0^0.5 = 0.77 in 97 % of the runs.",
    corrected=r"""Probabilities sum to 1, so some specialist's is at most 1 / |M_n|, and its gap to any smaller one.
    $$\min_{m \in \mathcal{M}_n} \pi_m \le \frac{1}{\left\lvert \mathcal{M}_n \right\rvert}$$""",
)


@OTHER_SET.literal(
    "proposition-2.other-set",
    BY_EXPLORED,
    probability(at_most=FAILURE),
    where="Proposition 2, Eq. (17), second line",
    instead="proposition-2.share",
)
def other_gaps(run) -> np.ndarray:
    r"""Past T1 specialists and other experts have gate probabilities sigma_0^(1/2) apart, but for chance delta.
    $$\mathbb{P}\left[ \underset{m \in \mathcal{M}_n, m' \notin \mathcal{M}_n}{\min}
    \left\lvert \pi_m - \pi_{m'} \right\rvert < \sigma_0^{1/2} \right] \le \delta,
    \quad \mathbf{w}_t \in \mathcal{W}_n, \; t > T_1$$"""
    own, probabilities = specialists(run), probabilities_of(run)
    gaps = np.abs(probabilities[:, None] - probabilities[None, :])
    is_pair = own[:, None] & ~own[None, :]
    return np.min(np.where(is_pair, gaps, np.inf), axis=(0, 1)) < CONSTANT * SIGMA_0**0.5


@OTHER_SET.replacement(
    "proposition-2.share", BY_EXPLORED, identity(within=1e-6), where="replaces Proposition 2, Eq. (17), second line"
)
def share_excess(run) -> np.ndarray:
    r"""Probabilities sum to 1: some specialist's is at most 1 / |M_n|, and its gap to any smaller one.
    $$\sum_{m \in \mathbb{M}} \pi_m = 1 \;\Rightarrow\; \underset{m \in \mathcal{M}_n}{\min}\, \pi_m \le
    \frac{1}{\left\lvert \mathcal{M}_n \right\rvert}$$"""
    own, probabilities = specialists(run), probabilities_of(run)
    smallest = np.min(np.where(own, probabilities, 1.0), axis=0)
    return np.where(own.any(axis=0), np.maximum(smallest - 1 / np.maximum(own.sum(axis=0), 1), 0), 0)


statement(
    "proposition-2-routing",
    where="Proposition 2, last sentence",
    says=r"""After T1 the router sends every task to one of its specialists.
    $$m_t \in \mathcal{M}_{n_t}, \quad t > T_1$$""",
    hypotheses=CONVERGES,
    note="Judged at sigma_0 = 0.6 and delta = 0.05: the limit is not taken.",
).literal("proposition-2.routing", BY_EXPLORED, bound(at_most=FAILURE)).says(
    "Past T1 at most a fraction delta of the tasks goes to an expert that specialises in another kind, or in none."
    r"""$$\mathbb{E}\, \frac{1}{T - T_1} \sum_{t = T_1 + 1}^{T} \mathbb{1}\{ m_t \notin \mathcal{M}_{n_t} \}
    \le \delta$$"""
)(misrouted_share)
