"""Lemma 7: how evenly exploration spreads the tasks over the experts."""

import numpy as np

from moe_theory.edge.experiments import BY_RATE, BY_SERVERS, EXPLORES, FAILURE, exploration_rounds, explored
from moe_theory.verify.statement import probability, rate, statement

LEMMA_7 = statement(
    "lemma-7",
    where="Lemma 7, Eq. (29)",
    says=r"""When exploration ends every expert has had a share of the tasks within O(eta^0.5 / M) of 1/M, except with
    probability delta.
    $$\left\lvert f_{T_1}^{(m)} - \frac{1}{M} \right\rvert = \mathcal{O}(\eta^{1/2} M^{-1})$$""",
    hypotheses=EXPLORES,
    why="""The proof's own epsilon is (ln(2M/delta) / (2 T1))^0.5, and T1 is of order M ln(M/delta) / eta: that is
    O(eta^0.5 M^-0.5), not M^-1. And Hoeffding's inequality is for independent routes, while who is chosen moves the
    gates and who is busy cannot be chosen.""",
    corrected=r"""Routes that are independent and uniform keep every share within O(eta^0.5 M^-0.5) of 1/M.
    $$\max_{m} \left\lvert f_{T_1}^{(m)} - \tfrac{1}{M} \right\rvert = \mathcal{O}(\eta^{1/2} M^{-1/2})$$""",
)


@LEMMA_7.literal(
    "lemma-7.learning-rate", BY_RATE, rate(at_least=0.5)
).says(r"""At T1 every expert's share of the tasks is within O(eta^(1/2)) of 1/M, for small eta.
    $$\left\lvert f_{T_1}^{(m)} - \frac{1}{M} \right\rvert = \mathcal{O}(\eta^{1/2}), \quad m \in \mathbb{M}$$""")
@LEMMA_7.literal("lemma-7.loads", BY_SERVERS, rate(at_most=-1))
def largest_gap(run) -> np.ndarray:
    r"""At T1 every expert's share of the tasks is within O(1/M) of 1/M.
    $$\left\lvert f_{T_1}^{(m)} - \frac{1}{M} \right\rvert = \mathcal{O}(M^{-1}), \quad m \in \mathbb{M}$$"""
    return explored(run, "load_gap")[-1]


@LEMMA_7.step(
    "lemma-7.hoeffding", BY_SERVERS, probability(at_most=FAILURE), where="Lemma 7, proof: 1 - 2 M exp(-2 eps^2 T1)"
)
def exceeds_hoeffding(run) -> np.ndarray:
    r"""At T1 every expert's share is within Hoeffding's eps = (ln(2M/delta) / (2 T1))^(1/2), but for chance delta.
    $$\mathbb{P}\left[ \underset{m \in \mathbb{M}}{\max} \left\lvert f_{T_1}^{(m)} - \frac{1}{M} \right\rvert >
    \sqrt{\frac{\ln(2 M / \delta)}{2\, T_1}} \right] \le \delta$$"""
    rounds = exploration_rounds(run.params)
    return largest_gap(run) > np.sqrt(np.log(2 * int(run.params.num_experts) / FAILURE) / (2 * rounds))
