"""What holds of every draw of a network: bounds, tables and the map. Laws are in tests/statistical/test_laws.py."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import qmc

import moe_theory as mt
from moe_theory import edge
from moe_theory.edge import delays
from moe_theory.edge.algorithm import draw_execution, draw_pool
from tests.continual.cases import loop_over

M, N, P, S = 6, 4, 8, 3
DIMS = edge.Dims(M, N, P, S)
ROOT = mt.root_key(17)
NUM_DRAWS = 1000
MAP = delays.even_map(M)
PARAMS = edge.Params(num_experts=M, min_transfer_delay=2, max_transfer_delay=9, noise_scale=0.0)


class Drawn(NamedTuple):
    """A network's pool and executions, and one arrival at it; leading axis NUM_DRAWS."""

    pool: Any
    execution: Any
    arrival: Any


@functools.cache
def program(law, dims=DIMS):
    def draw(key, params):
        keys = jax.random.split(key, 3)
        pool = draw_pool(keys[0], dims, params)
        positions = jnp.asarray(delays.even_map(dims.max_experts), jnp.result_type(float))
        execution = delays.uniform if law is delays.by_distance else law
        return Drawn(
            pool,
            draw_execution(keys[1], dims, positions, params, execution),
            edge.draw(keys[2], dims, pool, positions, params, law),
        )

    return jax.jit(jax.vmap(draw, in_axes=(0, None)))


def drawn(law=delays.uniform, params=PARAMS, dims=DIMS):
    keys = jax.random.split(ROOT, NUM_DRAWS)
    values = edge.Params(*(np.asarray(value) for value in params))
    return jax.device_get(program(law, dims)(keys, values))


def test_a_geometric_delay_that_stops_at_once_is_the_least():
    """Would catch a logarithm of 0, and a chance of a further round that is left over; and one that never stops."""
    result = drawn(delays.geometric, PARAMS._replace(geometric_stop=1.0))
    assert np.all(result.arrival.transfer_delay == 2)
    result = drawn(delays.geometric, PARAMS._replace(geometric_stop=1e-30))
    assert np.all(result.arrival.transfer_delay == 9)


def test_fibre_leads_from_the_nearest_server_to_the_chosen_one():
    """Would catch distances from the user, or from an absent server that is nearer."""
    params = PARAMS._replace(min_transfer_delay=0, max_transfer_delay=50, uplink_delay=0.0, fibre_delay=30.0)
    for num_experts in (M, 3):
        arrival = drawn(delays.by_distance, params._replace(num_experts=num_experts)).arrival
        nearest = arrival.distance[:, :num_experts].argmin(axis=1)
        assert len(np.unique(nearest)) == num_experts
        away = 30 * np.linalg.norm(MAP[None, :] - MAP[nearest][:, None], axis=2)
        assert np.abs(arrival.transfer_delay - away).max() <= 0.5 + 1e-5
        assert not np.any(np.take_along_axis(arrival.transfer_delay, nearest[:, None], axis=1))


@loop_over("law", [delays.uniform, delays.geometric, delays.by_distance])
@loop_over(("least", "most"), [(0, 1), (3, 3), (1, 4), (5, 2000)])
def test_bounds_are_respected(law, least, most):
    """Would catch a draw at the edge of the unit interval that leads beyond a bound, or infinite times."""
    params = PARAMS._replace(
        min_transfer_delay=least, max_transfer_delay=most, uplink_delay=1e30, fibre_delay=3.0, geometric_stop=1e-4
    )
    values = drawn(law, params).arrival.transfer_delay
    assert values.min() >= least
    assert values.max() <= most
    for unit in np.float32([2.0**-25, 1.0]):  # the ends of what a float32 draw can be
        trip = delays.Trip(
            uniform=np.full(M, unit),
            least=np.int32(least),
            most=np.int32(most),
            distance=np.ones(M, np.float32),
            nearest=np.int32(0),
            positions=np.asarray(MAP, np.float32),
            uplink=-np.log(unit),
        )
        extreme = jax.jit(law)(trip, params)
        assert least <= extreme.min()
        assert extreme.max() <= most


@loop_over("count", [1, 2, 5, 10, 50, 200])
def test_the_map_is_even(count):
    """Would catch servers on one spot or outside the square, or a map no more even than chance."""
    places = delays.even_map(count)
    assert places.shape == (count, 2)
    assert places.min() >= 0
    assert places.max() < 1
    np.testing.assert_array_equal(delays.even_map(300)[:count], places)
    if count > 1:
        apart = np.linalg.norm(places[:, None] - places[None], axis=2) + 9 * np.eye(count)
        assert apart.min() > 0.4 / np.sqrt(count)
    if count >= 50:
        rng = np.random.default_rng(0)
        by_chance = [qmc.discrepancy(rng.random((count, 2))) for _ in range(50)]
        assert qmc.discrepancy(places) < min(by_chance)
        quadrants = np.bincount((2 * places[:, 0]).astype(int) + 2 * (2 * places[:, 1]).astype(int), minlength=4)
        assert np.abs(quadrants - count / 4).max() <= 3
