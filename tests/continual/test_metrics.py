"""Streamed forgetting and generalization error at their ends; against sums over the past in tests/golden."""

import jax
import jax.numpy as jnp
import numpy as np

from moe_theory.continual import metrics

M, D = 4, 5

record = jax.jit(metrics.record_arrival)


def play(num_rounds, seed, offset=0.0):
    """Random moves of a random expert, a new truth every round: the streamed metrics at the end, and (15) and (16) as
    sums over all arrivals."""
    rng = np.random.default_rng(seed)
    experts, truths = np.zeros((M, D)) + offset, rng.normal(size=(num_rounds, D)) + offset
    chosen, own_errors = rng.integers(M, size=num_rounds), []
    streamed = metrics.no_arrivals(M, D, jnp.result_type(float))
    for m, truth in zip(chosen, truths, strict=True):
        before, change = experts[m].copy(), rng.normal(size=D)
        experts[m] += change
        own_errors.append(np.sum((experts[m] - truth) ** 2))
        mask = (np.arange(M) == m)[None]
        streamed = record(streamed, truth, mask, before[None], change[None], own_errors[-1])
    errors = np.sum((experts[chosen] - truths) ** 2, axis=1)
    return streamed, np.sum(errors[:-1] - own_errors[:-1]) / max(num_rounds - 1, 1), np.mean(errors)


def test_nothing_is_forgotten_in_the_first_round():
    """Would catch a division by zero at t = 1, where the mean over the past is empty, and at t = 0."""
    streamed, _, generalization = play(1, 3)
    assert metrics.forgetting(streamed, 1) == 0
    assert abs(metrics.generalization_error(streamed, 1) - generalization) < 1e-5
    empty = metrics.no_arrivals(M, D, np.float32)
    assert metrics.forgetting(empty, 0) == 0
    assert metrics.generalization_error(empty, 0) == 0


def test_single_precision_keeps_its_digits_far_from_the_origin():
    """Would catch sums of |w|^2 - 2 w.w_n + |w_n|^2, which at models near 1000 keep no digit of a change of 1."""
    streamed, forgetting, generalization = play(60, 5, offset=1000.0)
    assert abs(metrics.generalization_error(streamed, 60) - generalization) < 1e-3 * generalization
    assert abs(metrics.forgetting(streamed, 60) - forgetting) < 1e-3 * generalization


def test_an_arrival_without_an_expert_has_no_error():
    """Would catch gates of NaN, by which no expert is the best, under an error that stays what it was."""
    empty = metrics.no_arrivals(M, D, np.float32)
    zeros = np.zeros((2, D), np.float32)
    after = record(empty, np.ones(D, np.float32), np.zeros((2, M), bool), zeros, zeros, np.float32(0))
    assert not np.any(after.served)
    assert np.isnan(after.forgotten)
    assert np.isnan(after.remaining)
