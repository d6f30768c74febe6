"""Pools and arrivals: their structure here, their laws in tests/statistical/test_laws.py."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory import continual
from moe_theory.core import tasks

NUM_POOLS = 400
PARAMS = continual.Params(truth_scale=0.5, signal_scale=3.0, cluster_spread=0.1, num_clusters=3)


@functools.partial(jax.jit, static_argnums=(0, 1))
def draw_pools(num_tasks, num_features, params):
    """NUM_POOLS pools, with every parameter traced."""
    keys = jax.random.split(jax.random.key(1), NUM_POOLS)
    return jax.vmap(lambda key: tasks.draw_pool(key, num_tasks, num_features, params))(keys)


def pools(num_tasks=8, num_features=5, **changes):
    return jax.device_get(draw_pools(num_tasks, num_features, PARAMS._replace(**changes)))


@pytest.mark.parametrize("num_clusters", [1, 3, 8, 50])
def test_task_n_belongs_to_cluster_n_mod_k(num_clusters):
    """Would catch a traced K that is ignored, or clusters in blocks; K >= N has a cluster for each task."""
    np.testing.assert_array_equal(pools(num_clusters=num_clusters).clusters[0], np.arange(8) % num_clusters)


def test_without_spread_members_are_equal():
    """Would catch noise that remains at spread 0, or clusters that then coincide."""
    truths = pools(cluster_spread=0.0).truths
    np.testing.assert_array_equal(truths[:, 0], truths[:, 3])
    np.testing.assert_array_equal(truths[:, 1], truths[:, 7])
    assert np.all(truths[:, 0] != truths[:, 1])


@pytest.mark.parametrize("num_clusters", [8, 1000])
def test_tasks_without_clusters_have_no_spread(num_clusters):
    """Would catch a spread added to clusters of one."""
    plain = pools(num_clusters=num_clusters, cluster_spread=25.0)
    np.testing.assert_array_equal(plain.truths, pools(num_clusters=8, cluster_spread=0.0).truths)


def test_signals_follow_the_truths_or_stand_apart():
    """Would catch a scale that is not applied, and independent signals that are correlated or of another scale."""
    proportional = pools()
    assert np.abs(proportional.signals - 3 * proportional.truths).max() < 1e-5
    apart = pools(signal_law=tasks.INDEPENDENT, scale_is_variance=True)
    np.testing.assert_array_equal(apart.truths, pools(scale_is_variance=True).truths)


@pytest.mark.parametrize("shape", [(3, 4), (4, 3)])
def test_signals_are_made_orthogonal_alike_in_a_loop(shape):
    """Would catch a loop over many signals that orders, scales or leaves out others than a program written out does."""
    vectors = np.random.default_rng(3).normal(size=shape)
    with jax.enable_x64(True):
        written = tasks.orthonormal(jnp.asarray(vectors))
        rows = np.asarray(tasks.orthonormal(jnp.asarray(vectors), most_signals=0))
    np.testing.assert_allclose(rows, written, atol=1e-13)
    np.testing.assert_allclose(rows @ rows.T, np.diag(np.arange(shape[0]) < shape[1]), atol=1e-13)


@pytest.mark.parametrize("law", [tasks.INDEPENDENT, tasks.ORTHOGONAL])
def test_a_cluster_shares_its_signal(law):
    """Would catch a signal a task, signals that are not orthogonal, or of a norm of their own."""
    drawn = pools(signal_law=law, num_clusters=3)
    for signals, truths, clusters in zip(drawn.signals, drawn.truths, drawn.clusters, strict=True):
        for task, cluster in enumerate(clusters):
            np.testing.assert_array_equal(signals[task], signals[cluster])
        assert np.abs(signals - 3 * truths).max() > 0.1
        if law == tasks.ORTHOGONAL:
            products = signals[:3] @ signals[:3].T
            np.testing.assert_allclose(products, np.diag(products.diagonal()[:1].repeat(3)), atol=1e-4)


POOL = tasks.Pool(jnp.arange(12.0).reshape(4, 3), 10 + jnp.arange(12.0).reshape(4, 3), jnp.arange(4))


make_arrival = jax.jit(tasks.make_arrival)
STRENGTHS = PARAMS._replace(noise_scale=2.0, min_strength=0.5, max_strength=1.5)


def test_an_arrival_is_made_of_its_units():
    """Would catch an index beyond the end, a column that is not the signal's, or noise that is lost or comes twice."""
    noise = np.array([[0.3, -1.0], [0.0, 2.0], [-0.7, 0.1]])
    tasks_of = {0.0: 0, 0.249: 0, 0.251: 1, 0.74: 2, 0.76: 3, 1.0: 3}
    slots_of = {0.0: 0, 0.33: 0, 0.34: 1, 0.66: 1, 0.67: 2, 1.0: 2}
    wrong = []
    for unit, slot_unit in itertools.product(tasks_of, slots_of):
        arrival = make_arrival(np.float32([unit, slot_unit, 0.25]), np.float32(noise), POOL, STRENGTHS)
        signal = (1.5 - 0.25) * np.asarray(POOL.signals)[tasks_of[unit]]
        expected = np.insert(2 * noise, slots_of[slot_unit], signal, axis=1)
        is_right = arrival.task == tasks_of[unit] and np.abs(arrival.features - expected).max() < 1e-5
        wrong += [] if is_right else [(unit, slot_unit)]
    assert not wrong


def test_a_single_sample_is_the_signal():
    """Would catch a system of one sample a task that has noise, or none at all."""
    arrival = make_arrival(np.float32([0.6, 0.5, 0.25]), np.zeros((3, 0), np.float32), POOL, STRENGTHS)
    assert np.array_equal(arrival.features[:, 0], 1.25 * np.asarray(POOL.signals)[2])


def test_selected_rows_are_indexed_rows():
    """Would catch a one-hot sum over the wrong axis, for numbers and whole numbers."""
    rows = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    for index in range(5):
        np.testing.assert_array_equal(tasks.select_row(jnp.asarray(rows), index), rows[index])
    np.testing.assert_array_equal(tasks.select_row(jnp.arange(6).reshape(3, 2), 2), [4, 5])


@pytest.mark.parametrize("most_signals", [0, 5])
def test_orthonormal_keeps_a_nan(most_signals):
    """Would catch a loop that takes a NaN for a row of which nothing is left."""
    rows = jnp.eye(3, 4).at[1, 1].set(jnp.nan)
    assert bool(jnp.isnan(tasks.orthonormal(rows, most_signals)[1:]).any())
