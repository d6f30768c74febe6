"""One integer per replicate: keys that never depend on batching, chunking, order or device.

Source: `replicate_key = fold_in(root, replicate)` and `step_key = fold_in(replicate_key, t)` with t = 1, 2, ... for
    rounds and t = 0 for draws before them. For i = 0, 1, ... the uniforms of a round are hashes of (i, 0, 0, 0) and its
    normals hashes of (i, 1, 0, 0). The hash is twelve rounds of threefry4x32 with the two words of the round's key.
"""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt32

from moe_theory.core import programs, threefry
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.machine import require_own_jax
from moe_theory.core.numerics import Numbers, rounded_positive, stored

UNIFORMS = 0
NORMALS = 1
PART_STREAM = 0x70617274  # "part" in ASCII. Folded into a round's key, it gives a key that no `split` gives


def root_key(seed: int) -> Key[Array, ""]:
    """Return the key of an experiment from an integer seed. Its bits are the same on every backend.

    Raises: InvalidValueError unless `seed` is an unsigned integer of 32 bits, or in a forked child after JAX was used.

    Examples:
        >>> import moe_theory as mt
        >>> key = mt.root_key(0)
        >>> mt.root_key(-1)
        Traceback (most recent call last):
            ...
        moe_theory.core.errors.InvalidValueError: seed=-1 must be a whole number in [0, 2**32): ...
    """
    is_whole = not isinstance(seed, bool) and jnp.issubdtype(np.asarray(seed).dtype, jnp.integer)
    if not is_whole or np.ndim(seed) > 0 or not 0 <= int(seed) < 2**32:
        raise InvalidValueError(
            f"seed={seed!r} must be a whole number in [0, 2**32): other seeds would repeat keys.", argument="seed"
        )
    require_own_jax()
    # We write the words out, because `jax.random.key` adds an offset that the environment may set.
    return jax.random.wrap_key_data(jnp.array([0, int(seed)], jnp.uint32), impl="threefry2x32")


def typed_key(key: Key[Array, ""] | UInt32[Array, " words"]) -> Key[Array, ""]:
    """Return a typed key, also for the raw words of `jax.random.PRNGKey`."""
    key = jnp.asarray(key)
    if key.dtype == jnp.uint32 and key.shape == (2,):
        key = jax.random.wrap_key_data(key, impl=threefry.IMPLEMENTATION)
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key) or key.shape != ():
        raise InvalidValueError(
            f"a key of shape {key.shape} and type {key.dtype} is not a single random key. Make one with root_key(seed)."
        )
    generator = str(jax.random.key_impl(key))
    if generator != threefry.IMPLEMENTATION:
        raise InvalidValueError(
            f"with a key of {generator} the numbers depend on the batch, unlike with {threefry.IMPLEMENTATION}. Make a "
            "key with root_key(seed)."
        )
    return key


def replicate_keys(root: Key[Array, ""], replicates: Int[Numbers, " B"]) -> Key[Array, " B"]:
    return _replicate_keys(root, jnp.asarray(replicates, jnp.uint32))


@programs.jit
def _replicate_keys(root: Key[Array, ""], replicates: UInt32[Array, " B"]) -> Key[Array, " B"]:
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(root, replicates)


def step_key(replicate_key: Key[Array, ""], time: Int[Array, ""]) -> Key[Array, ""]:
    """Return the key of one replicate's round `time`, or of its initial state if `time` is 0."""
    return jax.random.fold_in(replicate_key, time)


def with_own_key(part: Callable[..., Any], key: Key[Array, ""]) -> Callable[..., Any]:
    """Return a part of an algorithm. If it has a parameter `key`, it receives its own key."""
    if "key" not in inspect.signature(part).parameters:
        return part
    return functools.partial(part, key=jax.random.fold_in(key, PART_STREAM))


def uniforms(key: Key[Array, ""], count: int, dtype: Any) -> Float[Array, " n"]:
    """Return independent numbers, uniform on the open interval (0, 1).

    The numbers are midpoints of 2^23 equal parts in float32, and of 2^52 parts in float64. A longer array begins with
    the same numbers as a shorter one.
    """
    return draws(key, num_uniforms=count, num_normals=0, dtype=dtype)[0]


def normals(key: Key[Array, ""], count: int, dtype: Any) -> Float[Array, " n"]:
    """Return independent standard normals.

    Normals are independent of `uniforms` of the same key. A longer array begins with the same numbers as a shorter one.
    """
    return draws(key, num_uniforms=0, num_normals=count, dtype=dtype)[1]


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def draws(
    key: Key[Array, ""], num_uniforms: int, num_normals: int, dtype: Any = None
) -> tuple[Float[Array, " n"], Float[Array, " m"]]:
    """Return all random numbers of a round: independent uniforms on (0, 1), and independent standard normals.

    They equal the first numbers of `uniforms` and `normals` for this key. Normals are made in pairs by Box and Muller.

    Args:
        dtype: float32 or float64, by default JAX's precision.
    Returns: the numbers. No normal is beyond 6.7 in float32, or 8.6 in float64.
    Raises: TypeError for another `dtype`, or a count that is not a whole number of at least 0.

    Examples:
        >>> import moe_theory as mt
        >>> uniforms, normals = mt.draws(mt.root_key(0), 3, 2)
        >>> uniforms.shape, normals.shape
        ((3,), (2,))
    """
    for count in (num_uniforms, num_normals):
        if not isinstance(count, (int, np.integer)) or count < 0:
            raise TypeError(f"{count} numbers cannot be drawn. Give a whole number of at least 0.")
    dtype = jnp.result_type(float) if dtype is None else jnp.dtype(dtype)
    if dtype not in (jnp.float32, jnp.float64):
        raise TypeError(f"numbers of type {jnp.dtype(dtype)} cannot be drawn. Use float32 or float64.")
    num_words = jnp.dtype(dtype).itemsize // 4  # words per number
    # A row has the four words of a hash. Normals are drawn in pairs. Numbers of rows are rounded up.
    num_rows = [-(-num_words * count // 4) for count in (num_uniforms, num_normals + num_normals % 2)]
    places = np.concatenate([np.arange(number) for number in num_rows])
    streams = np.repeat([UNIFORMS, NORMALS], num_rows)
    words = threefry.stored_pairs(block(key, places, streams))

    def words_of_numbers(rows: slice) -> list[list[Array]]:
        columns = [word[rows] for word in words]
        return [columns[start : start + num_words] for start in range(0, 4, num_words)]  # one list per number in a row

    uniform_words = words_of_numbers(slice(num_rows[0]))
    normal_words = words_of_numbers(slice(num_rows[0], None))
    numbers = []
    for radial, angular in zip(normal_words[::2], normal_words[1::2], strict=True):
        radius = jnp.sqrt(-2 * jnp.log(_unit(radial, dtype, is_fine=True)))
        numbers += [radius * part for part in _on_circle(_unit(angular, dtype) - 0.5)]
    units = [_unit(part, dtype) for part in uniform_words]
    return _interleave(units, num_uniforms), _interleave(numbers, num_normals)


def block(
    key: Key[Array, ""],
    place: Int[Numbers, "*n"] | int,
    stream: Int[Numbers, "*n"] | int,
    rounds: int = threefry.ROUNDS,
) -> list[UInt32[Array, "*n"]]:
    """Return four words, the hashes of (place, stream, 0, 0) by the key. Streams are `UNIFORMS` and `NORMALS`."""
    data = jax.random.key_data(key)
    zero = jnp.zeros((), jnp.uint32)
    words = [data[word] if word < data.shape[0] else zero for word in range(4)]
    counter = [jnp.asarray(part, jnp.uint32) for part in (place, stream)]
    return threefry.threefry4x32(words, [*counter, zero, zero], rounds)


def _unit(words: list[UInt32[Array, " rows"]], dtype: Any, *, is_fine: bool = False) -> Float[Array, " rows"]:
    """Return midpoints of equal parts of (0, 1). For 2^31 parts in float32, midpoints near 1 are rounded."""
    bits = 26  # of each of float64's two words
    if len(words) == 1:
        bits = 31 if is_fine else 23
    parts = [(word >> np.uint32(32 - bits)).astype(jnp.int32).astype(dtype) for word in words]
    number = functools.reduce(lambda high, low: high * 2.0**bits + low, parts)
    return (number + 0.5) * 2.0 ** -(bits * len(words))


def _on_circle(turns: Float[Array, "*shape"]) -> tuple[Float[Array, "*shape"], Float[Array, "*shape"]]:
    """Return cosine and sine of 2 pi `turns` for |turns| <= 1/2, with errors of 1e-6 in float32, 1e-14 in float64."""
    square = jnp.square(turns)
    cosine, sine = _SERIES_FLOAT32 if turns.dtype == jnp.float32 else _SERIES_FLOAT64
    return _alternating(cosine, square), turns * _alternating(sine, square)


def _circle_series(degree: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return |coefficients| on [0, 1/4] of cos(2 pi q^0.5), up to `degree` + 1, and of sin(2 pi q^0.5) / q^0.5."""

    def fit(function: Callable[[np.ndarray], np.ndarray], degree: int) -> tuple[float, ...]:
        series = np.polynomial.Chebyshev.interpolate(function, degree, domain=[0, 0.25])
        return tuple(np.abs(series.convert(kind=np.polynomial.Polynomial).coef).tolist())

    return (
        fit(lambda squares: np.cos(2 * np.pi * np.sqrt(squares)), degree + 1),
        fit(lambda squares: np.sin(2 * np.pi * np.sqrt(squares)) / np.sqrt(squares), degree),
    )


_SERIES_FLOAT32 = _circle_series(5)
_SERIES_FLOAT64 = _circle_series(9)


def _alternating(coefficients: tuple[float, ...], number: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return a_0 - q (a_1 - q (a_2 - ...)), where all products are positive."""
    value = jnp.full((), coefficients[-1], number.dtype)
    for coefficient in coefficients[-2::-1]:
        value = coefficient - rounded_positive(value * number)
    return value


def _interleave(columns: list[Float[Array, " rows"]], count: int) -> Float[Array, " n"]:
    return stored(jnp.stack(stored(columns), axis=1).reshape(-1)[:count])
