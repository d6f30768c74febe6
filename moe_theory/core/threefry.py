"""JAX's threefry, with its twenty rounds written out.

On a CPU JAX keeps them in a loop, which costs about six times as much a number. The bits are the same: those of
`jax.random` with `jax_threefry_partitionable`, its default. The same key gives them on every backend, which is why no
backend has a generator of its own here.

Source: J. Salmon, M. Moraes, R. Dror and D. Shaw, Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, UInt, UInt32

from moe_theory.core.numerics import stored

IMPLEMENTATION = "threefry2x32"
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_WORD_BITS = 32

Words = UInt32[Array, "..."]


def threefry2x32(key: tuple[Words, Words], counter: tuple[Words, Words]) -> tuple[Words, Words]:
    """The block of two words that the cipher makes of a counter; shapes broadcast."""
    keys = (*key, key[0] ^ key[1] ^ _PARITY)
    first, second = counter[0] + keys[0], counter[1] + keys[1]
    for group in range(5):
        for distance in _ROTATIONS[group % 2]:
            first = first + second
            second = first ^ (second << np.uint32(distance) | second >> np.uint32(_WORD_BITS - distance))
        first = first + keys[(group + 1) % 3]
        second = second + keys[(group + 2) % 3] + np.uint32(group + 1)
    return first, second


def is_served(keys: Key[Array, "..."]) -> bool:
    """Whether keys are of the kind, and JAX set up so, that the functions here draw what `jax.random` would."""
    return str(jax.random.key_impl(keys)) == IMPLEMENTATION and bool(jax.config.values["jax_threefry_partitionable"])


def random_bits(keys: Key[Array, " B"], bit_width: int, shape: tuple[int, ...]) -> UInt[Array, "*shape B"]:
    """For each key the bits of `jax.random.bits(key, shape)`, of 8, 16, 32 or 64 a number; keys on the last axis."""
    counter = jnp.arange(np.prod(shape, dtype=np.int64), dtype=jnp.uint32).reshape(*shape, 1)
    high, low = threefry2x32(_words(keys), (jnp.zeros((), jnp.uint32), counter))
    if bit_width == 2 * _WORD_BITS:
        return high.astype(jnp.uint64) << np.uint64(_WORD_BITS) | low.astype(jnp.uint64)
    return (high ^ low).astype(f"uint{bit_width}")


def fold_in(keys: Key[Array, " B"], data: Int[Array, "..."]) -> Key[Array, " B"]:
    """For each key `jax.random.fold_in(key, data)`, with one `data` of 32 bits or one a key."""
    counter = (jnp.zeros((), jnp.uint32), jnp.asarray(data).astype(jnp.uint32))
    # Stored as two arrays: packed, as keys are, their words would lie apart in memory.
    words = stored(threefry2x32(_words(keys), counter))
    return jax.random.wrap_key_data(jnp.stack(words, axis=-1), impl=IMPLEMENTATION)


def _words(keys: Key[Array, " B"]) -> tuple[Words, Words]:
    words = jax.random.key_data(keys)
    return words[..., 0], words[..., 1]
