"""Lemma 12: the locality loss's gradient where a task meets an expert of its set, (11) at the gates that route."""

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.verify.statement import identity, rate, statement

UNCHANGED = 1e-3  # of the truths' root mean square: what counts as no move in float32
BY_FEW = experiments.SPECIALIZATION.over(experiments.FEW_CELLS)

TASKS = statement(
    "lemma-12-more-experts",
    where="Appendix E, Lemma 12, 1)",
    says=r"""A task that reaches one of its specialists leaves no gradient of the locality loss.
    $$m_t \in \mathcal{M}_n \Rightarrow \nabla_{\theta_t^{(m)}} \mathcal{L}_t^{loc} = 0$$""",
    hypotheses=experiments.MORE,
    why="""The proof takes it from Lemma 3 that an expert of the right set does not move. A set says what the gates
    prefer, not what the expert has learned: as outputs are not ordered by task, see Lemma 15, it may have met other
    tasks last. That even a repeat of its own task moves it is not the cause.""",
    instance="""Orthonormal tasks, s = 1, t = 2: the first task comes again and meets an expert that has learned nothing
    and whose gate prefers it, with chance (M - 1)/(M N) or more; the gradient is sigma_0 (1 - 1/M)/M. M = 12, N = 6
    orthonormal tasks, d = 8, s = 2: after T1 the gradient of an arrival at an expert of its own set is 0.058, 0.053 and
    0.054 sigma_0 in median at sigma_0 = 0.01, 0.001 and 0.0001.""",
    corrected=r"""A repeat leaves (d - s)/(d - 1) of the squared error in expectation, and a gradient with it.
    $$\mathbb{E}\left[\|w_t^{(m)} - w_n\|^2 \mid w_{t-1}^{(m)}\right] = \frac{d-s}{d-1} \|w_{t-1}^{(m)} - w_n\|^2$$""",
    witness="proposition_1.py",
    disproof="second_round_gradient.py",
    derivation="signal_step.py",
)
CLUSTERS = statement(
    "lemma-12-fewer-experts",
    where="Appendix E, Lemma 12, 2)",
    says=r"""A task that reaches a specialist of its cluster leaves a gradient of the locality loss of O(sigma_0^1.5).
    $$m_t \in \mathcal{M}_k \Rightarrow \|\nabla_{\theta_t^{(m)}} \mathcal{L}_t^{loc}\|_\infty =
    \mathcal{O}(\sigma_0^{1.5})$$""",
    hypotheses=experiments.FEWER,
    why="""The proof takes the expert to be within O(sigma_0^1.5) of its cluster's truths. As outputs are not ordered
    by cluster, see Lemma 15, it goes on meeting other clusters, and is of order sigma_0 away. That it learns slowly is
    not the cause.""",
    instance="""M = 12, N = <24> in K = 6 orthonormal clusters, d = 8, s = 2: the median gradient is 0.058, 0.053 and
    0.054 sigma_0 at sigma_0 = 0.01, 0.001 and 0.0001, and so of order sigma_0.""",
    corrected=r"""It is O(sigma_0), the order of the distance of any model to any truth.
    $$m_t \in \mathcal{M}_k \Rightarrow \|\nabla_{\theta_t^{(m)}} \mathcal{L}_t^{loc}\|_\infty =
    \mathcal{O}(\sigma_0)$$""",
    witness="proposition_1.py",
    disproof="second_round_gradient.py",
    note="""With signals and noise of O(sigma_0^0.5), App. A.2's among them, it holds of every expert, right or wrong,
    as a gradient is the product of a move, O(sigma_0), and the features' sum: it then says nothing about sets.""",
)
TASKS.also("proposition-1.contraction", role="corrected")


@TASKS.charitable(
    "lemma-12.tasks",
    experiments.SPECIALIZATION.over(experiments.MANY_CELLS),
    identity(within=UNCHANGED),
    where="Lemma 12, case 1",
    instead="proposition-1.contraction",
).says("""With M > N, a task that meets an expert of its set moves nothing, so the locality loss has no gradient.

    The largest entry of that gradient after T1, over the truths' root mean square.""")
@TASKS.intervention(
    "lemma-12.tasks-apart",
    interventions.LEARNED_APART.over(experiments.MANY_SMALLEST),
    identity(within=UNCHANGED),
).says("Without a start from level gates (outputs sigma_0^0.5 higher for own tasks) such a task has no gradient.")
@TASKS.suspect(
    "lemma-12.tasks-at-once",
    interventions.LEARNED_AT_ONCE.over(experiments.MANY_SMALLEST),
    identity(within=UNCHANGED),
).says("Without slow learning (an expert learns the whole truth at once: Lemma 3 holds) such a task has no gradient.")
def largest_correct_gradient(run) -> np.ndarray:
    seen = run.records
    late = experiments.past_exploration(run)
    largest = np.max(np.where(seen.is_inside[late], seen.locality_gradient[late], 0), axis=0)
    return largest / experiments.truth_length(run)


@CLUSTERS.charitable(
    "lemma-12.clusters", BY_FEW, rate(at_least=1.5), where="Lemma 12, case 2", instead="lemma-12.clusters-order"
).says("""With M < N, a task that meets an expert of its cluster has a locality gradient of O(sigma_0^1.5).

    The mean of its largest entry over such rounds of T1 + 1, ..., t_1.""")
@CLUSTERS.intervention(
    "lemma-12.clusters-apart", interventions.LEARNED_APART.over(experiments.FEW_CELLS), rate(at_least=1.5)
).says(
    "Without a start from level gates (outputs sigma_0^0.5 higher for own clusters) that gradient is O(sigma_0^1.5)."
)
@CLUSTERS.suspect(
    "lemma-12.clusters-at-once", interventions.LEARNED_AT_ONCE.over(experiments.FEW_CELLS), rate(at_least=1.5)
).says("Without slow learning (an expert learns the whole truth at once) that gradient is O(sigma_0^1.5).")
@CLUSTERS.replacement("lemma-12.clusters-order", BY_FEW, rate(at_least=1.0), where="replaces Lemma 12, case 2").says(
    "With M < N, that gradient is O(sigma_0), the order of the distance of any model to any truth."
)
def correct_gradient(run) -> np.ndarray:
    """The mean locality gradient of arrivals of T1 + 1, ..., t_1 that meet an expert of their set."""
    rows = experiments.router_learning(run)
    gradients, is_inside = run.records.locality_gradient[rows], run.records.is_inside[rows]
    return np.sum(np.where(is_inside, gradients, 0.0), axis=0) / np.maximum(np.sum(is_inside, axis=0), 1)
