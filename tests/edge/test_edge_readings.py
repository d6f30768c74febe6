"""The readings of the edge-computing paper and the gate drive that tells them apart."""

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import edge
from moe_theory.core import random
from moe_theory.edge.algorithm import draw_pool
from moe_theory.edge.params import INDEPENDENT, ORTHOGONAL, PROPORTIONAL


@pytest.mark.parametrize("name", ["scaled-signal", "orthogonal-signal"])
def test_tuned_readings_have_a_gate_drive_of_one(name: str) -> None:
    """Would catch a scale tuned to other features, experts or parameters than those of Fig. 3."""
    params = edge.reading(name).params()
    assert params.num_experts == 50
    assert abs(edge.gate_drive(params, 15) - 1) < 1e-12
    assert abs(edge.gate_drive(params._replace(num_experts=10), 15) - 5) < 1e-12


def test_the_sibling_reading_hardly_moves_a_gate() -> None:
    """Would catch a sibling reading whose drive is no longer small: by hand, eta (3 s)^3 / M with s < 1."""
    params = edge.reading("sibling").params()
    entry = math.hypot(params.truth_scale, params.cluster_spread)
    # E|w| <= sqrt(E|w|^2) = sqrt(15) entry, and it is short of it by less than 1/60 for 15 Gaussian entries.
    bound = params.learning_rate * (15**0.5 * entry) ** 3 / params.num_experts
    assert 0.98 * bound < edge.gate_drive(params, 15) < bound < 0.2


def drawn_means(params: edge.Params, dims: edge.Dims, count: int) -> tuple[float, float, float]:
    """E|w|, E|v|^2 and E[beta^2] over drawn pools and arrivals without noise, which hide nothing."""
    keys = random.replicate_keys(mt.root_key(5), np.arange(count, dtype=np.uint32))
    values = edge.Params(*(np.asarray(value) for value in params._replace(noise_scale=0.0)))
    lengths, squares, strengths = draws(dims)(keys, values)
    return tuple(float(np.mean(np.asarray(part, np.float64))) for part in (lengths, squares, strengths))


@functools.cache
def draws(dims: edge.Dims) -> Any:
    """Program for |w|, |v|^2 and beta^2 of an arrival at each key."""

    def one(key: jax.Array, params: edge.Params) -> tuple[jax.Array, ...]:
        pool_key, arrival_key = jax.random.split(key)
        pool = draw_pool(pool_key, dims, params)
        positions = jnp.asarray(edge.delays.even_map(dims.max_experts), jnp.float32)
        arrival = edge.draw(arrival_key, dims, pool, positions, params, edge.delays.uniform)
        column = jnp.sum(arrival.features, axis=1)  # beta v
        own = pool.signals[arrival.task]
        signal = jnp.where(params.signal_law == PROPORTIONAL, params.signal_scale * arrival.truth, own)
        square = jnp.sum(signal**2)
        return jnp.sqrt(jnp.sum(arrival.truth**2)), square, jnp.sum(column**2) / square

    # Here running is what costs.
    return jax.jit(jax.vmap(one, in_axes=(0, None)), compiler_options={"xla_backend_optimization_level": 1})


@pytest.mark.parametrize("name", edge.READINGS)
@pytest.mark.parametrize(
    "changes",
    [{}, {"min_strength": 0.25, "max_strength": 2.0, "learning_rate": 0.1}, {"scale_is_variance": True}],
    ids=["default", "strengths", "variance"],
)
def test_the_gate_drive_is_eta_times_the_means_over_the_draws(name: str, changes: dict) -> None:
    """Would catch a wrong mean or power in kappa = eta E|w| E|v|^2 E[beta^2] / M, by drawing all three.

    Relative deviations are below .2, .4 and .9 a draw, so the product of the means of 20 000 draws is off by 6 %, eight
    standard errors, with a chance below 1e-14.
    """
    params = edge.reading(name).params(**changes)
    length, square, strength = drawn_means(params, edge.Dims(3, 2, 15, 1), 20_000)
    drive = params.learning_rate * length * square * strength / params.num_experts
    assert abs(edge.gate_drive(params, 15) / drive - 1) < 0.06


@pytest.mark.parametrize("num_features", [2, 3, 15, 100])
def test_the_mean_square_of_a_bounded_signal(num_features: int) -> None:
    """Would catch a wrong density in the quadrature of E|z|^2 / |z|_inf^2, by drawing z; eight standard errors."""
    z = np.random.default_rng(num_features).normal(size=(100_000, num_features))
    ratio = np.sum(z**2, axis=1) / np.max(z**2, axis=1)
    params = edge.Params(signal_law=INDEPENDENT, num_experts=1, learning_rate=1.0, cluster_spread=0.0)
    orthogonal = params._replace(signal_law=ORTHOGONAL)  # |v| = 1: the other factors alone
    measured = edge.gate_drive(params, num_features) / edge.gate_drive(orthogonal, num_features)
    assert abs(measured - ratio.mean()) < 8 * ratio.std() / math.sqrt(len(ratio))


def test_readings_choose_the_law_that_they_are_called_after() -> None:
    """Would catch names that changed places, and a bound |v|_inf = 1 that is not one."""
    laws = {name: edge.reading(name).params().signal_law for name in edge.READINGS}
    assert laws == {
        "sibling": PROPORTIONAL,
        "scaled-signal": PROPORTIONAL,
        "orthogonal-signal": ORTHOGONAL,
        "independent-signal": INDEPENDENT,
    }
    independent = edge.reading("independent-signal").params()
    assert (independent.signal_scale, independent.min_strength, independent.max_strength) == (1, 0, 1)
    assert edge.reading("sibling").params().signal_scale == 1


def test_defaults_are_those_of_figure_3() -> None:
    """Would catch a default that drifts from sigma_0 = 0.6, eta = 0.2, spread sigma_0^2 / 12^.5 and d_u = 10."""
    params = edge.Params()
    assert (params.num_experts, params.learning_rate, params.gate_lag, params.capacity) == (50, 0.2, 1, 1)
    assert params.truth_scale == 0.6
    assert abs(12 * params.cluster_spread**2 - 0.6**4) < 1e-12  # uniform on an interval of width sigma_0^2
    assert params.max_transfer_delay + params.max_execution_delay == 10
    assert params.min_transfer_delay + params.min_execution_delay == 1
