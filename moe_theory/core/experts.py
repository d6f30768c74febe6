"""Local linear experts and their minimum-norm update."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def minimum_norm_change(features: Float[Array, "d s"], residuals: Float[Array, "k d"]) -> Float[Array, "k d"]:
    """Change of k experts that fits the samples exactly and moves each expert least: P (w_n - w).

    P projects on the span of the s samples, so w + P (w_n - w) = w + X (X'X)^-1 (y - X'w) with y = X'w_n. Modified
    Gram-Schmidt, one elimination a sample with the residuals carried along as further columns, is as accurate as a QR
    factorisation and needs no inverse: samples that depend on earlier ones (all of them when sigma_t = 0) are skipped.

    Source: Eqs. (4), (5) of `continual`. Shapes: `residuals` holds w_n - w, one expert a row; so does the result.
    """
    num_samples, num_experts = features.shape[1], residuals.shape[0]
    # Vectors in a list, not columns of one array: slices of an array that shrinks would each be copied.
    columns = [features[:, sample] for sample in range(num_samples)] + [residuals[row] for row in range(num_experts)]
    # The squared length below which what is left of a column is rounding: relative to the column's own length.
    floor = jnp.square(64 * jnp.finfo(features.dtype).eps) * jnp.sum(jnp.square(features), axis=0)
    for sample in range(num_samples):
        pivot = columns[sample]
        length_squared = jnp.sum(jnp.square(pivot))
        inverse = jnp.where(length_squared > floor[sample], 1 / jnp.where(length_squared > 0, length_squared, 1), 0)
        for later in range(sample + 1, len(columns)):
            columns[later] = columns[later] - pivot * (jnp.sum(pivot * columns[later]) * inverse)
    return residuals - jnp.stack(columns[num_samples:])
