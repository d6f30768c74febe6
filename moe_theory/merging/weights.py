"""Merging weights: points of the simplex with at most B entries above 0."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from moe_theory.core.errors import InvalidValueError
from moe_theory.core.numerics import Numbers, Scalar
from moe_theory.core.random import draws

PROPOSALS = 8  # proposals for each gamma variable


def merge(experts: PyTree | Sequence[PyTree], weights: Float[Numbers, " K"]) -> PyTree:
    """Merge K experts into one by the weighted average of their parameters.

    Args:
        experts: parameters whose leaves have the K experts on their first axis, or a list of K experts' parameters.
    Source: Eq. (1) of `merging`.
    Raises: InvalidValueError for leaves that do not have K experts.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import merging
        >>> experts = [{"w": np.array([1.0, 0.0])}, {"w": np.array([0.0, 4.0])}]
        >>> merging.merge(experts, np.array([0.25, 0.75]))["w"].tolist()
        [0.25, 3.0]
    """
    if isinstance(experts, list):
        structures = {jax.tree.structure(expert) for expert in experts}
        if len(structures) > 1:
            raise InvalidValueError("experts must have one structure. Merge only experts of the same architecture.")
        experts = jax.tree.map(lambda *leaves: jnp.stack(leaves), *experts)
    for leaf in jax.tree.leaves(experts):
        if jnp.shape(leaf)[:1] != jnp.shape(weights):
            raise InvalidValueError(
                f"parameters have shape {jnp.shape(leaf)}, but their first axis must have one entry per weight, and "
                f"weights have shape {jnp.shape(weights)}. Change experts or weights."
            )
    return jax.tree.map(lambda leaf: jnp.tensordot(weights, leaf, axes=1), experts)


def weighted_sum(
    parts: Sequence[Float[np.ndarray, "*shape"]], weights: Float[np.ndarray, " K"]
) -> Float[np.ndarray, "*shape"]:
    """Return the sum of K large arrays times their weights, in single precision.

    The sum is computed on the host, in the experts' order, without reading arrays of weight 0.

    Raises: InvalidValueError for arrays of different shapes, unless there is one array per weight, or if the sum is not
        finite.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import merging
        >>> merging.weighted_sum([np.array([1.0, 0.0]), np.array([0.0, 4.0])], np.array([0.25, 0.75])).tolist()
        [0.25, 3.0]
    """
    shapes = {np.shape(part) for part in parts}
    if len(shapes) != 1 or len(parts) != len(weights):
        raise InvalidValueError(
            f"{len(parts)} arrays of shapes {sorted(shapes)} must all have the same shape, and there must be one array "
            f"for each of the {len(weights)} weights. Change the arrays or weights."
        )
    total = np.zeros(np.shape(parts[0]), np.float32)
    for part, weight in zip(parts, weights, strict=True):
        if weight:
            total += np.float32(weight) * np.asarray(part, np.float32)
    if not np.isfinite(total).all():
        raise InvalidValueError("the weighted sum is not finite. Leave out experts that are not finite.")
    return total


def existing(max_experts: int, num_experts: Int[Scalar, ""]) -> Bool[Array, " K"]:
    return jnp.arange(max_experts, dtype=jnp.int32) < num_experts


def equal_weights(exists: Bool[Array, " K"]) -> Float[Array, " K"]:
    weights = exists.astype(jnp.result_type(float))
    return weights / jnp.sum(weights)


def uniform_weights(key: Key[Array, ""], exists: Bool[Array, " K"]) -> Float[Array, " K"]:
    """Draw weights of the existing experts, uniform on their simplex."""
    exponentials = jax.random.exponential(key, exists.shape, jnp.result_type(float))
    weights = jnp.where(exists, exponentials, 0)
    return weights / jnp.sum(weights)


def like_tasks(shares: Float[Array, " V"], max_experts: int) -> Float[Array, " K"]:
    """Return weights that give expert v the share of task v, padded with 0 or cut to the number of experts."""
    return jnp.pad(shares[:max_experts], (0, max(0, max_experts - shares.shape[0])))


def log_gammas(key: Key[Array, ""], count: int, concentration: Float[Scalar, ""]) -> Float[Array, " n"]:
    """Draw logarithms of independent gamma variables.

    Their softmax is a Dirichlet variable. With the same key, a longer array begins with the shorter one. We use
    logarithms because gammas of small concentrations would underflow. Of `PROPOSALS` proposals we take the first that
    is accepted (or the last proposal, in 1 of 10^10 cases).

    Source: Marsaglia and Tsang, 2000, for a shape of 1 + a, where at least 95 % are accepted. A gamma of shape a is
        this times U^(1/a).
    """
    dtype = jnp.result_type(float)
    shape = jnp.asarray(concentration, dtype)
    scale = shape + 2 / 3  # (1 + a) - 1/3, d of the source
    uniforms, normals = draws(key, count * (1 + PROPOSALS), count * PROPOSALS, dtype)
    uniforms = uniforms.reshape(count, 1 + PROPOSALS)  # U, then one for each proposal
    normals = normals.reshape(count, PROPOSALS)
    cubes = (1 + normals / (3 * jnp.sqrt(scale))) ** 3
    logs = jnp.log(jnp.maximum(cubes, jnp.finfo(dtype).tiny))
    is_accepted = (cubes > 0) & (jnp.log(uniforms[:, 1:]) < normals**2 / 2 + scale * (1 - cubes + logs))
    accepted = logs[:, -1]
    for proposal in reversed(range(PROPOSALS - 1)):
        accepted = jnp.where(is_accepted[:, proposal], logs[:, proposal], accepted)
    return jnp.log(scale) + accepted + jnp.log(uniforms[:, 0]) / shape


def largest(values: Float[Array, " K"], exists: Bool[Array, " K"], max_active: Int[Scalar, ""]) -> Bool[Array, " K"]:
    """Return which existing experts have the `max_active` largest values. Ties go to the first."""
    index = jnp.arange(values.shape[0], dtype=jnp.int32)
    is_tied_before = (values[None, :] == values[:, None]) & (index[None, :] < index[:, None])
    is_before = exists[None, :] & ((values[None, :] > values[:, None]) | is_tied_before)
    return exists & (jnp.sum(is_before, axis=1, dtype=jnp.int32) < max_active)
