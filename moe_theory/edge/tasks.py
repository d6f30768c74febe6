"""Tasks of mobile users: kinds with a signal each, and arrivals with a ground truth of their own."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from moe_theory.core import gating, random
from moe_theory.core.errors import InvalidParamsError
from moe_theory.core.tasks import Pool, hide_signal, select_row, uniform_index
from moe_theory.edge.delays import Law, Trip
from moe_theory.edge.params import INDEPENDENT, ORTHOGONAL, PROPORTIONAL, Dims, Params


class Arrival(NamedTuple):
    """The data of one round: a user's task, and what routing it may depend on. Its targets are y = X' truth."""

    task: Int[Array, ""]  # n_t: the kind, an index into the pool
    features: Float[Array, "p s"]  # feature matrix X_t, one sample a column
    truth: Float[Array, " p"]  # ground truth w_t of this task, near its cluster's
    transfer_delay: Int[Array, " M"]  # d_t^tr to each server, in rounds
    distance: Float[Array, " M"]  # from the user to each server
    perturbation: Float[Array, " M"]  # r_t of (4)
    uniform: Float[Array, " M"]  # independent, uniform on (0, 1): for a policy that wants chance


def draw_pool(key: Key[Array, ""], dims: Dims, params: Params) -> Pool:
    """Draw the centres of the N clusters of ground truths, N(0, sigma_0) entrywise, and their feature signals.

    Signals are by `signal_law`: c times the centres; or orthogonal to each other with norm c; or drawn apart from the
    truths, with largest entry c. Under the first law an arrival's own signal is c times its own truth.

    Source: Assumption 1 of `edge`, which asks for |v|_inf = O(1) and leaves the rest open.
    """
    dtype = jnp.result_type(float)
    shape = (2, dims.num_tasks, dims.num_features)
    centres, others = random.normals(random.symmetric_uniforms(key, 2 * shape[1] * shape[2], dtype).reshape(shape))
    scale = jnp.asarray(params.truth_scale, dtype)
    truths = jnp.where(jnp.asarray(params.scale_is_variance, bool), jnp.sqrt(scale), scale) * centres
    bounded = others / jnp.max(jnp.abs(others), axis=1, keepdims=True)
    law = jnp.asarray(params.signal_law)
    directions = jnp.where(law == ORTHOGONAL, _orthonormal(others), jnp.where(law == INDEPENDENT, bounded, truths))
    return Pool(truths=truths, signals=params.signal_scale * directions, clusters=jnp.arange(dims.num_tasks))


def draw(
    key: Key[Array, ""],
    dims: Dims,
    pool: Pool,
    positions: Float[Array, "M 2"],
    params: Params,
    transfer: Law,
) -> Arrival:
    """Draw a round's arrival: task and data by Definition 1, the user's place on the unit square, delays by `transfer`.

    The kind is uniform on the pool; the truth is its centre plus N(0, spread^2) entrywise (6).

    Source: Definition 1 and Eq. (6) of `edge`.
    Raises: InvalidParamsError for a law of delays that gives no whole numbers, one a server.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> import moe_theory as mt
        >>> from moe_theory import edge
        >>> pool = edge.Pool(truths=jnp.eye(2, 4), signals=jnp.eye(2, 4), clusters=jnp.arange(2))
        >>> dims, params = edge.Dims(3, num_tasks=2, num_features=4, num_samples=2), edge.Params(num_experts=3)
        >>> draw, places = jax.jit(edge.draw, static_argnums=(1, 5)), edge.delays.even_map(3)
        >>> arrival = draw(mt.root_key(0), dims, pool, places, params, edge.delays.uniform)
        >>> arrival.features.shape, arrival.transfer_delay.shape
        ((4, 2), (3,))
    """
    num_features, num_samples, dtype = dims.num_features, dims.num_samples, pool.truths.dtype
    sizes = (6, num_features, num_features * num_samples)
    draws = random.symmetric_uniforms(key, sum(sizes) + 3 * dims.max_experts, dtype)
    few, own, noise = (draws[sum(sizes[:i]) : sum(sizes[: i + 1])] for i in range(3))
    perturbation, uniform, delays = jnp.moveaxis((draws[sum(sizes) :].reshape(dims.max_experts, 3) + 1) / 2, 1, 0)
    units = (few + 1) / 2

    task = uniform_index(units[0], dims.num_tasks)
    truth = select_row(pool.truths, task) + params.cluster_spread * random.normals(own)
    is_proportional = jnp.asarray(params.signal_law) == PROPORTIONAL
    direction = jnp.where(is_proportional, params.signal_scale * truth, select_row(pool.signals, task))
    strength = params.max_strength - (params.max_strength - params.min_strength) * units[2]
    noise = params.noise_scale * random.normals(noise.reshape(num_features, num_samples))
    distance = jnp.sqrt(jnp.sum(jnp.square(positions - units[None, 3:5]), axis=1))
    trip = Trip(
        uniform=delays,
        least=jnp.asarray(params.min_transfer_delay, jnp.int32),
        most=jnp.asarray(params.max_transfer_delay, jnp.int32),
        distance=distance,
        nearest=gating.best_expert(-distance, jnp.arange(dims.max_experts) < params.num_experts)[0],
        positions=positions,
        uplink=-jnp.log(units[5]),
    )
    return Arrival(
        task=task,
        features=hide_signal(strength * direction, noise, units[1]),
        truth=truth,
        transfer_delay=within(transfer, trip, params),
        distance=distance,
        perturbation=params.perturbation_scale * perturbation,
        uniform=uniform,
    )


def draw_execution(key: Key[Array, ""], dims: Dims, positions: Float[Array, "M 2"], params: Params, law: Law) -> Array:
    """Draw each server's execution delay d^ex (M,), in rounds, which stays for the whole run."""
    uniform = (random.symmetric_uniforms(key, dims.max_experts, positions.dtype) + 1) / 2
    trip = Trip(
        uniform=uniform,
        least=jnp.asarray(params.min_execution_delay, jnp.int32),
        most=jnp.asarray(params.max_execution_delay, jnp.int32),
        distance=jnp.zeros(dims.max_experts, positions.dtype),
        nearest=jnp.int32(-1),
        positions=positions,
        uplink=jnp.ones((), positions.dtype),
    )
    return within(law, trip, params)


def within(law: Law, trip: Trip, params: Params) -> Int[Array, " M"]:
    """A law's delays, cut at the bounds. Raises: InvalidParamsError unless it gives whole numbers, one a server."""
    rounds = jnp.asarray(law(trip, params))
    if rounds.shape != trip.uniform.shape or not jnp.issubdtype(rounds.dtype, jnp.integer):
        raise InvalidParamsError(
            f"a law of delays gave {rounds.dtype} of shape {rounds.shape}, not whole rounds, one a server: "
            f"{trip.uniform.shape}. Round and cast in the law."
        )
    return jnp.clip(rounds.astype(jnp.int32), trip.least, trip.most)


def _orthonormal(vectors: Float[Array, "N p"]) -> Float[Array, "N p"]:
    """Gram-Schmidt on the first p rows; rows beyond have no direction left and are zero."""
    rows: list[Array] = []
    for index in range(vectors.shape[0]):
        row = vectors[index]
        for _ in range(2):  # once more against rounding
            for earlier in rows[: vectors.shape[1]]:
                row = row - earlier * jnp.sum(earlier * row)
        length = jnp.sqrt(jnp.sum(jnp.square(row)))
        rows.append(row / length if index < vectors.shape[1] else jnp.zeros_like(row))
    return jnp.stack(rows)
