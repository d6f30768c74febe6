"""Z = lambda I + sum_s g_s g_s' / w of Algorithm 1, line 13, and the squared norm g' Z^-1 g / w of Eq. (4).

Four forms with one interface. With kappa(x, x') = g(x)' g(x') / w, kappa_t its matrix over the slots seen and k its
values between them and x, the matrix inversion lemma makes the norm a matter of slots instead of parameters,

    g' Z^-1 g / w = (kappa(x, x) - k' (lambda I + kappa_t)^-1 k) / lambda,
    det Z = lambda^(p - t) det(lambda I + kappa_t).

- `dual` computes that, exactly, from the factors of the gradients: t^2 / 2 operations a candidate, max_rounds^2 / 2
  numbers.
- `full` carries Z^-1, exactly: p^2 operations a candidate, p^2 numbers.
- `exact` is `full` where p is at most max_rounds, else `dual`.
- `diagonal` keeps the diagonal of Z alone, the common approximation: p operations a candidate, p numbers.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from moe_theory.core.errors import unknown_name
from moe_theory.merging import network
from moe_theory.merging.network import Factors
from moe_theory.merging.params import Dims, Params

EXACT, DUAL, FULL, DIAGONAL = "exact", "dual", "full", "diagonal"  # names of `UNCERTAINTIES`
SLOTS_A_TILE = 256  # of the dual form, which computes only the tiles of past slots

Memory = Any  # a NamedTuple of arrays; its structure and types stay the same from slot to slot


class Uncertainty(NamedTuple):
    """A form of Z, as pure functions for one replicate."""

    begin: Callable[[Params], Memory]  # Z_0 = lambda I
    squared_norms: Callable[[Memory, Factors, Params], Float[Array, " C"]]  # g' Z^-1 g / w, at least 0
    add: Callable[[Memory, Factors, Params], Memory]  # Z + g g' / w, from the factors of one gradient
    log_det: Callable[[Memory, Params], Float[Array, ""]]  # log det Z - log det lambda I


def named(name: str, dims: Dims) -> Uncertainty:
    """The form of this name, for a network and a run of these sizes. Raises: UnknownNameError for an unknown name."""
    if name not in UNCERTAINTIES:
        raise unknown_name("uncertainty", name, UNCERTAINTIES)
    return UNCERTAINTIES[name](dims)


class Judged(NamedTuple):
    """The gradient of each candidate whose norm was computed last, and that norm: at first 0, whose norm is 0."""

    factors: Factors  # (C, ...)
    norms: Float[Array, " C"]


def none_judged(dims: Dims, num_candidates: int) -> Judged:
    """No norm computed yet."""
    return Judged(_zeros(dims, num_candidates), jnp.zeros(num_candidates, jnp.result_type(float)))


def judged(before: Judged, factors: Factors, norms: Float[Array, " C"]) -> Judged:
    """With the norms of these gradients; where they are NaN, what was judged before stays."""
    is_new = ~jnp.isnan(norms)
    return jax.tree.map(
        lambda new, old: jnp.where(is_new.reshape(-1, *[1] * (new.ndim - 1)), new, old), Judged(factors, norms), before
    )


def at_most(before: Judged, factors: Factors, params: Params) -> Float[Array, " C"]:
    """What sqrt(g' Z^-1 g / w) of these gradients can be at most, by the triangle inequality.

    |g| <= |g_0| + |g - g_0| in the norm of Z^-1, in which g_0 has become no longer, as Z only grows, and in which
    nothing is longer than by lambda^-1/2 its Euclidean length.
    """
    width, squares = factors.inner[-1].shape[-1], jnp.zeros_like(before.norms)
    regularization = jnp.asarray(params.regularization, squares.dtype)
    for outer, inner, outer_0, inner_0 in zip(*factors, *before.factors, strict=True):
        # |outer inner' - outer_0 inner_0'|^2 by differences, as the difference of squares would cancel.
        turned, moved = outer - outer_0, inner - inner_0
        squares += jnp.sum(jnp.square(turned), axis=-1) * jnp.sum(jnp.square(inner), axis=-1)
        squares += jnp.sum(jnp.square(outer_0), axis=-1) * jnp.sum(jnp.square(moved), axis=-1)
        squares += 2 * jnp.sum(turned * outer_0, axis=-1) * jnp.sum(inner * moved, axis=-1)
    return before.norms + jnp.sqrt(jnp.maximum(squares, 0) / (width * regularization))


def best(
    form: Uncertainty,
    memory: Memory,
    before: Judged,
    factors: Factors,
    values: Float[Array, " C"],
    wanted: Bool[Array, " C"],
    params: Params,
) -> tuple[Int[Array, ""], Float[Array, " C"]]:
    """The wanted candidate of the highest value + gamma sqrt(g' Z^-1 g / w), and the norms computed to find it.

    From slot to slot gradients change little. So norms are computed from the most promising candidate on, until one of
    those is ahead of what all others can have at most: the same candidate as if all were computed.

    Returns: the candidate's index, the first among equals; norms, NaN where none was needed.
    """
    count, exploration = values.shape[0], jnp.asarray(params.exploration, values.dtype)

    def leading(norms: Float[Array, " C"]) -> Int[Array, ""]:
        return jnp.argmax(jnp.where(wanted, values + exploration * norms, -jnp.inf)).astype(jnp.int32)

    def is_open(carry: tuple[Array, Array, Array]) -> Bool[Array, ""]:
        leader, _, is_computed = carry
        return ~is_computed[leader]

    def look(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        leader, norms, is_computed = carry
        one = jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, leader, 1), factors)
        norms = norms.at[leader].set(jnp.sqrt(form.squared_norms(memory, one, params)[0]))
        return leading(norms), norms, is_computed.at[leader].set(True)

    highest = at_most(before, factors, params)
    start = (leading(highest), highest, jnp.zeros(count, bool))
    leader, norms, is_computed = lax.while_loop(is_open, look, start)
    return leader, jnp.where(is_computed, norms, jnp.nan)


class Dual(NamedTuple):
    """State of the dual form: the slots seen, and the inverse of the Cholesky factor of lambda I + kappa_t."""

    seen: Factors  # of each slot's gradient (T, ...), 0 for slots to come
    inverse: Float[Array, "N b b"]  # L^-1 in tiles, row by row up to the diagonal
    slots: Int[Array, ""]  # t
    log_det: Float[Array, ""]


def dual(dims: Dims) -> Uncertainty:
    """Z by its kernel over the slots seen.

    A slot adds one row to L^-1: with v = L^-1 k and d^2 = lambda + kappa(x, x) - |v|^2 it is (-v' L^-1 / d, 1 / d), and
    det(lambda I + kappa_t) grows by d^2. In float32 it serves some 5,000 slots.
    """
    size = min(SLOTS_A_TILE, dims.max_rounds)
    num_rows = -(-dims.max_rounds // size)

    def begin(params: Params) -> Dual:
        del params
        dtype = jnp.result_type(float)
        tiles = jnp.zeros((num_rows * (num_rows + 1) // 2, size, size), dtype)
        return Dual(_zeros(dims, num_rows * size), tiles, jnp.zeros((), jnp.int32), jnp.zeros((), dtype))

    def used_rows(memory: Dual) -> Int[Array, ""]:
        return (memory.slots + size - 1) // size

    def whitened(memory: Dual, factors: Factors) -> Float[Array, "R b C"]:
        """v = L^-1 k, for slots in rows of tiles."""

        def row(i: Int[Array, ""], carry: tuple[Array, Array]) -> tuple[Array, Array]:
            kernels, products = carry
            seen = jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, i * size, size), memory.seen)
            kernels = kernels.at[i].set(network.kernel(seen, factors) / dims.width)

            def tile(j: Int[Array, ""], total: Array) -> Array:
                return total + jnp.matmul(memory.inverse[i * (i + 1) // 2 + j], kernels[j], precision="highest")

            return kernels, products.at[i].set(_loop(i + 1, num_rows, tile, jnp.zeros_like(kernels[0])))

        blank = jnp.zeros((num_rows, size, factors.outer[0].shape[0]), memory.inverse.dtype)
        return _loop(used_rows(memory), num_rows, row, (blank, blank))[1]

    def squared_norms(memory: Dual, factors: Factors, params: Params) -> Float[Array, " C"]:
        explained = jnp.sum(jnp.square(whitened(memory, factors)), axis=(0, 1))
        left = network.squared_length(factors) / dims.width - explained
        return jnp.maximum(left, 0) / jnp.asarray(params.regularization, left.dtype)

    def add(memory: Dual, factors: Factors, params: Params) -> Dual:
        dtype, time = memory.inverse.dtype, memory.slots
        regularization = jnp.asarray(params.regularization, dtype)
        vector = whitened(memory, jax.tree.map(lambda leaf: leaf[None], factors))[:, :, 0]
        left = network.squared_length(factors) / dims.width - jnp.sum(jnp.square(vector))
        pivot = jnp.sqrt(regularization + jnp.maximum(left, 0))  # d

        def row(i: Int[Array, ""], products: Array) -> Array:
            def tile(j: Int[Array, ""], products: Array) -> Array:
                product = jnp.matmul(vector[i], memory.inverse[i * (i + 1) // 2 + j], precision="highest")
                return products.at[j].add(product)

            return _loop(i + 1, num_rows, tile, products)

        products = _loop(used_rows(memory), num_rows, row, jnp.zeros_like(vector))
        i, place = time // size, time % size
        new = (-products / pivot).at[i, place].set(1 / pivot)[:, None, :]
        # Writes all of a row's tiles at once; those beyond its last lie in later rows and are written 0.
        inverse = lax.dynamic_update_slice(memory.inverse, new, (i * (i + 1) // 2, place, jnp.zeros_like(i)))
        seen = jax.tree.map(lambda all_seen, one: all_seen.at[time].set(one), memory.seen, factors)
        return Dual(seen, inverse, time + 1, memory.log_det + jnp.log(jnp.square(pivot) / regularization))

    return Uncertainty(begin, squared_norms, add, lambda memory, params: memory.log_det)


class Full(NamedTuple):
    """State of the full form."""

    inverse: Float[Array, "p p"]  # Z^-1
    log_det: Float[Array, ""]


def full(dims: Dims) -> Uncertainty:
    """Z by its inverse.

    The rank-one update keeps Z^-1 symmetric to the last bit. Z only grows, so errors E of the inverse shrink: a slot
    turns them into (I - c g') E (I - c g')'.
    """
    size = dims.num_parameters

    def begin(params: Params) -> Full:
        dtype = jnp.result_type(float)
        return Full(jnp.eye(size, dtype=dtype) / jnp.asarray(params.regularization, dtype), jnp.zeros((), dtype))

    def squared_norms(memory: Full, factors: Factors, params: Params) -> Float[Array, " C"]:
        del params
        gradients = network.gradient(factors) / math.sqrt(dims.width)
        products = jnp.matmul(gradients, memory.inverse, precision="highest")
        return jnp.maximum(jnp.sum(products * gradients, axis=-1), 0)

    def add(memory: Full, factors: Factors, params: Params) -> Full:
        del params
        gradient = network.gradient(factors) / math.sqrt(dims.width)
        product = jnp.matmul(memory.inverse, gradient, precision="highest")
        norm = jnp.maximum(jnp.sum(product * gradient), 0)
        scaled = product / jnp.sqrt(1 + norm)
        return Full(memory.inverse - scaled[:, None] * scaled[None, :], memory.log_det + jnp.log1p(norm))

    return Uncertainty(begin, squared_norms, add, lambda memory, params: memory.log_det)


def exact(dims: Dims) -> Uncertainty:
    """The cheaper of the two exact forms."""
    return full(dims) if dims.num_parameters <= dims.max_rounds else dual(dims)


class Diagonal(NamedTuple):
    """State of the diagonal form."""

    layers: tuple[Array, ...]  # the diagonal of Z, of each layer in its shape


def diagonal(dims: Dims) -> Uncertainty:
    """Z by its diagonal alone, as NeuralUCB's experiments have it: squares of factors are factors of squares."""

    def begin(params: Params) -> Diagonal:
        dtype = jnp.result_type(float)
        regularization = jnp.asarray(params.regularization, dtype)
        return Diagonal(tuple(jnp.full(shape, regularization, dtype) for shape in zip(*_lengths(dims), strict=True)))

    def squared_norms(memory: Diagonal, factors: Factors, params: Params) -> Float[Array, " C"]:
        del params
        terms = [
            jnp.sum(jnp.matmul(jnp.square(outer), 1 / layer, precision="highest") * jnp.square(inner), axis=-1)
            for outer, inner, layer in zip(*factors, memory.layers, strict=True)
        ]
        return sum(terms[1:], terms[0]) / dims.width

    def add(memory: Diagonal, factors: Factors, params: Params) -> Diagonal:
        del params
        squares = [
            jnp.square(outer)[:, None] * jnp.square(inner)[None, :] for outer, inner in zip(*factors, strict=True)
        ]
        return Diagonal(tuple(a + square / dims.width for a, square in zip(memory.layers, squares, strict=True)))

    def log_det(memory: Diagonal, params: Params) -> Float[Array, ""]:
        terms = [jnp.sum(jnp.log(layer / params.regularization)) for layer in memory.layers]
        return sum(terms[1:], terms[0])

    return Uncertainty(begin, squared_norms, add, log_det)


# Builders of the forms by name, for a network and a run of these sizes.
UNCERTAINTIES: dict[str, Callable[[Dims], Uncertainty]] = {EXACT: exact, DUAL: dual, FULL: full, DIAGONAL: diagonal}


def _lengths(dims: Dims) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Lengths of a gradient's factors: units of each layer, and what each is given."""
    hidden = (dims.width,) * dims.num_hidden
    return (*hidden, dims.num_tasks), (dims.max_experts, *hidden)


def _zeros(dims: Dims, count: int) -> Factors:
    dtype = jnp.result_type(float)
    return Factors(*(tuple(jnp.zeros((count, n), dtype) for n in each) for each in _lengths(dims)))


def _loop(count: Int[Array, ""], most: int, body: Callable[[Any, Any], Any], carry: Any) -> Any:
    """`fori_loop` of `count` turns, at most `most`; a single possible turn always runs, as unused tiles are 0."""
    if most == 1:
        return body(jnp.zeros((), jnp.int32), carry)
    return lax.fori_loop(jnp.zeros((), jnp.int32), count, body, carry)
