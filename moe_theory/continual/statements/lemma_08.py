"""Lemma 8: how evenly exploration spreads the tasks over the experts."""

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.verify.statement import Hypothesis, limit_rate, probability, rate, statement

OUTWEIGHED = Hypothesis("lambda outweighs gate outputs", lambda dims, run: run.params.perturbation_scale >= 100)

LEMMA_8 = statement(
    "lemma-8",
    where="Lemma 8, Eq. (32)",
    says="""When exploration ends every expert has had a share of the tasks within O(eta^0.5 / M) of 1/M, except
    with probability delta.""",
    why="""Hoeffding's inequality is for independent terms, but routes depend on each other: who is chosen moves the
    gates, which choose. The first steps of the auxiliary loss, in proportion to f_t/t, move outputs by Theta(sigma_0),
    far above lambda, and the rounds up to T1 undo a part of that only: the loss that is to balance loads unbalances
    them.""",
    instance="""M = 8, N = 6, eta = sigma_0^0.5: as sigma_0 falls from 1e-2 to 1e-6 the mean distance of an expert's
    share from 1/8 falls from .027 to .014, or grows from .7 to 3.6 times eta^0.5 / M.""",
    corrected=r"""Where the perturbation outweighs the gate outputs, routes are independent, and the largest distance is
    at most of order eta^0.5 M^-0.5.
    $$\lambda \gg \|h\|_\infty \Rightarrow \max_m |f_{T_1}^{(m)} - \frac{1}{M}| = O(\eta^{0.5} M^{-0.5})$$""",
    amendment="alpha eta = o(sigma_0^1.25), and Lemma 5 asks for alpha eta = Omega(sigma_0)",
    witness="lemma_08.py",
    disproof="first_expert_share.py",
    derivation="lemma_08.py",
)


def share_gaps(run) -> np.ndarray:
    """|f_T1(m) - 1/M| of every expert (M, B)."""
    count = int(run.params.num_experts)
    visits = getattr(run.state, "state", run.state).explored_visits[:count]  # a tally has the algorithm's state in it
    return np.abs(visits.astype(np.float64) / experiments.stage_rounds(run.params) - 1 / count)


@LEMMA_8.charitable("lemma-8.learning-rate", experiments.LIMIT_MANY, limit_rate(at_least=0.25)).says(r"""
    In the limit the share of one expert, fixed beforehand, is within O(eta^0.5) of 1/M at T1, in mean.

    With eta of order sigma_0^0.5, as Algorithm 1 has it. Experts are exchangeable, so the mean over all is taken.
    $$|f_{T_1}^{(m)} - \frac{1}{M}| = O(\eta^{0.5}) = O(\sigma_0^{0.25})$$""")
@LEMMA_8.intervention("lemma-8.small-alpha", interventions.QUIET_MANY, limit_rate(at_least=0.25)).says(r"""
    Without large first steps of the auxiliary loss (alpha = sigma_0) a share is within O(eta^0.5) of 1/M at T1.
    $$|f_{T_1}^{(m)} - \frac{1}{M}| = O(\eta^{0.5}) = O(\sigma_0^{0.25})$$""")
@LEMMA_8.suspect("lemma-8.at-once", interventions.AT_ONCE_MANY, limit_rate(at_least=0.25)).says(r"""
    Without slow learning (an expert learns the whole truth at once) a share is within O(eta^0.5) of 1/M at T1.
    $$|f_{T_1}^{(m)} - \frac{1}{M}| = O(\eta^{0.5}) = O(\sigma_0^{0.25})$$""")
def mean_gap(run) -> np.ndarray:
    """The mean of |f_T1(m) - 1/M| over the experts."""
    return share_gaps(run).mean(axis=0)


@LEMMA_8.literal(
    "lemma-8.experts", experiments.BY_EXPERTS, rate(at_most=-1.0), instead="lemma-8.independent"
).says(r"""At T1 every expert's share of the tasks is within O(1/M) of 1/M, in mean.

    "Any expert m" is read as all experts at once: the largest distance of a share from 1/M.
    $$\max_m |f_{T_1}^{(m)} - \frac{1}{M}| = O(M^{-1})$$""")
@LEMMA_8.step(
    "lemma-8.experts-proved",
    experiments.BY_EXPERTS,
    rate(at_most=-0.5),
    where="Lemma 8, what its proof gives",
    instead="lemma-8.independent",
).says(r"""At T1 every expert's share of the tasks is within O(M^-0.5) of 1/M, in mean.

    What the proof's inequality gives with T1 = M/eta: eps = (eta ln(2M/delta) / (2M))^0.5, and not eta^0.5 / M.
    $$|f_{T_1}^{(m)} - \frac{1}{M}| = O(\eta^{0.5} M^{-0.5})$$""")
@LEMMA_8.replacement(
    "lemma-8.independent", experiments.BY_EXPERTS_BLIND, rate(at_most=-0.5), hypotheses=[OUTWEIGHED]
).says(r"""Where the perturbation outweighs the gate outputs, every expert's share at T1 is within O(M^-0.5) of 1/M.

    Routes are then independent and uniform, as the proof supposes; lambda is 1000. O(M^-0.5) is what Hoeffding's
    inequality gives, and not sharp: the largest distance of such shares is of order eta^0.5 M^-1 (ln M)^0.5.
    $$\lambda \gg \|h\|_\infty \Rightarrow |f_{T_1}^{(m)} - \frac{1}{M}| = O(\eta^{0.5} M^{-0.5})$$""")
def largest_gap(run) -> np.ndarray:
    """max_m |f_T1(m) - 1/M|."""
    return share_gaps(run).max(axis=0)


@LEMMA_8.step(
    "lemma-8.hoeffding",
    experiments.BY_EXPERTS,
    probability(at_most=experiments.FAILURE),
    where="Lemma 8, proof",
    instead="lemma-8.independent-hoeffding",
).says(r"""At T1 every expert's share is within (ln(2M/delta) / (2 T1))^0.5 of 1/M, but for chance delta = 0.05.

    The proof applies Hoeffding's inequality to routes that depend on each other.
    $$P(\exists m: |f_{T_1}^{(m)} - \frac{1}{M}| > \epsilon) \leq 2 M \exp (-2 \epsilon^2 T_1) = \delta$$""")
@LEMMA_8.replacement(
    "lemma-8.independent-hoeffding",
    experiments.BY_EXPERTS_BLIND,
    probability(at_most=experiments.FAILURE),
    where="replaces Lemma 8, proof",
    hypotheses=[OUTWEIGHED],
).says(r"""There every share is within (ln(2M/delta) / (2 T1))^0.5 of 1/M, but for chance delta = 0.05.
    $$\lambda \gg \|h\|_\infty \Rightarrow P(\exists m: |f_{T_1}^{(m)} - \frac{1}{M}| > \epsilon) \leq 2 M \exp (-2
    \epsilon^2 T_1) = \delta$$""")
def exceeds_hoeffding(run) -> np.ndarray:
    """Whether some expert's share is farther from 1/M than (ln(2M/delta) / (2 T1))^0.5."""
    rounds = experiments.stage_rounds(run.params)
    return largest_gap(run) > np.sqrt(np.log(2 * int(run.params.num_experts) / experiments.FAILURE) / (2 * rounds))
