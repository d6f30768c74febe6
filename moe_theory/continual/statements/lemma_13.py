"""Lemma 13: an expert's probabilities for its own task, or cluster, and for others."""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.continual.statements.proposition_1 import UNEARNED, claim_competitors
from moe_theory.verify.statement import statement

WHY = """Early termination fixes the gates at once where Gamma is above all differences of outputs at T1 + 1, as one of
order sigma_0^1.25 is in the limit. Algorithm 1 asks for O(sigma_0^1.25): below a step of the gates each move of a model
after T1 may change what its expert prefers."""

TASKS = statement(
    "lemma-13-more-experts",
    where="Appendix E, Lemma 13, Eq. (33), M > N",
    says=r"""An expert that specialises in a task just after T1 gives it, from then on, more probability than it gives
    any other task.
    $$\pi_m(X_n, \Theta_t) > \pi_m(X_{n'}, \Theta_t), \quad m \in \mathcal{M}_n, n' \neq n$$""",
    hypotheses=[*experiments.MORE, experiments.SMALL_TRUTHS],
    disproof="small_threshold_sets.py",
    amendment="Gamma = Theta(sigma_0^1.25) and, unless signals are orthogonal, alpha = o(sigma_0^0.75)",
    free=(experiments.FREE_SIGNALS, *experiments.FREE),
    why=WHY,
    instance="""Two opposite tasks, M = 3, alpha = sigma_0^1.5, Gamma = sigma_0^2: after round T1 + 1 (33) fails with
    chance 1/4, whatever sigma_0.""",
    note="""It holds in the limit, since nearly all gates are fixed within a few rounds of T1. It compares an expert's
    probabilities for two tasks and not those of two experts for one, by which a router chooses: see Lemma 15.""",
)
CLUSTERS = TASKS.twin(
    "lemma-13-fewer-experts",
    where="Appendix E, Lemma 13, Eq. (33), M < N",
    says=r"""An expert that specialises in a cluster just after T1 gives its tasks, from then on, more probability than
    those of any other cluster.
    $$\pi_m(X_n, \Theta_t) > \pi_m(X_{n'}, \Theta_t), \quad m \in \mathcal{M}_k, w_n \in \mathcal{W}_k, w_{n'}
    \notin \mathcal{W}_k$$""",
    hypotheses=[*experiments.FEWER, experiments.SMALL_TRUTHS],
)


@TASKS.charitable("lemma-13.tasks", experiments.LIMIT_MANY, experiments.LIKELY, where="Lemma 13, M > N").says("""
    With M > N, from T1 + 2 on an expert's probability is larger for its own task than for all others, but for o(1).

    All experts and rounds at once; sets are those at the gates of round T1 + 1, features are the signals alone.""")
@CLUSTERS.charitable("lemma-13.clusters", experiments.LIMIT_FEW, experiments.LIKELY, where="Lemma 13, M < N").says(
    "With M < N, from T1 + 2 on an expert's probability is larger for its cluster's tasks than others, but for o(1)."
)
def is_always_separated(run) -> np.ndarray:
    return run.state.is_separated


claim_competitors(
    is_always_separated,
    {"lemma-13.tasks": TASKS, "lemma-13.clusters": CLUSTERS},
    UNEARNED,
    "an expert's probability is always larger for its own kind, but for o(1)",
)
