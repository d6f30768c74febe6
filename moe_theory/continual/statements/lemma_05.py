"""Lemma 5: the order of the gates' gradients. An O() or Omega() is the slope of log means over a grid of sigma_0."""

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.verify.statement import rate, statement

EXPLORATION = statement(
    "lemma-5-exploration",
    where="Appendix D, Lemma 5, Eq. (31), first case",
    says=r"""Up to T1 the largest entry of each gate's gradient is at least of order sigma_0.
    $$\min_{t \leq T_1, m} \|\nabla_{\theta_t^{(m)}} L_t^{task}\|_\infty \geq \min_{t \leq T_1, m}
    \|\nabla_{\theta_t^{(m)}} L_t^{aux}\|_\infty = \Omega(\sigma_0)$$""",
    disproof="small_beta_gradient.py",
    amendment="where the largest entry of the samples' sum, and alpha eta over sigma_0, are bounded away from 0",
    why="""The proof takes the samples' sum to be of order 1, and alpha and eta of order sigma_0^0.5. Definition 1 has
    beta in (0, C], and Algorithm 1 alpha, eta = O(sigma_0^0.5): bounds from above only. The order is for a fixed M.""",
    instance="""Orthonormal tasks, s = 1, beta uniform on (0, 1], eta = alpha = sigma_0^0.5: for any constant c the
    chance that no gradient up to T1 is below c sigma_0 tends to 0 with sigma_0. With alpha = 0 a repeat has gradient
    0.""",
    free=(experiments.FREE_ETA, *experiments.FREE_AT_LEVEL),
)


@EXPLORATION.charitable(
    "lemma-5.exploration", experiments.BY_SCALE, rate(at_most=1.0), where="Lemma 5, Eq. (31), first case"
).says("""
    In every round up to T1, the task loss's gradient at every expert is of order sigma_0 or larger.

    Tested, as it is proved, on the auxiliary loss's part alone: the locality loss's has the same sign, so the whole is
    no smaller. It has the part's exponent too, but only for far smaller sigma_0 than can be run: until then the least
    move of an expert decides, which shrinks as T1 grows.""")
@EXPLORATION.competitor("lemma-5.exploration-quiet", interventions.QUIET_BY_SCALE, rate(at_most=1.0)).says(
    "With a small auxiliary loss (alpha = sigma_0) the gradient at every expert is of order sigma_0 or larger up to T1."
)
def least_explored_gradient(run) -> np.ndarray:
    return experiments.explored(run, "least_balance_gradient").min(axis=0)


ROUTING = statement(
    "lemma-5-router-learning",
    where="Appendix D, Lemma 5, Eq. (31), second case",
    says=r"""After T1 the largest entry of each gate's gradient is at most of order sigma_0.
    $$\max_{t > T_1, m} \|\nabla_{\theta_t^{(m)}} L_t^{task}\|_\infty = O(\sigma_0)$$""",
    hypotheses=[experiments.PAST_T1],
    proof="gradients_past_exploration.py",
    amendment="truths of size O(sigma_0), and two samples or more where M < N",
    why="""Section 3 bounds how far truths differ, and the proof takes them to be N(0, sigma_0^2). With a part in common
    of order 1, along which signals lie, an expert that the first steps put out of reach has that part still to learn
    after T1. And with one sample two tasks of a cluster that are nearly alike can leave a model far from both.""",
    instance="""s = 1, v_1 = (1, 0), w_1 = (sigma_0, 0), v_2 = (1, e), w_2 = (sigma_0 + e, 0), e = sigma_0^1.5: the
    model that fits both is (sigma_0, 1), a distance of 1 from the first; it takes many arrivals, of the order of
    sigma_0^-3.""",
    free=experiments.FREE_AT_LEVEL,
)


@ROUTING.literal("lemma-5.routing-common", interventions.COMMON_BY_SCALE, rate(at_least=1.0)).says(
    "With truths that have a part in common of order 1, too, gradients past T1 are O(sigma_0) at every expert."
)
@ROUTING.charitable("lemma-5.routing", experiments.BY_SCALE, rate(at_least=1.0), where="Lemma 5, Eq. (31), second case")
def largest_routed_gradient(run) -> np.ndarray:
    """In the rounds past T1, of which 100 are tested, its gradient at every expert is O(sigma_0)."""
    first = experiments.stage_rounds(run.params)
    return experiments.recorded(run, "largest_gradient", first + 1, first + experiments.ROUNDS_PAST_EXPLORATION).max(
        axis=0
    )
