"""The unrolled generator against `jax.random`, bit by bit, and when it steps aside; runs in tests/contract."""

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


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bits_are_those_of_jax(shape: tuple[int, ...], width: int) -> None:
    """Would catch a counter in another order, words that are swapped, or a narrow number cut from the wrong end."""
    with jax.enable_x64(width == 64):
        bits = threefry.random_bits(KEYS, width, shape)
        assert bits.shape == (*shape, 5)
        assert bits.dtype == f"uint{width}"
        for place, key in enumerate(KEYS):
            np.testing.assert_array_equal(bits[..., place], jax.random.bits(key, shape, f"uint{width}"))


def test_no_numbers_are_no_numbers() -> None:
    """Would catch a shape with an empty axis that becomes one number."""
    assert threefry.random_bits(KEYS, 32, (2, 0)).shape == (2, 0, 5)


def test_many_numbers_of_one_key_count_on() -> None:
    """Would catch a counter that wraps early or repeats, beyond the small shapes."""
    key = jax.random.key(3)
    bits = threefry.random_bits(key[None], 32, (300, 301))
    np.testing.assert_array_equal(bits[..., 0], jax.random.bits(key, (300, 301)))


def test_the_keys_themselves_may_be_of_any_words() -> None:
    """Would catch a carry or a shift that goes wrong for words at the ends of their range."""
    ends = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
    words = np.stack(np.meshgrid(ends, ends), axis=-1).reshape(-1, 2)
    keys = jax.random.wrap_key_data(jnp.asarray(words), impl=threefry.IMPLEMENTATION)
    expected = jax.vmap(lambda key: jax.random.bits(key, (3,)), out_axes=-1)(keys)
    np.testing.assert_array_equal(threefry.random_bits(keys, 32, (3,)), expected)


TIMES = (0, 1, 2**31 - 1, 2**31, 2**32 - 1)


@pytest.mark.parametrize("time", TIMES)
def test_one_time_is_folded_into_every_key(time: int) -> None:
    """Would catch a time that is signed, widened, or mixed into one key alone."""
    folded = threefry.fold_in(KEYS, jnp.uint32(time))
    for place, key in enumerate(KEYS):
        assert_same_keys(folded[place], jax.random.fold_in(key, np.uint32(time)))


@pytest.mark.parametrize("dtype", [np.uint32, np.int32, np.uint8, np.int16])
def test_each_key_may_have_a_time_of_its_own(dtype: Any) -> None:
    """Would catch times that go to other keys, or a negative one that is not the same bits as JAX makes of it."""
    low = 0 if np.issubdtype(dtype, np.unsignedinteger) else np.iinfo(dtype).min
    times = np.array([low, 0, 1, 77, np.iinfo(dtype).max], dtype)
    folded = threefry.fold_in(KEYS, jnp.asarray(times))
    for place, key in enumerate(KEYS):
        expected = jax.random.fold_in(key, jnp.asarray(times[place]).astype(jnp.uint32))
        assert_same_keys(folded[place], expected)


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
