"""Monitors against the same sums in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.merging import monitor
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.rewards import Feedback

NUM_TASKS, RATE = 12, 0.25
DIMS, PARAMS = Dims(num_tasks=NUM_TASKS), Params(monitor_rate=RATE)
COUNTS = np.random.default_rng(4).multinomial(40, np.random.default_rng(5).dirichlet(np.full(12, 0.4)), 25)
TRUTH = jnp.full((NUM_TASKS,), 1 / NUM_TASKS)


def played(name):
    """The estimates (T, V) before each slot, and the states after it."""
    own = monitor.MONITORS[name]

    def slot(state, counts):
        estimate = own.estimate(state, TRUTH)
        state = own.watch(state, Feedback(jnp.zeros(NUM_TASKS), counts), PARAMS)
        return state, (estimate, state)

    run = jax.jit(lambda counts: jax.lax.scan(slot, own.begin(DIMS, PARAMS), counts)[1])
    return jax.tree.map(np.asarray, run(jnp.asarray(COUNTS, jnp.int32)))


@pytest.fixture(scope="module")
def faded():
    """The counts of slots so far, each slot's times (1 - rate) to the power of its age (T, V)."""
    totals, total = [], np.zeros(NUM_TASKS)
    for counts in COUNTS:
        total = (1 - RATE) * total + counts
        totals.append(total)
    return np.array(totals)


def test_the_oracle_knows():
    np.testing.assert_array_equal(played(monitor.ORACLE)[0], np.broadcast_to(TRUTH, (25, NUM_TASKS)))


def test_the_average_is_of_earlier_slots():
    """Would catch an average that looks at the slot it is for, and a first estimate that is not equal shares."""
    expected, share = [], np.full(NUM_TASKS, 1 / NUM_TASKS)
    for counts in COUNTS:
        expected.append(share)
        share = (1 - RATE) * share + RATE * counts / counts.sum()
    np.testing.assert_allclose(played(monitor.AVERAGE)[0], expected, rtol=1e-5)


def test_the_sketch_is_a_count_min_sketch(faded):
    """Would catch a row that is hashed like another, an estimate below the count, and estimates off the simplex."""
    estimates, states = played(monitor.SKETCH)
    columns = np.array([[(a * v + b) % (2**31 - 1) % 8 for v in range(NUM_TASKS)] for a, b in monitor.HASHES])
    assert len({tuple(row) for row in columns}) == len(columns)
    bounds = []
    for total in faded:
        rows = [np.bincount(row, total, monitor.SKETCH_COLUMNS)[row] for row in columns]
        bounds.append(np.min(rows, axis=0))
    bounds = np.array(bounds)
    counts = np.asarray(jax.vmap(monitor.sketch_counts)(jax.tree.map(jnp.asarray, states)))
    np.testing.assert_allclose(counts, bounds, rtol=1e-5)
    assert np.all(counts >= faded * (1 - 1e-5))
    assert np.any(counts > faded * 1.5)  # 12 tasks share 8 columns: something collides
    np.testing.assert_allclose(estimates[0], 1 / NUM_TASKS, rtol=1e-6)
    np.testing.assert_allclose(estimates[1:], (bounds / bounds.sum(axis=1, keepdims=True))[:-1], rtol=1e-5)
