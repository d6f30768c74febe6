"""How many replicates to run together, and a batch of more of them in blocks of so many.

On a CPU launching an operation costs the same for any number of replicates, and their states together should stay near
the core that works on them: few replicates waste the one, many the other.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from moe_theory.core import engine

# Measured on one core for the systems of `continual` and `edge`: narrower costs more at all sizes of state up to
# 400 kB, wider up to twice as much at most of them.
BLOCK_WIDTH = 64
# Bytes of state beyond which half as many replicates cost less.
BLOCK_BYTES = 2**25
# Bytes of state from which a replicate fills a core by itself: what is so large is matrices, whose products batches
# only slow, and branches on what a replicate has come to are taken alone where a batch takes them all.
ALONE_BYTES = 2**20


def width_for(state: Any) -> int:
    """How many replicates of this state (of arrays or their shapes) to run together: 1, or a power of two to 64."""
    each = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    if each > ALONE_BYTES:
        return 1
    return min(BLOCK_WIDTH, 1 << (BLOCK_BYTES // max(each, 1)).bit_length() - 1)


def run(width: int, system: Any, keys: Any, state: Any, *arguments: Any) -> tuple[Any, Any]:
    """`engine.run` of a batch of keys (B,) with leaves of `state` (..., B), in blocks of `width` replicates.

    The last block is padded, so that one program runs them all and no replicate depends on B. XLA may run several
    blocks at once, on a core each.
    """
    count = keys.shape[0]
    blocks = []
    for first in range(0, count, width):
        places = np.minimum(np.arange(first, first + width), count - 1)
        part = jax.tree.map(lambda leaf, places=places: jnp.asarray(leaf)[..., places], state)
        blocks.append(engine.run(system, keys[places], part, *arguments))
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis=-1)[..., :count], *blocks)
