"""The exact metrics of one expert, and of content-blind routes to several, against plain Monte Carlo; and wrong
formulas that it must refute.

One false-failure budget for the file: every comparison is two-sided at THRESHOLD standard errors. The budget is a fifth
of 1e-5, since the means of a few thousand skewed replicates are normal only approximately so far out in the tails. The
seeds are fixed, so a test that passes once passes always.
"""

import functools
import itertools
import zlib
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from moe_theory.continual import exact
from moe_theory.core import single_expert
from moe_theory.core.tasks import Pool
from moe_theory.edge import corrected

SHAPES = [(10, 6, 6), (5, 2, 3), (8, 7, 4), (6, 1, 3)]  # (num_features, num_samples, num_tasks)
SPREADS = {(6, 4, 3): 0.5, (5, 2, 2): 1.0, (8, 1, 3): 0.2, (15, 10, 10): 0.36}  # of own truths, by shape
DEAR = [(15, 10, 10), (10, 6, 6)]
NUM_REPLICATES = 4000
THRESHOLD = 5.84
BUDGET = 2e-6


class Case(NamedTuple):
    """Shapes, how the pool is drawn, the spread of own truths, and what one sample of a task lies along.

    Without a spread this is `continual`, with one `edge`.
    """

    shape: tuple[int, int, int]
    kind: str
    spread: float = 0.0
    signal: str = "of the pool"  # or "the own truth", or "nothing"

    @property
    def rounds(self) -> np.ndarray:
        return np.array([2, 5, 20, 40])

    @property
    def pool(self) -> Pool:
        num_features, _, num_tasks = self.shape
        rng = np.random.default_rng(zlib.crc32(f"{num_features} {num_tasks} {self.kind}".encode()))
        truths, signals = rng.normal(size=(2, num_tasks, num_features))
        clusters = np.arange(num_tasks)
        if self.kind == "clustered":
            clusters = clusters % 2
            truths = truths[clusters] + 0.1 * rng.normal(size=truths.shape)
        if self.kind != "independent":
            signals = 2.0 * truths
        return Pool(truths, signals, clusters)


CASES = [
    Case(shape, kind)
    for shape, kind in itertools.product(SHAPES, ("proportional", "independent", "clustered"))
    if kind == "independent" or shape != SHAPES[2]  # by far the dearest
]
GAUSSIAN_CASES = [Case(shape, "independent", signal="nothing") for shape in SHAPES]
OWN_CASES = [
    Case(shape, "independent", spread, signal)
    for (shape, spread), signal in itertools.product(SPREADS.items(), ("of the pool", "the own truth"))
]


def draw_arrivals(rng, case, size):
    """Own truths (size, d) and columns (size, d, s), by Definition 1."""
    num_features, num_samples, num_tasks = case.shape
    tasks = rng.integers(num_tasks, size=size)
    own = case.pool.truths[tasks] + case.spread * rng.normal(size=(size, num_features))
    columns = rng.normal(scale=0.7, size=(size, num_features, num_samples))
    if case.signal != "nothing":
        columns[:, :, -1] = 2.0 * (own if case.signal == "the own truth" else case.pool.signals[tasks])
    return own, columns


def learned(models, own, columns):
    transposed = np.swapaxes(columns, 1, 2)
    return models + (columns @ np.linalg.solve(transposed @ columns, transposed @ (own - models)[..., None]))[..., 0]


@functools.cache
def simulate(case):
    """F_t, G_t and the newest error of one expert by their definitions, at the case's rounds: (3, rounds, R)."""
    rng = np.random.default_rng(zlib.crc32(str(case).encode()))
    models = np.zeros((NUM_REPLICATES, case.shape[0]))
    truths, own_errors, observed = [], [], []
    for t in range(1, case.rounds[-1] + 1):
        own, columns = draw_arrivals(rng, case, NUM_REPLICATES)
        models = learned(models, own, columns)
        truths.append(own)
        own_errors.append(np.sum((models - own) ** 2, axis=1))
        if t in case.rounds:
            errors = np.sum((models - np.array(truths)) ** 2, axis=-1)
            forgetting = np.mean(errors[:-1] - np.array(own_errors[:-1]), axis=0)
            observed.append((forgetting, np.mean(errors, axis=0), own_errors[-1]))
    return np.swapaxes(observed, 0, 1)


def predicted(case):
    """The same by the formulas: (3, rounds)."""
    _, num_samples, _ = case.shape
    if case.signal == "nothing":
        metrics = exact.single_expert_gaussian(case.pool, num_samples, case.rounds[-1])
    elif not case.spread:
        metrics = exact.single_expert(case.pool, num_samples, case.rounds[-1])
    else:
        truths, signals, _ = case.pool
        arrivals = (
            single_expert.fixed_signals(truths, signals, case.spread)
            if case.signal == "of the pool"
            else single_expert.signals_along_truths(truths, case.spread)
        )
        metrics = single_expert.learn_arrivals(arrivals, num_samples, case.rounds[-1])
    return np.array(metrics)[:, case.rounds - 1]


def furthest(replicates, expected):
    """How many standard errors a mean is off at most."""
    errors = np.std(replicates, axis=-1, ddof=1) / np.sqrt(replicates.shape[-1])
    difference = np.mean(replicates, axis=-1) - expected
    # For s = 1 along the own truth the newest error is 0 in every replicate.
    return np.max(np.abs(np.where(np.abs(difference) < 1e-12, 0.0, difference / np.maximum(errors, 1e-300))))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=str(case), marks=[pytest.mark.thorough] * (case.shape in DEAR))
        for case in CASES + GAUSSIAN_CASES + OWN_CASES
    ],
)
def test_the_exact_metrics_predict_the_simulation(case):
    """Catches a wrong moment of signals, or of own truths, in forgetting, generalization error or error."""
    assert furthest(simulate(case), predicted(case)) < THRESHOLD


def test_the_budget_covers_every_comparison():
    """Catches a comparison added without its share of the false-failure probability."""
    comparisons = sum(3 * len(case.rounds) for case in CASES + GAUSSIAN_CASES + OWN_CASES) + 2
    assert comparisons * 2 * stats.norm.sf(THRESHOLD) < BUDGET


@pytest.mark.parametrize("case", OWN_CASES[:2], ids=str)
def test_loads_predict_a_network_of_experts(case):
    """Catches errors weighted by experts in place of tasks, over random content-blind routes."""
    num_features, num_samples, _ = case.shape
    num_experts, num_rounds = 4, 12
    rng = np.random.default_rng(11)
    routes = rng.choice(num_experts, p=[0.4, 0.3, 0.2, 0.1], size=(num_rounds, NUM_REPLICATES))
    everyone = np.arange(NUM_REPLICATES)
    models = np.zeros((NUM_REPLICATES, num_experts, num_features))
    truths = []
    for route in routes:
        own, columns = draw_arrivals(rng, case, NUM_REPLICATES)
        models[everyone, route] = learned(models[everyone, route], own, columns)
        truths.append(own)
    final = np.take_along_axis(models, routes.T[:, :, None], axis=1)
    observed = np.mean(np.sum((final - np.swapaxes(truths, 0, 1)) ** 2, axis=-1), axis=1)
    loads = np.stack([np.sum(routes == m, axis=0) for m in range(num_experts)], axis=-1)
    follows = case.signal == "the own truth"
    errors = corrected.generalization_error(case.pool, num_samples, num_rounds, case.spread, follows)
    assert furthest(observed - corrected.by_loads(errors, loads), 0.0) < THRESHOLD
