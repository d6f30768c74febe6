"""The unrolled generator against `jax.random`, bit by bit, and when it steps aside; runs in tests/contract."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core import threefry

KEYS = jax.random.split(jax.random.key(12), 5)
SHAPES = ((), (1,), (7,), (2, 3), (3, 5))  # the last with an axis as long as the batch
WIDTHS = (8, 16, 32, 64)


def one_by_one(draw: Callable[..., Any], *arguments: Any) -> Any:
    """What `draw` gives for each key alone, on the last axis."""
    return jnp.moveaxis(jax.lax.map(lambda each: draw(*each), arguments), 0, -1)


def bits_of_jax(keys: Any, width: int, shape: tuple[int, ...]) -> Any:
    return one_by_one(lambda key: jax.random.bits(key, shape, f"uint{width}"), keys)


@functools.cache
def bits(x64: bool) -> Any:
    """For every shape and width, the bits and JAX's own, by one program."""

    @jax.jit
    def both(keys):
        return {
            (width, shape): (threefry.random_bits(keys, width, shape), bits_of_jax(keys, width, shape))
            for width in WIDTHS
            if (width == 64) == x64
            for shape in SHAPES
        }

    with jax.enable_x64(x64):
        return both(KEYS)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bits_are_those_of_jax(shape: tuple[int, ...], width: int) -> None:
    """Would catch a counter in another order, words that are swapped, or a narrow number cut from the wrong end."""
    actual, expected = bits(width == 64)[width, shape]
    assert actual.shape == (*shape, 5)
    assert actual.dtype == f"uint{width}"
    np.testing.assert_array_equal(actual, expected)


def test_no_numbers_are_no_numbers() -> None:
    """Would catch a shape with an empty axis that becomes one number."""
    assert jax.eval_shape(lambda: threefry.random_bits(KEYS, 32, (2, 0))).shape == (2, 0, 5)


def test_many_numbers_of_one_key_count_on() -> None:
    """Would catch a counter that wraps early or repeats, beyond the small shapes."""
    both = jax.jit(lambda keys: (threefry.random_bits(keys, 32, (300, 301)), bits_of_jax(keys, 32, (300, 301))))
    np.testing.assert_array_equal(*both(KEYS[:1]))


def test_the_keys_themselves_may_be_of_any_words() -> None:
    """Would catch a carry or a shift that goes wrong for words at the ends of their range."""
    ends = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
    words = np.stack(np.meshgrid(ends, ends), axis=-1).reshape(-1, 2)

    @jax.jit
    def both(words):
        keys = jax.random.wrap_key_data(words, impl=threefry.IMPLEMENTATION)
        return threefry.random_bits(keys, 32, (3,)), bits_of_jax(keys, 32, (3,))

    np.testing.assert_array_equal(*both(words))


TIMES = (0, 1, 2**31 - 1, 2**31, 2**32 - 1)


def test_one_time_is_folded_into_every_key() -> None:
    """Would catch a time that is signed, widened, or mixed into one key alone."""
    both = jax.jit(lambda time: (threefry.fold_in(KEYS, time), jax.lax.map(lambda key: folded(key, time), KEYS)))
    for time in TIMES:
        assert_same_keys(*both(np.uint32(time)))


@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.uint8, np.int16])
def test_each_key_may_have_a_time_of_its_own(dtype: Any) -> None:
    """Would catch times that go to other keys, or a negative one that is not the same bits as JAX makes of it."""
    low = 0 if np.issubdtype(dtype, np.unsignedinteger) else np.iinfo(dtype).min
    times = np.array([low, 0, 1, 77, np.iinfo(dtype).max], dtype)
    both = jax.jit(
        lambda times: (threefry.fold_in(KEYS, times), jax.lax.map(lambda each: folded(*each), (KEYS, times)))
    )
    assert_same_keys(*both(times))


def folded(key: Any, time: Any) -> Any:
    return jax.random.fold_in(key, time.astype(jnp.uint32))


def assert_same_keys(actual: Any, expected: Any) -> None:
    assert actual.dtype == expected.dtype
    np.testing.assert_array_equal(jax.random.key_data(actual), jax.random.key_data(expected))


def test_only_jax_s_default_generator_is_served() -> None:
    """Would catch other bits than `jax.random` draws, for keys of another kind or in its older mode."""
    assert threefry.is_served(KEYS)
    assert threefry.is_served(mt.root_key(0))
    for impl in ("rbg", "unsafe_rbg"):
        assert not threefry.is_served(jax.random.key(0, impl=impl))
    with jax.threefry_partitionable(False):
        assert not threefry.is_served(KEYS)
    assert threefry.is_served(KEYS)
