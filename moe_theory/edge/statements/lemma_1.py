"""Lemma 1: how an expert learns a task."""

from typing import NamedTuple

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
    """Data of a round's task, its server, and the models after the round."""

    features: Float[Array, "p s"]
    truth: Float[Array, " p"]
    expert: Int[Array, ""]
    delay: Int[Array, ""]
    experts: Float[Array, "M p"]


def _step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Updates]:
    arrival = draw(key, DIMS, state.pool, state.positions, params, transfer=delays.uniform)
    after, info = learn(state, arrival, params, dims=DIMS)
    return after, Updates(arrival.features, arrival.truth, expert=info.expert, delay=info.delay, experts=after.experts)


UPDATES = Experiment(
    name="updates",
    dims=DIMS,
    system=System(system(DIMS).init, _step),
    cells={"M = 4": {"num_experts": 4, "max_transfer_delay": 2, "max_execution_delay": 2}},
    num_rounds=NUM_ROUNDS,
    replicates=64,
    is_double=True,
)


@statement("lemma-1", module=__name__).charitable("lemma-1.least-change", UPDATES.at("M = 4"), identity(within=1e-9))
def largest_departure(run) -> np.ndarray:
    departures = []
    for replicate in range(len(run.replicates)):
        updates = Updates(*(leaf[..., replicate] for leaf in run.records))
        departures.append(_departure_from_solver(updates))
    return np.array(departures) / SIGMA_0


def _departure_from_solver(updates: Updates) -> float:
    """Return the largest distance of the models from those of a solver that solves (8) task by task."""
    models = np.zeros_like(updates.experts[0])
    largest = 0.0
    for time in range(NUM_ROUNDS):
        is_done = (np.arange(NUM_ROUNDS) + updates.delay == time) & (updates.expert >= 0)
        for routed in np.flatnonzero(is_done):
            samples = updates.features[routed].T
            model = models[updates.expert[routed]]  # a view, so that `models` changes with it
            model += np.linalg.lstsq(samples, samples @ (updates.truth[routed] - model), rcond=None)[0]
        largest = max(largest, float(np.abs(updates.experts[time] - models).max()))
    return largest
