"""Lemma 15: which of two specialists has the higher probability for a task, while the gates are never fixed."""

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.core.gating import pairs_of
from moe_theory.verify.statement import identity, statement

LEVEL = "a start from level gates (outputs sigma_0^0.5 higher for"

TASKS = statement(
    "lemma-15-more-experts",
    where="Lemma 15, Eq. (40), M > N",
    witness="lemma_15.py",
    disproof="orthogonal_tasks_order.py",
    says=r"""Between T1 and t1 each of two specialists of different tasks has the higher probability for its own task.
    $$\pi_m(X_n, \Theta_t) > \pi_{m'}(X_n, \Theta_t), \quad \pi_{m'}(X_{n'}, \Theta_t) > \pi_m(X_{n'}, \Theta_t),
    \quad m \in \mathcal{M}_n, m' \in \mathcal{M}_{n'}$$""",
    hypotheses=[*experiments.MORE, experiments.ENDLESS],
    why="""A set says for which signal an expert's own output is largest, (11), and nothing of how it compares with
    other experts. The proof gets the comparison from (35), where an upper bound of O(sigma_0^0.5) on differences of
    outputs is turned into a lower bound Omega(sigma_0^0.5) by Lemma 10.""",
    instance="""M = 24, N = 6 orthonormal tasks (for M < N 30 in six clusters), d = 8, s = 2, sigma_0 = 0.01 to 0.0001:
    already at T1 + 1 (40) holds in 2 to 8 % of the runs only.""",
    corrected=r"""One of the two inequalities holds of every pair, if each argmax in (11) is unique: the outputs that
    (40) compares then add up to more than 0.
    $$\left[ h_m(X_n) - h_{m'}(X_n) \right] + \left[ h_{m'}(X_{n'}) - h_m(X_{n'}) \right] > 0, \quad
    m \in \mathcal{M}_n, m' \in \mathcal{M}_{n'}$$""",
    derivation="lemma_15.py",
)
CLUSTERS = TASKS.twin(
    "lemma-15-fewer-experts",
    where="Lemma 15, Eq. (40), M < N",
    says=r"""Between T1 and t1 each of two specialists of different clusters has the higher probability for tasks of its
    own.
    $$\pi_m(X_n, \Theta_t) > \pi_{m'}(X_n, \Theta_t), \quad \pi_{m'}(X_{n'}, \Theta_t) > \pi_m(X_{n'}, \Theta_t),
    \quad m \in \mathcal{M}_k, m' \in \mathcal{M}_{k'}$$""",
    hypotheses=[*experiments.FEWER, experiments.ENDLESS],
)


@TASKS.charitable(
    "lemma-15.tasks", experiments.ENDLESS_MANY, experiments.LIKELY, instead="lemma-15.one-of-two-tasks"
).says("""With M > N, from T1 + 1 to t_1 a task's experts have larger probabilities for it than others, but for o(1).

    All tasks, experts and rounds at once; features are the signals alone.""")
@CLUSTERS.charitable(
    "lemma-15.clusters", experiments.ENDLESS_FEW, experiments.LIKELY, instead="lemma-15.one-of-two-clusters"
).says("With M < N, from T1 + 1 to t_1 a cluster's experts have larger probabilities for it than all others.")
@TASKS.intervention("lemma-15.tasks-apart", interventions.ENDLESS_APART_MANY, experiments.LIKELY).says(
    f"Without {LEVEL} own tasks as (35) has them) a task's experts have larger probabilities for it, but for o(1)."
)
@CLUSTERS.intervention("lemma-15.clusters-apart", interventions.ENDLESS_APART_FEW, experiments.LIKELY).says(
    f"Without {LEVEL} own clusters as (35) has them) a cluster's experts have larger probabilities for it."
)
def is_always_ordered(run) -> np.ndarray:
    return run.state.is_ordered


ONE_OF_TWO = r"""of any two at least one has the larger probability at the signal for which its own output is largest.
    This follows from the sets alone.
    $$\pi_m(X_n, \Theta_t) > \pi_{m'}(X_n, \Theta_t) \text{ or }
    \pi_{m'}(X_{n'}, \Theta_t) > \pi_m(X_{n'}, \Theta_t)$$"""


@TASKS.replacement("lemma-15.one-of-two-tasks", experiments.RETURN_MANY, identity(within=0)).says(
    f"With M > N and experts of different tasks, {ONE_OF_TWO}"
)
@CLUSTERS.replacement("lemma-15.one-of-two-clusters", experiments.RETURN_FEW, identity(within=0)).says(
    f"With M < N and experts of different clusters, {ONE_OF_TWO}"
)
def num_without_order(run) -> np.ndarray:
    """Pairs of which neither has, at the end of a run whose gates were never fixed (B,)."""
    gates = np.asarray(run.state.gates[: int(run.params.num_experts)], np.float64)
    outputs = np.einsum("mdb,ndb->mnb", gates, np.asarray(run.state.pool.signals, np.float64))
    pairs = pairs_of(outputs, np.asarray(run.state.pool.clusters))
    return np.sum(pairs.exist & pairs.trail & pairs.swapped, axis=(0, 1)).astype(float)
