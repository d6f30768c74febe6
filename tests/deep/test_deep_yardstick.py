"""The yardstick: one network on a stream of tasks, by optax alone. Catches an expert that a plain loop beats."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import moe_theory as mt
from moe_theory import deep

CLASSES, ROUNDS, SEEDS, STEPS, SIZE = (1, 4, 7), 12, 24, 20, 100
DIGITS = deep.datasets.load("digits")


def logits(weights, images):
    hidden = jax.nn.relu(images @ weights["first"] + weights["bias"])
    return (hidden @ weights["second"] + weights["last"])[:, 0]


@jax.jit
def trained(weights, images, labels):
    """Full-batch gradient steps on the cross entropy."""
    method = optax.sgd(0.1)

    def step(carry, _):
        weights, memory = carry
        gradient = jax.grad(lambda w: optax.sigmoid_binary_cross_entropy(logits(w, images), labels).mean())(weights)
        updates, memory = method.update(gradient, memory)
        return (optax.apply_updates(weights, updates), memory), None

    return jax.lax.scan(step, (weights, method.init(weights)), length=STEPS)[0][0]


def images_of(split, label, rng):
    """As many images of a class as of all others, standardised as all training images are."""
    scaled = (split.pixels / 255.0 - np.mean(DIGITS.train.pixels / 255.0)) / np.std(DIGITS.train.pixels / 255.0)
    own = split.labels == label
    rows = np.concatenate([rng.choice(np.flatnonzero(each), SIZE // 2) for each in (own, ~own)])
    return jnp.asarray(scaled[rows].reshape(SIZE, -1), jnp.float32), jnp.asarray(own[rows], jnp.float32)


def final_error(seed):
    """G_T of one network whose tasks follow each other."""
    rng = np.random.default_rng(seed)
    weights = {
        "first": rng.normal(0, np.sqrt(2 / 64), (64, 32)),
        "bias": np.zeros(32),
        "second": rng.normal(0, np.sqrt(2 / 32), (32, 1)),
        "last": np.zeros(1),
    }
    weights, tests = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), weights), []
    for _ in range(ROUNDS):
        label = rng.choice(CLASSES)
        weights = trained(weights, *images_of(DIGITS.train, label, rng))
        tests.append(images_of(DIGITS.test, label, rng))
    return np.mean([np.mean((jax.nn.sigmoid(logits(weights, x)) - y) ** 2) for x, y in tests])


@pytest.mark.thorough
def test_one_expert_reaches_a_plain_network():
    """Section 6: G_T of M = 1 is that of a network by itself, whose draws are others; 4 standard errors."""
    system = deep.continual.system(deep.Dims(1, 3, ROUNDS), DIGITS, CLASSES)
    _, info = mt.simulate_batch(system, mt.root_key(0), SEEDS, deep.Params(num_experts=1, num_rounds=ROUNDS), ROUNDS)
    ours = np.asarray(info.generalization_error[-1], float)
    plain = np.array([final_error(seed) for seed in range(SEEDS)])
    error = np.sqrt((ours.var(ddof=1) + plain.var(ddof=1)) / SEEDS)
    assert abs(ours.mean() - plain.mean()) < 4 * error
    assert error < 0.02  # a difference that anybody would notice
