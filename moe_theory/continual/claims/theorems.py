"""Theorems 1 and 2: bounds from the loads, for more and for fewer experts than tasks."""

import functools
from collections.abc import Callable

import numpy as np

from moe_theory.continual import corrected, experiments, theory
from moe_theory.continual.claims.measurements import at, at_rounds, claim, metric
from moe_theory.continual.experiments import FEW, FIGURE_2, JUST_EXPLORED, JUST_EXPLORED_BY_FEW, MANY
from moe_theory.verify.claim import Runs, Values

EXPLORING = (5, 10)  # the recorded rounds up to T1 = 10 of M = 5
EARLY = (20, 40)  # the recorded rounds up to T1 = 40 of M = 20
JUST_AFTER = (50, 60, 70, 80, 90, 100)  # rounds soon after T1 = 40, where the mean comes nearest to (20)
LATE = (100, 200, 500, 1000, 2000)  # rounds at which the theorems are tested, the last being the paper's T
_EQUATION_19 = (
    r"\mathbb{E}[F_t] < \frac{1}{t - 1} \sum_{\tau=1}^{t-1} \left\{ "
    r"\frac{r^{L_t^{(m_\tau)}} - r^{L_\tau^{(m_\tau)}}}{N} \sum_{n=1}^{N} "
    r"\left\lVert \mathbf{w}_n \right\rVert^2 + "
    r"\frac{r^{L_\tau^{(m_\tau)}} - r^{L_t^{(m_\tau)}}}{N^2} \sum_{n \neq n'} "
    r"\left\lVert \mathbf{w}_{n'} - \mathbf{w}_n \right\rVert^2 \right\}, \quad 2 \le t \le T_1"
)
_EQUATION_20 = (
    r"\mathbb{E}[G_T] < \frac{1}{T} \sum_{\tau=1}^{T} \left\{ "
    r"\frac{r^{L_{T_1}^{(m_\tau)}}}{N} \sum_{n=1}^{N} \left\lVert \mathbf{w}_n \right\rVert^2 + "
    r"\frac{1 - r^{L_{T_1}^{(m_\tau)}}}{N^2} \sum_{n \neq n'} "
    r"\left\lVert \mathbf{w}_{n'} - \mathbf{w}_n \right\rVert^2 \right\}"
)
_EQUATION_21 = (
    r"\mathbb{E}[F_t] < \frac{1}{t - 1} \sum_{\tau=1}^{t-1} "
    r"\left( r^{L_t^{(m_\tau)}} - r^{L_\tau^{(m_\tau)}} \right) W + "
    r"\frac{1}{t - 1} \sum_{\tau=1}^{T_1} \left( r^{L_\tau^{(m_\tau)}} - r^{L_{T_1}^{(m_\tau)}} \right) \Delta + "
    r"\frac{1}{t - 1} \sum_{\tau=T_1+1}^{t} \left( 1 - r^{L_t^{(m_\tau)} - L_\tau^{(m_\tau)}} \right) "
)
_GAPS = (
    r", \quad W = \mathbb{E}\left\lVert \mathbf{w}_n \right\rVert^2, \; "
    r"\Delta = \mathbb{E}\left\lVert \mathbf{w}_n - \mathbf{w}_{n'} \right\rVert^2, \; "
    r"\Psi_1 = \Delta \text{ within a cluster}"
)
_ACROSS_GAP = r", \; \Psi_2 = \Delta \text{ to a random cluster}"


def _more_experts_than_tasks(dims, runs: Runs) -> list[tuple[str, bool]]:
    num_experts, need = runs[MANY].params.num_experts, dims.num_tasks * np.log(dims.num_tasks)
    return [(f"M = {num_experts} >= N ln N = {need:.1f}, the constant of Omega read as 1", num_experts >= need)]


def _fewer_experts_than_tasks(dims, runs: Runs) -> list[tuple[str, bool]]:
    num_experts, num_clusters = runs[FEW].params.num_experts, runs[FEW].params.num_clusters
    need = num_clusters * np.log(num_clusters)
    return [
        (f"M = {num_experts} < N = {dims.num_tasks}", num_experts < dims.num_tasks),
        (f"M = {num_experts} >= K ln K = {need:.1f}, the constant of Omega read as 1", num_experts >= need),
    ]


def _theorem_1(name: str, rounds: tuple[int, ...], cell: str = MANY) -> Values:
    return lambda runs: at(runs[cell], getattr(experiments.bounds_of(runs[cell], FIGURE_2.dims), name), rounds)


def _theorem_2(name: str, theorem: Callable[..., theory.Bound] = theory.theorem_2) -> Values:
    return lambda runs: at(runs[FEW], getattr(experiments.bounds_of(runs[FEW], FIGURE_2.dims, theorem), name), LATE)


def _frozen_forgetting(runs: Runs) -> np.ndarray:
    params = runs[MANY].params
    explored = int(theory.exploration_rounds(params.num_experts, params.learning_rate))
    return metric("forgetting", MANY, (explored,))(runs) * (explored - 1) / (np.array(LATE) - 1)


@claim("continual.theorem-1.forgetting", where="Theorem 1, Eq. (19)", kind="upper_bound")
class Theorem1Forgetting:
    """With more experts than tasks, expected forgetting during exploration is below the load bound of (19)."""

    formula = _EQUATION_19
    experiment = FIGURE_2
    hypotheses = _more_experts_than_tasks
    labels = at_rounds(*EARLY)
    observe = metric("forgetting", MANY, EARLY)
    predict = _theorem_1("forgetting", EARLY)


@claim("continual.theorem-1.forgetting-decay", where="Theorem 1, below Eq. (19)", kind="equality", margin=0.05)
class Theorem1ForgettingDecay:
    """After exploration nothing more is forgotten: E[F_t] = (T1 - 1)/(t - 1) E[F_T1] for t > T1."""

    formula = r"\mathbb{E}[F_t] = \frac{T_1 - 1}{t - 1}\, \mathbb{E}[F_{T_1}], \quad T_1 < t \le T"
    experiment = FIGURE_2
    hypotheses = _more_experts_than_tasks
    labels = at_rounds(*LATE)
    observe = metric("forgetting", MANY, LATE)
    predict = _frozen_forgetting
    scale = staticmethod(lambda runs: np.asarray(experiments.gaps_of(runs[MANY]).task_gap)[:, None])


@claim("continual.theorem-1.generalization-error", where="Theorem 1, Eq. (20)", kind="upper_bound")
class Theorem1GeneralizationError:
    """With more experts than tasks, the expected overall generalization error is below (20), for T from 100 to 2000."""

    formula = _EQUATION_20 + r", \quad 100 \le T \le 2000"
    experiment = FIGURE_2
    hypotheses = _more_experts_than_tasks
    labels = at_rounds(*LATE)
    observe = metric("generalization_error", MANY, LATE)
    predict = _theorem_1("generalization_error", LATE)


@claim("continual.theorem-1.generalization-error-early", where="Theorem 1, Eq. (20)", kind="upper_bound")
class Theorem1GeneralizationErrorEarly:
    """With more experts than tasks, the expected overall generalization error is below (20), for T from 50 to 100."""

    formula = _EQUATION_20 + r", \quad 50 \le T \le 100"
    experiment = JUST_EXPLORED
    hypotheses = _more_experts_than_tasks
    labels = at_rounds(*JUST_AFTER)
    observe = metric("generalization_error", MANY, JUST_AFTER)
    predict = _theorem_1("generalization_error", JUST_AFTER)


@claim("continual.theorem-2.exploration-forgetting", where="Theorem 2, first line, Eq. (19)", kind="upper_bound")
class Theorem2ExplorationForgetting:
    """With fewer experts than tasks, expected forgetting during exploration is below the load bound of (19) as well."""

    formula = _EQUATION_19
    experiment = JUST_EXPLORED_BY_FEW
    hypotheses = _fewer_experts_than_tasks
    labels = at_rounds(*EXPLORING)
    observe = metric("forgetting", FEW, EXPLORING)
    predict = _theorem_1("forgetting", EXPLORING, FEW)


@claim("continual.theorem-2.forgetting", where="Theorem 2, Eq. (21)", kind="upper_bound")
class Theorem2Forgetting:
    """With fewer experts than tasks, expected forgetting is below (21) as printed, for t from 100 to 2000."""

    formula = _EQUATION_21 + r"r^{L_t^{(m_\tau)} - L_{T_1}^{(m_\tau)} - 1} \Psi_1" + _GAPS
    experiment = FIGURE_2
    hypotheses = _fewer_experts_than_tasks
    labels = at_rounds(*LATE)
    observe = metric("forgetting", FEW, LATE)
    predict = _theorem_2("forgetting")


@claim(
    "continual.theorem-2.forgetting-exponent",
    where="Theorem 2, Eq. (21), third term as Appendix J derives it",
    kind="upper_bound",
)
class Theorem2ForgettingExponent:
    """Expected forgetting after exploration is below (21) with r^(L_tau - L_T1) in its third term."""

    formula = _EQUATION_21 + r"r^{L_\tau^{(m_\tau)} - L_{T_1}^{(m_\tau)}} \Psi_1" + _GAPS
    experiment = FIGURE_2
    hypotheses = _fewer_experts_than_tasks
    labels = at_rounds(*LATE)
    observe = metric("forgetting", FEW, LATE)
    predict = _theorem_2("forgetting", corrected.theorem_2)


@claim("continual.theorem-2.generalization-error", where="Theorem 2, Eq. (22)", kind="upper_bound")
class Theorem2GeneralizationError:
    """With fewer experts than tasks, expected overall generalization error is below (22), for T from 100 to 2000."""

    formula = (
        r"\mathbb{E}[G_T] < \frac{1}{T} \sum_{\tau=1}^{T} r^{L_T^{(m_\tau)}} W + "
        r"\frac{1}{T} \sum_{\tau=1}^{T_1} r^{k_\tau} \left( 1 - r^{L_{T_1}^{(m_\tau)}} \right) \Delta + "
        r"\frac{1}{T} \left\{ \sum_{\tau=1}^{T_1} \left( 1 - r^{k_\tau} \right) + "
        r"\sum_{\tau=T_1+1}^{T} r^{k_\tau} \left( 1 - r^{L_{T_1}^{(m_\tau)}} \right) \right\} \Psi_2 + "
        r"\frac{1}{T} \sum_{\tau=T_1+1}^{T} \left( 1 - r^{k_\tau} \right) \Psi_1"
        r", \quad k_\tau = L_T^{(m_\tau)} - L_{T_1}^{(m_\tau)}" + _GAPS + _ACROSS_GAP
    )
    experiment = FIGURE_2
    hypotheses = _fewer_experts_than_tasks
    labels = at_rounds(*LATE)
    observe = metric("generalization_error", FEW, LATE)
    predict = _theorem_2("generalization_error")


@claim(
    "continual.theorem-2.generalization-error-appendix",
    where="Theorem 2, Eq. (22) as Appendix J ends",
    kind="upper_bound",
)
class Theorem2GeneralizationErrorAppendix:
    """The expected overall generalization error is below the appendix's form of (22), with exponents lower by 1."""

    formula = Theorem2GeneralizationError.formula.replace(r"1 - r^{k_\tau}", r"1 - r^{k_\tau - 1}")
    experiment = FIGURE_2
    hypotheses = _fewer_experts_than_tasks
    labels = at_rounds(*LATE)
    observe = metric("generalization_error", FEW, LATE)
    predict = _theorem_2("generalization_error", functools.partial(theory.theorem_2, form="appendix"))
