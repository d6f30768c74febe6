"""Lemmas 14 and 15 and Proposition 2: gate outputs while the gates are updated for ever.

Gaps are of the rounds' own features X_t, averaged over the 20 rounds up to t_1 or t_2, and sets those of (11) at the
gates that route. Pairs in one set and in different ones are taken for the arriving task's set, as the proof does.
"""

import numpy as np

from moe_theory.continual.claims import stages
from moe_theory.continual.claims.stages import (
    FEW_CELLS,
    FEW_RETURN_CELLS,
    FEW_SMALLEST,
    MANY_CELLS,
    MANY_RETURN_CELLS,
    MANY_SMALLEST,
    ROOT_RETURN,
    ROOT_TERMINATION,
    likely,
)
from moe_theory.continual.claims.values import EXPONENT_MARGIN, named, over
from moe_theory.continual.specialisation import LEARNING, RETURN_SCALES, RETURNING, SCALES, stage_rounds
from moe_theory.runs import Run
from moe_theory.verify.claim import claim


def _largest_gradient_gap(run: Run) -> np.ndarray:
    return run.records.gradient_gap[stages.learning(run)].max(axis=0).astype(np.float64)


@claim("continual.lemma-14.tasks", paper="continual", where="Lemma 14, Eq. (39)", kind="rate", margin=EXPONENT_MARGIN)
class Lemma14Tasks:
    """From T1 + 1 to t_1 all experts' gate gradients are within O(sigma_0) of the chosen one's; M > N."""

    formula = (
        r"\|\nabla_{\theta_t^{(m)}} \mathcal{L}_t^{task} - \nabla_{\theta_t^{(m_t)}} \mathcal{L}_t^{task}\|_\infty "
        r"= \mathcal{O}(\sigma_0)"
    )
    experiment = LEARNING
    side = "at_least"
    abscissa = SCALES
    labels = named(*MANY_CELLS)
    observe = over(MANY_CELLS, _largest_gradient_gap)
    predict = stages.exponent(1.0)


@claim(
    "continual.lemma-14.clusters", paper="continual", where="Lemma 14, Eq. (39)", kind="rate", margin=EXPONENT_MARGIN
)
class Lemma14Clusters:
    """From T1 + 1 to t_1 all experts' gate gradients are within O(sigma_0) of the chosen one's; M < N."""

    formula = Lemma14Tasks.formula
    experiment = LEARNING
    side = "at_least"
    abscissa = SCALES
    labels = named(*FEW_CELLS)
    observe = over(FEW_CELLS, _largest_gradient_gap)
    predict = stages.exponent(1.0)


def _always_ordered(run: Run) -> np.ndarray:
    return np.all(run.records.is_ordered[stages.learning(run)], axis=0)


@claim("continual.lemma-15.tasks", paper="continual", where="Lemma 15, Eq. (40), M > N", kind="probability")
class Lemma15Tasks:
    """With M > N, from T1 + 1 to t_1 experts of a task's set have larger probabilities for it than all others.

    All tasks, experts and rounds at once, with probability at least 1 - delta; features are the signals alone.
    """

    formula = (
        r"\pi_m(X_n, \Theta_t) > \pi_{m'}(X_n, \Theta_t), \quad "
        r"\pi_{m'}(X_{n'}, \Theta_t) > \pi_m(X_{n'}, \Theta_t), \quad m \in \mathcal{M}_n, m' \in \mathcal{M}_{n'}"
    )
    experiment = LEARNING
    side = "at_least"
    labels = named(*MANY_SMALLEST)
    observe = over(MANY_SMALLEST, _always_ordered)
    predict = likely


@claim("continual.lemma-15.clusters", paper="continual", where="Lemma 15, Eq. (40), M < N", kind="probability")
class Lemma15Clusters:
    """With M < N, from T1 + 1 to t_1 experts of a cluster's set have larger probabilities for it than all others."""

    formula = (
        r"\pi_m(X_n, \Theta_t) > \pi_{m'}(X_n, \Theta_t), \quad "
        r"\pi_{m'}(X_{n'}, \Theta_t) > \pi_m(X_{n'}, \Theta_t), \quad m \in \mathcal{M}_k, m' \in \mathcal{M}_{k'}"
    )
    experiment = LEARNING
    side = "at_least"
    labels = named(*FEW_SMALLEST)
    observe = over(FEW_SMALLEST, _always_ordered)
    predict = likely


def _gap(name: str, root: float):
    """A gap of gate outputs at t_1 (root 1/4) or t_2 (root 3/4), averaged over a few rounds up to it."""
    return lambda run: stages.around(run, name, stage_rounds(run.params, root))


_SAME = r"|h_m(X_{t_1}, \theta_{t_1}^{(m)}) - h_{m'}(X_{t_1}, \theta_{t_1}^{(m')})| = \mathcal{O}(\sigma_0^{1.75})"
_SAME_ORDER = r"|h_m(X_{t_1}, \theta_{t_1}^{(m)}) - h_{m'}(X_{t_1}, \theta_{t_1}^{(m')})| = \mathcal{O}(\sigma_0)"
_RETURNED_ORDER = _SAME_ORDER.replace("t_1", "t_2")
_OTHER = r"|h_m(X_{t_1}, \theta_{t_1}^{(m)}) - h_{m'}(X_{t_1}, \theta_{t_1}^{(m')})| = \Theta(\sigma_0^{0.75})"
_OTHER_ORDER = (
    r"|h_m(X_{t_1}, \theta_{t_1}^{(m)}) - h_{m'}(X_{t_1}, \theta_{t_1}^{(m')})| = \mathcal{O}(\sigma_0^{0.75})"
)
_RETURNED = r"|h_m(X_{t_2}, \theta_{t_2}^{(m)}) - h_{m'}(X_{t_2}, \theta_{t_2}^{(m')})| = \mathcal{O}(\sigma_0^{1.75})"


@claim(
    "continual.proposition-2.same-set",
    paper="continual",
    where="Proposition 2, Eq. (12), first case, and its full version, M > N",
    kind="rate",
    margin=EXPONENT_MARGIN,
    replaced_by="continual.proposition-2.same-set-order",
)
class Proposition2SameSet:
    """With M > N and no termination, at t_1 gate outputs of two experts of the task's set are O(sigma_0^1.75) apart.

    The largest gap in the set, 0 in a set of fewer than two.
    """

    formula = _SAME
    experiment = LEARNING
    side = "at_least"
    abscissa = SCALES
    labels = named(*MANY_CELLS)
    observe = over(MANY_CELLS, _gap("own_gap", ROOT_TERMINATION))
    predict = stages.exponent(1.75)


@claim(
    "continual.proposition-2.same-set-clusters",
    paper="continual",
    where="Proposition 2, full version, item 1, first case, M < N",
    kind="rate",
    margin=EXPONENT_MARGIN,
    replaced_by="continual.proposition-2.same-set-clusters-order",
)
class Proposition2SameSetClusters:
    """With M < N and no termination, at t_1 gate outputs in a cluster's set are O(sigma_0^1.75) apart."""

    formula = _SAME
    experiment = LEARNING
    side = "at_least"
    abscissa = SCALES
    labels = named(*FEW_CELLS)
    observe = over(FEW_CELLS, _gap("own_gap", ROOT_TERMINATION))
    predict = stages.exponent(1.75)


@claim(
    "continual.proposition-2.same-set-order",
    paper="continual",
    where="replaces Proposition 2, Eq. (12), first case",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Proposition2SameSetOrder:
    """With M > N and no termination, at t_1 gate outputs in a task's set are O(sigma_0) apart.

    The leader is chosen and lowered, so a gap stays of the order of one step, O(eta alpha) = O(sigma_0), and of lambda.
    """

    formula = _SAME_ORDER
    experiment = LEARNING
    side = "at_least"
    abscissa = SCALES
    labels = named(*MANY_CELLS)
    observe = over(MANY_CELLS, _gap("own_gap", ROOT_TERMINATION))
    predict = stages.exponent(1.0)


@claim(
    "continual.proposition-2.same-set-clusters-order",
    paper="continual",
    where="replaces Proposition 2, full version, item 1, first case, M < N",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Proposition2SameSetClustersOrder:
    """With M < N and no termination, at t_1 gate outputs in a cluster's set are O(sigma_0) apart."""

    formula = _SAME_ORDER
    experiment = LEARNING
    side = "at_least"
    abscissa = SCALES
    labels = named(*FEW_CELLS)
    observe = over(FEW_CELLS, _gap("own_gap", ROOT_TERMINATION))
    predict = stages.exponent(1.0)


@claim(
    "continual.proposition-2.other-set",
    paper="continual",
    where="Proposition 2, Eq. (12), second case, and its full version, M > N",
    kind="rate",
    margin=EXPONENT_MARGIN,
    replaced_by="continual.proposition-2.other-set-order",
)
class Proposition2OtherSet:
    """With M > N and no termination, at t_1 outputs of experts of different sets are Theta(sigma_0^.75) apart.

    The mean gap over pairs of an expert of the arriving task's set and another.
    """

    formula = _OTHER
    experiment = LEARNING
    side = "equal"
    abscissa = SCALES
    labels = named(*MANY_CELLS)
    observe = over(MANY_CELLS, _gap("other_gap", ROOT_TERMINATION))
    predict = stages.exponent(0.75)


@claim(
    "continual.proposition-2.other-set-clusters",
    paper="continual",
    where="Proposition 2, full version, item 1, second case, M < N",
    kind="rate",
    margin=EXPONENT_MARGIN,
    replaced_by="continual.proposition-2.other-set-clusters-order",
)
class Proposition2OtherSetClusters:
    """With M < N and no termination, at t_1 outputs of experts of different sets are Theta(sigma_0^.75) apart."""

    formula = _OTHER
    experiment = LEARNING
    side = "equal"
    abscissa = SCALES
    labels = named(*FEW_CELLS)
    observe = over(FEW_CELLS, _gap("other_gap", ROOT_TERMINATION))
    predict = stages.exponent(0.75)


@claim(
    "continual.proposition-2.other-set-order",
    paper="continual",
    where="replaces Proposition 2, Eq. (12), second case",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Proposition2OtherSetOrder:
    """With M > N and no termination, at t_1 experts of different sets have outputs at most O(sigma_0^.75) apart."""

    formula = _OTHER_ORDER
    experiment = LEARNING
    side = "at_least"
    abscissa = SCALES
    labels = named(*MANY_CELLS)
    observe = over(MANY_CELLS, _gap("other_gap", ROOT_TERMINATION))
    predict = stages.exponent(0.75)


@claim(
    "continual.proposition-2.other-set-clusters-order",
    paper="continual",
    where="replaces Proposition 2, full version, item 1, second case, M < N",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Proposition2OtherSetClustersOrder:
    """With M < N and no termination, at t_1 experts of different sets have outputs at most O(sigma_0^.75) apart."""

    formula = _OTHER_ORDER
    experiment = LEARNING
    side = "at_least"
    abscissa = SCALES
    labels = named(*FEW_CELLS)
    observe = over(FEW_CELLS, _gap("other_gap", ROOT_TERMINATION))
    predict = stages.exponent(0.75)


@claim(
    "continual.proposition-2.all-experts",
    paper="continual",
    where="Proposition 2, Eq. (13), and its full version, M > N",
    kind="rate",
    margin=EXPONENT_MARGIN,
    replaced_by="continual.proposition-2.all-experts-order",
)
class Proposition2AllExperts:
    """With M > N and no termination, at t_2 the gate outputs of all experts are O(sigma_0^1.75) apart, or less."""

    formula = _RETURNED
    experiment = RETURNING
    side = "at_least"
    abscissa = RETURN_SCALES
    labels = named(*MANY_RETURN_CELLS)
    observe = over(MANY_RETURN_CELLS, _gap("any_gap", ROOT_RETURN))
    predict = stages.exponent(1.75)


@claim(
    "continual.proposition-2.all-experts-clusters",
    paper="continual",
    where="Proposition 2, full version, item 2, M < N",
    kind="rate",
    margin=EXPONENT_MARGIN,
    replaced_by="continual.proposition-2.all-experts-clusters-order",
)
class Proposition2AllExpertsClusters:
    """With M < N and no termination, at t_2 the gate outputs of all experts are O(sigma_0^1.75) apart, or less."""

    formula = _RETURNED
    experiment = RETURNING
    side = "at_least"
    abscissa = RETURN_SCALES
    labels = named(*FEW_RETURN_CELLS)
    observe = over(FEW_RETURN_CELLS, _gap("any_gap", ROOT_RETURN))
    predict = stages.exponent(1.75)


@claim(
    "continual.proposition-2.all-experts-order",
    paper="continual",
    where="replaces Proposition 2, Eq. (13)",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Proposition2AllExpertsOrder:
    """With M > N and no termination, at t_2 the gate outputs of all experts are O(sigma_0) apart, as one step is."""

    formula = _RETURNED_ORDER
    experiment = RETURNING
    side = "at_least"
    abscissa = RETURN_SCALES
    labels = named(*MANY_RETURN_CELLS)
    observe = over(MANY_RETURN_CELLS, _gap("any_gap", ROOT_RETURN))
    predict = stages.exponent(1.0)


@claim(
    "continual.proposition-2.all-experts-clusters-order",
    paper="continual",
    where="replaces Proposition 2, full version, item 2, M < N",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Proposition2AllExpertsClustersOrder:
    """With M < N and no termination, at t_2 the gate outputs of all experts are O(sigma_0) apart, as one step is."""

    formula = _RETURNED_ORDER
    experiment = RETURNING
    side = "at_least"
    abscissa = RETURN_SCALES
    labels = named(*FEW_RETURN_CELLS)
    observe = over(FEW_RETURN_CELLS, _gap("any_gap", ROOT_RETURN))
    predict = stages.exponent(1.0)
