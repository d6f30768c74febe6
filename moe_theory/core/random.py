"""One integer per replicate: keys that never depend on batching, chunking, order or device.

Source: `replicate_key = fold_in(root, replicate)`; `step_key = fold_in(replicate_key, t)` with t = 1, 2, ...; what a
replicate draws before its first round comes from t = 0.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, UInt32

from moe_theory.core.errors import InvalidRunError
from moe_theory.core.forks import require_own_jax


def root_key(seed: int) -> Key[Array, ""]:
    """The key of a whole experiment, from one integer seed (threefry: the same bits on every backend).

    Raises: InvalidRunError unless `seed` is a whole number of 32 bits (without x64, larger ones would alias); and in a
        forked child of a process that has used JAX.

    Examples:
        >>> import moe_theory as mt
        >>> key = mt.root_key(0)
        >>> mt.root_key(-1)
        Traceback (most recent call last):
            ...
        moe_theory.core.errors.InvalidRunError: seed=-1 must be a whole number in [0, 2**32): ...
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**32:
        raise InvalidRunError(f"seed={seed!r} must be a whole number in [0, 2**32): others would alias. Change seed.")
    require_own_jax()
    # Its words are written out, because `jax.random.key` adds an offset that the environment may set.
    return jax.random.wrap_key_data(jnp.array([0, seed], jnp.uint32), impl="threefry2x32")


def typed_key(key: Key[Array, ""] | UInt32[Array, " words"]) -> Key[Array, ""]:
    """The key as a typed one, also from the raw words of `jax.random.PRNGKey`, whose axis would read as a batch.
    Raises: InvalidRunError for anything that is not one key.
    """
    key = jnp.asarray(key)
    if key.dtype == jnp.uint32:
        key = jax.random.wrap_key_data(key)
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key) or key.shape != ():
        raise InvalidRunError(
            f"a key of shape {key.shape} and type {key.dtype} is not one random key: make one by root_key(seed)."
        )
    return key


def replicate_keys(root: Key[Array, ""], replicates: Int[Array, " B"]) -> Key[Array, " B"]:
    """One key a replicate, from the integers that name them."""
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(root, jnp.asarray(replicates, jnp.uint32))


def step_key(replicate_key: Key[Array, ""], time: Int[Array, ""]) -> Key[Array, ""]:
    """The key of round `time` of one replicate; `time` 0 is the draw of the initial state."""
    return jax.random.fold_in(replicate_key, time)


def symmetric_uniforms(key: Key[Array, ""], count: int, dtype: jnp.dtype) -> Float[Array, " n"]:
    """All the numbers of a round in one call of the generator: independent, uniform on the open interval (-1, 1). One
    call costs one hash a number and nothing per kind of number. A longer array begins with the shorter one, so padding
    never changes a draw.
    """
    lowest = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype))
    return jax.random.uniform(key, (count,), dtype, minval=lowest, maxval=1)


def normals(uniforms: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Standard normals from uniforms on (-1, 1) by the inverse distribution function, as in `jax.random.normal`."""
    return math.sqrt(2) * jax.lax.erf_inv(uniforms)
