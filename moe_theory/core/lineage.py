"""A record of the key and replicates from which each returned state came. States do not store them."""

import hashlib
import weakref
from typing import Any

import jax
import numpy as np

from moe_theory.core.constraints import is_known
from moe_theory.core.errors import InvalidValueError

# By the `id` of a state's array `round`: a weak reference to this array, and the digest of the key and replicates. The
# reference tells whether a later array has the same `id`.
_DIGESTS: dict[int, tuple[Any, bytes]] = {}


def digest_of(key: Any, names: Any = ()) -> bytes | None:
    words = jax.random.key_data(key)  # traced inside a program even if the key itself is known
    if not is_known(words):
        return None
    return hashlib.blake2b(np.asarray(words).tobytes() + np.asarray(names).tobytes(), digest_size=16).digest()


def remember(state: Any, digest: bytes | None) -> None:
    """Store the key and replicates that `state` came from, for as long as its `round` exists."""
    round_array = state.round
    if digest is None or not isinstance(round_array, jax.Array) or not is_known(round_array):
        return
    array_id = id(round_array)
    reference = weakref.ref(round_array, lambda _: _DIGESTS.pop(array_id, None))
    _DIGESTS[array_id] = (reference, digest)


def require_same(state: Any, digest: bytes | None) -> None:
    if state is None or digest is None:
        return
    reference, first_digest = _DIGESTS.get(id(state.round), (None, None))
    if reference is not None and reference() is state.round and first_digest != digest:
        raise InvalidValueError(
            "the state was made with another key or other replicates, so its random numbers would not continue. Pass "
            "that key and those replicates, or use a copy: jax.tree.map(jax.numpy.copy, state)."
        )
