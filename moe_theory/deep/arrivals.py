"""Tasks as they arrive: a class, and which images of the pool show it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from moe_theory.core import random
from moe_theory.core.tasks import uniform_index
from moe_theory.deep.params import Dims, Params
from moe_theory.deep.pool import Pool, pick


class Arrival(NamedTuple):
    """The data of one round: rows of images in the pool, and what routing may depend on.

    The last three matter to mobile edge computing alone, where policies read them by these names.
    """

    task: Int[Array, ""]  # n_t, one of the K classes
    images: Int[Array, " s"]  # rows of training images
    batches: Int[Array, "steps b"]  # places among these, a row for each step of the expert
    tests: Int[Array, " n"]  # rows of test images
    perturbation: Float[Array, " M"]  # r of the router
    uniform: Float[Array, " M"]  # independent, uniform on (0, 1)
    distance: Float[Array, " M"]  # from the user to each server, on the unit square
    transfer_delay: Int[Array, " M"]  # d^tr to each server, in rounds


def draw(key: Key[Array, ""], dims: Dims, pool: Pool, params: Params) -> tuple[Arrival, Float[Array, "2"]]:
    """Draw a round's arrival, whose class is uniform, and the user's place; distances and delays are left at 0.

    Source: Appendices A.3 to A.6 of `continual`; Section VI of `edge`.
    """
    sizes = (3, dims.num_samples, dims.num_tests)
    count = sum(sizes) + 2 * dims.max_experts
    units = (random.symmetric_uniforms(key, count, jnp.result_type(float)) + 1) / 2
    few, images, tests, own = jnp.split(units, [sizes[0], sizes[0] + sizes[1], sum(sizes)])
    noise, chance = own.reshape(dims.max_experts, 2).T
    task = uniform_index(few[0], dims.num_classes)
    arrival = Arrival(
        task=task,
        images=pick(pool.train, task, images, params.positive_share),
        batches=_batches(jax.random.fold_in(key, 1), dims),
        tests=pick(pool.test, task, tests, params.positive_share),
        perturbation=params.perturbation_scale * noise,
        uniform=chance,
        distance=jnp.zeros_like(noise),
        transfer_delay=jnp.zeros(noise.shape, jnp.int32),
    )
    return arrival, few[1:]


def _batches(key: Key[Array, ""], dims: Dims) -> Int[Array, "steps b"]:
    """Every image once an epoch, in a new order for each; in one batch the order does not matter."""
    places = jnp.arange(dims.num_samples, dtype=jnp.int32)
    if dims.batch_size == dims.num_samples:
        return jnp.broadcast_to(places, (dims.num_epochs, dims.num_samples))
    orders = jax.vmap(lambda key: jax.random.permutation(key, places))(jax.random.split(key, dims.num_epochs))
    return orders.reshape(-1, dims.batch_size)
