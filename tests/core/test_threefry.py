"""The unrolled generator against `jax.random`, bit by bit, and when it steps aside."""

from collections.abc import Callable
from typing import Any, NamedTuple

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


class State(NamedTuple):
    """Of a system that sums what it draws."""

    total: Any
    round: Any


def draw(key, state, params):
    """Numbers of several widths and shapes."""
    first, second = jax.random.split(key)
    drawn = {
        "uniform": jax.random.uniform(first, (3,)),
        "bits": jax.random.bits(second, (2, 3)),
        "bytes": jax.random.bits(second, (5,), np.uint8),
        "folded": jax.random.normal(jax.random.fold_in(first, state.round)),
    }
    return State(state.total + drawn["uniform"], state.round + 1), drawn


def build() -> mt.System:
    """A system of its own for each mode: what is compiled for one must not be run in another."""
    return mt.System(
        lambda key, params: State(jax.random.uniform(key, (3,)), jnp.int32(0)), lambda *parts: draw(*parts)
    )


def test_a_batch_draws_what_jax_would_in_either_mode() -> None:
    """Would catch numbers that are JAX's in one mode alone, and a compiled program that outlives its mode."""
    system, root = build(), mt.root_key(4)
    assert_batch_is_its_replicates(system, root)
    _, before = mt.simulate_batch(system, root, 3, 1.0, 4)
    with jax.threefry_partitionable(False):
        _, older = mt.simulate_batch(system, root, 3, 1.0, 4)
        assert_batch_is_its_replicates(system, root)
    assert not np.array_equal(before["bits"], older["bits"])
    _, after = mt.simulate_batch(system, root, 3, 1.0, 4)
    np.testing.assert_array_equal(before["bits"], after["bits"])


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_other_generators_run_and_repeat(impl: str) -> None:
    """Would catch keys of another kind that are read as threefry's, and a run that does not repeat.

    JAX draws other numbers from these where it vectorises, so that a replicate alone is not the one of a batch.
    """
    root = jax.random.key(4, impl=impl)
    state, drawn = mt.simulate_batch(build(), root, 3, 1.0, 4)
    _, again = mt.simulate_batch(build(), root, 3, 1.0, 4)
    np.testing.assert_array_equal(drawn["bits"], again["bits"])
    assert len(np.unique(np.asarray(drawn["bits"]))) == drawn["bits"].size  # 72 of 2**32: alike once in 1e6
    np.testing.assert_array_equal(state.round, [4, 4, 4])


def assert_batch_is_its_replicates(system: mt.System, root: Any) -> None:
    states, drawn = mt.simulate_batch(system, root, 3, 1.0, 4)
    step = tuple(jax.jit(part, compiler_options={"xla_backend_optimization_level": 0}) for part in system)
    for replicate in range(3):
        key = jax.random.fold_in(root, replicate)
        state, expected = loop_of(*step, key, 4)
        runs = [jax.tree.map(lambda leaf, place=replicate: leaf[..., place], (states, drawn))]
        runs += [mt.simulate(system, key, 1.0, 4)] if replicate == 2 else []
        for last, one in runs:
            for name in ("bits", "bytes"):
                np.testing.assert_array_equal(one[name], expected[name])
            for name in ("uniform", "folded"):
                assert np.max(np.abs(one[name] - expected[name])) <= 1e-6
            assert np.max(np.abs(last.total - state.total)) <= 1e-5


def loop_of(init: Callable[..., Any], step: Callable[..., Any], key: Any, num_rounds: int) -> Any:
    """The documented run: the start from round 0's key, each round from its own."""
    state, shown = init(jax.random.fold_in(key, 0), 1.0), []
    for time in range(1, num_rounds + 1):
        state, info = step(jax.random.fold_in(key, time), state, 1.0)
        shown.append(info)
    return state, jax.tree.map(lambda *leaves: np.stack(leaves), *shown)
