"""Hyper-parameters of every learner on the trained testbed, searched at one budget.

Each bandit gets 64 random settings and each router 12, the package's own among them; routers hardly mind theirs.
Bandits are scored by their accuracy over the last quarter of 512 slots on 8 streams of seed 7, which no verdict uses
(verdicts are recorded at seed 1); routers by their accuracy on training inputs of all tasks, without dropped tokens.

    python benchmarks/tune_testbed.py            # about 20 minutes on one core: a table for each, best first
"""

import sys
import time

import jax
import numpy as np

from moe_theory.core.random import root_key
from moe_theory.merging import evaluation, policies
from moe_theory.merging.experiments import DIMS, SLOT_SIZE
from moe_theory.merging.params import Params
from moe_theory.merging.serving import routers
from moe_theory.merging.serving.methods import METHODS, Deployment
from moe_theory.merging.serving.routing import KINDS
from moe_theory.merging.system import system
from moe_theory.merging.testbed import training
from moe_theory.merging.testbed.tasks import TRAIN, VALIDATION, Recipe, examples
from moe_theory.runs import run_cells
from moe_theory.runs.cells import Cell

BANDIT_TRIALS = 64
ROUTER_TRIALS = 12
STREAMS = 8
SEED = 7
RATIOS = (0.3, 0.5, 0.7, 0.9)  # rho, in the paper's experiments
ROUTED = {
    "token-top-1": "token-top-1-dense",
    "token-top-2": "token-top-2-dense",
    "token-top-3": "token-top-3-dense",
    "rl": "rl-dense",
    "smear-token": "smear-token-linear",
    "smear-example": "smear-example-linear",
}


def bandit_settings(policy: str, random: np.random.Generator) -> list[dict[str, float]]:
    """Overrides of `Params`; the first are the package's own."""

    def draw() -> dict[str, float]:
        setting = {"exploration": between(random, 0.003, 1), "learning_rate": between(random, 0.1, 4)}
        if policy == policies.TANBR:
            setting |= {"smoothness": between(random, 0.01, 1), "split_constant": between(random, 0.03, 3)}
            setting["smoothness_ratio"] = float(random.choice(RATIOS))
        return setting

    return [{}, *(draw() for _ in range(BANDIT_TRIALS - 1))]


def between(random: np.random.Generator, low: float, high: float) -> float:
    """A draw whose logarithm is uniform, to two digits."""
    return float(f"{np.exp(random.uniform(np.log(low), np.log(high))):.2g}")


def score_bandits(policy: str) -> list[tuple[float, str]]:
    """Accuracy over the last quarter by setting."""
    recipe = Recipe()
    data = examples(recipe, VALIDATION)
    reward = evaluation.of_model(training.trained(recipe), data, recipe.num_tasks, SLOT_SIZE)
    bandit = system(DIMS, reward, policy)
    scores = []
    for overrides in bandit_settings(policy, np.random.default_rng(SEED)):
        params = Params(slot_size=SLOT_SIZE, **overrides)  # pyright: ignore[reportArgumentType]
        cell = Cell(policy, bandit, params, DIMS.max_rounds, 1, evaluation.observe, None, keeps_state=False)
        accuracy = np.asarray(run_cells([cell], STREAMS, seed=SEED)[policy].records.accuracy, np.float64)
        scores.append((float(accuracy[-DIMS.max_rounds // 4 :].mean()), str(overrides or "as they are")))
    return scores


def score_routers(kind: str, method: str) -> list[tuple[float, str]]:
    """Accuracy on training inputs by setting."""
    recipe = Recipe()
    random = np.random.default_rng(SEED)
    scores = []
    model = training.trained(recipe)
    data = examples(recipe, TRAIN)
    for trial in range(ROUTER_TRIALS):
        descent = routers.Descent(between(random, 0.002, 0.2), between(random, 0.001, 0.3))
        if trial == 0:  # the package's own
            descent = routers.Descent()
        router = routers.train(KINDS[kind], model, data, recipe.num_tasks, root_key(SEED), descent=descent)
        loaded = METHODS[method].prepare(Deployment(model, {kind: router}, data))
        mixes = np.full((1, 8, recipe.num_tasks), 1 / recipe.num_tasks, np.float32)
        accuracy = evaluation.serve_slots(method, loaded, data, jax.numpy.asarray(mixes), 512, root_key(SEED))
        scores.append((float(accuracy.mean()), str(descent)))
    return scores


def main() -> None:
    for name in sys.argv[1:] or (policies.TANBR, policies.NUCB, *ROUTED):
        start = time.perf_counter()
        scores = score_routers(name, ROUTED[name]) if name in ROUTED else score_bandits(name)
        print(f"\n{name}, {len(scores)} settings, {time.perf_counter() - start:.0f} s")
        for score, words in sorted(scores, reverse=True):
            print(f"  {score:.3f}  {words}", flush=True)


if __name__ == "__main__":
    main()
