"""Instances on which Theorem 1 can be put to the test, as systems of one round: a round draws a sample.

Loss is the ramp l(y, f) = clip((1 - y f)/2, 0, 1). Labels are fair coins that inputs say nothing about, unless said
otherwise. Then L_D(f) = 1/2 exactly, whatever f is: l(1, f) + l(-1, f) = 1 for every output f. So the gap of a class,
sup_f |L_S(f) - L_D(f)|, needs no estimate, and where the best f on a sample is known in closed form it is exact.

A sample is padded to `Dims.max_samples`, and its first m members are what they are whatever the padding.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from moe_theory.core import checks
from moe_theory.core.errors import InvalidParamsError
from moe_theory.core.numerics import Numbers, Scalar
from moe_theory.core.system import System
from moe_theory.generalization.one_round import one_round
from moe_theory.generalization.params import Dims, Params

DENSE_LOGIT = (
    16.0  # how far apart the two logits of `dense` are: the gates are 1e-7 from 0 and 1, as (5) never is there
)


class Cells(NamedTuple):
    """What `cells` shows. S_j is the sum of the labels in cell j, S'_j that of the ghost sample, n_j the count."""

    gap: Float[Array, ""]  # sup_f |L_S - L_D| = sum_j |S_j| / (2m)
    one_sided: Float[Array, ""]  # sup_f (L_S - L_D), the same, since the class has -f with every f
    paired_gap: Float[Array, ""]  # phi(S, S') = sup_f (L_S - L_S') = sum_j |S_j - S'_j| / (2m), Eq. (17)
    paired_absolute: Float[Array, ""]  # sup_f |L_S - L_S'|, the same for that reason
    masked: Float[Array, ""]  # sup_f sum_i y_i f(x_i) / m = sum_j |S_j| / m, whose mean is R_m(F|mu)
    lone: Float[Array, ""]  # |sum_i y_i| / m, whose mean is R_m(H)
    memorised: Float[Array, ""]  # sup_f (L_D - L_S) = sum_j max(1/T - n_j/m, 0) if all labels were +1, without noise


class Gap(NamedTuple):
    """What `learned_cells` and `dense` show."""

    gap: Float[Array, ""]  # sup_f |L_S - L_D|


class Coin(NamedTuple):
    """What `coin` shows."""

    risk: Float[Array, ""]  # L_S
    ghost: Float[Array, ""]  # L_S' of another sample


@functools.lru_cache
def cells(dims: Dims) -> System:
    """A fixed router, k = 1, and two experts: x is uniform on [0, 1], cell floor(T x) has the expert +1 or -1.

    The best expert of a cell takes the majority of its labels, so that the gap is sum_j |S_j| / (2m).

    Raises: InvalidParamsError for `num_active` other than 1.
    """

    def instance(key: Key[Array, ""], params: Params) -> Cells:
        inputs, labels = draw_cells(key, dims.max_samples)
        is_drawn = jnp.arange(dims.max_samples) < params.num_samples
        labels = labels * is_drawn[:, None]
        cell = cell_of(inputs, params.num_experts)

        def total(places: Array, values: Array) -> Array:
            return jnp.zeros(dims.max_experts, values.dtype).at[places].add(values)

        sums, ghost_sums = (total(cell[:, sample], labels[:, sample]) for sample in range(2))
        counts = total(cell[:, 0], is_drawn.astype(labels.dtype))
        samples = jnp.asarray(params.num_samples, labels.dtype)
        masked = jnp.sum(jnp.abs(sums)) / samples
        paired = jnp.sum(jnp.abs(sums - ghost_sums)) / (2 * samples)
        exists = jnp.arange(dims.max_experts) < params.num_experts
        missing = jnp.maximum(1 / jnp.asarray(params.num_experts, labels.dtype) - counts / samples, 0)
        return Cells(
            gap=masked / 2,
            one_sided=masked / 2,
            paired_gap=paired,
            paired_absolute=paired,
            masked=masked,
            lone=jnp.abs(jnp.sum(labels[:, 0])) / samples,
            memorised=jnp.sum(jnp.where(exists, missing, 0)),
        )

    return one_round(dims, instance, _check_lone)


@functools.lru_cache
def learned_cells(dims: Dims) -> System:
    """A learned linear router, k = 1, on one coordinate z and a constant; experts in a ball of an RKHS.

    The kernel is k(x, x) = 1, and 0 between inputs that differ, of which a sample has no two alike: x has further
    coordinates. The radius is B = sqrt(m/T). Logits j z + c_j are T lines, whose upper envelope cuts the z axis
    into T intervals, anywhere: here at the sample's quantiles. An expert with n_j inputs takes
    f_i = y_i min(1, B/sqrt(n_j)) there, which is its best, so that the gap is sum_j n_j min(1, B/sqrt(n_j)) / (2m):
    1/2 where T divides m.

    Raises: InvalidParamsError for `num_active` other than 1.
    """

    def instance(key: Key[Array, ""], params: Params) -> Gap:
        coordinate, _ = draw_learned(key, dims.max_samples)
        is_drawn = jnp.arange(dims.max_samples) < params.num_samples
        ordered = _sorted(jnp.where(is_drawn, coordinate, jnp.inf))
        samples, experts = (jnp.asarray(size, jnp.int32) for size in (params.num_samples, params.num_experts))
        cut = jnp.minimum(jnp.arange(dims.max_experts + 1, dtype=jnp.int32), experts)
        # j m/T rounded down, in products that 32 bits hold.
        place = cut * (samples // experts) + cut * (samples % experts) // experts
        # An interval ends at its last input, and takes all that tie with it.
        last = jnp.where(place > 0, ordered[jnp.maximum(place - 1, 0)], -jnp.inf)
        before = jnp.searchsorted(ordered, last, side="right")
        counts = jnp.diff(before).astype(coordinate.dtype)
        return Gap(gap=ball_gap(counts, samples.astype(counts.dtype) / experts, samples))

    return one_round(dims, instance, _check_lone)


@functools.lru_cache
def dense(dims: Dims) -> System:
    """All k = T >= 2 experts active, one of them +1 and the others -1, and a router that is any function of x.

    f = 2 a - 1 with the gate a of the expert +1, which the router sets as near to 1 or 0 as it likes at every input
    of a sample, no two of which are alike: the gap is 1/2. With logits `DENSE_LOGIT` apart it is 1/2 less 1e-7.

    Raises: InvalidParamsError unless 2 <= num_active = num_experts.
    """

    def instance(key: Key[Array, ""], params: Params) -> Gap:
        labels = draw_labels(key, dims.max_samples)
        is_drawn = jnp.arange(dims.max_samples) < params.num_samples
        samples = jnp.asarray(params.num_samples, labels.dtype)
        return Gap(gap=0.5 - jnp.sum(dense_losses(labels) * is_drawn) / samples)

    return one_round(dims, instance, _check_dense)


@functools.lru_cache
def coin(dims: Dims) -> System:
    """One function whose loss is 0 or 1 with probability 1/2 each: as plain as a class can be."""

    def instance(key: Key[Array, ""], params: Params) -> Coin:
        losses = (_fair_labels(jax.random.uniform(key, (dims.max_samples, 2))) + 1) / 2
        is_drawn = jnp.arange(dims.max_samples) < params.num_samples
        means = jnp.sum(losses * is_drawn[:, None], axis=0) / jnp.asarray(params.num_samples, losses.dtype)
        return Coin(risk=means[0], ghost=means[1])

    return one_round(dims, instance)


def draw_cells(key: Key[Array, ""], count: int) -> tuple[Float[Array, "m 2"], Float[Array, "m 2"]]:
    """Inputs and labels of `cells`, of the sample and of its ghost."""
    uniforms = jax.random.uniform(key, (count, 4))
    return uniforms[:, :2], _fair_labels(uniforms[:, 2:])


def draw_learned(key: Key[Array, ""], count: int) -> tuple[Float[Array, " m"], Float[Array, " m"]]:
    """The coordinate z of inputs that the router of `learned_cells` sees, uniform on [0, 1), and their labels."""
    uniforms = jax.random.uniform(key, (count, 2))
    return uniforms[:, 0], _fair_labels(uniforms[:, 1])


def draw_labels(key: Key[Array, ""], count: int) -> Float[Array, " m"]:
    """Fair labels, of `dense`."""
    return _fair_labels(jax.random.uniform(key, (count,)))


def cell_of(inputs: Float[Array, "*shape"], num_experts: Int[Scalar, ""]) -> Int[Array, "*shape"]:
    """floor(T x), the cell of each input on [0, 1)."""
    cell = jnp.floor(inputs * num_experts).astype(jnp.int32)
    return jnp.minimum(cell, jnp.asarray(num_experts, jnp.int32) - 1)  # a product may be rounded up to T


def ball_gap(
    counts: Float[Numbers, " T"], squared_radius: Float[Scalar, ""], num_samples: Float[Scalar, ""]
) -> Float[Array, ""]:
    """sum_j n_j min(1, B/sqrt(n_j)) / (2m), the gap of experts in a ball on n_j orthonormal inputs each.

    The loss of outputs f_i is convex where y_i f_i <= 1 and 0 beyond, and depends on y_i f_i alone, so that with
    sum_i f_i^2 <= B^2 the best are equal: y_i f_i = min(1, B/sqrt(n_j)).
    """
    margin = jnp.minimum(1, jnp.sqrt(squared_radius / jnp.maximum(counts, 1)))
    return jnp.sum(counts * margin) / (2 * num_samples)


def dense_losses(labels: Float[Array, " m"]) -> Float[Array, " m"]:
    """Ramp losses of outputs 2 a - 1, with the gate a = 1/(1 + exp(-y L)) of the expert +1.

    Its logit is y L, and those of the T - 1 experts -1 are -log(T - 1), so that together they weigh 1.
    """
    return (1 - labels * (2 * jax.nn.sigmoid(labels * DENSE_LOGIT) - 1)) / 2


def _fair_labels(uniforms: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """-1 or +1, each with probability exactly 1/2: half of the numbers that a uniform takes are below 1/2."""
    return jnp.where(uniforms < 0.5, -1, 1).astype(uniforms.dtype)


def _sorted(values: Float[Array, " m"]) -> Float[Array, " m"]:
    """Numbers of at least 0 in order. Their bits are integers in the same order, which XLA sorts four times as fast."""
    words = jnp.int32 if values.dtype == jnp.float32 else jnp.int64
    bits = jax.lax.bitcast_convert_type(values, words)
    return jax.lax.bitcast_convert_type(jnp.sort(bits), values.dtype)


def _check_lone(params: Params) -> None:
    if checks.is_known(params.num_active) and int(params.num_active) != 1:
        raise InvalidParamsError(
            f"num_active={params.num_active} must be 1: an input has one cell, whose expert is alone. Lower num_active."
        )


def _check_dense(params: Params) -> None:
    if checks.is_known((params.num_active, params.num_experts)) and not 2 <= params.num_active == params.num_experts:
        raise InvalidParamsError(
            f"num_active={params.num_active} must be num_experts={params.num_experts}, and at least 2: all experts are "
            "active. Change num_active."
        )
