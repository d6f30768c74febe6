"""Overparameterized linear tasks: quantities of closed forms, and an expert's minimum-norm update.

The quantities are gaps between tasks, ratios, powers of r and rounds, in float64 from NumPy, or in the precision of JAX
arrays, traced or not.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, Real

from moe_theory.core import constraints
from moe_theory.core.constraints import AtMost, Features, Size, Whole, Within, checked
from moe_theory.core.constraints import require_overparameterized as require_overparameterized
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.numerics import array_namespace
from moe_theory.core.tasks import Pool, orthonormal_in_loop

Numbers = jax.Array | np.ndarray | np.number
Gap = Annotated[Float[Numbers, ""], Within(low=0, why="it is a mean of squares")]
# Arguments of closed forms.
Ratio = Annotated[Float[ArrayLike, "*batch"], Within(0, 1, open_low=True, open_high=True, why="it is r = 1 - s/d")]
Rounds = Annotated[Real[ArrayLike, "*batch"], Whole(1)]
Loads = Annotated[Real[Numbers, "*batch M"], Within(low=0, why="it counts tasks")]
ExploredLoads = Annotated[Loads, AtMost("loads", "loads never fall")]
# How experts learn: (models (k, d), arrival, params) -> changes of the models (k, d).
Fit = Callable[[Float[Array, "k d"], Any, Any], Float[Array, "k d"]]

MOST_SAMPLES = 32  # up to which elimination is unrolled; beyond, a loop runs more slowly but compiles in seconds
# `ceil_to_rounds` saturates here, at the largest integer that float32 and int32 share.
MAX_ROUNDS = 2**31 - 128
# Of `ceil_to_rounds`: float32 rounds M/eta three times, in eta, in the quotient and in a product.
CEILING_TOLERANCE = 3 * 2.0**-23


class Gaps(NamedTuple):
    """Means over a pool's tasks on which the closed forms depend, in the ground truths' squared unit."""

    truth_norm: Gap  # (1/N) sum_n |w_n|^2
    task_gap: Gap  # (1/N^2) sum_{n,n'} |w_n - w_n'|^2
    within_gap: Gap  # Psi_1, task n to a task of its own cluster
    across_gap: Gap  # Psi_2, task n to a task of a uniformly chosen cluster


@checked
def gaps(pool: Pool) -> Gaps:
    """Return the norm of the ground truths and the gaps between tasks of a `pool`.

    Only clusters with a member count towards K. A task is a member of its own cluster, at distance 0.

    Source: Proposition 4, (21) and (22) of `continual`.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import Pool, theory
        >>> gaps = theory.gaps(Pool(truths=np.eye(2), signals=np.eye(2), clusters=np.arange(2)))
        >>> [float(value) for value in gaps]  # |w|^2, then the gaps: all pairs, within a cluster, across clusters
        [1.0, 1.0, 0.0, 1.0]
    """
    xp = array_namespace(*pool)
    differences = pool.truths[:, None, :] - pool.truths[None, :, :]
    distances = xp.sum(differences**2, axis=-1)
    same_cluster = pool.clusters[:, None] == pool.clusters[None, :]
    cluster_sizes = xp.sum(same_cluster, axis=1)
    # Summing 1 / |W_k(n)| over tasks counts each cluster once.
    num_clusters = xp.sum(1 / cluster_sizes).astype(distances.dtype)
    within = xp.sum(distances * same_cluster, axis=1) / cluster_sizes
    across = xp.sum(distances / cluster_sizes, axis=1) / num_clusters
    return Gaps(
        truth_norm=xp.mean(xp.sum(pool.truths**2, axis=-1)),
        task_gap=xp.mean(distances),
        within_gap=xp.mean(within).astype(distances.dtype),
        across_gap=xp.mean(across).astype(distances.dtype),
    )


@checked
def overparameterization_ratio(num_features: Features, num_samples: Size) -> float:
    """Return r = 1 - s/d, dimensionless, in (0, 1).

    Raises: InvalidValueError unless 1 <= num_samples < num_features.
    Source: Section 5 of `continual`, above Proposition 4.

    Examples:
        >>> from moe_theory.continual import theory
        >>> theory.overparameterization_ratio(num_features=10, num_samples=6)
        0.4
    """
    require_overparameterized(num_features, num_samples)
    return 1 - num_samples / num_features


@checked
def error_contraction(num_features: Features, num_samples: Size) -> float:
    """Return the factor by which one repeat of a task shrinks an expert's expected squared error.

    It is (d - s)/(d - 1), in (0, 1]. After the first arrival the error is orthogonal to the task's signal, and the
    other s - 1 columns span a uniformly random subspace of its complement. So for s = 1 a repeat changes nothing.

    Raises: InvalidValueError unless 1 <= num_samples < num_features.
    Source: Definition 1 of `continual`, in place of Lemma 3, where it is 0, derived in `single_expert.py`.

    Examples:
        >>> from moe_theory.continual import theory
        >>> theory.error_contraction(num_features=11, num_samples=6)
        0.5
    """
    require_overparameterized(num_features, num_samples)
    return (num_features - num_samples) / (num_features - 1)


def one_expert_a_round(loads: Real[ArrayLike, "*batch M"], round: Real[ArrayLike, "*batch"]) -> Real[Numbers, "*batch"]:
    """Return `round` if loads add up to it, as with top-1 routing, or NaN if traced loads do not."""
    xp = array_namespace(loads, round)
    total = xp.sum(xp.asarray(loads), axis=-1)
    if not constraints.is_known(loads, round):
        return jnp.where(jnp.abs(total - round) < 0.5, round, jnp.nan)
    totals, rounds = np.broadcast_arrays(np.asarray(total, float), np.asarray(round, float))
    wrong = ~(np.abs(totals - rounds) < 0.5)
    if np.any(wrong):
        raise InvalidValueError(
            f"loads add up to {totals[wrong][0]:g} after round={rounds[wrong][0]:g}, but the closed forms are of top-1 "
            "routing, in which every task has one expert (num_active=1). Give loads (..., M), experts last, of as many "
            "tasks as rounds.",
            argument="loads",
        )
    return round  # pyright: ignore[reportReturnType]


def power(ratio: Float[ArrayLike, "..."], loads: Real[ArrayLike, "..."]) -> Float[Numbers, "..."]:
    """Return r^L for `ratio` r in (0, 1) and `loads` L >= 0, of any two shapes that broadcast."""
    xp = array_namespace(ratio, loads)
    return xp.exp(loads * xp.log(ratio))


def power_complement(ratio: Float[ArrayLike, "..."], loads: Real[ArrayLike, "..."]) -> Float[Numbers, "..."]:
    """Return 1 - r^L without cancellation for r near 1, with shapes as in `power`."""
    xp = array_namespace(ratio, loads)
    return -xp.expm1(loads * xp.log(ratio))


def power_drop_sum(ratio: Float[ArrayLike, "..."], loads: Real[ArrayLike, "..."]) -> Float[Numbers, "..."]:
    """Return sum_{j=1}^L (r^j - r^L), the sum of r^{L_tau} - r^{L_t} over one expert's arrivals. Shapes are as in
    `power`.
    """
    geometric_sum = ratio * power_complement(ratio, loads) / (1 - ratio)
    return geometric_sum - loads * power(ratio, loads)


def ceil_to_rounds(quotient: Float[ArrayLike, "*batch"]) -> Int[Numbers, "*batch"]:
    """Return the `quotient` rounded up to whole rounds, at most `MAX_ROUNDS`.

    A quotient within float32's rounding of an integer is that integer.
    """
    xp = array_namespace(quotient)
    bounded = xp.minimum(quotient, MAX_ROUNDS)
    nearest = xp.rint(bounded)
    is_whole = xp.abs(bounded - nearest) <= CEILING_TOLERANCE * bounded
    return xp.where(is_whole, nearest, xp.ceil(bounded)).astype(int)


def minimum_norm_change(
    features: Float[Array, "d s"], residuals: Float[Array, "k d"], most_samples: int = MOST_SAMPLES
) -> Float[Array, "k d"]:
    """Return the change P (w_n - w) of k experts that fits the samples exactly and moves each expert least.

    P projects onto the span of the s samples. So w + P (w_n - w) = w + X (X'X)^-1 (y - X'w) with y = X'w_n, by modified
    Gram-Schmidt with the residuals as further columns.

    Samples that depend on earlier ones (all of them when sigma_t = 0) are skipped.

    Source: Eqs. (4), (5) of `continual`. Shapes: `residuals` are w_n - w, one expert a row, like the result.
    """
    if features.shape[1] > most_samples:
        rows = orthonormal_rows(features, most_samples)
        parts = jnp.matmul(residuals, rows.T, precision=jax.lax.Precision.HIGHEST)
        return jnp.matmul(parts, rows, precision=jax.lax.Precision.HIGHEST)
    # Vectors in a list, not columns of one array: slices of an array that shrinks would each be copied.
    further = [residuals[row] for row in range(residuals.shape[0])]
    _, _, remainders = _eliminate(features, further)
    return residuals - jnp.stack(remainders)


def minimum_norm(models: Float[Array, "k d"], arrival: Any, params: Any) -> Float[Array, "k d"]:
    """Return the changes of k experts to the nearest model that fits an arrival, the papers' own `Fit`.

    Args:
        models: w of the experts, one a row.
        arrival: features (d, s) with their ground truth (d,), or with given targets (s,). Targets of a sample that
            depends on earlier ones are ignored.
        params: for other fits, not used here.
    Source: Eqs. (4), (5) of `continual`, Eq. (9) of `edge`.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import continual
        >>> arrival = continual.Arrival(task=0, features=np.eye(3, 2), targets=np.array([5.0, 7.0]))
        >>> continual.minimum_norm(np.array([[1.0, 1.0, 1.0]]), arrival, continual.Params()).tolist()
        [[4.0, 6.0, 0.0]]
    """
    del params
    if arrival.targets is None:
        return minimum_norm_change(jnp.asarray(arrival.features), arrival.truth - models)
    features = jnp.asarray(arrival.features)
    missing = arrival.targets - jnp.sum(models[:, :, None] * features[None], axis=1)
    change = jnp.zeros_like(jnp.asarray(models))
    # A row is orthogonal to all earlier samples, whose targets stay met.
    for sample, row in enumerate(orthonormal_rows(features)):
        column = features[:, sample]
        length = jnp.sum(row * column)
        remainder = missing[:, sample] - jnp.sum(change * column, axis=1)
        change = change + jnp.where(length > 0, remainder / jnp.where(length > 0, length, 1), 0)[:, None] * row
    return change


def targets_of(arrival: Any) -> Float[Array, " s"]:
    """Return the targets y of an arrival's samples: its own, or X' w of its ground truth.

    Raises: InvalidValueError for an arrival with neither.
    Source: Section 3.1 of `continual`.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import continual
        >>> arrival = continual.Arrival(task=0, features=np.eye(3, 2), truth=np.arange(3.0))
        >>> continual.targets_of(arrival).tolist()
        [0.0, 1.0]
    """
    if arrival.targets is None and arrival.truth is None:
        raise InvalidValueError(
            "the arrival has neither targets nor a truth: a `fit` gets the pool's, and a stream adds one by "
            "arrival._replace(truth=...)."
        )
    if arrival.targets is None:
        return jnp.sum(arrival.features * arrival.truth[:, None], axis=0)
    return jnp.asarray(arrival.targets)


def fitted(fit: Fit, models: Float[Array, "k d"], arrival: Any, params: Any) -> Float[Array, "k d"]:
    """Return the changes of the models by a fit. Raises: InvalidValueError unless shaped as `models`."""
    change = jnp.asarray(fit(models, arrival, params))
    if change.shape != models.shape:
        raise InvalidValueError(
            f"the fit gave changes of shape {change.shape}, and not {models.shape}, one for each model. Fix the fit."
        )
    return change


def square_root(square: Array) -> Array:
    """Return the square root. Its derivative at 0 is 0, not infinity: a move of length 0 has finite gradients."""
    is_zero = square == 0
    return jnp.where(is_zero, 0, jnp.sqrt(jnp.where(is_zero, 1, square)))


def orthonormal_rows(features: Float[Array, "d s"], most_samples: int = MOST_SAMPLES) -> Float[Array, "s d"]:
    """Return orthonormal rows that span the samples, zero where a sample depends on earlier ones: P = rows.T @ rows."""
    if features.shape[1] > most_samples:
        return orthonormal_in_loop(features.T, _floor(features))
    pivots, inverses, _ = _eliminate(features, [])
    return jnp.stack([pivot * jnp.sqrt(inverse) for pivot, inverse in zip(pivots, inverses, strict=True)])


def _eliminate(features: Float[Array, "d s"], further: list[Array]) -> tuple[list[Array], list[Array], list[Array]]:
    """Return orthogonal samples, inverse squared lengths (0 if dependent), and remainders of further columns."""
    num_samples = features.shape[1]
    columns = [features[:, sample] for sample in range(num_samples)] + further
    floor = _floor(features)
    inverses = []
    for sample in range(num_samples):
        pivot = columns[sample]
        length_squared = jnp.sum(jnp.square(pivot))
        inverse = jnp.where(length_squared > floor[sample], 1 / jnp.where(length_squared > 0, length_squared, 1), 0)
        inverses.append(inverse)
        for later in range(sample + 1, len(columns)):
            columns[later] = columns[later] - pivot * (jnp.sum(pivot * columns[later]) * inverse)
    return columns[:num_samples], inverses, columns[num_samples:]


def _floor(features: Float[Array, "d s"]) -> Float[Array, " s"]:
    """Return the squared length below which what remains of a column is rounding."""
    return jnp.square(64 * jnp.finfo(features.dtype).eps) * jnp.sum(jnp.square(features), axis=0)
