"""Proposition 4: the expected metrics of a single expert, and what is exact instead."""

import numpy as np

from moe_theory.continual import experiments, theory
from moe_theory.continual.claims.measurements import at, at_rounds, claim, metric
from moe_theory.continual.experiments import SINGLE, SINGLE_EXPERT
from moe_theory.verify.claim import Runs, Values

# g_t: the error of a task that is independent of w_t; u_n = v_n / |v_n|; S: the mean projector on what a round leaves.
_COVARIANCES = (
    r"g_t = \mathbb{E}\left\lVert \mathbf{w}_t - \mathbf{w}_n \right\rVert^2, \; "
    r"C_{t,\tau} = \text{Cov}(\mathbf{w}_t, \mathbf{w}_{n_\tau}) = \bar{S}^{t - \tau} C_{\tau,\tau}, \; "
    r"\bar{S} = \frac{d - s}{d - 1} \left( \mathbf{I} - \mathbb{E}[\mathbf{u}_n \mathbf{u}_n^\top] \right)"
)


def _single_expert_gaps(runs: Runs) -> theory.Gaps:
    """Gaps of the shared pools (B,), computed once a pool."""
    pools, places = experiments.shared_pools_of(runs[SINGLE])
    return theory.Gaps(*np.transpose([theory.gaps(pool) for pool in pools])[:, places])


def _task_gap(runs: Runs) -> np.ndarray:
    return np.asarray(_single_expert_gaps(runs).task_gap)[:, None]


def _proposition_4(name: str, rounds: tuple[int, ...] | None = None) -> Values:
    ratio = theory.overparameterization_ratio(SINGLE_EXPERT.dims.num_features, SINGLE_EXPERT.dims.num_samples)

    def predict(runs: Runs) -> np.ndarray:
        bound = theory.proposition_4(_single_expert_gaps(runs), ratio, runs[SINGLE].rounds[:, None])
        return at(runs[SINGLE], getattr(bound, name), rounds)

    return predict


def _exact(name: str) -> Values:
    return lambda runs: getattr(experiments.exact_of(runs[SINGLE], SINGLE_EXPERT.dims), name).T


@claim(
    "continual.proposition-4.forgetting",
    where="Proposition 4, Eq. (17)",
    kind="equality",
    margin=0.02,
    replaced_by="continual.exact.forgetting",
)
class Proposition4Forgetting:
    """A single expert's expected forgetting is (W - Delta) times the mean of r^t - r^tau, and so vanishes."""

    formula = (
        r"\mathbb{E}[F_t] = \frac{1}{t - 1} \sum_{\tau=1}^{t-1} \left\{ "
        r"\frac{r^t - r^\tau}{N} \sum_{n=1}^{N} \left\lVert \mathbf{w}_n \right\rVert^2 + "
        r"\frac{r^\tau - r^t}{N^2} \sum_{n \neq n'} \left\lVert \mathbf{w}_{n'} - \mathbf{w}_n \right\rVert^2 \right\}"
    )
    experiment = SINGLE_EXPERT
    scale = _task_gap
    observe = metric("forgetting", SINGLE)
    predict = _proposition_4("forgetting")


@claim("continual.exact.forgetting", where="replaces Proposition 4, Eq. (17)", kind="equality", margin=0.02)
class ExactForgetting:
    """A single expert's expected forgetting is what the exact moment recursion gives."""

    formula = (
        r"\mathbb{E}[F_t] = g_t - \frac{1}{t - 1} \sum_{\tau=1}^{t-1} \left( 2\, \text{tr}\, C_{t,\tau} + "
        r"\mathbb{E}\left\lVert \mathbf{w}_\tau - \mathbf{w}_{n_\tau} \right\rVert^2 \right), \quad " + _COVARIANCES
    )
    experiment = SINGLE_EXPERT
    scale = _task_gap
    observe = metric("forgetting", SINGLE)
    predict = _exact("forgetting")


@claim(
    "continual.proposition-4.generalization-error",
    where="Proposition 4, Eq. (18)",
    kind="equality",
    margin=0.02,
    replaced_by="continual.exact.generalization-error",
)
class Proposition4GeneralizationError:
    """A single expert's expected overall generalization error after T rounds is r^T W + (1 - r^T) Delta."""

    formula = (
        r"\mathbb{E}[G_T] = \frac{r^T}{N} \sum_{n=1}^{N} \left\lVert \mathbf{w}_n \right\rVert^2 + "
        r"\frac{1 - r^T}{N^2} \sum_{n \neq n'} \left\lVert \mathbf{w}_{n'} - \mathbf{w}_n \right\rVert^2"
    )
    experiment = SINGLE_EXPERT
    labels = at_rounds(SINGLE_EXPERT.num_rounds)
    observe = metric("generalization_error", SINGLE, (SINGLE_EXPERT.num_rounds,))
    predict = _proposition_4("generalization_error", (SINGLE_EXPERT.num_rounds,))


@claim("continual.exact.generalization-error", where="replaces Proposition 4, Eq. (18)", kind="equality", margin=0.02)
class ExactGeneralizationError:
    """A single expert's expected overall generalization error is what the exact moment recursion gives."""

    formula = r"\mathbb{E}[G_T] = g_T - \frac{2}{T} \sum_{\tau=1}^{T} \text{tr}\, C_{T,\tau}, \quad " + _COVARIANCES
    experiment = SINGLE_EXPERT
    observe = metric("generalization_error", SINGLE)
    predict = _exact("generalization_error")
