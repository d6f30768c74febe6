"""Proposition 4: the expected metrics of a single expert, and what is exact instead."""

from collections.abc import Callable

import numpy as np

from moe_theory.continual import experiments, theory
from moe_theory.runs import Run
from moe_theory.verify.statement import Hypothesis, equality, statement

# g_t: the error of a task that is independent of w_t; u_n = v_n / |v_n|; S: the mean projector on what a round leaves.
COVARIANCES = (
    r"g_t = \mathbb{E}\left\lVert \mathbf{w}_t - \mathbf{w}_n \right\rVert^2, \; "
    r"C_{t,\tau} = \text{Cov}(\mathbf{w}_t, \mathbf{w}_{n_\tau}) = \bar{S}^{t - \tau} C_{\tau,\tau}, \; "
    r"\bar{S} = \frac{d - s}{d - 1} \left( \mathbf{I} - \mathbb{E}[\mathbf{u}_n \mathbf{u}_n^\top] \right)$$"
)
ALONE = experiments.SINGLE_EXPERT.at(experiments.SINGLE)
SUPPOSED = [Hypothesis("one expert, M = 1", lambda dims, run: run.params.num_experts == 1)]

FORGETTING = statement(
    "proposition-4-forgetting",
    where="Proposition 4, Eq. (17)",
    says=r"""A single expert's expected forgetting F_t, the growth of its error on earlier tasks since it met each of
    them, is a closed form in the mean squared norm of the tasks' truths w_n and their mean squared distance.
    $$\mathbb{E}[F_t] = \frac{1}{t - 1} \sum_{\tau=1}^{t-1} \left\{ \frac{r^t - r^\tau}{N} \sum_{n=1}^{N}
    \left\lVert \mathbf{w}_n \right\rVert^2 + \frac{r^\tau - r^t}{N^2} \sum_{n \neq n'} \left\lVert \mathbf{w}_{n'}
    - \mathbf{w}_n \right\rVert^2 \right\}$$""",
    hypotheses=SUPPOSED,
    why="""With W the mean of |w_n|^2, Delta that of |w_n - w_n'|^2 over all pairs n, n', equal ones included, s samples
    of d features and r = 1 - s/d: in Appendix H the error of task tau at round t is r^t W plus the sum over rounds l of
    (1 - r) r^(t - l) |w_{n_l} - w_{n_tau}|^2, where each distance is put at its mean Delta. In the term l = tau it is
    0. Delta there overstates the error by (1 - r) Delta right after tau, but by (1 - r) r^(t - tau) Delta only at t:
    their difference is missing from (17).""",
    instance="""Two orthonormal truths, d = 10, s = 6, all samples Gaussian: W = 1 and Delta = (0 + 2)/2 = 1, so that
    (17) says 0 for every t. After 100 rounds forgetting is 0.595 +- 0.004. With distance 0 in the term l = tau the
    formula says 0.596.""",
    corrected=r"""The formula with that difference, if all s samples are Gaussian; as t grows it tends to (s/d) Delta,
    and (17) to 0. If one sample is the task's signal, as in Definition 1, there is no closed form here:
    `continual.exact.single_expert` computes E[F_t] from the exact moments of the model.
    $$\mathbb{E}[F_t] = \frac{1}{t - 1} \sum_{\tau=1}^{t-1} \left\{ (r^t - r^\tau) W + \left( r^\tau - r^t + (1 - r)(1 -
    r^{t-\tau}) \right) \Delta \right\}$$""",
    witness="proposition_4.py",
    disproof="opposite_truths_forgetting.py",
    derivation="gaussian_samples.py",
)
GENERALIZATION_ERROR = statement(
    "proposition-4-generalization-error",
    where="Proposition 4, Eq. (18)",
    says=r"""A single expert's expected overall generalization error mixes the same two quantities with weights r^T and
    1 - r^T.
    $$\mathbb{E}[G_T] = \frac{r^T}{N} \sum_{n=1}^{N} \left\lVert \mathbf{w}_n \right\rVert^2 + \frac{1 - r^T}{N^2}
    \sum_{n \neq n'} \left\lVert \mathbf{w}_{n'} - \mathbf{w}_n \right\rVert^2$$""",
    hypotheses=SUPPOSED,
    why="""The proof takes the projector on an arrival's samples to be uniformly random, E P = (s/d) I. One of the
    samples is the signal: where it is proportional to the truth, the expert always learns along the truth, and its mean
    error is another one. Whatever the signals are, the task's own term Delta (1 - r^T) / T is lost, as in (17).""",
    instance="""d = 2, s = 1, v_n = w_n, two unit truths of cosine -3/5: the error tends to 4, where (18) tends to 8/5.
    With all samples Gaussian, d = 10, s = 6 and two orthonormal truths, (18) says 1 for every T; after 10 rounds it is
    <0.90>.""",
    corrected=r"""The exact moment recursion holds, with the mean projector on what a round leaves. If all s samples are
    Gaussian it is r^T W + (1 - r^T) (1 - 1/T) Delta.
    $$\mathbb{E}[G_T] = g_T - \frac{2}{T} \sum_{\tau=1}^{T} \text{tr}\, C_{T,\tau}, \quad \bar{S} = \frac{d - s}{d - 1}
    \left( \mathbf{I} - \mathbb{E}[\mathbf{u}_n \mathbf{u}_n^\top] \right)$$""",
    witness="lemma_16.py",
    disproof="opposite_truths_error.py",
    derivation="single_expert_error.py",
)


def single_expert_gaps(run) -> theory.Gaps:
    """Gaps of the shared pools (B,), computed once a pool."""
    pools, places = experiments.shared_pools_of(run)
    return theory.Gaps(*np.transpose([theory.gaps(pool) for pool in pools])[:, places])


def task_gap(run) -> np.ndarray:
    return np.asarray(single_expert_gaps(run).task_gap)[None]


def printed(name: str) -> Callable[[Run], np.ndarray]:
    """Right side of (17) or (18) at the recorded rounds (V, B)."""
    ratio = theory.overparameterization_ratio(
        experiments.SINGLE_EXPERT.dims.num_features, experiments.SINGLE_EXPERT.dims.num_samples
    )
    return lambda run: getattr(theory.proposition_4(single_expert_gaps(run), ratio, run.rounds[:, None]), name)


def exact(name: str) -> Callable[[Run], np.ndarray]:
    return lambda run: getattr(experiments.exact_of(run), name)


FORGETTING.charitable(
    "proposition-4.forgetting",
    ALONE,
    equality(printed("forgetting"), margin=0.02, scale=task_gap),
    instead="exact.forgetting",
).says("A single expert's expected forgetting is (W - Delta) times the mean of r^t - r^tau, and so vanishes.")(
    experiments.metric("forgetting")
)
FORGETTING.replacement("exact.forgetting", ALONE, equality(exact("forgetting"), margin=0.02, scale=task_gap)).says(
    r"""A single expert's expected forgetting is what the exact moment recursion gives.
    $$\mathbb{E}[F_t] = g_t - \frac{1}{t - 1} \sum_{\tau=1}^{t-1} \left( 2\, \text{tr}\, C_{t,\tau} +
    \mathbb{E}\left\lVert \mathbf{w}_\tau - \mathbf{w}_{n_\tau} \right\rVert^2 \right), \quad """
    + COVARIANCES
)(experiments.metric("forgetting"))
GENERALIZATION_ERROR.charitable(
    "proposition-4.generalization-error",
    ALONE,
    equality(printed("generalization_error"), margin=0.02),
    instead="exact.generalization-error",
).says("A single expert's expected overall generalization error after T rounds is r^T W + (1 - r^T) Delta.")(
    experiments.metric("generalization_error")
)
GENERALIZATION_ERROR.replacement(
    "exact.generalization-error", ALONE, equality(exact("generalization_error"), margin=0.02)
).says(
    r"""A single expert's expected overall generalization error is what the exact moment recursion gives.
    $$\mathbb{E}[G_T] = g_T - \frac{2}{T} \sum_{\tau=1}^{T} \text{tr}\, C_{T,\tau}, \quad """
    + COVARIANCES
)(experiments.metric("generalization_error"))
