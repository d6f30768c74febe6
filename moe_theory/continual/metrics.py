"""Forgetting and overall generalization error of all past arrivals, streamed in O(d) per round.

Both metrics are sums over the past of |w^(m) - w_tau|^2. An expert's move from w to w' changes them by n (w' - w).(w' +
w - 2 c). Only the number n and the mean ground truth c of its arrivals are stored.
"""

from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moe_theory.core.constraints import AT_LEAST_0


class Metrics(NamedTuple):
    served: Annotated[Float[Array, " M"], AT_LEAST_0]  # arrivals of expert m, a share 1/k each in top-k routing
    centres: Float[Array, "M d"]  # the mean of their ground truths
    forgotten: Float[Array, ""]  # sum over past tau of E_tau(w_t) - E_tau(w_tau)
    remaining: Float[Array, ""]  # sum over tau <= t of E_tau(w_t)


def no_arrivals(max_experts: int, num_features: int, dtype: jnp.dtype) -> Metrics:
    zero = jnp.zeros((), dtype)
    served = jnp.zeros(max_experts, dtype)
    centres = jnp.zeros((max_experts, num_features), dtype)
    return Metrics(served=served, centres=centres, forgotten=zero, remaining=zero)


def record_arrival(
    metrics: Metrics,
    truth: Float[Array, " d"],
    chosen: Bool[Array, "k M"],
    before: Float[Array, "k d"],
    change: Float[Array, "k d"],
    error: Float[Array, ""],
) -> Metrics:
    """Return metrics after the `chosen` experts moved from `before` by `change` for an arrival with this `truth`.

    `error` is the arrival's error after the move, E_t(w_t), and the change must be 0 in unused rows of `chosen`. If an
    arrival finds no expert because gates are NaN, the metrics are NaN from then on.

    Source: Eqs. (14)-(16) of `continual`. Under top-k an arrival's error is the mean over the experts that served it.
    """
    served = jnp.sum(jnp.where(chosen, metrics.served[None, :], 0), axis=1)
    centres = jnp.sum(jnp.where(chosen[:, :, None], metrics.centres[None, :, :], 0), axis=1)
    total_change = jnp.sum(served * jnp.sum(change * (2 * (before - centres) + change), axis=1))
    total_change = jnp.where(jnp.any(chosen), total_change, jnp.nan)
    weights = jnp.sum(chosen, axis=0) / jnp.maximum(jnp.sum(chosen), 1)
    served_after = metrics.served + weights.astype(truth.dtype)
    shift = weights / jnp.where(served_after > 0, served_after, 1)
    return Metrics(
        served=served_after,
        centres=metrics.centres + shift[:, None] * (truth[None, :] - metrics.centres),
        forgotten=metrics.forgotten + total_change,
        remaining=metrics.remaining + total_change + error,
    )


def forgetting(metrics: Metrics, time: Int[Array, ""]) -> Float[Array, ""]:
    """Return F_t after round `time`, 0 at the first. Source: Eq. (15) of `continual`. Units: squared model distance."""
    return metrics.forgotten / jnp.maximum(time - 1, 1)


def generalization_error(metrics: Metrics, time: Int[Array, ""]) -> Float[Array, ""]:
    """Return G_t after round `time`. Source: Eq. (16) of `continual`. Units: squared model distance."""
    return metrics.remaining / jnp.maximum(time, 1)
