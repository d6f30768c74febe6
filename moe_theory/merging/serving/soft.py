"""SMEAR: every example, or every token, is served by a merge of its own; two builds of the same output.

An expert with merged parameters is E(u; sum_k x_k W_k). Each of its two linear maps is linear in its parameters, so the
merge can be carried out on what enters the K maps (`by_linearity`), which holds no merged parameters, or on the
parameters, as is printed (`materialised`).

Source: M. Muqeeth, H. Liu, C. Raffel, "Soft Merging of Experts with Adaptive Routing", 2023, Sec. 3.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from moe_theory.merging.testbed.transformer import Experts

# (experts, groups of tokens, weights of each group) -> outputs
SoftMerge = Callable[[Experts, Float[Array, "g t d"], Float[Array, "g K"]], Float[Array, "g t d"]]


def by_linearity(
    experts: Experts, tokens: Float[Array, "g t d"], weights: Float[Array, "g K"]
) -> Float[Array, "g t d"]:
    """sum_k (x_k u) W_k in both layers: K times the work of one expert, and no merged parameters."""
    hidden = jax.nn.relu(_weighed(tokens, weights, experts.w_in) + (weights @ experts.b_in)[:, None])
    return _weighed(hidden, weights, experts.w_out) + (weights @ experts.b_out)[:, None]


def materialised(
    experts: Experts, tokens: Float[Array, "g t d"], weights: Float[Array, "g K"]
) -> Float[Array, "g t d"]:
    """One merged expert a group, held in memory: g times the parameters of an expert."""
    own = Experts(*(jnp.tensordot(weights, part, axes=1) for part in experts))
    hidden = jax.nn.relu(jnp.einsum("gtd,gdf->gtf", tokens, own.w_in) + own.b_in[:, None])
    return jnp.einsum("gtf,gfd->gtd", hidden, own.w_out) + own.b_out[:, None]


def _weighed(
    inputs: Float[Array, "g t i"], weights: Float[Array, "g K"], maps: Float[Array, "K i o"]
) -> Float[Array, "g t o"]:
    """One matrix product over experts and inputs at once, which leaves nothing to be summed over experts."""
    copies = weights[:, None, :, None] * inputs[:, :, None, :]
    return copies.reshape(*inputs.shape[:2], -1) @ maps.reshape(-1, maps.shape[-1])


BUILDS: dict[str, SoftMerge] = {"linear": by_linearity, "materialised": materialised}
