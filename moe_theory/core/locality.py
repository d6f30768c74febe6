"""The locality loss as a part of an algorithm: the cost of an expert's move, and a memory."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from moe_theory.core.constraints import is_known
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.vmap import described_array


class Move(NamedTuple):
    """How far experts moved in one round to learn their tasks.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import continual
        >>> lengths = np.array([0.0, 3.0])
        >>> move = continual.Move(lengths, costs=lengths**2, learned=np.array([False, True]))
        >>> continual.distance_moved.cost(move, None, None, None)[0].tolist()
        [0.0, 9.0]
    """

    lengths: Float[Array, " M"]  # |w_t - w_{t-1}|, 0 for an expert that learned nothing
    costs: Float[Array, " M"]  # charges of the paper's own loss, |w_t - w_{t-1}|^q
    learned: Bool[Array, " M"]  # which experts learned a task


class Locality(NamedTuple):
    """A locality loss: the cost of experts' moves, and a memory of earlier moves.

    Examples:
        >>> import jax.numpy as jnp
        >>> import moe_theory as mt
        >>> from moe_theory import continual
        >>> def excess(move, longest, arrival, params):
        ...     return move.costs - longest, jnp.maximum(longest, move.costs.max())
        >>> dims = continual.Dims(max_experts=3, num_tasks=4, num_features=6, num_samples=2)
        >>> system = continual.system(dims, locality=continual.Locality(excess, lambda dims: jnp.zeros(())))
        >>> params = continual.Params(num_experts=3)
        >>> state, info = mt.simulate(system, mt.root_key(0), params, num_rounds=5)
        >>> bool(state.memory == info.update_norm.max())
        True
    """

    # (move, memory, arrival, params) -> (costs, new memory). Costs (M,) are ignored for experts that learned nothing
    cost: Callable[[Move, Any, Any, Any], tuple[Float[Array, " M"], PyTree]]
    init: Callable[[Any], PyTree] = lambda dims: None  # (dims) -> the memory before round 1, a PyTree of arrays


# The papers' own loss |w_t - w_{t-1}|^q. Source: Eq. (6) of `continual`.
distance_moved = Locality(lambda move, memory, arrival, params: (move.costs, memory))


def check_locality(locality: Any) -> None:
    if not isinstance(locality, Locality):
        raise InvalidValueError(
            f"locality={locality!r} must be a Locality: Locality(cost), or Locality(cost, init) with a memory.",
            argument="locality",
        )


def charged(
    locality: Locality, move: Move, memory: Any, arrival: Any, params: Any
) -> tuple[Float[Array, " M"], PyTree]:
    """Return a locality loss's costs and memory. Raises: InvalidValueError if a shape is wrong or a cost is NaN."""
    result: Any = locality.cost(move, memory, arrival, params)
    if not isinstance(result, tuple) or len(result) != 2:
        raise InvalidValueError("the locality loss must return (costs, memory), a tuple of length 2. Fix its `cost`.")
    costs, new_memory = result
    if jnp.shape(costs) != move.costs.shape:
        raise InvalidValueError(
            f"the locality loss returned costs of shape {jnp.shape(costs)}, not one per expert: {move.costs.shape}."
        )
    described_after = _described(new_memory)
    described_before = _described(memory)
    if described_after != described_before:
        raise InvalidValueError(
            f"the locality loss returned a memory of {described_after} in place of {described_before}. Its `cost` must "
            "return the shapes and types of its `init`."
        )
    if is_known(costs, move.learned):
        is_nan = np.isnan(np.asarray(costs)) & np.asarray(move.learned)
        if np.any(is_nan):
            expert = int(np.argmax(is_nan))
            raise InvalidValueError(
                f"the locality loss returned NaN for expert {expert}, which moved by {float(move.lengths[expert]):g}. "
                "All gates would become NaN. Fix its `cost`."
            )
    return jnp.asarray(costs), new_memory


def _described(memory: Any) -> str:
    if memory is None:
        return "nothing"
    return str(jax.tree.map(lambda leaf: described_array(jax.api_util.shaped_abstractify(leaf)), memory))
