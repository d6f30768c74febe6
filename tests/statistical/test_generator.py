"""The generator itself: its words, in the orders in which they are used, by tests of the NIST's battery SP 800-22 and
Marsaglia's birthday spacings. Keys are fixed, so that a run repeats; a true generator fails with probability below
LEVEL each.

Source: L. Bassham et al., A statistical test suite for random and pseudorandom number generators, NIST, 2010.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import moe_theory as mt
from moe_theory.core import threefry
from moe_theory.core.random import block, replicate_keys, step_key

pytestmark = pytest.mark.usefixtures("much_room")

LEVEL = 1e-7
BLOCKS = 2**18  # of four words


@functools.partial(jax.jit, static_argnums=(0, 1))
def blocks(order: str, rounds: int):
    """(BLOCKS, 4) words."""
    root, count = mt.root_key(31), jnp.arange(BLOCKS, dtype=jnp.uint32)
    streams = count % 2  # those of uniforms and those of normals, in turns
    if order == "numbers of a round":
        return jnp.stack(block(root, count // 2, streams, rounds), axis=1)
    if order == "rounds of a replicate":
        keys = jax.vmap(step_key, in_axes=(None, 0))(root, count)
    else:
        keys = jax.vmap(step_key, in_axes=(0, None))(replicate_keys(root, count), 1)
    return jnp.stack(jax.vmap(lambda key, stream: block(key, 0, stream, rounds))(keys, streams), axis=1)


def words_of(order: str, rounds: int = threefry.ROUNDS) -> np.ndarray:
    return np.asarray(blocks(order, rounds))


def bits_of(words: np.ndarray) -> np.ndarray:
    return np.unpackbits(words.ravel().astype(">u4").view(np.uint8)).astype(np.int8)


def frequency(words):
    """As many ones as zeros: of all bits, and of each place of a word."""
    bits = bits_of(words).reshape(-1, 32)
    scores = np.append((2.0 * bits.mean(axis=0) - 1) * np.sqrt(len(bits)), (2.0 * bits.mean() - 1) * np.sqrt(bits.size))
    return 33 * special.erfc(np.abs(scores) / np.sqrt(2)).min()


def rank(words):
    """Ranks of 32 x 32 matrices of bits over the field of two elements."""
    matrices = words.reshape(-1, 32)[: 2**13].copy()
    every, ranks = np.arange(len(matrices)), np.zeros(len(matrices), int)
    for bit in range(32):
        mask = np.uint32(1 << bit)
        rows = (matrices & mask != 0) & (np.arange(32) >= ranks[:, None])
        has = rows.any(axis=1)
        pivot = np.where(has, rows.argmax(axis=1), 0)
        top = np.minimum(ranks, 31)
        pivots, tops = matrices[every, pivot], matrices[every, top]
        matrices[every, pivot] = np.where(has, tops, pivots)
        matrices[every, top] = np.where(has, pivots, tops)
        below = (matrices & mask != 0) & (np.arange(32) > top[:, None]) & has[:, None]
        matrices ^= np.where(below, matrices[every, top][:, None], 0).astype(np.uint32)
        ranks += has
    expected = np.array([0.2888, 0.5776, 0.1336]) * len(ranks)
    found = [np.sum(ranks == 32), np.sum(ranks == 31), np.sum(ranks < 31)]
    return stats.chisquare(found, expected).pvalue


def serial(words):
    """Pairs of neighbouring words by their first eight bits, at each distance up to a block; and halves of a word."""
    first = (words.ravel() >> 24).astype(np.int64)
    tables = [first[:-lag] * 256 + first[lag:] for lag in (1, 2, 3, 4)]
    tables += [(words.ravel() & 0xFFFF).astype(np.int64), (words.ravel() >> 16).astype(np.int64)]
    return len(tables) * min(stats.chisquare(np.bincount(table, minlength=2**16)).pvalue for table in tables)


def birthday_spacings(words, birthdays=2**9, bits=24):
    """Equal spacings between 512 days of a year of 2^24, over many years: Poisson with mean 2, m^3 / 4n."""
    days = np.sort((words.ravel() >> (32 - bits)).astype(np.int64).reshape(-1, birthdays), axis=1)
    spacings = np.sort(np.diff(days, axis=1), axis=1)
    equal = np.sum(np.diff(spacings, axis=1) == 0, axis=1)
    mean = birthdays**3 / 2 ** (bits + 2)
    expected = np.array([*stats.poisson.pmf(range(6), mean), stats.poisson.sf(5, mean)]) * len(equal)
    found = np.bincount(np.minimum(equal, 6), minlength=7)
    return stats.chisquare(found, expected).pvalue


BATTERY = (frequency, rank, serial, birthday_spacings)
ORDERS = ("numbers of a round", "rounds of a replicate", "replicates")


@pytest.mark.parametrize("order", ORDERS)
def test_words_pass(order):
    """Would catch a generator that is not one, or keys and counters that lie too near one another for it."""
    words = words_of(order)
    values = {test.__name__: test(words) for test in BATTERY}
    assert not {name: value for name, value in values.items() if value <= LEVEL}
