"""Streamed forgetting and generalization error at their ends; against sums over the past in tests/golden."""

import jax
import jax.numpy as jnp
import numpy as np

from moe_theory.core import metrics

M, D = 4, 5

record = jax.jit(metrics.record_arrival)


def play(num_active, max_active, num_rounds, seed, offset=0.0):
    """Random moves of random experts, a new truth every round; yields the streamed metrics and (15), (16) summed from
    every past arrival."""
    rng = np.random.default_rng(seed)
    experts = np.zeros((M, D)) + offset
    streamed = metrics.no_arrivals(M, D, jnp.result_type(float))
    served, own_errors = [], []
    for time in range(1, num_rounds + 1):
        truth = rng.normal(size=D) + offset
        chosen = rng.permutation(M)[: num_active if rng.random() < 0.8 else 1]
        masks = np.zeros((max_active, M), bool)
        masks[np.arange(len(chosen)), chosen] = True
        before = masks @ experts
        change = np.where(masks.any(axis=1)[:, None], rng.normal(size=(max_active, D)), 0)
        experts = experts + masks.T @ change
        own_errors.append(np.mean([np.sum((experts[m] - truth) ** 2) for m in chosen]))
        served.append((truth, chosen))
        streamed = record(streamed, truth, masks, before, change, own_errors[-1])
        now = [np.mean([np.sum((experts[m] - then) ** 2) for m in ms]) for then, ms in served]
        forgetting = np.sum(np.array(now[:-1]) - own_errors[:-1]) / max(time - 1, 1)
        yield time, streamed, forgetting, np.mean(now), served


def test_nothing_is_forgotten_in_the_first_round():
    """Would catch a division by zero at t = 1, where the mean over the past is empty, and at t = 0."""
    _, streamed, _, generalization, _ = next(play(1, 1, 1, 3))
    assert metrics.forgetting(streamed, 1) == 0
    assert abs(metrics.generalization_error(streamed, 1) - generalization) < 1e-5
    empty = metrics.no_arrivals(M, D, np.float32)
    assert metrics.forgetting(empty, 0) == 0
    assert metrics.generalization_error(empty, 0) == 0


def test_single_precision_keeps_its_digits_far_from_the_origin():
    """Would catch sums of |w|^2 - 2 w.w_n + |w_n|^2, which at models near 1000 keep no digit of a change of 1."""
    *_, (time, streamed, forgetting, generalization, _) = play(1, 1, 60, 5, offset=1000.0)
    assert abs(metrics.generalization_error(streamed, time) - generalization) < 1e-3 * generalization
    assert abs(metrics.forgetting(streamed, time) - forgetting) < 1e-3 * generalization


def test_an_arrival_without_an_expert_has_no_error():
    """Would catch gates of NaN, by which no expert is the best, under an error that stays what it was."""
    empty = metrics.no_arrivals(M, D, np.float32)
    zeros = np.zeros((2, D), np.float32)
    after = record(empty, np.ones(D, np.float32), np.zeros((2, M), bool), zeros, zeros, np.float32(0))
    assert not np.any(after.served)
    assert np.isnan(after.forgotten)
    assert np.isnan(after.remaining)
