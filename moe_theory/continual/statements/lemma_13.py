"""Lemma 13: an expert's probabilities for its own task, or cluster, and for others."""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.verify.statement import probability, statement

OPEN = """Judged at the smallest sigma_0 of the grid, 0.003, with 0.05 for o(1), which are choices of ours: whether
the probability tends to 1 takes smaller sigma_0."""

TASKS = statement(
    "lemma-13-more-experts",
    where="Appendix E, Lemma 13, Eq. (33), M > N",
    says=r"""An expert that specialises in a task just after T1 gives it, from then on, more probability than it gives
    any other task.
    $$\pi_m(X_n, \Theta_t) > \pi_m(X_{n'}, \Theta_t), \quad m \in \mathcal{M}_n, n' \neq n$$""",
    hypotheses=experiments.MORE,
    note=OPEN,
)
CLUSTERS = statement(
    "lemma-13-fewer-experts",
    where="Appendix E, Lemma 13, Eq. (33), M < N",
    says=r"""An expert that specialises in a cluster just after T1 gives its tasks, from then on, more probability than
    those of any other cluster.
    $$\pi_m(X_n, \Theta_t) > \pi_m(X_{n'}, \Theta_t), \quad m \in \mathcal{M}_k, w_n \in \mathcal{W}_k, w_{n'}
    \notin \mathcal{W}_k$$""",
    hypotheses=experiments.FEWER,
    note=OPEN,
)


@TASKS.literal(
    "lemma-13.tasks",
    experiments.SPECIALIZATION.over(experiments.MANY_SMALLEST),
    probability(at_least=1 - experiments.FAILURE),
    where="Lemma 13, M > N",
).says(r"""
    With M > N, from T1 + 2 on an expert's probability is larger for its own task than for all others, up to delta.

    All experts and rounds at once; sets are those at the gates of round T1 + 1, features are the signals alone.
    $$\pi_m(X_n, \Theta_t) > \pi_m(X_{n'}, \Theta_t), \quad m \in \mathcal{M}_n, n' \neq n$$""")
@CLUSTERS.literal(
    "lemma-13.clusters",
    experiments.SPECIALIZATION.over(experiments.FEW_SMALLEST),
    probability(at_least=1 - experiments.FAILURE),
    where="Lemma 13, M < N",
).says(r"""
    With M < N, from T1 + 2 on an expert's probability is larger for its cluster's tasks than others, up to delta.
    $$\pi_m(X_n, \Theta_t) > \pi_m(X_{n'}, \Theta_t), \quad m \in \mathcal{M}_k, w_n \in \mathcal{W}_k, w_{n'}
    \notin \mathcal{W}_k$$""")
def is_always_separated(run) -> np.ndarray:
    return np.all(run.records.is_separated[experiments.past_exploration(run)], axis=0)
