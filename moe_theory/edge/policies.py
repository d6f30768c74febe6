"""Offloading policies, which choose an idle server for a task.

A policy is a pure function (gate_outputs, state, arrival, params) -> scores (M,), possibly your own. The task goes to
the idle server with the highest score, the lowest index on ties.

Examples:
    Four policies, and one of your own:

    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> from moe_theory.edge import policies
    >>> arrival = SimpleNamespace(distance=np.array([2, 1]), perturbation=np.zeros(2), uniform=np.array([0.5, 0.6]))
    >>> inputs = np.array([0.3, 0.2]), SimpleNamespace(execution_delay=np.array([1, 4])), arrival, None
    >>> np.argmax([policies.adaptive(*inputs), policies.nearest(*inputs)], axis=1).tolist()
    [0, 1]
    >>> np.argmax([policies.fastest(*inputs), policies.uniform(*inputs)], axis=1).tolist()
    [0, 1]
    >>> (lambda gate_outputs, state, arrival, params: -gate_outputs)(*inputs).argmax().item()
    1
"""

from collections.abc import Callable
from typing import Any

from jaxtyping import Array, Float

from moe_theory.core.errors import InvalidValueError

# (gate_outputs, state, arrival, params) -> scores
Policy = Callable[[Float[Array, " M"], Any, Any, Any], Float[Array, " M"]]


def adaptive(gate_outputs: Float[Array, " M"], state: Any, arrival: Any, params: Any) -> Float[Array, " M"]:
    """Return perturbed gate outputs. Source: Eq. (4) of `edge`."""
    del state, params
    return gate_outputs + arrival.perturbation


def nearest(gate_outputs: Float[Array, " M"], state: Any, arrival: Any, params: Any) -> Float[Array, " M"]:
    """Return scores that prefer the nearest idle server. Source: Section V of `edge`, existing strategies."""
    del gate_outputs, state, params
    return -arrival.distance


def fastest(gate_outputs: Float[Array, " M"], state: Any, arrival: Any, params: Any) -> Float[Array, " M"]:
    """Return scores that prefer the smallest execution delay. Source: Section V of `edge`, the most powerful server."""
    del gate_outputs, arrival, params
    return -state.execution_delay.astype(float)


def uniform(gate_outputs: Float[Array, " M"], state: Any, arrival: Any, params: Any) -> Float[Array, " M"]:
    """Return scores that give each idle server equal probability."""
    del gate_outputs, state, params
    return arrival.uniform


def check_policy(policy: Any) -> None:
    """Raise InvalidValueError unless a policy is a function.

    Examples:
        >>> from moe_theory.edge import policies
        >>> policies.check_policy("nearest")
        Traceback (most recent call last):
            ...
        moe_theory.core.errors.InvalidValueError: policy='nearest' must be a function of (gate_outputs, ...
    """
    if not callable(policy):
        raise InvalidValueError(
            f"policy={policy!r} must be a function of (gate_outputs, state, arrival, params), such as "
            f"policies.{', policies.'.join(POLICIES)}. Pass the function itself.",
            argument="policy",
        )


# The policies by name.
POLICIES: dict[str, Policy] = {policy.__name__: policy for policy in (adaptive, nearest, fastest, uniform)}
