"""Z = lambda I + sum_s g_s g_s' / w of Algorithm 1, line 13, and the squared norm g' Z^-1 g / w of Eq. (4).

Let kappa(x, x') = g(x)' g(x') / w. Its matrix over the slots seen is kappa_t, and its values between them and x are k:

    g' Z^-1 g / w = (kappa(x, x) - k' (lambda I + kappa_t)^-1 k) / lambda,
    det Z = lambda^(p - t) det(lambda I + kappa_t).

- `dual` computes these from the gradients' factors: t^2 / 2 operations a candidate, max_rounds^2 / 2 stored numbers.
- `full` has Z^-1: p^2 operations a candidate, p^2 stored numbers.
- `exact` is `full` where p is at most max_rounds, else `dual`.
- `diagonal` has the diagonal of Z alone: p operations a candidate, p stored numbers.
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

# The names of `UNCERTAINTIES`.
EXACT = "exact"
DUAL = "dual"
FULL = "full"
DIAGONAL = "diagonal"
SLOTS_A_TILE = 256  # size of tiles in the dual form, which computes only those of past slots
SLOTS_A_FLUSH = 32  # slots between two updates of the full form's inverse

Memory = Any  # a NamedTuple of arrays. Its structure and types stay the same from slot to slot


class GradientNorm(NamedTuple):
    squared_norm: Float[Array, ""]  # g' Z^-1 g / w
    along: tuple[Array, ...] | None  # Z^-1 g / w, in each layer's shape, None for a form without it
    solved: Any  # what `add` needs: v = L^-1 k in the dual form, Z^-1 g / sqrt(w) in the full form
    slots: Int[Array, ""]  # t of the memory that measured it. `add` accepts it only for the same memory


class Uncertainty(NamedTuple):
    """Form of Z, as pure functions for one replicate."""

    begin: Callable[[Params], Memory]  # Z_0 = lambda I
    squared_norms: Callable[[Memory, Factors, Params], Float[Array, " C"]]  # g' Z^-1 g / w, at least 0
    # The norm of one gradient, or None for a form in which the norms of all candidates at once take no longer.
    measure: Callable[[Memory, Factors, Params], GradientNorm] | None
    # (memory, factors of one gradient, its norm by `measure` or None without it, params): Z + g g' / w
    add: Callable[[Memory, Factors, Any, Params], Memory]
    log_det: Callable[[Memory, Params], Float[Array, ""]]  # log det Z - log det lambda I


def named(name: str, dims: Dims) -> Uncertainty:
    """Return the form of this name for these sizes. Raises: UnknownNameError."""
    if name not in UNCERTAINTIES:
        raise unknown_name("uncertainty", name, UNCERTAINTIES)
    return UNCERTAINTIES[name](dims)


class NormCache(NamedTuple):
    """The last norm computed for each candidate, and its gradient g_0 then. Both are 0 at first."""

    factors: Factors  # of g_0 (C, ...)
    squared_norms: Float[Array, " C"]
    along: tuple[Array, ...] | None  # Z^-1 g_0 / w (C, layer)


class NormSearch(NamedTuple):
    """By-products of a choice that learning reuses. They are None for a form without `measure`."""

    judged: NormCache | None
    measured: GradientNorm | None  # norm of the candidate chosen


def empty_cache(form: Uncertainty, dims: Dims, num_candidates: int, params: Params) -> NormCache | None:
    if form.measure is None:
        return None
    factors = _zeros(dims, num_candidates)
    norm = _zero_norm(form, form.begin(params), _row(factors, 0), params)
    squared_norms, along = jax.tree.map(
        lambda leaf: jnp.zeros((num_candidates, *leaf.shape), leaf.dtype), (norm.squared_norm, norm.along)
    )
    return NormCache(factors, squared_norms, along)


def upper_bounds(before: NormCache, factors: Factors, params: Params) -> Float[Array, " C"]:
    """Return an upper bound on sqrt(g' Z^-1 g / w) of these gradients.

    With r = g - g_0 and in the norm of Z^-1, |g| <= |g_0| + |r|. In this norm g_0 only became shorter, because Z grows.
    No vector is longer than lambda^-1/2 times its Euclidean length.
    """
    return jnp.sqrt(before.squared_norms) + jnp.sqrt(_squared_rest(before.factors, factors, params))


def closer_bound(before: NormCache, factors: Factors, params: Params) -> Float[Array, ""]:
    """Return a smaller bound for one candidate, (|g_0|^2 + 2 r' Z^-1 g_0 + |r|^2)^(1/2), by the Z that measured g_0."""
    assert before.along is not None
    total = before.squared_norms + _squared_rest(before.factors, factors, params)
    for outer, inner, outer_0, inner_0, along in zip(*factors, *before.factors, before.along, strict=True):
        total += 2 * jnp.sum(jnp.sum(along * inner, axis=1) * (outer - outer_0))
        total += 2 * jnp.sum(jnp.sum(along * outer_0[:, None], axis=0) * (inner - inner_0))
    return jnp.sqrt(jnp.maximum(total, 0))


def best(
    form: Uncertainty,
    memory: Memory,
    before: NormCache | None,
    factors: Factors,
    values: Float[Array, " C"],
    wanted: Bool[Array, " C"],
    params: Params,
) -> tuple[Int[Array, ""], Float[Array, ""], NormSearch]:
    """Return the wanted candidate with the highest value + gamma sqrt(g' Z^-1 g / w).

    Ties go to the first. Candidates are measured in turn, the most promising first (by `upper_bounds`, then by
    `closer_bound`), until one exceeds the bounds of all others. Up to rounding the choice is as if all were measured.
    """
    exploration = jnp.asarray(params.exploration, values.dtype)

    def leader_of(norms: Float[Array, " C"], is_candidate: Bool[Array, " C"]) -> Int[Array, ""]:
        return jnp.argmax(jnp.where(is_candidate, values + exploration * norms, -jnp.inf)).astype(jnp.int32)

    if form.measure is None or before is None:
        norms = jnp.sqrt(form.squared_norms(memory, factors, params))
        leader = leader_of(norms, wanted)
        return leader, norms[leader], NormSearch(None, None)
    measure = form.measure

    def tighten_bounds(norms: Float[Array, " C"], is_tight: Bool[Array, " C"], judged: NormCache) -> tuple[Array, ...]:
        def tighten_leader(carry: tuple[Array, ...]) -> tuple[Array, ...]:
            leader, norms, is_tight = carry
            bound = closer_bound(_row(judged, leader), _row(factors, leader), params)
            norms = norms.at[leader].set(bound)
            return leader_of(norms, wanted), norms, is_tight.at[leader].set(True)

        def can_tighten_leader(carry: tuple[Array, ...]) -> Array:
            leader, _, is_tight = carry
            return ~is_tight[leader]

        start = (leader_of(norms, wanted), norms, is_tight)
        return start if judged.along is None else lax.while_loop(can_tighten_leader, tighten_leader, start)

    def must_measure_leader(carry: tuple[Any, ...]) -> Array:
        leader, _, _, is_measured, _, _ = carry
        return ~is_measured[leader]

    def measure_leader(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        leader, norms, is_tight, is_measured, judged, best_norm = carry
        leader_factors = _row(factors, leader)
        norm = measure(memory, leader_factors, params)
        norms = norms.at[leader].set(jnp.sqrt(norm.squared_norm))
        is_measured = is_measured.at[leader].set(True)
        is_best = leader_of(norms, is_measured & wanted) == leader
        best_norm = jax.tree.map(lambda new, old: jnp.where(is_best, new, old), norm, best_norm)
        cache_row = NormCache(leader_factors, norm.squared_norm, norm.along)
        judged = jax.tree.map(lambda rows, row: rows.at[leader].set(row), judged, cache_row)
        return *tighten_bounds(norms, is_tight, judged), is_measured, judged, best_norm

    no_candidate = jnp.zeros(wanted.shape, bool)
    first_bounds = tighten_bounds(upper_bounds(before, factors, params), no_candidate, before)
    start = (*first_bounds, no_candidate, before, _zero_norm(form, memory, _row(factors, 0), params))
    leader, norms, _, _, judged, best_norm = lax.while_loop(must_measure_leader, measure_leader, start)
    return leader, norms[leader], NormSearch(judged, best_norm)


def _squared_rest(before: Factors, factors: Factors, params: Params) -> Float[Array, "*C"]:
    """Return |g - g_0|^2 / (lambda w) from differences, because a difference of squares would cancel."""
    squares = 0
    width = factors.inner[-1].shape[-1]
    for outer, inner, outer_0, inner_0 in zip(*factors, *before, strict=True):
        outer_change = outer - outer_0
        inner_change = inner - inner_0
        squares += jnp.sum(jnp.square(outer_change), axis=-1) * jnp.sum(jnp.square(inner), axis=-1)
        squares += jnp.sum(jnp.square(outer_0), axis=-1) * jnp.sum(jnp.square(inner_change), axis=-1)
        squares += 2 * jnp.sum(outer_change * outer_0, axis=-1) * jnp.sum(inner * inner_change, axis=-1)
    return jnp.maximum(squares, 0) / (width * jnp.asarray(params.regularization, factors.inner[-1].dtype))


def _row(leaves: Any, row: Int[Array, ""] | int) -> Any:
    return jax.tree.map(lambda leaf: leaf[row], leaves)


def _zero_norm(form: Uncertainty, memory: Memory, factors: Factors, params: Params) -> GradientNorm:
    """Return zeros of the structure of `form.measure`'s results."""
    shapes = jax.eval_shape(form.measure, memory, factors, params)  # pyright: ignore[reportArgumentType]
    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)


class Dual(NamedTuple):
    """Slots seen, and the inverse of the Cholesky factor L of lambda I + kappa_t."""

    seen: Factors  # factors of each slot's gradient (T, ...), 0 for future slots
    inverse: Float[Array, "N b b"]  # L^-1 in tiles, row by row up to the diagonal
    slots: Int[Array, ""]  # t
    log_det: Float[Array, ""]


def dual(dims: Dims) -> Uncertainty:
    """Return Z in the form of its kernel over the slots seen.

    A slot adds one row to L^-1. With v = L^-1 k and d^2 = lambda + kappa(x, x) - |v|^2 the row is (-v' L^-1 / d, 1 /
    d), and det(lambda I + kappa_t) grows by the factor d^2. Float32 suffices for about 5,000 slots.
    """
    size = min(SLOTS_A_TILE, dims.max_rounds)
    num_rows = -(-dims.max_rounds // size)  # rows of tiles, rounded up

    def begin(params: Params) -> Dual:
        del params
        dtype = jnp.result_type(float)
        tiles = jnp.zeros((num_rows * (num_rows + 1) // 2, size, size), dtype)
        slots = jnp.zeros((), jnp.int32)
        return Dual(_zeros(dims, num_rows * size), inverse=tiles, slots=slots, log_det=jnp.zeros((), dtype))

    def squared_norms(memory: Dual, factors: Factors, params: Params) -> Float[Array, " C"]:
        explained = jnp.sum(jnp.square(_whiten(memory, factors, num_rows, dims)), axis=(0, 1))
        remainder = network.squared_length(factors) / dims.width - explained
        return jnp.maximum(remainder, 0) / jnp.asarray(params.regularization, remainder.dtype)

    def measure(memory: Dual, factors: Factors, params: Params) -> GradientNorm:
        vector = _whiten(memory, jax.tree.map(lambda leaf: leaf[None], factors), num_rows, dims)[:, :, 0]
        remainder = network.squared_length(factors) / dims.width - jnp.sum(jnp.square(vector))
        squared_norm = jnp.maximum(remainder, 0) / jnp.asarray(params.regularization, remainder.dtype)
        return GradientNorm(squared_norm, along=None, solved=vector, slots=memory.slots)

    def add(memory: Dual, factors: Factors, norm: GradientNorm, params: Params) -> Dual:
        dtype = memory.inverse.dtype
        time = memory.slots
        vector = norm.solved
        regularization = jnp.asarray(params.regularization, dtype)
        pivot = jnp.sqrt(regularization * (1 + norm.squared_norm))  # d
        products = _multiply_inverse(vector, memory, num_rows)
        i = time // size  # row of tiles
        place = time % size  # row inside these tiles
        new_row = (-products / pivot).at[i, place].set(1 / pivot)[:, None, :]
        # This writes all tiles of a row at once. Tiles beyond its last lie in later rows and are set to 0.
        inverse = lax.dynamic_update_slice(memory.inverse, new_row, (i * (i + 1) // 2, place, jnp.zeros_like(i)))
        seen = jax.tree.map(lambda rows, row: rows.at[time].set(row), memory.seen, factors)
        log_det = memory.log_det + jnp.log(jnp.square(pivot) / regularization)
        return Dual(seen, inverse=inverse, slots=time + 1, log_det=log_det)

    return Uncertainty(begin, squared_norms, measure, add, lambda memory, params: memory.log_det)


def _whiten(memory: Dual, factors: Factors, num_rows: int, dims: Dims) -> Float[Array, "R b C"]:
    """Return v = L^-1 k for slots in rows of tiles."""
    size = memory.inverse.shape[-1]

    def add_row(i: Int[Array, ""], carry: tuple[Array, Array]) -> tuple[Array, Array]:
        kernels, products = carry
        factors_seen = jax.tree.map(lambda leaf: lax.dynamic_slice_in_dim(leaf, i * size, size), memory.seen)
        kernels = kernels.at[i].set(network.kernel(factors_seen, factors) / dims.width)

        def add_tile(j: Int[Array, ""], total: Array) -> Array:
            return total + jnp.matmul(memory.inverse[i * (i + 1) // 2 + j], kernels[j], precision="highest")

        return kernels, products.at[i].set(_loop(i + 1, num_rows, add_tile, jnp.zeros_like(kernels[0])))

    zeros = jnp.zeros((num_rows, size, factors.outer[0].shape[0]), memory.inverse.dtype)
    return _loop(_used_rows(memory), num_rows, add_row, (zeros, zeros))[1]


def _multiply_inverse(vector: Float[Array, "R b"], memory: Dual, num_rows: int) -> Float[Array, "R b"]:
    """Return v' L^-1 for slots in rows of tiles."""

    def add_row(i: Int[Array, ""], products: Array) -> Array:
        def add_tile(j: Int[Array, ""], products: Array) -> Array:
            product = jnp.matmul(vector[i], memory.inverse[i * (i + 1) // 2 + j], precision="highest")
            return products.at[j].add(product)

        return _loop(i + 1, num_rows, add_tile, products)

    return _loop(_used_rows(memory), num_rows, add_row, jnp.zeros_like(vector))


def _used_rows(memory: Dual) -> Int[Array, ""]:
    size = memory.inverse.shape[-1]
    return (memory.slots + size - 1) // size


class Full(NamedTuple):
    """State of the full form: Z^-1 = inverse - pending' pending."""

    inverse: Float[Array, "p p"]
    pending: Float[Array, "m p"]  # the updates of the last slots, 0 where there is none yet
    slots: Int[Array, ""]  # t
    log_det: Float[Array, ""]


def full(dims: Dims) -> Uncertainty:
    """Return Z in the form of its inverse.

    The updates of `SLOTS_A_FLUSH` slots are applied at once. An error E of the inverse shrinks, because Z only grows
    and a slot turns E into (I - c g') E (I - c g')' with c = Z^-1 g / (w + g' Z^-1 g).
    """
    size = dims.num_parameters

    def begin(params: Params) -> Full:
        dtype = jnp.result_type(float)
        inverse = jnp.eye(size, dtype=dtype) / jnp.asarray(params.regularization, dtype)
        return Full(inverse, jnp.zeros((SLOTS_A_FLUSH, size), dtype), jnp.zeros((), jnp.int32), jnp.zeros((), dtype))

    def multiply_inverse(memory: Full, gradients: Float[Array, "C p"]) -> Float[Array, "C p"]:
        shares = jnp.matmul(gradients, memory.pending.T, precision="highest")
        pending = jnp.matmul(shares, memory.pending, precision="highest")
        return jnp.matmul(gradients, memory.inverse, precision="highest") - pending

    def squared_norms(memory: Full, factors: Factors, params: Params) -> Float[Array, " C"]:
        del params
        gradients = network.gradient(factors) / math.sqrt(dims.width)
        return jnp.maximum(jnp.sum(multiply_inverse(memory, gradients) * gradients, axis=-1), 0)

    def measure(memory: Full, factors: Factors, params: Params) -> GradientNorm:
        del params
        gradient = network.gradient(factors) / math.sqrt(dims.width)
        solved = multiply_inverse(memory, gradient[None])[0]
        along = network.layers(solved / math.sqrt(dims.width), factors)
        squared_norm = jnp.maximum(jnp.sum(solved * gradient), 0)
        return GradientNorm(squared_norm, along=along, solved=solved, slots=memory.slots)

    def add(memory: Full, factors: Factors, norm: GradientNorm, params: Params) -> Full:
        del factors, params
        update = norm.solved / jnp.sqrt(1 + norm.squared_norm)
        updates = memory.pending.at[memory.slots % SLOTS_A_FLUSH].set(update)
        slots = memory.slots + 1

        def flush() -> tuple[Array, Array]:
            return memory.inverse - jnp.matmul(updates.T, updates, precision="highest"), jnp.zeros_like(updates)

        inverse, pending = lax.cond(slots % SLOTS_A_FLUSH == 0, flush, lambda: (memory.inverse, updates))
        return Full(inverse, pending, slots=slots, log_det=memory.log_det + jnp.log1p(norm.squared_norm))

    return Uncertainty(begin, squared_norms, measure, add, lambda memory, params: memory.log_det)


def exact(dims: Dims) -> Uncertainty:
    return full(dims) if dims.num_parameters <= dims.max_rounds else dual(dims)


class Diagonal(NamedTuple):
    layers: tuple[Array, ...]  # the diagonal of Z, of each layer in its shape


def diagonal(dims: Dims) -> Uncertainty:
    """Return Z in the form of its diagonal. The factors' squares are factors of the gradient's squares."""

    def begin(params: Params) -> Diagonal:
        dtype = jnp.result_type(float)
        regularization = jnp.asarray(params.regularization, dtype)
        outer_lengths, inner_lengths = _lengths(dims)
        shapes = zip(outer_lengths, inner_lengths, strict=True)
        return Diagonal(tuple(jnp.full(shape, regularization, dtype) for shape in shapes))

    def squared_norms(memory: Diagonal, factors: Factors, params: Params) -> Float[Array, " C"]:
        del params
        terms = [
            jnp.sum(jnp.matmul(jnp.square(outer), 1 / layer, precision="highest") * jnp.square(inner), axis=-1)
            for outer, inner, layer in zip(*factors, memory.layers, strict=True)
        ]
        return sum(terms[1:], terms[0]) / dims.width

    def add(memory: Diagonal, factors: Factors, norm: None, params: Params) -> Diagonal:
        del norm, params
        squares = [
            jnp.square(outer)[:, None] * jnp.square(inner)[None, :] for outer, inner in zip(*factors, strict=True)
        ]
        pairs = zip(memory.layers, squares, strict=True)
        return Diagonal(tuple(layer + square / dims.width for layer, square in pairs))

    def log_det(memory: Diagonal, params: Params) -> Float[Array, ""]:
        terms = [jnp.sum(jnp.log(layer / params.regularization)) for layer in memory.layers]
        return sum(terms[1:], terms[0])

    return Uncertainty(begin, squared_norms, None, add, log_det)


# Name -> function that builds the form for a network and a run of these sizes.
UNCERTAINTIES: dict[str, Callable[[Dims], Uncertainty]] = {EXACT: exact, DUAL: dual, FULL: full, DIAGONAL: diagonal}


def _lengths(dims: Dims) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the lengths of the outer factors, and of the inner factors, by layer."""
    hidden = (dims.width,) * dims.num_hidden
    return (*hidden, dims.num_tasks), (dims.max_experts, *hidden)


def _zeros(dims: Dims, count: int) -> Factors:
    dtype = jnp.result_type(float)
    outer_lengths, inner_lengths = _lengths(dims)
    outer = tuple(jnp.zeros((count, length), dtype) for length in outer_lengths)
    return Factors(outer, inner=tuple(jnp.zeros((count, length), dtype) for length in inner_lengths))


def _loop(count: Int[Array, ""], max_count: int, body: Callable[[Any, Any], Any], carry: Any) -> Any:
    """Run a `fori_loop` of `count` turns, at most `max_count`. If `max_count` is 1, a turn runs for a `count` of 0."""
    if max_count == 1:
        return body(jnp.zeros((), jnp.int32), carry)
    return lax.fori_loop(jnp.zeros((), jnp.int32), count, body, carry)
