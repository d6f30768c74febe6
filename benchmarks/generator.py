"""The generator's words without end, for a battery of tests that reads them: TestU01, PractRand or dieharder.

    python -m benchmarks.generator rounds | dieharder -g 200 -a

`rounds` are the first block of each round of replicates 0 to 63, round by round: what runs begin with. `numbers` are
the blocks of one key in their order. Words are little-endian, 32 bits. The quick tests of `make test` are
`tests/statistical/test_generator.py`.
"""

import argparse
import os
import sys
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, UInt32

import moe_theory as mt
from moe_theory.core.random import NORMALS, block, replicate_keys, step_key

REPLICATES = 64
PART = 2**14  # blocks for each replicate made together


@jax.jit
def of_rounds(part: UInt32[Array, ""]) -> UInt32[Array, "blocks 4"]:
    """The first blocks of normals of `PART` rounds, of all replicates."""
    keys = replicate_keys(mt.root_key(0), jnp.arange(REPLICATES, dtype=jnp.uint32))
    times = part * PART + jnp.arange(PART, dtype=jnp.uint32)
    every = jax.vmap(jax.vmap(step_key, in_axes=(0, None)), in_axes=(None, 0))(keys, times).ravel()
    return jnp.stack(jax.vmap(lambda key: block(key, 0, NORMALS))(every), axis=1)


@jax.jit
def of_numbers(part: UInt32[Array, ""]) -> UInt32[Array, "blocks 4"]:
    """Blocks of normals of one key."""
    places = part * (PART * REPLICATES) + jnp.arange(PART * REPLICATES, dtype=jnp.uint32)
    return jnp.stack(block(mt.root_key(0), places, NORMALS), axis=1)


def streamed(order: str) -> Iterator[bytes]:
    """The words, part by part, until their counter is used up."""
    make = {"rounds": of_rounds, "numbers": of_numbers}[order]
    for part in range(2**32 // (PART if order == "rounds" else PART * REPLICATES)):
        yield np.asarray(make(jnp.uint32(part))).astype("<u4").tobytes()


def main() -> None:
    """Write the words to standard output until nobody reads them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("order", choices=["rounds", "numbers"])
    try:
        for words in streamed(parser.parse_args().order):
            sys.stdout.buffer.write(words)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
