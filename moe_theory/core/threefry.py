"""Threefry, which hashes a key and a counter into random words, with the same bits on every backend.

`core.random` uses `threefry4x32` with twelve rounds. `threefry2x32` is JAX's own, with the bits of `jax.random` under
its default `jax_threefry_partitionable`.

Source: J. Salmon, M. Moraes, R. Dror and D. Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

import functools
import operator
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, UInt, UInt32

from moe_theory.core.numerics import stored

IMPLEMENTATION = "threefry2x32"
ROUNDS = 12  # rounds of threefry4x32
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_ROTATIONS_OF_FOUR = ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))
_PARITY = np.uint32(0x1BD11BDA)  # a constant of the source, which mixes the words of a key
_WORD_BITS = 32

Words = UInt32[Array, "..."]


def threefry2x32(key: tuple[Words, Words], counter: tuple[Words, Words]) -> tuple[Words, Words]:
    """Return two hash words of a counter of two words, by a key of two. Shapes broadcast."""
    keys = (*key, key[0] ^ key[1] ^ _PARITY)
    first = counter[0] + keys[0]
    second = counter[1] + keys[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            first = first + second
            second = first ^ _rotated(second, distance)
        first = first + keys[(group + 1) % 3]
        second = second + keys[(group + 2) % 3] + np.uint32(group + 1)
    return first, second


def threefry4x32(key: Sequence[Words], counter: Sequence[Words], rounds: int = ROUNDS) -> list[Words]:
    """Return four hash words of a counter of four words, by a key of four. Shapes broadcast."""
    keys = [*key, functools.reduce(operator.xor, key) ^ _PARITY]
    words = [word + part for word, part in zip(counter, key, strict=True)]
    for number in range(rounds):
        partners = (1, 3) if number % 2 == 0 else (3, 1)
        distances = _ROTATIONS_OF_FOUR[number % len(_ROTATIONS_OF_FOUR)]
        for first, second, distance in zip((0, 2), partners, distances, strict=True):
            words[first] = words[first] + words[second]
            words[second] = words[first] ^ _rotated(words[second], distance)
        group, place = divmod(number + 1, 4)
        if place == 0:  # after every fourth round, the key is added in another order
            words = [word + keys[(group + i) % 5] for i, word in enumerate(words)]
            words[3] = words[3] + np.uint32(group)
    return words


def stored_pairs(words: Sequence[Words]) -> list[Words]:
    """Return an even number of hash words, `stored` in pairs as the parts of complex numbers."""
    if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue]
        return list(words)  # nothing is stored, and `jax_debug_nans` would see NaN in some pairs
    parts = [jax.lax.bitcast_convert_type(word, jnp.float32) for word in words]
    pairs = stored([jax.lax.complex(*pair) for pair in zip(parts[::2], parts[1::2], strict=True)])
    stored_parts = []
    for pair in pairs:
        stored_parts += [jax.lax.real(pair), jax.lax.imag(pair)]
    # Each part is stored again on its own, because reading every other number takes several times as long.
    return stored([jax.lax.bitcast_convert_type(part, jnp.uint32) for part in stored_parts])


def _rotated(word: Words, distance: int) -> Words:
    return word << np.uint32(distance) | word >> np.uint32(_WORD_BITS - distance)


def is_served(keys: Key[Array, "..."]) -> bool:
    """Return whether these functions draw the bits of `jax.random`, for this key and JAX's settings."""
    return str(jax.random.key_impl(keys)) == IMPLEMENTATION and bool(jax.config.values["jax_threefry_partitionable"])


def random_bits(keys: Key[Array, " B"], bit_width: int, shape: tuple[int, ...]) -> UInt[Array, "*shape B"]:
    """Return `jax.random.bits(key, shape)` in words of 8, 16, 32 or 64 bits, with keys on the last axis."""
    counter = jnp.arange(np.prod(shape, dtype=np.int64), dtype=jnp.uint32).reshape(*shape, 1)
    high, low = threefry2x32(_words(keys), (jnp.zeros((), jnp.uint32), counter))
    if bit_width == 2 * _WORD_BITS:
        return high.astype(jnp.uint64) << np.uint64(_WORD_BITS) | low.astype(jnp.uint64)
    return (high ^ low).astype(f"uint{bit_width}")


def fold_in(keys: Key[Array, " B"], data: Int[Array, "..."]) -> Key[Array, " B"]:
    """Return `jax.random.fold_in(key, data)` for each key, with one `data` of 32 bits or one for each key."""
    counter = (jnp.zeros((), jnp.uint32), jnp.asarray(data).astype(jnp.uint32))
    # Two stored arrays, because the words of packed keys lie apart in memory.
    words = stored(threefry2x32(_words(keys), counter))
    return jax.random.wrap_key_data(jnp.stack(words, axis=-1), impl=IMPLEMENTATION)


def split(keys: Key[Array, " B"], shape: tuple[int, ...]) -> Key[Array, "*shape B"]:
    """Return the keys of `jax.random.split(key, shape)` for each key."""
    return fold_in(keys, jnp.arange(np.prod(shape, dtype=np.int64), dtype=jnp.uint32).reshape(*shape, 1))


def _words(keys: Key[Array, " B"]) -> tuple[Words, Words]:
    words = jax.random.key_data(keys)
    return words[..., 0], words[..., 1]
