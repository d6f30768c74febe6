"""Lemmas 14 and 15 and Proposition 2: gate outputs while the gates are never terminated.

Gaps are of the rounds' own features X_t, averaged over the 20 rounds up to t_1 or t_2, and sets those of (11) at the
gates that route. Pairs in one set and in different ones are taken for the arriving task's set, as the proof does.
"""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.continual.claims.measurements import along, average_until, per_cell, probable, rate, router_learning
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

    formula = (
        r"\pi_m(X_n, \Theta_t) > \pi_{m'}(X_n, \Theta_t), \quad "
        r"\pi_{m'}(X_{n'}, \Theta_t) > \pi_m(X_{n'}, \Theta_t), \quad m \in \mathcal{M}_k, m' \in \mathcal{M}_{k'}"
    )
    experiment = experiments.NO_TERMINATION
    labels, observe = per_cell(experiments.FEW_SMALLEST, _always_ordered)


def _gap(name: str, root: float):
    """A gap of gate outputs at t_1 (root 1/4) or t_2 (root 3/4), averaged over a few rounds up to it."""
    return lambda run: average_until(run, name, experiments.stage_rounds(run.params, root))


_SAME = r"|h_m(X_{t_1}, \theta_{t_1}^{(m)}) - h_{m'}(X_{t_1}, \theta_{t_1}^{(m')})| = \mathcal{O}(\sigma_0^{1.75})"
_SAME_ORDER = r"|h_m(X_{t_1}, \theta_{t_1}^{(m)}) - h_{m'}(X_{t_1}, \theta_{t_1}^{(m')})| = \mathcal{O}(\sigma_0)"
_AT_T2_ORDER = _SAME_ORDER.replace("t_1", "t_2")
_OTHER = r"|h_m(X_{t_1}, \theta_{t_1}^{(m)}) - h_{m'}(X_{t_1}, \theta_{t_1}^{(m')})| = \Theta(\sigma_0^{0.75})"
_OTHER_ORDER = (
    r"|h_m(X_{t_1}, \theta_{t_1}^{(m)}) - h_{m'}(X_{t_1}, \theta_{t_1}^{(m')})| = \mathcal{O}(\sigma_0^{0.75})"
)
_AT_T2 = r"|h_m(X_{t_2}, \theta_{t_2}^{(m)}) - h_{m'}(X_{t_2}, \theta_{t_2}^{(m')})| = \mathcal{O}(\sigma_0^{1.75})"


@rate(
    "continual.proposition-2.same-set",
    at_least=1.75,
    where="Proposition 2, Eq. (12), first case, and its full version, M > N",
    replaced_by="continual.proposition-2.same-set-order",
)
class Proposition2SameSet:
    """With M > N and no termination, at t_1 gate outputs of two experts of the task's set are O(sigma_0^1.75) apart.

    The largest gap in the set, 0 in a set of fewer than two.
    """

    formula = _SAME
    experiment = experiments.NO_TERMINATION
    labels, observe, abscissa = along(experiments.MANY_CELLS, _gap("own_gap", experiments.T2_POWER))


@rate(
    "continual.proposition-2.same-set-clusters",
    at_least=1.75,
    where="Proposition 2, full version, item 1, first case, M < N",
    replaced_by="continual.proposition-2.same-set-clusters-order",
)
class Proposition2SameSetClusters:
    """With M < N and no termination, at t_1 gate outputs in a cluster's set are O(sigma_0^1.75) apart."""

    formula = _SAME
    experiment = experiments.NO_TERMINATION
    labels, observe, abscissa = along(experiments.FEW_CELLS, _gap("own_gap", experiments.T2_POWER))


@rate("continual.proposition-2.same-set-order", at_least=1.0, where="replaces Proposition 2, Eq. (12), first case")
class Proposition2SameSetOrder:
    """With M > N and no termination, at t_1 gate outputs in a task's set are O(sigma_0) apart.

    The leader is chosen and lowered, so a gap stays of the order of one step, O(eta alpha) = O(sigma_0), and of lambda.
    """

    formula = _SAME_ORDER
    experiment = experiments.NO_TERMINATION
    labels, observe, abscissa = along(experiments.MANY_CELLS, _gap("own_gap", experiments.T2_POWER))


@rate(
    "continual.proposition-2.same-set-clusters-order",
    at_least=1.0,
    where="replaces Proposition 2, full version, item 1, first case, M < N",
)
class Proposition2SameSetClustersOrder:
    """With M < N and no termination, at t_1 gate outputs in a cluster's set are O(sigma_0) apart."""

    formula = _SAME_ORDER
    experiment = experiments.NO_TERMINATION
    labels, observe, abscissa = along(experiments.FEW_CELLS, _gap("own_gap", experiments.T2_POWER))


@rate(
    "continual.proposition-2.other-set",
    equal=0.75,
    where="Proposition 2, Eq. (12), second case, and its full version, M > N",
    replaced_by="continual.proposition-2.other-set-order",
)
class Proposition2OtherSet:
    """With M > N and no termination, at t_1 outputs of experts of different sets are Theta(sigma_0^.75) apart.

    The mean gap over pairs of an expert of the arriving task's set and another.
    """

    formula = _OTHER
    experiment = experiments.NO_TERMINATION
    labels, observe, abscissa = along(experiments.MANY_CELLS, _gap("other_gap", experiments.T2_POWER))


@rate(
    "continual.proposition-2.other-set-clusters",
    equal=0.75,
    where="Proposition 2, full version, item 1, second case, M < N",
    replaced_by="continual.proposition-2.other-set-clusters-order",
)
class Proposition2OtherSetClusters:
    """With M < N and no termination, at t_1 outputs of experts of different sets are Theta(sigma_0^.75) apart."""

    formula = _OTHER
    experiment = experiments.NO_TERMINATION
    labels, observe, abscissa = along(experiments.FEW_CELLS, _gap("other_gap", experiments.T2_POWER))


@rate("continual.proposition-2.other-set-order", at_least=0.75, where="replaces Proposition 2, Eq. (12), second case")
class Proposition2OtherSetOrder:
    """With M > N and no termination, at t_1 experts of different sets have outputs at most O(sigma_0^.75) apart."""

    formula = _OTHER_ORDER
    experiment = experiments.NO_TERMINATION
    labels, observe, abscissa = along(experiments.MANY_CELLS, _gap("other_gap", experiments.T2_POWER))


@rate(
    "continual.proposition-2.other-set-clusters-order",
    at_least=0.75,
    where="replaces Proposition 2, full version, item 1, second case, M < N",
)
class Proposition2OtherSetClustersOrder:
    """With M < N and no termination, at t_1 experts of different sets have outputs at most O(sigma_0^.75) apart."""

    formula = _OTHER_ORDER
    experiment = experiments.NO_TERMINATION
    labels, observe, abscissa = along(experiments.FEW_CELLS, _gap("other_gap", experiments.T2_POWER))


@rate(
    "continual.proposition-2.all-experts",
    at_least=1.75,
    where="Proposition 2, Eq. (13), and its full version, M > N",
    replaced_by="continual.proposition-2.all-experts-order",
)
class Proposition2AllExperts:
    """With M > N and no termination, at t_2 the gate outputs of all experts are O(sigma_0^1.75) apart, or less."""

    formula = _AT_T2
    experiment = experiments.NO_TERMINATION_LONG
    labels, observe, abscissa = along(experiments.MANY_LONG_CELLS, _gap("any_gap", experiments.RETURN_POWER))


@rate(
    "continual.proposition-2.all-experts-clusters",
    at_least=1.75,
    where="Proposition 2, full version, item 2, M < N",
    replaced_by="continual.proposition-2.all-experts-clusters-order",
)
class Proposition2AllExpertsClusters:
    """With M < N and no termination, at t_2 the gate outputs of all experts are O(sigma_0^1.75) apart, or less."""

    formula = _AT_T2
    experiment = experiments.NO_TERMINATION_LONG
    labels, observe, abscissa = along(experiments.FEW_LONG_CELLS, _gap("any_gap", experiments.RETURN_POWER))


@rate("continual.proposition-2.all-experts-order", at_least=1.0, where="replaces Proposition 2, Eq. (13)")
class Proposition2AllExpertsOrder:
    """With M > N and no termination, at t_2 the gate outputs of all experts are O(sigma_0) apart, as one step is."""

    formula = _AT_T2_ORDER
    experiment = experiments.NO_TERMINATION_LONG
    labels, observe, abscissa = along(experiments.MANY_LONG_CELLS, _gap("any_gap", experiments.RETURN_POWER))


@rate(
    "continual.proposition-2.all-experts-clusters-order",
    at_least=1.0,
    where="replaces Proposition 2, full version, item 2, M < N",
)
class Proposition2AllExpertsClustersOrder:
    """With M < N and no termination, at t_2 the gate outputs of all experts are O(sigma_0) apart, as one step is."""

    formula = _AT_T2_ORDER
    experiment = experiments.NO_TERMINATION_LONG
    labels, observe, abscissa = along(experiments.FEW_LONG_CELLS, _gap("any_gap", experiments.RETURN_POWER))
