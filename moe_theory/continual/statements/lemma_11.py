"""Lemma 11: whether exploration gives every task, or cluster, an expert.

Sets are those of (11) at the gates that route.
"""

from collections.abc import Callable

import numpy as np

from moe_theory.continual import corrected, experiments, interventions, theory
from moe_theory.runs import Run
from moe_theory.verify.claim import Experiment, Selection
from moe_theory.verify.region import Size
from moe_theory.verify.statement import alike, identity, probability, statement

COVERAGE_SIZES = ((2, 2), (3, 3), (3, 6), (6, 12), (6, 24), (10, 53))  # sets N and experts M
BY_SIZES = [f"N = {num_sets}, M = {num_experts}" for num_sets, num_experts in COVERAGE_SIZES]


def _covered(sets: str, experiment: Experiment) -> Selection:
    (own,) = experiment.cells.values()
    label = f"{sets} = {own['num_clusters']}, M = {own['num_experts']}"
    return Selection(experiment, (experiments.COVERED,), (label,))


# M = N ln(N / delta) and K ln(K / delta).
OF_TASKS, OF_CLUSTERS = _covered("N", experiments.COVERAGE), _covered("K", experiments.COVERAGE_CLUSTERS)
LATER_TASKS, LATER_CLUSTERS = _covered("N", interventions.LATER), _covered("K", interventions.LATER_CLUSTERS)
EARLY = f"the auxiliary loss in rounds 1 to {interventions.UNTIL}"

WHY = """An expert specialises, in M_n, in the task n for which its own gate output is largest, (11). The proof takes
experts as independent, each in M_n with probability 1/N, but they share their past. A step of the auxiliary loss is in
proportion to f_t/t, which is 1/t^2 for new experts, and raises the output for the task of its round for all experts
that are not chosen. So the tasks that arrive first are lifted most, for nearly all, and smaller steps later do not undo
it by T1."""
CORRECTED = r"""At least two sets have an expert, always; at alpha = Theta(sigma_0^0.5) no more can be promised. Gates
sum to 0 over experts (Lemma 4), and so do the differences of their outputs for any two signals: not all experts can
prefer the same one. Were experts independent and uniform, the union bound would give 1 - N (1 - 1/N)^M; the proof's
product (1 - (1 - 1/N)^M)^N is no lower bound even then: 9/16 against 1/2 at N = M = 2.
$$\left|\{n : |\mathcal{M}_n| \geq 1\}\right| \geq 2, \quad \sum_{m=1}^{M} \theta_t^{(m)} = 0$$"""

TASKS = statement(
    "lemma-11-more-experts",
    where="Appendix E, Lemma 11, M > N",
    says=r"""With Omega(N ln N) experts, in the proof N ln(N/delta), every task has a specialist but for chance delta.
    $$\mathbb{P}\left(|\mathcal{M}_n| \geq 1, \forall n \in [N]\right) \geq 1 - \delta$$""",
    why=WHY,
    instance="""N = 6 orthonormal signals, sigma_0 = 0.01, M = 29 >= N ln(N / 0.05): in 0 of 12 runs has every task a
    specialist; about 3 tasks have none, and 93 % of the experts share one. With M = 116 it is 0 of 12 and 98 %.""",
    corrected=CORRECTED,
    amendment="alpha eta = o(sigma_0^1.25), and Lemma 5 asks for alpha eta = Omega(sigma_0)",
    witness="lemma_11.py",
    disproof="orthogonal_tasks_coverage.py",
    derivation="two_sets_at_least.py",
    free=(*experiments.FREE_COVERAGE, Size("num_tasks", 6, experiments.COVERAGE_SETS)),
)
CLUSTERS = TASKS.twin(
    "lemma-11-fewer-experts",
    where="Appendix E, Lemma 11, M < N",
    says=r"""With Omega(K ln K) experts, though fewer than tasks, every cluster has a specialist but for chance delta.
    $$\mathbb{P}\left(|\mathcal{M}_k| \geq 1, \forall k \in [K]\right) \geq 1 - \delta$$""",
    instance="""Six clusters of five tasks, orthonormal signals, sigma_0 = 0.01, M = 29 >= K ln(K/0.05): in 0 of 12 runs
    has every cluster a specialist.""",
    free=(
        *experiments.FREE_COVERAGE,
        Size("num_tasks", 6 * experiments.MEMBERS, experiments.COVERAGE_SETS * experiments.MEMBERS),
    ),
)
CLUSTERS.also("lemma-11.product", role="step")
CLUSTERS.also("lemma-11.union", role="step")


@TASKS.charitable(
    "lemma-11.tasks",
    OF_TASKS,
    probability(at_least=1 - experiments.FAILURE),
    where="Lemma 11, first case",
    labels=lambda run: [f"N = {int(run.params.num_clusters)}, M = {int(run.params.num_experts)}"],
    hypotheses=experiments.MORE,
    instead="lemma-11.two-tasks",
).says("""
    With M = N ln(N/delta) experts, at T1 every task has one whose gate output is largest for it, but for delta.

    At sigma_0 = 0.01.""")
@TASKS.intervention(
    "lemma-11.tasks-later",
    LATER_TASKS,
    probability(at_least=1 - experiments.FAILURE),
    hypotheses=experiments.MORE,
).says(
    f"Without {EARLY}, at T1 every task has an expert, but for delta; signals are orthogonal, M is twice N ln(N/delta)."
)
@CLUSTERS.charitable(
    "lemma-11.clusters",
    OF_CLUSTERS,
    probability(at_least=1 - experiments.FAILURE),
    where="Lemma 11, second case",
    labels=lambda run: [f"K = {int(run.params.num_clusters)}, M = {int(run.params.num_experts)}"],
    hypotheses=experiments.FEWER,
    instead="lemma-11.two-clusters",
).says("""
    With M = K ln(K/delta) < N experts, at T1 every cluster has one that is best at a task of it, but for delta.

    At sigma_0 = 0.01.""")
@CLUSTERS.intervention(
    "lemma-11.clusters-later",
    LATER_CLUSTERS,
    probability(at_least=1 - experiments.FAILURE),
    hypotheses=experiments.FEWER,
).says(
    f"Without {EARLY}, at T1 every cluster has one, but for delta; signals are orthogonal, M is twice K ln(K/delta)."
)
def no_set_is_empty(run) -> np.ndarray:
    sets = run.records.sets[np.searchsorted(run.rounds, experiments.stage_rounds(run.params))][
        : int(run.params.num_experts)
    ]
    return np.all([np.any(sets == cluster, axis=0) for cluster in range(int(run.params.num_clusters))], axis=0)


def shortfalls(bound: Callable[[int, int], float]) -> Callable[[Run], np.ndarray]:
    """By how much the exact probability falls short of a lower bound; the same for every replicate."""
    values = [max(bound(*sizes) - corrected.coverage_probability(*sizes), 0.0) for sizes in COVERAGE_SIZES]
    return lambda run: alike(run, values)


TASKS.step(
    "lemma-11.product",
    OF_TASKS,
    identity(within=1e-9),
    where="Lemma 11, proof: first inequality of the union bound",
    labels=BY_SIZES,
    instead="lemma-11.union",
    exact=True,
).says(r"""
    Experts that fall into sets independently and uniformly fill every set as often as independent sets would.

    By how much the exact probability falls short of the product, for several N and M; it is below it for all of them,
    since an expert in one set is in no other.
    $$\mathbb{P}\left(|\mathcal{M}_n| \geq 1, \forall n\right) \geq \left(1 - \left(1 -
    \frac{1}{N}\right)^M\right)^N$$""")(shortfalls(theory.lemma_11))
TASKS.step(
    "lemma-11.union",
    OF_TASKS,
    identity(within=1e-9),
    where="Lemma 11, proof, without the product",
    labels=BY_SIZES,
    exact=True,
).says(r"""
    Experts that fall into sets independently and uniformly fill every set with chance 1 - N (1 - 1/N)^M or more.

    By how much the exact probability falls short of that, for several N and M. Experts of Algorithm 1 do not fall so:
    they share a pool, whose longest signals draw most of them.
    $$\mathbb{P}\left(|\mathcal{M}_n| \geq 1, \forall n\right) \geq 1 - N \left(1 - \frac{1}{N}\right)^M$$
    """)(shortfalls(corrected.lemma_11))


TWO_SETS = r"""experts prefer at least two between them, always: for every signal their outputs sum to 0.

    Counted are the rounds up to T1 after which all share one set; there are none.
    $$\left|\{n : |\mathcal{M}_n| \geq 1\}\right| \geq 2, \quad 1 \leq t \leq T_1$$"""


@TASKS.replacement("lemma-11.two-tasks", OF_TASKS, identity(within=0), hypotheses=experiments.MORE).says(
    f"Of more than one task {TWO_SETS}"
)
@CLUSTERS.replacement("lemma-11.two-clusters", OF_CLUSTERS, identity(within=0), hypotheses=experiments.FEWER).says(
    f"Of clusters whose signals are alike {TWO_SETS}"
)
def num_rounds_with_one_set(run) -> np.ndarray:
    sets = run.records.sets[run.rounds <= experiments.stage_rounds(run.params), : int(run.params.num_experts)]
    return np.sum(np.all(sets == sets[:, :1], axis=1), axis=0).astype(float)
