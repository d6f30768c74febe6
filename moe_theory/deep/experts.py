"""The one expert that a task goes to: trained on it, measured, and put back among the others."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt8

from moe_theory.deep import networks, training
from moe_theory.deep.arrivals import Arrival
from moe_theory.deep.networks import NETWORKS, Weights
from moe_theory.deep.params import Dims, Params
from moe_theory.deep.pool import Pool, inputs_of
from moe_theory.deep.scores import Tables


class Learned(NamedTuple):
    """What learning a task made of an expert."""

    weights: Weights  # of the expert alone
    squared_move: Float[Array, ""]  # |w_t - w_{t-1}|^2; under `per_parameter` its mean over the parameters
    rows: Tables  # what it now makes of every test image, leaves (K, n)


# Images that a network is evaluated on at a time: on a CPU, ResNet-18 takes 5 MB for each of 32 x 32.
MOST_AT_ONCE = 500


def begin(key: Key[Array, ""], dims: Dims, pool: Pool) -> Weights:
    """All experts drawn (He), leaves (M, ...)."""
    _, height, width, channels = pool.train.pixels.shape
    shape = (height, width, channels)
    return networks.stacked(NETWORKS[dims.network], key, dims.max_experts, shape, dims.num_classes)


def no_tables(dims: Dims, pool: Pool) -> Tables:
    """Empty tables, for those who look at an expert only once it has learned."""
    empty = jnp.zeros((dims.max_experts, dims.num_classes, pool.test.labels.shape[0]), jnp.result_type(float))
    return Tables(empty, empty)


def tables_of(experts: Weights, pool: Pool, params: Params, dims: Dims) -> Tables:
    """What every expert makes of the test images as it is."""
    return jax.lax.map(lambda expert: rows_of(expert, pool, params, dims), experts)


def learn(
    expert: Weights,
    arrival: Arrival,
    pixels: UInt8[Array, "s h w c"],
    pool: Pool,
    time: Int[Array, ""],
    params: Params,
    dims: Dims,
) -> Learned:
    """One expert after the arrival of round `time`, whose images are `pixels`.

    Source: Appendices A.3 and A.4 of `continual`.
    """
    network = NETWORKS[dims.network]
    labels = pool.train.labels[arrival.images]
    after = training.train(
        network, dims.optimizer, expert, inputs_of(pool, pixels), labels, arrival.task, arrival.batches, time, params
    )
    squared_move = networks.squared_distance(after.params, expert.params)
    divisor = jnp.where(jnp.asarray(params.per_parameter, bool), networks.num_parameters(after), 1)
    return Learned(after, squared_move / divisor, rows_of(after, pool, params, dims))


def rows_of(expert: Weights, pool: Pool, params: Params, dims: Dims) -> Tables:
    """What one expert makes of every test image for each task, leaves (K, n)."""
    network = NETWORKS[dims.network]
    count = pool.test.labels.shape[0]
    num_parts = -(-count // MOST_AT_ONCE)
    size = -(-count // num_parts)
    # Of one size, the last part filled up with its last image.
    parts = np.minimum(np.arange(num_parts * size), count - 1).reshape(num_parts, size)

    def outputs_of(places: Int[Array, " n"]) -> Float[Array, "n K"]:
        return network.apply(expert, inputs_of(pool, pool.test.pixels[places]), False)[0]

    outputs = jax.lax.map(outputs_of, jnp.asarray(parts)).reshape(num_parts * size, -1)[:count]

    def row(task: Int[Array, ""]) -> Tables:
        arguments = (outputs, jnp.asarray(pool.test.labels), task, params)
        return Tables(training.squared_errors(*arguments), training.hits(*arguments))

    return jax.vmap(row)(jnp.arange(dims.num_classes))
