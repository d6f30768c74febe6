"""Random numbers for measurements, independent of the runs' random numbers."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float, Int, Key

from moe_theory.core import programs
from moe_theory.core.engine import BLOCK_WIDTH
from moe_theory.core.random import replicate_keys, root_key, uniforms
from moe_theory.runs.cells import Run

Law = Callable[[Key[Array, ""], int, Any], Array]  # `random.uniforms` or `random.normals`


def draws_of(run: Run, count: int, stream: int, law: Law = uniforms) -> Float[np.ndarray, "B n"]:
    """Return each replicate's random numbers, by default uniform on (0, 1). `stream` is a seed for this measurement."""
    root = root_key(stream)
    draws = in_blocks(lambda places: _draws(root, run.replicates[places], count, law), len(run.replicates))
    return draws.astype(np.float64)


@functools.partial(programs.jit, static_argnums=(2, 3))
def _draws(root: Key[Array, ""], replicates: Int[Array, " B"], count: int, law: Law) -> Float[Array, "B n"]:
    return jax.vmap(lambda key: law(key, count, np.dtype(np.float32)))(replicate_keys(root, replicates))


def in_blocks(function: Callable[[Int[np.ndarray, " W"]], Array], count: int) -> np.ndarray:
    """Return a function's values at all indices below `count`. It is called on blocks of equal size."""
    # The last block is filled up with the last index.
    blocks = [np.minimum(first + np.arange(BLOCK_WIDTH), count - 1) for first in range(0, count, BLOCK_WIDTH)]
    return np.concatenate([np.asarray(function(block)) for block in blocks])[:count]
