"""Offloading policies: which idle server a task goes to.

A policy is one pure function (gate_outputs, state, arrival, params) -> scores (M,); the task goes to the idle server
with the highest score, the lowest index on ties. Yours is as good as one of these: pass it to `system` or `learn`.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from moe_theory.core.errors import InvalidParamsError

Policy = Callable[[Float[Array, " M"], Any, Any, Any], Float[Array, " M"]]


def adaptive(gate_outputs: Float[Array, " M"], state: Any, arrival: Any, params: Any) -> Float[Array, " M"]:
    """The highest perturbed gate output: the paper's adaptive gating network. Source: Eq. (4) of `edge`."""
    del state, params
    return gate_outputs + arrival.perturbation


def nearest(gate_outputs: Float[Array, " M"], state: Any, arrival: Any, params: Any) -> Float[Array, " M"]:
    """The nearest idle server. Source: Section V of `edge`, existing offloading strategies."""
    del gate_outputs, state, params
    return -arrival.distance


def fastest(gate_outputs: Float[Array, " M"], state: Any, arrival: Any, params: Any) -> Float[Array, " M"]:
    """The most powerful idle server: the smallest execution delay. Source: Section V of `edge`."""
    del gate_outputs, arrival, params
    return -state.execution_delay.astype(float)


def uniform(gate_outputs: Float[Array, " M"], state: Any, arrival: Any, params: Any) -> Float[Array, " M"]:
    """Any idle server with equal probability: routing that depends on nothing."""
    del gate_outputs, state, params
    return arrival.uniform


def scores_of(
    policy: Policy, gate_outputs: Float[Array, " M"], state: Any, arrival: Any, params: Any
) -> Float[Array, " M"]:
    """A policy's scores; one that is no number is the last choice, but no reason to drop a task.

    Raises: InvalidParamsError unless there is one a server.
    """
    scores = jnp.asarray(policy(gate_outputs, state, arrival, params))
    if scores.shape != gate_outputs.shape:
        raise InvalidParamsError(
            f"the policy gave scores of shape {scores.shape}, not one a server: {gate_outputs.shape}. Mend the policy."
        )
    return jnp.where(jnp.isnan(scores), -jnp.inf, scores)


def check_policy(policy: Any) -> None:
    """Raise InvalidParamsError unless a policy is a function."""
    if not callable(policy):
        raise InvalidParamsError(
            f"policy={policy!r} must be a function of (gate_outputs, state, arrival, params), such as "
            f"policies.{', policies.'.join(POLICIES)}. Pass the function itself."
        )


POLICIES: dict[str, Policy] = {policy.__name__: policy for policy in (adaptive, nearest, fastest, uniform)}
