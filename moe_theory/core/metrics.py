"""Forgetting and overall generalization error of all past arrivals, streamed in O(N d) a round.

Both are sums over the whole past, but a round changes only the experts it trains: arrivals of task n at expert m
share the model error |w^(m) - w_n|^2, so a table of how many of each there were is all the memory needed. Changes
are accumulated in centred form, (w' - w).(w' + w - 2 w_n), which keeps float32 accurate.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moe_theory.core.numerics import Numbers


class Metrics(NamedTuple):
    """What must be carried to know forgetting and generalization error at any round."""

    arrivals: Float[Array, "M N"]  # arrivals of task n served by expert m (a share 1/k each in top-k routing)
    forgotten: Float[Array, ""]  # sum over past tau of E_tau(w_t) - E_tau(w_tau)
    remaining: Float[Array, ""]  # sum over tau <= t of E_tau(w_t)


def no_arrivals(max_experts: int, num_tasks: int, dtype: jnp.dtype) -> Metrics:
    zero = jnp.zeros((), dtype)
    return Metrics(arrivals=jnp.zeros((max_experts, num_tasks), dtype), forgotten=zero, remaining=zero)


def record_arrival(
    metrics: Metrics,
    truths: Float[Numbers, "N d"],
    task: Int[Array, ""],
    chosen: Bool[Array, "k M"],
    before: Float[Array, "k d"],
    change: Float[Array, "k d"],
    error: Float[Array, ""],
) -> Metrics:
    """Metrics after the `chosen` experts moved from `before` by `change` to serve an arrival of `task`.

    `error` is the arrival's own model error after the move, E_t(w_t). Unused rows of `chosen` must have no change.

    Source: Eqs. (14)-(16) of `continual`; top-k: an arrival's error is the mean over the experts that served it.
    """
    served = jnp.sum(jnp.where(chosen[:, :, None], metrics.arrivals[None, :, :], 0), axis=1)
    midpoints = (2 * before + change)[:, None, :] - 2 * truths[None, :, :]
    error_changes = jnp.sum(change[:, None, :] * midpoints, axis=2)
    total_change = jnp.sum(served * error_changes)
    weights = jnp.sum(chosen, axis=0) / jnp.maximum(jnp.sum(chosen), 1)
    is_task = jnp.arange(truths.shape[0]) == task
    return Metrics(
        arrivals=metrics.arrivals + jnp.where(is_task[None, :], weights[:, None].astype(truths.dtype), 0),
        forgotten=metrics.forgotten + total_change,
        remaining=metrics.remaining + total_change + error,
    )


def forgetting(metrics: Metrics, time: Int[Array, ""]) -> Float[Array, ""]:
    """F_t after round `time`; 0 at the first. Source: Eq. (15) of `continual`. Units: squared model distance."""
    return metrics.forgotten / jnp.maximum(time - 1, 1)


def generalization_error(metrics: Metrics, time: Int[Array, ""]) -> Float[Array, ""]:
    """G_t after round `time`. Source: Eq. (16) of `continual`. Units: squared model distance."""
    return metrics.remaining / jnp.maximum(time, 1)
