"""The exact single-expert metrics against plain Monte Carlo, and wrong formulas that it must refute.

One false-failure budget for the file: every comparison is two-sided at the level FALSE_FAILURE / COMPARISONS. The
budget is a tenth of 1e-5, since the means of a few thousand skewed replicates are normal only approximately so far
out in the tails. The seeds are fixed, so a test that passes once passes always.
"""

import functools
import itertools
import zlib

import numpy as np
import pytest
from scipy import stats

from moe_theory.continual import exact
from moe_theory.core.tasks import Pool

SHAPES = [(10, 6, 6), (5, 2, 3), (8, 7, 4), (6, 1, 3)]  # (num_features, num_samples, num_tasks)
KINDS = ["proportional", "independent", "clustered"]
ROUNDS = [2, 5, 20, 100]
NUM_REPLICATES = 4000

CASES = [(*shape, kind, False) for shape, kind in itertools.product(SHAPES, KINDS)]
GAUSSIAN_CASES = [(*shape, "independent", True) for shape in SHAPES]
COMPARISONS = (len(CASES) + len(GAUSSIAN_CASES)) * len(ROUNDS) * len(exact.Exact._fields)
FALSE_FAILURE = 1e-6
THRESHOLD = stats.norm.isf(FALSE_FAILURE / (2 * COMPARISONS))  # 5.84


def draw_pool(num_features, num_tasks, kind):
    rng = np.random.default_rng(zlib.crc32(f"{num_features} {num_tasks} {kind}".encode()))
    truths, signals = rng.normal(size=(2, num_tasks, num_features))
    clusters = np.arange(num_tasks)
    if kind == "clustered":
        clusters = clusters % 2
        truths = truths[clusters] + 0.1 * rng.normal(size=truths.shape)
    if kind != "independent":
        signals = 2.0 * truths
    return Pool(truths, signals, clusters)


@functools.cache
def simulate(num_features, num_samples, num_tasks, kind, gaussian):
    """F_t, G_t and the error by their definitions (14) to (16), at ROUNDS: shape (3, rounds, replicates)."""
    pool = draw_pool(num_features, num_tasks, kind)
    rng = np.random.default_rng(zlib.crc32(f"{num_features} {num_samples} {kind} {gaussian}".encode()))
    models = np.zeros((NUM_REPLICATES, num_features))
    tasks = rng.integers(num_tasks, size=(ROUNDS[-1], NUM_REPLICATES))
    own_errors = np.zeros(tasks.shape)
    observed = []
    for t in range(1, ROUNDS[-1] + 1):
        truths = pool.truths[tasks[t - 1]]
        columns = rng.normal(scale=0.7, size=(NUM_REPLICATES, num_features, num_samples))
        if not gaussian:
            slot = rng.integers(num_samples, size=NUM_REPLICATES)
            strength = 1 - rng.uniform(size=(NUM_REPLICATES, 1))
            columns[np.arange(NUM_REPLICATES), :, slot] = strength * pool.signals[tasks[t - 1]]
        basis = np.linalg.qr(columns).Q
        coordinates = np.einsum("rds,rd->rs", basis, truths - models)
        models = models + np.einsum("rds,rs->rd", basis, coordinates)
        own_errors[t - 1] = np.sum((models - truths) ** 2, axis=-1)
        if t in ROUNDS:
            errors = np.sum((models - pool.truths[tasks[:t]]) ** 2, axis=-1)
            forgetting = np.mean(errors[: t - 1] - own_errors[: t - 1], axis=0)
            observed.append((forgetting, np.mean(errors, axis=0), own_errors[t - 1]))
    return np.swapaxes(observed, 0, 1)


def z_scores(case, predicted):
    """How many standard errors the replicates' mean is off, (metrics, rounds); `predicted` likewise."""
    replicates = simulate(*case)
    standard_errors = np.std(replicates, axis=-1, ddof=1) / np.sqrt(NUM_REPLICATES)
    return (np.mean(replicates, axis=-1) - predicted) / standard_errors


def at_rounds(metrics):
    return np.array(metrics)[:, np.array(ROUNDS) - 1]


@pytest.mark.parametrize("case", CASES + GAUSSIAN_CASES)
def test_the_exact_metrics_predict_the_simulation(case):
    num_features, num_samples, num_tasks, kind, is_gaussian = case
    formula = exact.single_expert_gaussian if is_gaussian else exact.single_expert
    predicted = at_rounds(formula(draw_pool(num_features, num_tasks, kind), num_samples, ROUNDS[-1]))
    assert np.max(np.abs(z_scores(case, predicted))) < THRESHOLD


def test_the_budget_covers_every_comparison():
    assert COMPARISONS * 2 * stats.norm.sf(THRESHOLD) <= FALSE_FAILURE * (1 + 1e-9)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[1] > 1])
def test_signals_along_the_truths_refute_every_formula_that_ignores_them(shape):
    num_features, num_samples, num_tasks = shape
    pool = draw_pool(num_features, num_tasks, "proportional")
    elsewhere = pool._replace(signals=draw_pool(num_features, num_tasks, "independent").signals)
    case = (*shape, "proportional", False)
    for wrong in (
        exact.single_expert_gaussian(pool, num_samples, ROUNDS[-1]),
        exact.single_expert(elsewhere, num_samples, ROUNDS[-1]),
    ):
        assert np.max(np.abs(z_scores(case, at_rounds(wrong)))) > THRESHOLD


@pytest.mark.parametrize("case", [case for case in CASES if case[1] > 1])
def test_one_sample_more_or_less_is_refuted(case):
    num_features, num_samples, num_tasks, kind, _ = case
    pool = draw_pool(num_features, num_tasks, kind)
    for wrong_samples in {num_samples - 1, num_samples + 1} & set(range(1, num_features)):
        wrong = at_rounds(exact.single_expert(pool, wrong_samples, ROUNDS[-1]))
        assert np.max(np.abs(z_scores(case, wrong))) > THRESHOLD
