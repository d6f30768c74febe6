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
    # Vectors in a list, not columns of one array: slices of an array that shrinks would each be copied.
    riders = [residuals[row] for row in range(residuals.shape[0])]
    _, _, left = _eliminate(features, riders)
    return residuals - jnp.stack(left)


def orthonormal_rows(features: Float[Array, "d s"]) -> Float[Array, "s d"]:
    """Orthonormal rows that span the samples; a row is zero where its sample depends on earlier ones. With them P =
    rows' rows, for a change that is wanted before the model that it starts from is known.
    """
    pivots, inverses, _ = _eliminate(features, [])
    return jnp.stack([pivot * jnp.sqrt(inverse) for pivot, inverse in zip(pivots, inverses, strict=True)])


def _eliminate(features: Float[Array, "d s"], riders: list[Array]) -> tuple[list[Array], list[Array], list[Array]]:
    """Orthogonalised samples, the inverses of their squared lengths (0 if dependent), and what they leave of riders."""
    num_samples = features.shape[1]
    columns = [features[:, sample] for sample in range(num_samples)] + riders
    # The squared length below which what is left of a column is rounding: relative to the column's own length.
    floor = jnp.square(64 * jnp.finfo(features.dtype).eps) * jnp.sum(jnp.square(features), axis=0)
    inverses = []
    for sample in range(num_samples):
        pivot = columns[sample]
        length_squared = jnp.sum(jnp.square(pivot))
        inverse = jnp.where(length_squared > floor[sample], 1 / jnp.where(length_squared > 0, length_squared, 1), 0)
        inverses.append(inverse)
        for later in range(sample + 1, len(columns)):
            columns[later] = columns[later] - pivot * (jnp.sum(pivot * columns[later]) * inverse)
    return columns[:num_samples], inverses, columns[num_samples:]
