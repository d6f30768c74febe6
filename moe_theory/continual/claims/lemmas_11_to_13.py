"""Lemmas 11 to 13 and Proposition 1: every task finds an expert, experts keep their sets, and what a repeat does.

Tasks (M > N) are six unrelated ones, clusters (M < N) three pairs. Sets are those of (11) at the gates that route.
"""

from collections.abc import Callable

import numpy as np

from moe_theory.continual import corrected, experiments, theory
from moe_theory.continual.claims.measurements import (
    along,
    claim,
    contracted_errors,
    past_exploration,
    per_cell,
    probable,
    rate,
    remaining_errors,
    router_learning,
    truth_length,
)
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, Values, named, over

UNCHANGED = 1e-3  # of the truths' root mean square: what counts as no move in float32
COVERAGE_SIZES = ((2, 2), (3, 3), (3, 6), (6, 12), (6, 24), (10, 53))  # sets N and experts M


def _no_set_empty(count: int) -> Values:
    def observe(runs: Runs) -> np.ndarray:
        run = runs[f"{count} sets"]
        row = np.searchsorted(run.rounds, experiments.stage_rounds(run.params))
        sets = run.records.sets[row][: experiments.COVERAGE_EXPERTS[count]]
        return np.all([np.any(sets == cluster, axis=0) for cluster in range(count)], axis=0)

    return observe


def _shortfalls(bound: Callable[[int, int], float]) -> Values:
    """By how much the exact probability falls short of a lower bound; the same for every replicate."""
    shortfalls = [max(bound(*sizes) - corrected.coverage_probability(*sizes), 0.0) for sizes in COVERAGE_SIZES]
    return lambda runs: np.tile(shortfalls, (len(next(iter(runs.values())).replicates), 1))


_BY_SIZES = named(*(f"N = {num_sets}, M = {num_experts}" for num_sets, num_experts in COVERAGE_SIZES))


@probable("continual.lemma-11.tasks", where="Lemma 11, first case", replaced_by="continual.lemma-11.union")
class Lemma11Tasks:
    """With M = N ln(N/delta) experts, at T1 every task has one whose gate output is largest for it, but for delta."""

    formula = r"\mathbb{P}\left(|\mathcal{M}_n| \geq 1, \forall n \in [N]\right) \geq 1 - \delta"
    experiment = experiments.COVERAGE
    labels = named(f"N = {experiments.COVERAGE_TASKS}, M = {experiments.COVERAGE_EXPERTS[experiments.COVERAGE_TASKS]}")
    observe = _no_set_empty(experiments.COVERAGE_TASKS)


@probable("continual.lemma-11.clusters", where="Lemma 11, second case")
class Lemma11Clusters:
    """With M = K ln(K/delta) < N experts, at T1 every cluster has one that is best at a task of it, but for delta."""

    formula = r"\mathbb{P}\left(|\mathcal{M}_k| \geq 1, \forall k \in [K]\right) \geq 1 - \delta"
    experiment = experiments.COVERAGE
    labels = named(
        f"K = {experiments.COVERAGE_CLUSTERS}, M = {experiments.COVERAGE_EXPERTS[experiments.COVERAGE_CLUSTERS]}"
    )
    observe = _no_set_empty(experiments.COVERAGE_CLUSTERS)


@claim(
    "continual.lemma-11.product",
    where="Lemma 11, proof: first inequality of the union bound",
    kind="identity",
    margin=1e-9,
    replaced_by="continual.lemma-11.union",
)
class Lemma11Product:
    """Experts that fall into sets independently and uniformly leave none empty as often as independent sets would.

    By how much the exact probability falls short of the product, for several N and M; it is below it for all of them,
    since an expert in one set is in no other.
    """

    formula = (
        r"\mathbb{P}\left(|\mathcal{M}_n| \geq 1, \forall n\right) \geq "
        r"\left(1 - \left(1 - \frac{1}{N}\right)^M\right)^N"
    )
    experiment = experiments.COVERAGE
    labels = _BY_SIZES
    observe = _shortfalls(theory.lemma_11)


@claim("continual.lemma-11.union", where="replaces Lemma 11 and the product in its proof", kind="identity", margin=1e-9)
class Lemma11Union:
    """Experts that fall into sets independently and uniformly leave none empty with chance 1 - N (1 - 1/N)^M or more.

    By how much the exact probability falls short of that, for several N and M. Experts of Algorithm 1 do not fall so:
    they share a pool, whose longest signals draw most of them.
    """

    formula = r"\mathbb{P}\left(|\mathcal{M}_n| \geq 1, \forall n\right) \geq 1 - N \left(1 - \frac{1}{N}\right)^M"
    experiment = experiments.COVERAGE
    labels = _BY_SIZES
    observe = _shortfalls(corrected.lemma_11)


def _largest_correct_gradient(run: Run) -> np.ndarray:
    seen = run.records
    late = past_exploration(run)
    largest = np.max(np.where(seen.is_inside[late], seen.locality_gradient[late], 0), axis=0)
    return largest / truth_length(run)


def _correct_gradient(run: Run) -> np.ndarray:
    """The mean locality gradient of arrivals of T1 + 1, ..., t_1 that meet an expert of their set."""
    rows = router_learning(run)
    gradients, is_inside = run.records.locality_gradient[rows], run.records.is_inside[rows]
    return np.sum(np.where(is_inside, gradients, 0.0), axis=0) / np.maximum(np.sum(is_inside, axis=0), 1)


@claim(
    "continual.lemma-12.tasks",
    where="Lemma 12, case 1",
    kind="identity",
    margin=UNCHANGED,
    replaced_by="continual.proposition-1.contraction",
)
class Lemma12Tasks:
    """With M > N, a task that meets an expert of its set moves nothing, so the locality loss has no gradient.

    The largest entry of that gradient after T1, over the truths' root mean square.
    """

    formula = r"m_t \in \mathcal{M}_n \Rightarrow \nabla_{\theta_t^{(m)}} \mathcal{L}_t^{loc} = 0"
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.MANY_CELLS, _largest_correct_gradient)


@rate(
    "continual.lemma-12.clusters",
    at_least=1.5,
    where="Lemma 12, case 2",
    replaced_by="continual.lemma-12.clusters-order",
)
class Lemma12Clusters:
    """With M < N, a task that meets an expert of its cluster has a locality gradient of O(sigma_0^1.5).

    The mean of its largest entry over such rounds of T1 + 1, ..., t_1.
    """

    formula = (
        r"m_t \in \mathcal{M}_k \Rightarrow \|\nabla_{\theta_t^{(m)}} \mathcal{L}_t^{loc}\|_\infty "
        r"= \mathcal{O}(\sigma_0^{1.5})"
    )
    experiment = experiments.SPECIALIZATION
    labels, observe, abscissa = along(experiments.FEW_CELLS, _correct_gradient)


@rate("continual.lemma-12.clusters-order", at_least=1.0, where="replaces Lemma 12, case 2")
class Lemma12ClustersOrder:
    """With M < N, that gradient is O(sigma_0), the order of the distance of any model to any truth."""

    formula = Lemma12Clusters.formula.replace("^{1.5}", "")
    experiment = experiments.SPECIALIZATION
    labels, observe, abscissa = along(experiments.FEW_CELLS, _correct_gradient)


def _always(name: str):
    return lambda run: np.all(getattr(run.records, name)[past_exploration(run)], axis=0)


@probable("continual.lemma-13.tasks", where="Lemma 13, M > N")
class Lemma13Tasks:
    """With M > N, from T1 + 2 on an expert's probability is larger for its own task than for all others, up to delta.

    All experts and rounds at once; sets are those at the gates of round T1 + 1, features are the signals alone.
    """

    formula = r"\pi_m(X_n, \Theta_t) > \pi_m(X_{n'}, \Theta_t), \quad m \in \mathcal{M}_n, n' \neq n"
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.MANY_SMALLEST, _always("is_separated"))


@probable("continual.lemma-13.clusters", where="Lemma 13, M < N")
class Lemma13Clusters:
    """With M < N, from T1 + 2 on an expert's probability is larger for its cluster's tasks than others, up to delta."""

    formula = (
        r"\pi_m(X_n, \Theta_t) > \pi_m(X_{n'}, \Theta_t), \quad "
        r"m \in \mathcal{M}_k, w_n \in \mathcal{W}_k, w_{n'} \notin \mathcal{W}_k"
    )
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.FEW_SMALLEST, _always("is_separated"))


@probable("continual.proposition-1.sets-tasks", where="Proposition 1, and its full version, case 1")
class Proposition1SetsTasks:
    """With M > N, every expert keeps its task's set in all rounds after T1, with probability at least 1 - delta."""

    formula = r"\mathbb{P}\left(m \in \mathcal{M}_n \text{ for all } t > T_1\right) \geq 1 - \delta"
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.MANY_SMALLEST, _always("is_stable"))


@probable("continual.proposition-1.sets-clusters", where="Proposition 1, full version, case 2")
class Proposition1SetsClusters:
    """With M < N, every expert keeps its cluster's set in all rounds after T1, with probability at least 1 - delta."""

    formula = r"\mathbb{P}\left(m \in \mathcal{M}_k \text{ for all } t > T_1\right) \geq 1 - \delta"
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.FEW_SMALLEST, _always("is_stable"))


@probable(
    "continual.proposition-1.unchanged",
    where="Proposition 1, and its full version, case 1",
    replaced_by="continual.proposition-1.contraction",
)
class Proposition1Unchanged:
    """With M > N, no expert moves after round T1 + 1, with probability at least 1 - delta.

    No move is one of at most a thousandth of the truths' root mean square, in every entry.
    """

    formula = r"w_{T_1+1}^{(m)} = \cdots = w_T^{(m)}"
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(
        experiments.MANY_SMALLEST, lambda run: run.records.drift.max(axis=0) <= UNCHANGED * truth_length(run)
    )


@rate(
    "continual.proposition-1.drift",
    at_least=1.5,
    where="Proposition 1, full version, case 2",
    replaced_by="continual.proposition-1.contraction",
)
class Proposition1Drift:
    """With M < N, every expert stays within O(sigma_0^1.5) of what it was at round T1 + 1, in all later rounds."""

    formula = r"\|w_t^{(m)} - w_{T_1+1}^{(m)}\|_\infty = \mathcal{O}(\sigma_0^{1.5})"
    experiment = experiments.SPECIALIZATION
    labels, observe, abscissa = along(
        experiments.FEW_CELLS, lambda run: run.records.drift.max(axis=0).astype(np.float64)
    )


@claim("continual.proposition-1.contraction", where="replaces Proposition 1 and Lemma 12", kind="equality", margin=0.02)
class Proposition1Contraction:
    """After T1 a repeat of an expert's last task leaves (d - s)/(d - 1) of its squared error, in expectation.

    Sums over repeats of what is left, as a fraction, where the error before is not down to rounding.
    """

    formula = (
        r"\mathbb{E}\left[\|w_t^{(m)} - w_n\|^2 \mid w_{t-1}^{(m)}\right] = "
        r"\frac{d-s}{d-1} \|w_{t-1}^{(m)} - w_n\|^2"
    )
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2, remaining_errors)
    predict = over(experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2, contracted_errors)


def _is_ordered_at_end(run: Run) -> np.ndarray:
    return run.records.is_ordered[experiments.stage_rounds(run.params) - 1]


@probable("continual.proposition-1.order-tasks", where="Proposition 1, proof: Eq. (34), M > N")
class Proposition1OrderTasks:
    """With M > N, at T1 for each task's signal the experts of its set are above all others, up to delta."""

    formula = (
        r"\pi_m(X_n, \Theta_{T_1}) > \pi_{m'}(X_n, \Theta_{T_1}), \quad m \in \mathcal{M}_n, m' \in \mathcal{M}_{n'}"
    )
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.MANY_SMALLEST, _is_ordered_at_end)


@probable("continual.proposition-1.order-clusters", where="Proposition 1, proof: Eq. (34), M < N")
class Proposition1OrderClusters:
    """With M < N, at T1 for each signal the experts of its cluster's set are above all others, up to delta."""

    formula = (
        r"\pi_m(X_k, \Theta_{T_1}) > \pi_{m'}(X_k, \Theta_{T_1}), \quad m \in \mathcal{M}_k, m' \in \mathcal{M}_{k'}"
    )
    experiment = experiments.SPECIALIZATION
    labels, observe = per_cell(experiments.FEW_SMALLEST, _is_ordered_at_end)
