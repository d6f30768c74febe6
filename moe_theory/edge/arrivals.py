"""Arrivals of `edge`, drawn by Definition 1."""

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from moe_theory.core import gating, random, tasks
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.numerics import rounded_positive
from moe_theory.core.tasks import INDEPENDENT, ORTHOGONAL, PROPORTIONAL, Pool
from moe_theory.edge import delays
from moe_theory.edge.delays import Law, Trip
from moe_theory.edge.params import Dims, Params


class Arrival(NamedTuple):
    """A user's task with all data that its routing needs."""

    task: Int[Array, ""]  # n_t: the task type, an index into the pool
    features: Float[Array, "p s"]  # feature matrix X_t, one sample a column
    truth: Float[Array, " p"]  # ground truth w_t of this task, near the centre of its cluster
    transfer_delay: Int[Array, " M"]  # d_t^tr to each server, in rounds
    distance: Float[Array, " M"]  # from the user to each server
    perturbation: Float[Array, " M"]  # r_t of (4)
    uniform: Float[Array, " M"]  # independent and uniform on (0, 1), for a policy that needs randomness
    targets: Float[Array, " s"] | None = None  # y, which servers learn, by default X' truth


def draw(
    key: Key[Array, ""], dims: Dims, pool: Pool, positions: Float[Array, "M 2"], params: Params, transfer: Law
) -> Arrival:
    """Draw a round's arrival: its task and data by Definition 1, a user on the unit square and delays by `transfer`.

    The task type is uniform on the pool, and the truth is its centre plus N(0, spread^2) entrywise (6).

    Source: Definition 1 and Eq. (6) of `edge`.
    Raises: InvalidValueError for a distribution of delays that does not return whole numbers (M,).

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> import moe_theory as mt
        >>> from moe_theory import edge
        >>> pool = edge.Pool(truths=jnp.eye(2, 4), signals=jnp.eye(2, 4), clusters=jnp.arange(2))
        >>> dims, params = edge.Dims(3, num_tasks=2, num_features=4, num_samples=2), edge.Params(num_experts=3)
        >>> draw, positions = jax.jit(edge.draw, static_argnums=(1, 5)), edge.delays.even_map(3)
        >>> arrival = draw(mt.root_key(0), dims, pool, positions, params, edge.delays.uniform)
        >>> arrival.features.shape, arrival.transfer_delay.shape
        ((4, 2), (3,))
    """
    num_features = dims.num_features
    num_samples = dims.num_samples
    dtype = pool.truths.dtype
    numbers, normals = random.draws(key, 6 + 3 * dims.max_experts, num_features * num_samples, dtype)
    units = numbers[:6]  # for the task, the signal's column, its strength, the user's place (two), and the uplink
    server_units = numbers[6:].reshape(dims.max_experts, 3)
    perturbation_units, policy_units, delay_units = jnp.moveaxis(server_units, 1, 0)
    vectors = normals.reshape(num_samples, num_features)  # the first is for the truth, the others are noise

    task = tasks.uniform_index(units[0], dims.num_tasks)
    truth = tasks.select_row(pool.truths, task) + params.cluster_spread * vectors[0]
    is_proportional = jnp.asarray(params.signal_law) == PROPORTIONAL
    direction = jnp.where(is_proportional, params.signal_scale * truth, tasks.select_row(pool.signals, task))
    strength = params.max_strength - rounded_positive((params.max_strength - params.min_strength) * units[2])
    noise = params.noise_scale * vectors[1:].T
    trip = transfer_trip(units[3:5], positions, uniform=delay_units, uplink=units[5], params=params)
    return Arrival(
        task=task,
        features=tasks.hide_signal(strength * direction, noise, units[1]),
        truth=truth,
        transfer_delay=bounded_delays(transfer, trip, params),
        distance=trip.distance,
        perturbation=rounded_positive(params.perturbation_scale * perturbation_units),
        uniform=policy_units,
    )


def draw_pool(key: Key[Array, ""], dims: Dims, params: Params) -> Pool:
    """Draw the centres of the N clusters of ground truths, N(0, sigma_0) entrywise, and their feature signals.

    By `signal_law` the signals are c times the centres (an arrival's own ground truth), orthogonal with norm c, or
    independent of the ground truths with largest entry c.

    Source: Assumption 1 of `edge`.
    """
    dtype = jnp.result_type(float)
    shape = (2, dims.num_tasks, dims.num_features)
    centres, directions = random.normals(key, math.prod(shape), dtype).reshape(shape)
    scale = jnp.asarray(params.truth_scale, dtype)
    truths = jnp.where(jnp.asarray(params.scale_is_variance, bool), jnp.sqrt(scale), scale) * centres
    bounded = directions / jnp.max(jnp.abs(directions), axis=1, keepdims=True)
    law = jnp.asarray(params.signal_law)
    oblique = jnp.where(law == INDEPENDENT, bounded, truths)
    signals = jnp.where(law == ORTHOGONAL, tasks.orthonormal(directions), oblique)
    return Pool(truths=truths, signals=params.signal_scale * signals, clusters=jnp.arange(dims.num_tasks))


def transfer_trip(
    place: Float[Array, "2"],
    positions: Float[Array, "M 2"],
    uniform: Float[Array, " M"],
    uplink: Float[Array, ""],
    params: Any,
) -> Trip:
    """Return the transfer from a user at `place` on the unit square to each server.

    Args:
        uniform, uplink: independent numbers, uniform on (0, 1).
    """
    distance = jnp.sqrt(jnp.sum(jnp.square(positions - place[None, :]), axis=1))
    return Trip(
        uniform=uniform,
        least=jnp.asarray(params.min_transfer_delay, jnp.int32),
        most=jnp.asarray(params.max_transfer_delay, jnp.int32),
        distance=distance,
        nearest=gating.best_expert(-distance, jnp.arange(positions.shape[0]) < params.num_experts)[0],
        positions=positions,
        uplink=-jnp.log(uplink),
    )


def draw_execution(key: Key[Array, ""], dims: Dims, positions: Float[Array, "M 2"], params: Params, law: Law) -> Array:
    """Draw each server's execution delay d^ex (M,) for the whole run, in rounds. Raises: as `bounded_delays`."""
    uniform = random.uniforms(key, dims.max_experts, positions.dtype)
    trip = Trip(
        uniform=uniform,
        least=jnp.asarray(params.min_execution_delay, jnp.int32),
        most=jnp.asarray(params.max_execution_delay, jnp.int32),
        distance=jnp.zeros(dims.max_experts, positions.dtype),
        nearest=jnp.int32(-1),  # an execution covers no distance
        positions=positions,
        uplink=jnp.ones((), positions.dtype),
    )
    return bounded_delays(law, trip, params)


def bounded_delays(law: Law, trip: Trip, params: Params) -> Int[Array, " M"]:
    """Return a distribution's delays, clipped. Raises: InvalidValueError unless it returns whole numbers (M,)."""
    rounds = jnp.asarray(law(trip, params))
    if rounds.shape != trip.uniform.shape or not jnp.issubdtype(rounds.dtype, jnp.integer):
        raise InvalidValueError(
            f"a distribution of delays returned {rounds.dtype} of shape {rounds.shape}, but must return whole rounds "
            f"of shape {trip.uniform.shape}, one per server. Round and cast the delays."
        )
    return jnp.clip(rounds.astype(jnp.int32), trip.least, trip.most)


def check_execution(law: Law) -> None:
    if law is delays.by_distance:
        raise InvalidValueError(
            "by_distance is only for transfers, because execution covers no distance. Choose another distribution."
        )
