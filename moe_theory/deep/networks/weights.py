"""A network and its weights, and stacks of M experts: plain trees of arrays, which are faster here than modules."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key, PyTree

from moe_theory.core.errors import InvalidDimsError


class Weights(NamedTuple):
    """The weights of one network, or with leaves (M, ...) of a stack of M."""

    params: PyTree  # trained
    statistics: PyTree  # running means and variances of BatchNorm; () where a network has none


@dataclass(frozen=True)
class Network:
    """Two pure functions and a name; hashable.

    Outputs are those BEFORE the sigmoid (of one output) or the softmax (of several), which training code applies.
    """

    name: str
    # (key, (height, width, channels), number of outputs): He initialisation
    init: Callable[[Key[Array, ""], tuple[int, int, int], int], Weights]
    # (weights, images, is training) -> outputs and new statistics
    apply: Callable[[Weights, Float[Array, "n h w c"], bool], tuple[Float[Array, "n outputs"], PyTree]]


def stacked(
    network: Network,
    key: Key[Array, ""] | Key[Array, " M"],
    num_experts: int,
    shape: tuple[int, int, int],
    num_outputs: int,
) -> Weights:
    """M networks as one tree, leaves (M, ...). An expert does not depend on how many others there are.

    Args:
        key: one key, for expert m `fold_in(key, m)`; or M keys, one for each expert, which may be equal.

    Raises: InvalidDimsError for another number of keys.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory.deep import networks
        >>> network = networks.NETWORKS["mlp"]
        >>> stack = networks.stacked(network, mt.root_key(0), num_experts=3, shape=(2, 2, 1), num_outputs=1)
        >>> second = networks.expert(stack, 1)
        >>> networks.num_experts(stack), networks.num_parameters(second)  # 4 * 32 + 32 and 32 + 1
        (3, 193)
        >>> first = networks.expert(networks.with_expert(stack, 0, second), 0)
        >>> float(networks.squared_distance(first.params, second.params))
        0.0
    """
    if key.shape not in ((), (num_experts,)):
        raise InvalidDimsError(
            f"keys of shape {key.shape} must be one key, or num_experts={num_experts} keys, one for each expert."
        )
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, jnp.arange(num_experts)) if key.shape == () else key
    # Not vectorised: results of vectorised code may depend on M.
    return jax.lax.map(lambda own: network.init(own, shape, num_outputs), keys)


def expert(stack: Weights, index: Int[Array, ""]) -> Weights:
    """Expert `index` of a stack; an index outside [0, M), such as the -1 of a dropped task, is clipped."""
    last = num_experts(stack) - 1
    return jax.tree.map(
        lambda leaf: jax.lax.dynamic_index_in_dim(leaf, jnp.clip(index, 0, last), keepdims=False), stack
    )


def with_expert(stack: Weights, index: Int[Array, ""], one: Weights) -> Weights:
    """The stack with `one` as its expert `index`, all others bitwise unchanged.

    An index outside [0, M), such as the -1 of a dropped task, changes nothing.
    """
    last = num_experts(stack) - 1
    exists = (index >= 0) & (index <= last)

    def put(leaf: Array, new: Array, old: Array) -> Array:
        return jax.lax.dynamic_update_index_in_dim(leaf, jnp.where(exists, new, old), jnp.clip(index, 0, last), 0)

    return jax.tree.map(put, stack, one, expert(stack, index))


def num_experts(stack: Weights) -> int:
    """M, of a stack with leaves (M, ...)."""
    return jax.tree.leaves(stack)[0].shape[0]


def num_parameters(weights: Weights) -> int:
    """Number of trained parameters (of a stack: of all its experts); running statistics do not count."""
    return sum(leaf.size for leaf in jax.tree.leaves(weights.params))


def squared_distance(one: PyTree, other: PyTree) -> Float[Array, ""]:
    """Sum over all leaves of |a - b|^2: for `params`, the square of the papers' locality norm |w_t - w_{t-1}|."""
    squares = jax.tree.map(lambda a, b: jnp.sum(jnp.square(a - b)), one, other)
    return jax.tree.reduce(jnp.add, squares)
