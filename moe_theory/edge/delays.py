"""Distributions of the delays of (1): transfer d^tr of each task to each server, execution d^ex of each server.

The paper allows any distribution on whole rounds between bounds. Each distribution is a pure function for one
replicate. All bounds and rates are traced parameters, and all delays are clipped to the bounds.

| name | transfer | execution |
| --- | --- | --- |
| `uniform` | uniform on the whole rounds between the bounds | the same |
| `geometric` | the lower bound plus a geometric number of rounds | the same |
| `by_distance` | a random uplink to the nearest server, then fibre to the chosen one | |
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from moe_theory.edge.params import Params


class Trip(NamedTuple):
    """Inputs of a delay's distribution.

    Examples:
        Two servers a unit apart, a user half a unit from each, and delays of 1 to 6 rounds:

        >>> import jax.numpy as jnp
        >>> from moe_theory.edge import Params, delays
        >>> positions = jnp.array([[0.0, 0.0], [1.0, 0.0]])
        >>> uniforms, distances = jnp.array([0.3, 0.9]), jnp.array([0.5, 0.5])
        >>> trip = delays.Trip(uniforms, 1, 6, distances, nearest=0, positions=positions, uplink=1.0)
        >>> delays.uniform(trip, Params()).tolist(), delays.geometric(trip, Params()).tolist()
        ([2, 6], [3, 1])
        >>> delays.by_distance(trip, Params(uplink_delay=4.0, fibre_delay=3.0)).tolist()
        [2, 5]
    """

    uniform: Float[Array, " M"]  # independent and uniform on (0, 1)
    least: Int[Array, ""]  # bounds of the delay, in rounds
    most: Int[Array, ""]
    distance: Float[Array, " M"]  # from the user to each server
    nearest: Int[Array, ""]  # the nearest server m~_t, -1 for an execution
    positions: Float[Array, "M 2"]  # of the servers, on the unit square
    uplink: Float[Array, ""]  # duration of the user's uplink, exponential with mean 1


MOST_ROUNDS = 2.0**30  # limit of an unbounded or infinite delay, so that it fits 32 bits

Law = Callable[[Trip, Params], Int[Array, " M"]]  # a pure function: a trip -> the delays to each server, in rounds


def uniform(trip: Trip, params: Params) -> Int[Array, " M"]:
    """Return delays uniform on the whole numbers from the lower to the upper bound."""
    del params
    num_values = trip.most - trip.least + 1
    return jnp.minimum(trip.least + jnp.floor(trip.uniform * num_values).astype(jnp.int32), trip.most)


def geometric(trip: Trip, params: Params) -> Int[Array, " M"]:
    """Return the lower bound plus a geometric number of rounds (`geometric_stop`), clipped to the upper bound."""
    log_continue = jnp.log1p(-jnp.asarray(params.geometric_stop, trip.uniform.dtype))  # -inf if delays always stop
    further = jnp.floor(jnp.log(trip.uniform) / log_continue)
    return jnp.minimum(trip.least + jnp.minimum(further, MOST_ROUNDS).astype(jnp.int32), trip.most)


def by_distance(trip: Trip, params: Params) -> Int[Array, " M"]:
    """Return the rounds of a random uplink to the nearest server and of fibre to each server, within bounds.

    An uplink takes its distance times an exponential variable with mean 1.
    """
    is_nearest = jnp.arange(trip.positions.shape[0]) == trip.nearest
    position_of_nearest = jnp.sum(jnp.where(is_nearest[:, None], trip.positions, 0), axis=0)
    to_nearest = jnp.sum(jnp.where(is_nearest, trip.distance, 0))
    onwards = jnp.sqrt(jnp.sum(jnp.square(trip.positions - position_of_nearest[None, :]), axis=1))
    rounds = params.uplink_delay * to_nearest * trip.uplink + params.fibre_delay * onwards
    return jnp.clip(jnp.rint(jnp.minimum(rounds, MOST_ROUNDS)).astype(jnp.int32), trip.least, trip.most)


def even_map(count: int) -> Float[np.ndarray, "M 2"]:
    """Return positions of servers, spread evenly over the unit square.

    Source: the additive recurrence of the plastic constant (M. Roberts, 2018).

    Examples:
        >>> from moe_theory.edge import delays
        >>> delays.even_map(50).shape
        (50, 2)
    """
    plastic = 1.32471795724474602596
    step = np.array([1 / plastic, 1 / plastic**2])
    return np.mod(0.5 + np.arange(1, count + 1)[:, None] * step, 1.0)
