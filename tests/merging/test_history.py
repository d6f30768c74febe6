"""Rewards by arms, and gradient steps on them, against sums over slots in NumPy."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.core.errors import InvalidRewardError
from moe_theory.merging import network as histories
from moe_theory.merging.network import Weights, check_rewards
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.rewards import Feedback

DIMS = Dims(3, 2, 14, width=4, num_steps=5)
PARAMS = Params(regularization=0.7, learning_rate=0.8)
quickly = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
record = quickly(histories.record)


def begin(dims=DIMS):
    blank = jax.eval_shape(lambda: histories.empty_history(dims))
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), blank)


def seen(rng, slots=12, arms=10):
    """A history of so many slots in which tasks are absent at times, and the slots themselves."""
    points = rng.dirichlet(np.ones(3), arms)
    history, rows = begin(), []
    for slot in range(slots):
        arm = slot if slot < arms else int(rng.integers(arms))
        rewards, counts = rng.uniform(size=2), rng.integers(0, 3, 2).astype(np.int32)
        history = record(history, jnp.int32(arm), points[arm], Feedback(rewards, counts))
        rows.append((points[arm], rewards, counts > 0))
    return history, rows


def layers_of(rng):
    return [rng.normal(0, 0.7, (4, 3)), rng.normal(0, 0.7, (2, 4))]


def loss(layers, start, rows):
    """The mean over pairs of a slot and a task that was present, written out."""
    squares = [
        (math.sqrt(4) * layers[1][v] @ np.maximum(layers[0] @ x, 0) - rewards[v]) ** 2 / 2
        for x, rewards, present in rows
        for v in np.flatnonzero(present)
    ]
    distance = sum(np.sum((layer - first) ** 2) for layer, first in zip(layers, start, strict=True))
    return (sum(squares) + PARAMS.regularization / 2 * distance) / len(squares)


def slopes(layers, start, rows, step=1e-6):
    """Of `loss`, by central differences."""
    found = [np.zeros_like(layer) for layer in layers]
    for index, layer in enumerate(layers):
        for place in np.ndindex(layer.shape):
            ends = []
            for sign in (1, -1):
                moved = [other.copy() for other in layers]
                moved[index][place] += sign * step
                ends.append(loss(moved, start, rows))
            found[index][place] = (ends[0] - ends[1]) / (2 * step)
    return found


@pytest.mark.parametrize("arms_a_block", [4, 256], ids=["blocks", "one block"])
def test_steps_are_plain_gradient_descent_on_the_slots(arms_a_block, monkeypatch):
    """Would catch arms that are not weighted by their slots, a block left out, another step or regularization."""
    monkeypatch.setattr(histories, "ARMS_A_BLOCK", arms_a_block)
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        history, rows = seen(rng)
        assert history.points.shape[0] == (16 if arms_a_block == 4 else 14)
        start, layers = layers_of(rng), layers_of(rng)
        descend = quickly(histories.descend, static_argnums=3)
        moved = descend(history, Weights(tuple(layers)), Weights(tuple(start)), DIMS, PARAMS)
    assert (history.num_arms, history.unusable) == (10, 0)
    for _ in range(DIMS.num_steps):
        found = slopes(layers, start, rows)
        layers = [layer - PARAMS.learning_rate / 4 * slope for layer, slope in zip(layers, found, strict=True)]
    for layer, expected in zip(moved.layers, layers, strict=True):
        np.testing.assert_allclose(layer, expected, rtol=0, atol=1e-8)


def test_an_absent_task_or_an_unusable_reward_leaves_no_trace():
    """Would catch an absent task's 0 learnt as a reward, and a NaN that poisons the means or goes uncounted."""
    point, rewards = np.asarray([0.5, 0.5, 0.0], np.float32), np.float32([0.3, 0.8])
    once = record(begin(), jnp.int32(0), point, Feedback(rewards, np.int32([4, 4])))
    absent = record(once, jnp.int32(0), point, Feedback(np.float32([0.5, 9.0]), np.int32([4, 0])))
    np.testing.assert_array_equal(absent.counts[0], [2, 1])
    np.testing.assert_allclose(absent.means[0], [0.4, 0.8], rtol=1e-6)
    for bad in (np.nan, np.inf):
        unusable = record(once, jnp.int32(0), point, Feedback(np.float32([0.5, bad]), np.int32([4, 4])))
        assert unusable.unusable == 1
        for name in ("points", "counts", "means", "num_arms"):
            np.testing.assert_array_equal(getattr(unusable, name), getattr(absent, name))


@pytest.mark.parametrize(
    ("rewards", "counts", "message"),
    [
        ([0.5, np.nan], [3, 2], r"rewards\[1\]=nan of 2 requests must be a finite number"),
        ([np.inf, 0.5], [3, 2], r"rewards\[0\]=inf"),
        ([0.5, 0.5], [3, -2], r"counts=\[3, -2\] must be whole numbers"),
        ([0.5, 0.5], [3.0, 2.0], "must be whole numbers"),
        ([0.5], [3, 2], r"shape \(1,\) and counts of shape \(2,\)"),
    ],
)
def test_rewards_that_teach_nothing_are_refused(rewards, counts, message):
    """Would catch a bad reward that is learnt from without a word."""
    with pytest.raises(InvalidRewardError, match=message) as refused:
        check_rewards(Feedback(np.asarray(rewards), np.asarray(counts)))
    assert "\n" not in str(refused.value)


def test_a_reward_of_an_absent_task_is_not_looked_at():
    """Would catch a refusal of what is never used."""
    check_rewards(Feedback(np.asarray([0.5, np.nan]), np.asarray([3, 0])))
