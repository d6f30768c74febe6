"""Algorithm 1 with a round's gate step on show: what the lemmas about the gates speak of."""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key

from moe_theory.continual.params import Dims, Params
from moe_theory.continual.system import Info, State, balance_cost, draw, learn, locality_cost, system
from moe_theory.core import gating
from moe_theory.core.system import System
from moe_theory.core.tasks import Arrival, select_row


class Steps(NamedTuple):
    """What a round's gradient would do to the gates, also once their update is terminated; sizes of the gates."""

    least_balance_gradient: Float[Array, ""]  # min over experts of |auxiliary loss's gradient in theta^(m)|_inf
    largest_gradient: Float[Array, ""]  # max over experts of the task loss's
    chosen_change: Float[Array, ""]  # max over n of |<theta' - theta, v_n>| for the expert that was chosen
    others_change: Float[Array, ""]  # the same, and max over the other experts
    chosen_rise: Float[Array, ""]  # max over n of <theta' - theta, v_n> for the expert that was chosen
    own_rise: Float[Array, ""]  # <theta' - theta, v_n> of the arriving task's n, for the expert that was chosen
    own_fall: Float[Array, ""]  # max over the other experts of -<theta' - theta, v_n>, for the same n
    gate_size: Float[Array, ""]  # max over experts of |theta^(m)|_inf after the round
    gate_gap: Float[Array, ""]  # max over pairs of experts of |theta^(m) - theta^(m')|_inf after the round


@functools.lru_cache
def system_with_steps(dims: Dims) -> System:
    """`system(dims)`, with `Steps` in place of its `Info`; it draws and computes the same numbers."""

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, Steps]:
        arrival, perturbation = draw(key, dims, state.pool, params)
        after, info = learn(state, arrival, perturbation, params, max_active=dims.max_active)
        return after, gate_step(arrival, after, info, params)

    return System(system(dims).init, step)


def gate_step(arrival: Arrival, after: State, info: Info, params: Params) -> Steps:
    """The gate step of a round of switch routing, from what the round showed and the state after it.

    Source: Eqs. (9), (27), (30) of `continual`.
    """
    gate_input = jnp.sum(arrival.features, axis=1)
    balance = jnp.where(info.chosen, balance_cost(after.visits, after.round, params), 0)
    locality = jnp.where(info.chosen, locality_cost(info.update_norm**2, params), 0)
    slopes = gating.gate_slopes(info.gate_probabilities, locality + balance)
    exists = jnp.arange(slopes.shape[0]) < params.num_experts
    is_other = exists & ~info.chosen
    input_size = jnp.max(jnp.abs(gate_input))
    balance_gradients = jnp.abs(gating.gate_slopes(info.gate_probabilities, balance)) * input_size

    drives = jnp.sum(after.pool.signals * gate_input[None, :], axis=1)
    changes = -params.learning_rate * slopes[:, None] * drives[None, :]
    own_changes = -params.learning_rate * slopes * select_row(drives[:, None], arrival.task)[0]
    chosen_changes = jnp.sum(jnp.where(info.chosen[:, None], changes, 0), axis=0)
    highest = _largest(after.gates, exists[:, None])
    lowest = -_largest(-after.gates, exists[:, None])
    return Steps(
        least_balance_gradient=-_largest(-balance_gradients, exists),
        largest_gradient=_largest(jnp.abs(slopes) * input_size, exists),
        chosen_change=jnp.max(jnp.abs(chosen_changes)),
        others_change=jnp.max(_largest(jnp.abs(changes), is_other[:, None])),
        chosen_rise=jnp.max(chosen_changes),
        own_rise=jnp.sum(jnp.where(info.chosen, own_changes, 0)),
        own_fall=_largest(-own_changes, is_other),
        gate_size=jnp.max(jnp.abs(after.gates)),
        gate_gap=jnp.max(highest - lowest),
    )


def _largest(values: Float[Array, "M *rest"], mask: Bool[Array, "M *ones"]) -> Float[Array, "*rest"]:
    """The largest value over the experts of a mask."""
    return jnp.max(jnp.where(mask, values, -jnp.inf), axis=0)
