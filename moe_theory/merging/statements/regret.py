"""The definition of the regret: which weights are the best."""

import numpy as np

from moe_theory.merging import policies
from moe_theory.merging.experiments import ON_REWARDS, SURFACE, recorded
from moe_theory.verify.claim import Runs
from moe_theory.verify.statement import counterexample, identity, statement

LEAST_LOSS = 1e-3  # of a sum of slots' regrets: what rounding may make of 0

REGRET = statement(
    "regret",
    where="Section IV-D, definition of the regret",
    says=r"""The best weights for a task mix are the mix applied to where the tasks' rewards are largest.
    $$x_t^* = \psi_t \mathrm{argmax}_x f^*(x)$$""",
    hypotheses=ON_REWARDS,
    why="The formula multiplies the mix by an argmax; read as weights, it is the mean of the tasks' own best weights, "
    "which is not best for the mix. The words beside it, the weights with the highest reward, are right.",
    instance="Two tasks with rewards (1 + x_1 - x_2)/2 and (1 + x_2 - x_1)/2 in the mix (0.7, 0.3): the mean of the "
    "tasks' best weights is (0.7, 0.3) and earns 0.58, the weights (1, 0) earn 0.7.",
    corrected=r"The mix belongs inside the argmax. $$x_t^* = \mathrm{argmax}_x \psi_t' f^*(x)$$",
    disproof="two_tasks_regret.py",
    amendment="with the task mix inside the argmax, over the weights that (1a) and (1b) allow",
    proof="regret.py",
    derivation="regret.py",
)


@REGRET.literal(
    "regret.mean-of-bests", SURFACE["shares"].at(policies.MIX), counterexample(), instead="regret.best-weights"
)
def loses(run) -> np.ndarray:
    """No weights earn more than the tasks' own best weights, averaged with the task mix."""
    # On this reward the tasks' own best weights are the experts, and their mean with the mix is what `mix` plays.
    return recorded(run, "cumulative_regret")[-1] > LEAST_LOSS


@REGRET.charitable(
    "regret.best-weights",
    SURFACE["shares"],
    identity(within=1e-5),
    where="replaces the definition of the regret: the weights that are best for the mix",
)
def largest_gain(runs: Runs) -> np.ndarray:
    r"""No weights that a policy here tried in a recorded slot earn more than those that maximise psi' f*.
    $$x_t^* = \mathrm{argmax}_x \psi_t' f^*(x)$$"""
    return np.max([np.maximum(-recorded(run, "regret"), 0).max(axis=0) for run in runs.values()], axis=0)
