"""What a reward is: which tasks come, and how well a merge with given weights does on each.

The regret needs what is best for a mix; a reward that does not know it, such as a real network's accuracy, has no
`best`, and its regret is not a number.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array, Float, Int, Key

from moe_theory.merging.params import Dims, Params
from moe_theory.merging.policy import Feedback

World = Any  # a NamedTuple of arrays, drawn once a replicate


class Reward(NamedTuple):
    """A reward function f* of K weights with V values, and the slots that it is observed in.

    Examples:
        One whose best weights are not known:

        >>> from moe_theory import merging
        >>> reward = merging.rewards.named("flat")._replace(best=None)
        >>> system = merging.system(merging.Dims(max_experts=3, num_tasks=2), reward)
    """

    draw: Callable[[Key[Array, ""], Dims, Params], World]
    mix: Callable[[World, Int[Array, ""], Params], Float[Array, " V"]]  # psi_t, the shares of tasks in slot t
    value: Callable[[World, Float[Array, " K"]], Float[Array, " V"]]  # f*(x), in [0, 1]
    # (key, world, weights, mix, params): what one slot shows of f*
    serve: Callable[[Key[Array, ""], World, Float[Array, " K"], Float[Array, " V"], Params], Feedback]
    best: Callable[[World, Float[Array, " V"], Params], Float[Array, " K"]] | None  # where psi' f* is largest
