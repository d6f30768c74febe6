"""Lemmas 14 and 15 and Proposition 2: gate outputs while the gates are never terminated.

Gaps are of the rounds' own features X_t, averaged over the 20 rounds up to t_1 or t_2, and sets those of (11) at the
gates that route. Pairs in one set and in different ones are taken for the arriving task's set, as the proof does.
"""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.continual.claims.measurements import WINDOW, along, per_cell, probable, rate, router_learning
from moe_theory.runs import Run


def _largest_gradient_gap(run: Run) -> np.ndarray:
    return run.records.gradient_gap[router_learning(run)].max(axis=0).astype(np.float64)


@rate("continual.lemma-14.tasks", at_least=1.0, where="Lemma 14, Eq. (39)")
class Lemma14Tasks:
    """From T1 + 1 to t_1 all experts' gate gradients are within O(sigma_0) of the chosen one's; M > N."""

    formula = (
        r"\|\nabla_{\theta_t^{(m)}} \mathcal{L}_t^{task} - \nabla_{\theta_t^{(m_t)}} \mathcal{L}_t^{task}\|_\infty "
        r"= \mathcal{O}(\sigma_0)"
    )
    experiment = experiments.NO_TERMINATION
    labels, observe, abscissa = along(experiments.MANY_CELLS, _largest_gradient_gap)


@rate("continual.lemma-14.clusters", at_least=1.0, where="Lemma 14, Eq. (39)")
class Lemma14Clusters:
    """From T1 + 1 to t_1 all experts' gate gradients are within O(sigma_0) of the chosen one's; M < N."""

    formula = Lemma14Tasks.formula
    experiment = experiments.NO_TERMINATION
    labels, observe, abscissa = along(experiments.FEW_CELLS, _largest_gradient_gap)


def _always_ordered(run: Run) -> np.ndarray:
    return np.all(run.records.is_ordered[router_learning(run)], axis=0)


@probable("continual.lemma-15.tasks", where="Lemma 15, Eq. (40), M > N")
class Lemma15Tasks:
    """With M > N, from T1 + 1 to t_1 experts of a task's set have larger probabilities for it than all others.

    All tasks, experts and rounds at once, with probability at least 1 - delta; features are the signals alone.
    """

    formula = (
        r"\pi_m(X_n, \Theta_t) > \pi_{m'}(X_n, \Theta_t), \quad "
        r"\pi_{m'}(X_{n'}, \Theta_t) > \pi_m(X_{n'}, \Theta_t), \quad m \in \mathcal{M}_n, m' \in \mathcal{M}_{n'}"
    )
    experiment = experiments.NO_TERMINATION
    labels, observe = per_cell(experiments.MANY_SMALLEST, _always_ordered)


@probable("continual.lemma-15.clusters", where="Lemma 15, Eq. (40), M < N")
class Lemma15Clusters:
    """With M < N, from T1 + 1 to t_1 experts of a cluster's set have larger probabilities for it than all others."""

    formula = Lemma15Tasks.formula.replace(r"\mathcal{M}_n", r"\mathcal{M}_k").replace(
        r"\mathcal{M}_{n", r"\mathcal{M}_{k"
    )
    experiment = experiments.NO_TERMINATION
    labels, observe = per_cell(experiments.FEW_SMALLEST, _always_ordered)


_SAME = r"|h_m(X_{t_1}, \theta_{t_1}^{(m)}) - h_{m'}(X_{t_1}, \theta_{t_1}^{(m')})| = \mathcal{O}(\sigma_0^{1.75})"
_SAME_ORDER = r"|h_m(X_{t_1}, \theta_{t_1}^{(m)}) - h_{m'}(X_{t_1}, \theta_{t_1}^{(m')})| = \mathcal{O}(\sigma_0)"
_AT_T2_ORDER = _SAME_ORDER.replace("t_1", "t_2")
_OTHER = r"|h_m(X_{t_1}, \theta_{t_1}^{(m)}) - h_{m'}(X_{t_1}, \theta_{t_1}^{(m')})| = \Theta(\sigma_0^{0.75})"
_OTHER_ORDER = (
    r"|h_m(X_{t_1}, \theta_{t_1}^{(m)}) - h_{m'}(X_{t_1}, \theta_{t_1}^{(m')})| = \mathcal{O}(\sigma_0^{0.75})"
)
_AT_T2 = r"|h_m(X_{t_2}, \theta_{t_2}^{(m)}) - h_{m'}(X_{t_2}, \theta_{t_2}^{(m')})| = \mathcal{O}(\sigma_0^{1.75})"
_GAPS = {
    "same-set": ("own_gap", experiments.T2_POWER),
    "other-set": ("other_gap", experiments.T2_POWER),
    "all-experts": ("any_gap", experiments.RETURN_POWER),
}


def _declare(name: str, statement: str, where: str, latex: str, **exponent: float) -> None:
    gap, power = next(value for start, value in _GAPS.items() if name.startswith(start))
    is_long, is_few = power == experiments.RETURN_POWER, "clusters" in name
    short, long = (
        (experiments.MANY_CELLS, experiments.FEW_CELLS)[is_few],
        (experiments.MANY_LONG_CELLS, experiments.FEW_LONG_CELLS)[is_few],
    )
    id = f"continual.proposition-2.{name}"

    def average(run: Run) -> np.ndarray:
        time = experiments.stage_rounds(run.params, power)
        return getattr(run.records, gap)[time - WINDOW : time].mean(axis=0, dtype=np.float64)

    @rate(id, where=where, replaced_by=None if name.endswith("-order") else f"{id}-order", **exponent)
    class Proposition2:
        __doc__ = statement
        formula = latex
        experiment = experiments.NO_TERMINATION_LONG if is_long else experiments.NO_TERMINATION
        labels, observe, abscissa = along(long if is_long else short, average)


_declare(
    "same-set",
    """With M > N and no termination, at t_1 gate outputs of two experts of the task's set are O(sigma_0^1.75) apart.

    The largest gap in the set, 0 in a set of fewer than two.
    """,
    "Proposition 2, Eq. (12), first case, and its full version, M > N",
    _SAME,
    at_least=1.75,
)
_declare(
    "same-set-clusters",
    "With M < N and no termination, at t_1 gate outputs in a cluster's set are O(sigma_0^1.75) apart.",
    "Proposition 2, full version, item 1, first case, M < N",
    _SAME,
    at_least=1.75,
)
_declare(
    "same-set-order",
    """With M > N and no termination, at t_1 gate outputs in a task's set are O(sigma_0) apart.

    The leader is chosen and lowered, so a gap stays of the order of one step, O(eta alpha) = O(sigma_0), and of lambda.
    """,
    "replaces Proposition 2, Eq. (12), first case",
    _SAME_ORDER,
    at_least=1.0,
)
_declare(
    "same-set-clusters-order",
    "With M < N and no termination, at t_1 gate outputs in a cluster's set are O(sigma_0) apart.",
    "replaces Proposition 2, full version, item 1, first case, M < N",
    _SAME_ORDER,
    at_least=1.0,
)
_declare(
    "other-set",
    """With M > N and no termination, at t_1 outputs of experts of different sets are Theta(sigma_0^.75) apart.

    The mean gap over pairs of an expert of the arriving task's set and another.
    """,
    "Proposition 2, Eq. (12), second case, and its full version, M > N",
    _OTHER,
    equal=0.75,
)
_declare(
    "other-set-clusters",
    "With M < N and no termination, at t_1 outputs of experts of different sets are Theta(sigma_0^.75) apart.",
    "Proposition 2, full version, item 1, second case, M < N",
    _OTHER,
    equal=0.75,
)
_declare(
    "other-set-order",
    "With M > N and no termination, at t_1 experts of different sets have outputs at most O(sigma_0^.75) apart.",
    "replaces Proposition 2, Eq. (12), second case",
    _OTHER_ORDER,
    at_least=0.75,
)
_declare(
    "other-set-clusters-order",
    "With M < N and no termination, at t_1 experts of different sets have outputs at most O(sigma_0^.75) apart.",
    "replaces Proposition 2, full version, item 1, second case, M < N",
    _OTHER_ORDER,
    at_least=0.75,
)
_declare(
    "all-experts",
    "With M > N and no termination, at t_2 the gate outputs of all experts are O(sigma_0^1.75) apart, or less.",
    "Proposition 2, Eq. (13), and its full version, M > N",
    _AT_T2,
    at_least=1.75,
)
_declare(
    "all-experts-clusters",
    "With M < N and no termination, at t_2 the gate outputs of all experts are O(sigma_0^1.75) apart, or less.",
    "Proposition 2, full version, item 2, M < N",
    _AT_T2,
    at_least=1.75,
)
_declare(
    "all-experts-order",
    "With M > N and no termination, at t_2 the gate outputs of all experts are O(sigma_0) apart, as one step is.",
    "replaces Proposition 2, Eq. (13)",
    _AT_T2_ORDER,
    at_least=1.0,
)
_declare(
    "all-experts-clusters-order",
    "With M < N and no termination, at t_2 the gate outputs of all experts are O(sigma_0) apart, as one step is.",
    "replaces Proposition 2, full version, item 2, M < N",
    _AT_T2_ORDER,
    at_least=1.0,
)
