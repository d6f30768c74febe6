"""Pools of ground truths and arrivals from them (Definition 1 of `continual`)."""

import math
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, Shaped

from moe_theory.core import random
from moe_theory.core.constraints import OneOf, is_known
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.numerics import Numbers, Scalar, rounded_positive

MOST_SIGNALS = 16  # up to this number Gram-Schmidt is unrolled. For more, a loop is the smaller program
# Distributions of the feature signals v_n.
PROPORTIONAL = 0
ORTHOGONAL = 1
INDEPENDENT = 2
SignalLaw = Annotated[
    Int[Scalar, ""], OneOf((PROPORTIONAL, ORTHOGONAL, INDEPENDENT), "proportional, orthogonal, independent")
]


class Pool(NamedTuple):
    """The N ground truths, their feature signals and clusters, in d features.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import continual
        >>> pool = continual.Pool(truths=np.eye(2, 4), signals=np.eye(2, 4), clusters=np.arange(2))
        >>> pool.truths.shape
        (2, 4)
    """

    truths: Float[Numbers, "N d"]  # ground truths w_n
    signals: Float[Numbers, "N d"]  # feature signals v_n
    clusters: Int[Numbers, " N"]  # cluster k of each task


class Arrival(NamedTuple):
    """The data of one round. Its targets are y = X' w_n unless it has its own ground truth or targets."""

    task: Int[Array, ""]  # index n_t into the pool
    features: Float[Array, "d s"]  # feature matrix X_t, one sample a column
    truth: Float[Array, " d"] | None = None  # w of this arrival, the reference for errors. By default w_n
    targets: Float[Array, " s"] | None = None  # y, which experts learn. By default X' w


FARTHEST = 9  # standard deviations, because `random.normals` gives no number beyond 8.6


def has_small_truths(dims: Any, run: Any) -> bool:
    """Return whether all entries of ground truths are within `FARTHEST` sigma_0 of 0, as in drawn pools."""
    pool = getattr(run.state, "pool", None)
    if pool is None:  # the run was computed without drawing a pool
        return True
    return bool(np.abs(pool.truths).max() <= FARTHEST * truth_deviation(run.params))


def truth_deviation(params: Any) -> float:
    """Return the standard deviation of an entry of a ground truth, or of a cluster's centre."""
    scale = float(params.truth_scale)
    if params.scale_is_variance:
        return math.sqrt(scale)
    return scale


def draw_pool(key: Key[Array, ""], num_tasks: int, num_features: int, params: Any) -> Pool:
    """Draw a replicate's ground truths and feature signals, by the `Params` of `continual`, traced or not.

    Task n belongs to cluster n mod K, as in Fig. 8.

    Source: Section 3.1 and Appendix A.2 of `continual`.
    """
    dtype = jnp.result_type(float)
    shape = (3, num_tasks, num_features)
    centres, members, directions = random.normals(key, math.prod(shape), dtype).reshape(shape)
    truth_scale = jnp.asarray(params.truth_scale, dtype)
    deviation = jnp.where(jnp.asarray(params.scale_is_variance, bool), jnp.sqrt(truth_scale), truth_scale)
    num_clusters = jnp.asarray(params.num_clusters, int)
    clusters = jnp.arange(num_tasks) % num_clusters
    spread = jnp.where(num_clusters < num_tasks, params.cluster_spread, 0.0)
    truths = deviation * centres[clusters] + spread * members
    law = jnp.asarray(params.signal_law)
    orthogonal = math.sqrt(num_features) * orthonormal(directions)
    own_signals = deviation * jnp.where(law == ORTHOGONAL, orthogonal, directions)[clusters]
    signals = params.signal_scale * jnp.where(law == PROPORTIONAL, truths, own_signals)
    return Pool(truths, signals, clusters)


def orthonormal(vectors: Float[Array, "N p"], most_signals: int = MOST_SIGNALS) -> Float[Array, "N p"]:
    """Return the rows after Gram-Schmidt on the first p rows. Further rows are zero."""
    num_features = vectors.shape[1]  # no more rows can be orthogonal
    if vectors.shape[0] > most_signals:
        basis = orthonormal_in_loop(vectors[:num_features], floor=jnp.zeros(num_features, vectors.dtype))
        return jnp.zeros_like(vectors).at[:num_features].set(basis)
    rows: list[Array] = []
    for index in range(vectors.shape[0]):
        row = vectors[index]
        for _ in range(2):  # once more against rounding
            for earlier in rows[:num_features]:
                row = row - earlier * jnp.sum(earlier * row)
        length = jnp.sqrt(jnp.sum(jnp.square(row)))
        rows.append(row / length if index < num_features else jnp.zeros_like(row))
    return jnp.stack(rows)


def orthonormal_in_loop(vectors: Float[Array, "n d"], floor: Float[Array, " n"]) -> Float[Array, "n d"]:
    """Return the rows after Gram-Schmidt in a loop.

    A row becomes zero if its remaining squared length is at most `floor`.
    """

    def add(index: Array, rows: Array) -> Array:
        row = vectors[index]
        for _ in range(2):  # once more against rounding
            components = jnp.matmul(rows, row, precision=jax.lax.Precision.HIGHEST)
            row = row - jnp.matmul(components, rows, precision=jax.lax.Precision.HIGHEST)
        square = jnp.sum(jnp.square(row))
        remains = ~(square <= floor[index])  # not `>`: a NaN has to remain, so that it shows
        return rows.at[index].set(jnp.where(remains, row / jnp.sqrt(jnp.where(remains, square, 1)), 0))

    return jax.lax.fori_loop(0, vectors.shape[0], add, jnp.zeros_like(vectors))


def require_orthogonal(signal_law: Any, num_signals: Any, num_features: int) -> None:
    if np.any((np.asarray(signal_law) == ORTHOGONAL) & (np.asarray(num_signals) > num_features)):
        raise InvalidValueError(
            f"signal_law={ORTHOGONAL} (orthogonal) allows at most num_features={num_features} signals, not "
            f"{np.max(num_signals)}, because no more can be orthogonal. Raise num_features.",
            argument="signal_law",
        )


def check_pool(num_tasks: int, num_features: int, pool: Pool) -> None:
    shape = (num_tasks, num_features)
    shapes = [jnp.shape(leaf) for leaf in pool]
    if shapes != [shape, shape, shape[:1]]:
        raise InvalidValueError(
            f"a pool with truths of shape {shapes[0]}, signals of {shapes[1]} and clusters of {shapes[2]} does not fit "
            f"num_tasks={shape[0]} and num_features={shape[1]}. Change the pool or the dims."
        )


def check_arrival(num_tasks: int, arrival: Any) -> None:
    """Raise InvalidValueError for a task outside the pool, or numbers whose squares overflow, unless traced."""
    if is_known(arrival.task) and np.asarray(arrival.task) not in range(num_tasks):
        raise InvalidValueError(
            f"task={arrival.task} must be a whole number in 0..{num_tasks - 1}, a task of the pool.", argument="task"
        )
    for name, values in arrival._asdict().items():
        if values is None or not is_known(values):
            continue
        largest = np.max(np.abs(np.asarray(values, float)), initial=0)
        if not np.isfinite(largest):
            raise InvalidValueError(f"{name} must be finite numbers. Change the arrival's {name}.", argument=name)
        dtype = jnp.result_type(float)
        bound = math.sqrt(np.finfo(dtype).max) / 10  # the sum of a hundred squares is finite too
        if largest > bound:
            raise InvalidValueError(
                f"an absolute value of {largest:.3g} in {name} must be at most {bound:.2g}: {dtype} must hold the "
                "square. Scale down, or run in float64.",
                argument=name,
            )


def is_valid_arrival(num_tasks: int, arrival: Arrival) -> Bool[Array, ""]:
    return jnp.any(jnp.arange(num_tasks) == arrival.task) & jnp.all(jnp.isfinite(arrival.features))


def nan_unless(is_valid: Bool[Array, ""], numbers: PyTree) -> PyTree:
    """Return the leaves, with NaN in place of floating-point numbers unless `is_valid`."""

    def masked(leaf: Any) -> Any:
        return jnp.where(is_valid, leaf, jnp.nan) if jnp.issubdtype(leaf.dtype, jnp.inexact) else leaf

    return jax.tree.map(masked, numbers)


def streamed(output: Any, *names: str) -> tuple[Any, ...]:
    """Return a stream's result. Raises: InvalidValueError unless it is a tuple with a part for each name."""
    # An arrival alone is a tuple too, of its fields.
    if isinstance(output, Arrival) or not isinstance(output, tuple) or len(output) != len(names):
        raise InvalidValueError(f"the stream must return a tuple of length {len(names)}: ({', '.join(names)}).")
    return output


def make_arrival(units: Float[Array, "3"], normals: Float[Array, "d s-1"], pool: Pool, params: Any) -> Arrival:
    """Return a task that is uniform on the pool, and its features.

    A random column is beta v_n, and the others are N(0, sigma_t^2 I). The strength beta is uniform on (min_strength,
    max_strength], or constant if both are equal.

    Args:
        units: independent numbers, uniform on (0, 1), for the task, the signal's column and the strength.
        normals: independent standard normals for all columns except the signal's.
        params: the `Params` of `continual`.
    Source: Definition 1 of `continual`. Shapes: features (d, s).
    """
    task = uniform_index(units[0], pool.truths.shape[0])
    most = params.max_strength
    least = params.min_strength
    strength = most - rounded_positive((most - least) * units[2])
    signal = strength * select_row(pool.signals, task)
    return Arrival(task=task, features=hide_signal(signal, params.noise_scale * normals, units[1]))


def hide_signal(
    signal: Float[Array, " d"], noise: Float[Array, "d s-1"], uniform: Float[Array, ""]
) -> Float[Array, "d s"]:
    """Return the feature matrix. `uniform` on (0, 1) picks the column for `signal`, and the others hold `noise`.

    Source: Definition 1 of both `continual` and `edge`.
    """
    # Column i is noise i before the signal's slot, and noise i - 1 after it.
    same_places = [*noise.T, signal]
    next_places = [signal, *noise.T]
    slot = uniform_index(uniform, len(same_places))
    columns = []
    for place, (same, shifted) in enumerate(zip(same_places, next_places, strict=True)):
        noise_column = jnp.where(place < slot, same, shifted)
        columns.append(jnp.where(place == slot, signal, noise_column))
    return jnp.stack(columns, axis=1)


def select_row(rows: Shaped[Numbers, "N d"], index: Int[Array, ""]) -> Shaped[Array, " d"]:
    """Return a row by a mask and a sum, which keep a batch's layout where a gather does not."""
    is_row = jnp.arange(rows.shape[0]) == index
    return jnp.sum(jnp.where(is_row[:, None], rows, 0), axis=0)


def uniform_index(uniform: Float[Array, ""], bound: int) -> Int[Array, ""]:
    # The product can round up to `bound` if `uniform` is just below 1.
    return jnp.minimum(jnp.floor(uniform * bound).astype(jnp.int32), bound - 1)


def mean_norm(deviation: float, num_features: int) -> float:
    """Return E|w| of a vector with independent N(0, deviation^2) entries, by the mean of a chi distribution."""
    return deviation * math.sqrt(2) * math.exp(math.lgamma((num_features + 1) / 2) - math.lgamma(num_features / 2))


def mean_square_strength(least: float, most: float) -> float:
    """Return E[beta^2] of a strength that is uniform between its bounds."""
    return (least * least + least * most + most * most) / 3
