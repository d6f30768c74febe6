"""Locality losses that compare a move with a baseline, in place of (6).

The loss (6) charges the gate of the chosen expert c = |w_t - w_{t-1}| >= 0. Let pi be this expert's gate probability,
and pi' that of another expert. The charge changes the chosen expert's output for the task by -eta pi (1 - pi) c |v|^2.
It changes the other's by eta pi pi' c |v|^2. So an expert that just learned a task is less likely to receive it again.

Here the cost is c - b. First let b be the cost of the expert's own last move. Then the loss rewards a repeat after a
change, and charges the same amount for a change after a repeat. Other rounds cost little. If pi = 1/M and signals are
orthogonal, an expert's outputs for all tasks add up to -(eta |v|^2 / M) (b - mean of all b). Now let b be the mean cost
of all moves so far. Then the loss rewards every further repeat too, so leads grow.

In `edge`, servers apply the same losses when they complete tasks. Proofs are in `docs/pages/derivations/repaired.md`.
"""

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from moe_theory.core.constraints import Within, require
from moe_theory.core.locality import Locality, Move, distance_moved

OWN_WEIGHT = 0.7  # weight of an expert's own last move in the baseline of `repaired`


class Baseline(NamedTuple):
    """Costs of moves so far, as (6) charges them."""

    last: Float[Array, " M"]  # cost of each expert's last move, 0 before its first move
    mean: Float[Array, ""]  # mean cost of all moves
    num_moves: Int[Array, ""]  # number of moves


@functools.lru_cache
def compared(own: float) -> Locality:
    """Return a locality loss that charges a move its cost minus the baseline own * last + (1 - own) * mean.

    Args:
        own: weight of the expert's own last move in the baseline, in [0, 1].
    Raises: InvalidValueError if `own` is not a number in [0, 1].
    Source: replaces Eq. (6) of `continual` and (11) of `edge`.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import continual
        >>> locality = continual.baseline.compared(own=1.0)
        >>> memory = locality.init(continual.Dims(max_experts=2, num_tasks=2, num_features=4, num_samples=2))
        >>> for length in (3.0, 1.0):
        ...     moved = np.array([length, 0.0])
        ...     move = continual.Move(lengths=moved, costs=moved, learned=np.array([True, False]))
        ...     costs, memory = locality.cost(move, memory, None, None)
        ...     print(costs.tolist(), memory.last.tolist(), float(memory.mean))
        [3.0, 0.0] [3.0, 0.0] 3.0
        [-2.0, 0.0] [1.0, 0.0] 2.0
    """
    require(Within(0, 1, why="it is a weight"), own=own)

    def init(dims: Any) -> Baseline:
        dtype = jnp.result_type(float)
        last = jnp.zeros(dims.max_experts, dtype)
        return Baseline(last, mean=jnp.zeros((), dtype), num_moves=jnp.zeros((), jnp.int32))

    def cost(move: Move, before: Baseline, arrival: Any, params: Any) -> tuple[Float[Array, " M"], Baseline]:
        del arrival, params
        costs = move.costs - (own * before.last + (1 - own) * before.mean)
        count = before.num_moves + jnp.sum(move.learned, dtype=jnp.int32)
        changes = jnp.where(move.learned, move.costs - before.mean, 0)
        mean = before.mean + jnp.sum(changes) / jnp.maximum(count, 1)
        return costs, Baseline(last=jnp.where(move.learned, move.costs, before.last), mean=mean, num_moves=count)

    return Locality(cost, init)


last_move = compared(1.0)  # baseline: the expert's own last move
mean_move = compared(0.0)  # baseline: the mean of all moves
repaired = compared(OWN_WEIGHT)  # baseline: the weighted mean of both
# Losses by name, the paper's own loss first.
LOCALITIES = {"printed": distance_moved, "repaired": repaired, "last-move": last_move, "mean-move": mean_move}
