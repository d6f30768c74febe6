"""Lemma 1: how an expert learns a task."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Int, Key

from moe_theory.core.system import System
from moe_theory.edge import delays
from moe_theory.edge.algorithm import State, draw, learn, system
from moe_theory.edge.params import SIGMA_0, Dims, Params
from moe_theory.edge.statements.setting import statement
from moe_theory.verification.claim import Experiment
from moe_theory.verification.statement import identity

DIMS = Dims(max_experts=4, num_tasks=3, num_features=8, num_samples=5, max_delay=4)
NUM_ROUNDS = 40


class Updates(NamedTuple):
    """The data of a round, the server it went to, and the models after the round."""

    features: Float[Array, "p s"]
    truth: Float[Array, " p"]
    expert: Int[Array, ""]
    delay: Int[Array, ""]
    experts: Float[Array, "M p"]


def _step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Updates]:
    arrival = draw(key, DIMS, state.pool, state.positions, params, delays.uniform)
    after, info = learn(state, arrival, params, dims=DIMS)
    return after, Updates(arrival.features, arrival.truth, info.expert, info.delay, after.experts)


UPDATES = Experiment(
    "updates",
    DIMS,
    System(system(DIMS).init, _step),
    {"M = 4": {"num_experts": 4, "max_transfer_delay": 2, "max_execution_delay": 2}},
    NUM_ROUNDS,
    replicates=64,
    is_double=True,
)


@statement("lemma-1", module=__name__).charitable("lemma-1.least-change", UPDATES.at("M = 4"), identity(within=1e-9))
def departure(run) -> np.ndarray:
    count = len(run.replicates)
    return np.array([_worst(jax.tree.map(lambda leaf, i=i: leaf[..., i], run.records)) for i in range(count)]) / SIGMA_0


def _worst(updates: Updates) -> float:
    """Largest distance of the models from those of a solver that solves (8) task by task."""
    models = np.zeros_like(updates.experts[0])
    worst = 0.0
    for time in range(NUM_ROUNDS):
        for routed in np.flatnonzero((np.arange(NUM_ROUNDS) + updates.delay == time) & (updates.expert >= 0)):
            samples = updates.features[routed].T
            model = models[updates.expert[routed]]
            model += np.linalg.lstsq(samples, samples @ (updates.truth[routed] - model), rcond=None)[0]
        worst = max(worst, float(np.abs(updates.experts[time] - models).max()))
    return worst
