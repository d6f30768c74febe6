"""A queue at the router of `edge`, first come first served: tasks wait there until a server is idle (`wait`)."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from moe_theory.edge.arrivals import Arrival
from moe_theory.edge.params import Dims
from moe_theory.edge.servers import DROPPED, WAITING, Assignment


class Queue(NamedTuple):
    """The router's queue, first come first served: only under `wait`."""

    arrivals: Arrival  # every leaf (W, ...)
    num_waiting: Int[Array, ""]  # of the W that it can hold


def empty_queue(dims: Dims, dtype: jnp.dtype) -> Queue:
    def zeros(kind: Any, *shape: int) -> Array:
        return jnp.zeros((dims.max_waiting, *shape), kind)

    data = {"features": (dims.num_features, dims.num_samples), "truth": (dims.num_features,)}
    per_server = dict.fromkeys(("distance", "perturbation", "uniform"), (dims.max_experts,))
    reals = {name: zeros(dtype, *shape) for name, shape in (data | per_server).items()}
    arrivals = Arrival(task=zeros(jnp.int32), transfer_delay=zeros(jnp.int32, dims.max_experts), **reals)
    return Queue(arrivals, jnp.zeros((), jnp.int32))


def offer_in_turn(
    offer: Callable[[Any, Arrival, Bool[Array, ""]], tuple[Any, Assignment]], state: Any, arrival: Arrival
) -> tuple[Any, Assignment]:
    """Offer the queue, then the new task, until no server is idle: the state, and the assignment of the new task.

    Args:
        offer: (state, task, whether there is one) -> the same of one task.
    """
    queue = state.queue
    max_waiting = queue.arrivals.task.shape[0]
    is_new = jnp.arange(max_waiting + 1) == queue.num_waiting
    tasks: Any = jax.tree.map(
        lambda waiting, new: jnp.where(
            is_new.reshape(-1, *(1,) * jnp.ndim(new)), new, jnp.concatenate([waiting, waiting[:1]])
        ),
        queue.arrivals,
        arrival,
    )
    remaining = queue.num_waiting + 1
    latest: Any = None
    for _ in range(max_waiting + 1):
        first = jax.tree.map(lambda leaf: leaf[0], tasks)
        state, task = offer(state, first, remaining > 0)
        is_routed = jnp.any(task.mask)
        is_last = is_routed & (remaining == 1)
        latest = jax.tree.map(jnp.zeros_like, task)._replace(server=jnp.int32(WAITING)) if latest is None else latest
        latest = jax.tree.map(lambda new, old, is_last=is_last: jnp.where(is_last, new, old), task, latest)
        tasks = jax.tree.map(
            lambda leaf, is_routed=is_routed: jnp.where(is_routed, jnp.roll(leaf, -1, axis=0), leaf), tasks
        )
        remaining = remaining - is_routed
    overflows = remaining > max_waiting
    kept = Queue(jax.tree.map(lambda leaf: leaf[:max_waiting], tasks), remaining - overflows)
    return state._replace(queue=kept), latest._replace(server=jnp.where(overflows, DROPPED, latest.server))
