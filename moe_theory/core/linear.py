"""Overparameterized linear tasks: quantities of closed forms, and an expert's minimum-norm update.

The quantities are gaps between tasks, ratios, powers of r, and rounds. NumPy arrays give float64, and JAX arrays,
traced or not, give their own precision.
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
Ratio = Annotated[Float[ArrayLike, "*batch"], Within(0, 1, open_low=True, open_high=True, why="it is r = 1 - s/d")]
Rounds = Annotated[Real[ArrayLike, "*batch"], Whole(1)]
Loads = Annotated[Real[Numbers, "*batch M"], Within(low=0, why="it counts tasks")]
ExploredLoads = Annotated[Loads, AtMost("loads", "loads never fall")]
# How experts learn: (models (k, d), arrival, params) -> changes of the models (k, d).
Fit = Callable[[Float[Array, "k d"], Any, Any], Float[Array, "k d"]]

MOST_SAMPLES = 32  # up to this number elimination is unrolled. Beyond, a loop is slower but compiles in seconds
# The largest result of `ceil_to_rounds`, which is the largest integer in both float32 and int32.
MAX_ROUNDS = 2**31 - 128
# Tolerance of `ceil_to_rounds`. In float32, M/eta is rounded three times: in eta, in the quotient and in a product.
CEILING_TOLERANCE = 3 * 2.0**-23


class Gaps(NamedTuple):
    """The means over a pool's tasks that enter the closed forms, in the squared unit of the ground truths."""

    truth_norm: Gap  # (1/N) sum_n |w_n|^2
    task_gap: Gap  # (1/N^2) sum_{n,n'} |w_n - w_n'|^2
    within_gap: Gap  # Psi_1, from task n to a task of its own cluster
    across_gap: Gap  # Psi_2, from task n to a task of a uniformly chosen cluster


@checked
def gaps(pool: Pool) -> Gaps:
    """Return the mean squared norm of a pool's ground truths, and the gaps between its tasks.

    Only clusters with a task count towards K. A task belongs to its own cluster, at distance 0.

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

    The factor is (d - s)/(d - 1), in (0, 1]. After the first arrival the error is orthogonal to the task's signal. The
    other s - 1 columns span a uniformly random subspace of its complement. So for s = 1 a repeat changes nothing.

    Raises: InvalidValueError unless 1 <= num_samples < num_features.
    Source: Definition 1 of `continual`, derived in `single_expert.py`. In Lemma 3 the factor is 0.

    Examples:
        >>> from moe_theory.continual import theory
        >>> theory.error_contraction(num_features=11, num_samples=6)
        0.5
    """
    require_overparameterized(num_features, num_samples)
    return (num_features - num_samples) / (num_features - 1)


def one_expert_a_round(loads: Real[ArrayLike, "*batch M"], round: Real[ArrayLike, "*batch"]) -> Real[Numbers, "*batch"]:
    """Return `round` if the loads add up to it, as in top-1 routing. For traced loads with another sum return NaN."""
    xp = array_namespace(loads, round)
    total = xp.sum(xp.asarray(loads), axis=-1)
    if not constraints.is_known(loads, round):
        return jnp.where(jnp.abs(total - round) < 0.5, round, jnp.nan)
    totals, rounds = np.broadcast_arrays(np.asarray(total, float), np.asarray(round, float))
    is_wrong = ~(np.abs(totals - rounds) < 0.5)  # true for NaN
    if np.any(is_wrong):
        raise InvalidValueError(
            f"loads add up to {totals[is_wrong][0]:g} after round={rounds[is_wrong][0]:g}, but the closed forms assume "
            "top-1 routing, in which every task has one expert (num_active=1). Give loads (..., M) that count one "
            "task per round.",
            argument="loads",
        )
    return round  # pyright: ignore[reportReturnType]


def power(ratio: Float[ArrayLike, "..."], loads: Real[ArrayLike, "..."]) -> Float[Numbers, "..."]:
    """Return r^L for `ratio` r in (0, 1) and `loads` L >= 0. Their shapes must broadcast."""
    xp = array_namespace(ratio, loads)
    return xp.exp(loads * xp.log(ratio))


def power_complement(ratio: Float[ArrayLike, "..."], loads: Real[ArrayLike, "..."]) -> Float[Numbers, "..."]:
    """Return 1 - r^L without cancellation for r near 1. The shapes must broadcast."""
    xp = array_namespace(ratio, loads)
    return -xp.expm1(loads * xp.log(ratio))


def power_drop_sum(ratio: Float[ArrayLike, "..."], loads: Real[ArrayLike, "..."]) -> Float[Numbers, "..."]:
    """Return sum_{j=1}^L (r^j - r^L), the sum of r^{L_tau} - r^{L_t} over one expert's arrivals."""
    geometric_sum = ratio * power_complement(ratio, loads) / (1 - ratio)
    return geometric_sum - loads * power(ratio, loads)


def ceil_to_rounds(quotient: Float[ArrayLike, "*batch"]) -> Int[Numbers, "*batch"]:
    """Return the `quotient` rounded up to whole rounds, but at most `MAX_ROUNDS`.

    A quotient that float32 cannot tell from an integer counts as that integer.
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

    P projects onto the span of the s samples. So w + P (w_n - w) = w + X (X'X)^-1 (y - X'w) with y = X'w_n. The method
    is modified Gram-Schmidt with the residuals as further columns.

    Samples that depend linearly on earlier ones are skipped. If sigma_t = 0, this is every sample but one.

    Source: Eqs. (4), (5) of `continual`. Shapes: each row of `residuals` and of the result (k, d) is for one expert.
    """
    if features.shape[1] > most_samples:
        rows = orthonormal_rows(features, most_samples)
        parts = jnp.matmul(residuals, rows.T, precision=jax.lax.Precision.HIGHEST)
        return jnp.matmul(parts, rows, precision=jax.lax.Precision.HIGHEST)
    # A list of vectors, because slices of one shrinking array would be copied.
    further = [residuals[row] for row in range(residuals.shape[0])]
    _, _, remainders = _eliminate(features, further)
    return residuals - jnp.stack(remainders)


def minimum_norm(models: Float[Array, "k d"], arrival: Any, params: Any) -> Float[Array, "k d"]:
    """Return the changes that take k experts to the nearest model that fits an arrival, as the papers do.

    Args:
        models: the experts' models w, one per row.
        arrival: features (d, s) with their ground truth (d,) or with given targets (s,). The target of a sample that
            depends linearly on earlier ones is ignored.
        params: unused here, but other fits may need them.
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
    residuals = arrival.targets - jnp.sum(models[:, :, None] * features[None], axis=1)  # (k, s)
    change = jnp.zeros_like(jnp.asarray(models))
    # A row is orthogonal to all earlier samples, so the model still fits them.
    for sample, row in enumerate(orthonormal_rows(features)):
        column = features[:, sample]
        component = jnp.sum(row * column)
        remainder = residuals[:, sample] - jnp.sum(change * column, axis=1)
        is_independent = component > 0
        divisor = jnp.where(is_independent, component, 1)
        steps = jnp.where(is_independent, remainder / divisor, 0)
        change = change + steps[:, None] * row
    return change


def targets_of(arrival: Any) -> Float[Array, " s"]:
    """Return the targets y that an arrival has, or X' w with its ground truth w if it has none.

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
            "the arrival has neither targets nor a ground truth. In a stream, use arrival._replace(truth=...)."
        )
    if arrival.targets is None:
        return jnp.sum(arrival.features * arrival.truth[:, None], axis=0)
    return jnp.asarray(arrival.targets)


def fitted(fit: Fit, models: Float[Array, "k d"], arrival: Any, params: Any) -> Float[Array, "k d"]:
    """Return a fit's changes of the models. Raises: InvalidValueError unless they have the shape of `models`."""
    change = jnp.asarray(fit(models, arrival, params))
    if change.shape != models.shape:
        raise InvalidValueError(f"the fit returned changes of shape {change.shape}, not one per model: {models.shape}.")
    return change


def square_root(square: Array) -> Array:
    """Return the square root. Its derivative at 0 is set to 0, so a move of length 0 has finite gradients."""
    is_zero = square == 0
    root = jnp.sqrt(jnp.where(is_zero, 1, square))  # a gradient also passes through the branch that is not selected
    return jnp.where(is_zero, 0, root)


def orthonormal_rows(features: Float[Array, "d s"], most_samples: int = MOST_SAMPLES) -> Float[Array, "s d"]:
    """Return orthonormal rows that span the samples, with P = rows.T @ rows. A dependent sample gives a zero row."""
    if features.shape[1] > most_samples:
        return orthonormal_in_loop(features.T, _floor(features))
    pivots, inverses, _ = _eliminate(features, [])
    return jnp.stack([pivot * jnp.sqrt(inverse) for pivot, inverse in zip(pivots, inverses, strict=True)])


def _eliminate(features: Float[Array, "d s"], further: list[Array]) -> tuple[list[Array], list[Array], list[Array]]:
    """Return orthogonal samples, inverse squared lengths (0 if dependent), and the remainders of further columns."""
    num_samples = features.shape[1]
    columns = [features[:, sample] for sample in range(num_samples)] + further
    floor = _floor(features)
    inverses = []
    for sample in range(num_samples):
        pivot = columns[sample]
        length_squared = jnp.sum(jnp.square(pivot))
        is_independent = length_squared > floor[sample]
        divisor = jnp.where(length_squared > 0, length_squared, 1)
        inverse = jnp.where(is_independent, 1 / divisor, 0)
        inverses.append(inverse)
        for later in range(sample + 1, len(columns)):
            columns[later] = columns[later] - pivot * (jnp.sum(pivot * columns[later]) * inverse)
    return columns[:num_samples], inverses, columns[num_samples:]


def _floor(features: Float[Array, "d s"]) -> Float[Array, " s"]:
    """Return the squared length up to which a column's remainder counts as an error of at most 64 roundings."""
    return jnp.square(64 * jnp.finfo(features.dtype).eps) * jnp.sum(jnp.square(features), axis=0)
