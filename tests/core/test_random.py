"""The numbers of a round against their definition, and the unrolled generator against `jax.random`, bit by bit."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core import random, threefry

# Random123's own answers (kat_vectors): of the counter and the key that are all 0, all 1, and digits of pi.
DIGITS = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0, 0x082EFA98, 0xEC4E6C89]
ANSWERS = {
    (13, 0): "531c7e4f 39491ee5 2c855a92 3d6abf9a",
    (13, 1): "c4189358 1c9cc83a d5881c67 6a0a89e0",
    (13, 2): "4aa71d8f 734738c2 431fc6a8 ae6debf1",
    (20, 0): "9c6ca96a e17eae66 fc10ecd4 5256a7d8",
    (20, 1): "2a881696 57012287 f6c7446e a16a6732",
    (20, 2): "59cd1dbb b8879579 86b5d00c ac8b6d84",
}
ROTATIONS = [(10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20)]


class Rounds(NamedTuple):
    round: jax.Array


def hashed(key, counter, rounds=threefry.ROUNDS):
    """The block of four words, one integer at a time, as the paper's figures have it: words 1 and 3 take turns."""
    most = 2**32 - 1
    keys = [*key, key[0] ^ key[1] ^ key[2] ^ key[3] ^ 0x1BD11BDA]
    words = [(word + part) & most for word, part in zip(counter, key, strict=True)]
    for number in range(rounds):
        partners = (1, 3) if number % 2 == 0 else (3, 1)
        for first, second, distance in zip((0, 2), partners, ROTATIONS[number % 8], strict=True):
            words[first] = (words[first] + words[second]) & most
            turned = (words[second] << distance | words[second] >> (32 - distance)) & most
            words[second] = turned ^ words[first]
        if number % 4 == 3:
            turn = number // 4 + 1
            words = [(word + keys[(turn + place) % 5]) & most for place, word in enumerate(words)]
            words[3] = (words[3] + turn) & most
    return words


@pytest.mark.parametrize(("rounds", "which"), ANSWERS)
def test_blocks_are_those_of_random123(rounds, which):
    """Would catch a wrong rotation, a word that changes place, a key that comes too late."""
    counter, key = [([0] * 4, [0] * 4), ([2**32 - 1] * 4, [2**32 - 1] * 4), (DIGITS[:4], DIGITS[4:])][which]
    expected = [int(word, 16) for word in ANSWERS[rounds, which].split()]
    assert hashed(key, counter, rounds) == expected
    key, counter = ([jnp.uint32(word) for word in part] for part in (key, counter))
    words = threefry.threefry4x32(key, counter, rounds)
    assert [int(word) for word in words] == expected


def expected_draws(key, num_uniforms, num_normals, is_double):
    """Documented results of `draws`."""
    words = [*map(int, jax.random.key_data(key)), 0, 0]
    each = 2 if is_double else 1

    def numbers(stream, count, bits):
        blocks = [hashed(words, [place, stream, 0, 0]) for place in range(-(-each * count // 4))]
        flat = np.array(blocks, np.int64).reshape(-1, each)[:count] >> (32 - bits)
        return [sum(int(part) << bits * (each - 1 - i) for i, part in enumerate(row)) for row in flat]

    def midpoints(stream, count, bits):
        return (np.array(numbers(stream, count, bits), float) + 0.5) / 2.0 ** (each * bits)

    coarse, fine = (26, 26) if is_double else (23, 31)
    pairs = num_normals + num_normals % 2
    radial, angular = midpoints(1, pairs, fine)[::2], midpoints(1, pairs, coarse)[1::2]
    units = midpoints(0, num_uniforms, coarse)
    radius, angle = np.sqrt(-2 * np.log(radial)), 2 * np.pi * (angular - 0.5)
    return units, np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1).ravel()[:num_normals]


@pytest.mark.parametrize("is_double", [False, True])
@pytest.mark.parametrize(("num_uniforms", "num_normals"), [(13, 50), (6, 0)])
def test_numbers_are_those_of_the_documented_generator(num_uniforms, num_normals, is_double):
    """Would catch another order of words, a counter that normals share with uniforms, or a polynomial that is off."""
    with jax.enable_x64(is_double):
        key, dtype = mt.root_key(7), np.dtype(np.float64 if is_double else np.float32)
        found = random.draws(key, num_uniforms, num_normals, dtype)
        expected = expected_draws(key, num_uniforms, num_normals, is_double)
        tolerances = ((0, 0), (1e-13, 1e-13)) if is_double else ((0, 0), (1e-5, 1e-5))
        for actual, wanted, (absolute, relative) in zip(found, expected, tolerances, strict=True):
            assert actual.dtype == dtype
            np.testing.assert_allclose(actual, wanted, rtol=relative, atol=absolute)
        np.testing.assert_array_equal(random.uniforms(key, num_uniforms, dtype), found[0])
        np.testing.assert_array_equal(random.normals(key, num_normals, dtype), found[1])


@pytest.mark.parametrize("is_double", [False, True])
def test_a_longer_array_begins_with_the_shorter(is_double):
    """Would catch draws that padding changes: uniforms that move with the number of normals, or the reverse."""
    with jax.enable_x64(is_double):
        dtype = np.dtype(np.float64 if is_double else np.float32)
        long = random.draws(mt.root_key(4), 301, 303, dtype)
        for sizes in ((37, 0), (300, 302)):
            for whole, part, size in zip(long, random.draws(mt.root_key(4), *sizes, dtype), sizes, strict=True):
                np.testing.assert_array_equal(part, whole[:size])


def test_no_number_is_infinite_or_an_end():
    """Would catch a uniform that is 0 or 1, or a normal of the logarithm of 0: words of zeros and ones make them."""
    ends = [jnp.zeros(1, jnp.uint32), jnp.full(1, 2**32 - 1, jnp.uint32)]
    for dtype, each in ((np.float32, 1), (np.float64, 2)):
        with jax.enable_x64(dtype == np.float64):
            for end in ends:
                assert 0 < random._unit([end] * each, dtype)[0] < 1
                assert 0 < random._unit([end] * each, dtype, is_fine=True)[0] <= 1


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.int32])
def test_other_types_are_refused(dtype):
    with pytest.raises(TypeError):
        random.uniforms(mt.root_key(0), 3, dtype)


def test_keys_of_other_generators_are_taken_word_by_word():
    """Would catch a key of four words of which two are left out."""
    key = jax.random.wrap_key_data(jnp.arange(1, 5, dtype=jnp.uint32), impl="rbg")
    assert hashed([1, 2, 3, 4], [0, 0, 0, 0])[0] >> 9 == float(random.uniforms(key, 1, np.dtype("f4"))[0]) * 2**23 - 0.5


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(functools.partial(mt.simulate, plain=True), marks=pytest.mark.thorough),
        functools.partial(mt.simulate_batch, replicates=3),
    ],
    ids=["plain", "batch"],
)
def test_a_run_can_be_debugged_without_programs(run):
    """Would catch an engine that no debugger steps through, words of a hash that `jax_debug_nans` takes for numbers,
    or other draws than a program's."""

    def step(key, state, params):
        return state._replace(round=state.round + 1), (mt.draws(key, 1000, 3)[0], jax.random.uniform(key))

    system = mt.System(lambda key, params: Rounds(jnp.int32(0)), step)
    how = {"params": (), "num_rounds": 2}
    expected = run(system, mt.root_key(4), **how)
    with jax.debug_nans(True), jax.disable_jit():
        chex.assert_trees_all_equal(run(system, mt.root_key(4), **how), expected)


KEYS = jax.random.split(jax.random.key(12), 5)
SHAPES = ((), (7,), (3, 5))  # the last with an axis as long as the batch
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


def test_the_keys_themselves_may_be_of_any_words() -> None:
    """Would catch a carry or a shift that goes wrong for words at the ends of their range."""
    ends = np.array([0, 1, 2**31 - 1, 2**31, 2**32 - 1], np.uint32)
    words = np.stack(np.meshgrid(ends, ends), axis=-1).reshape(-1, 2)

    @jax.jit
    def both(words):
        keys = jax.random.wrap_key_data(words, impl=threefry.IMPLEMENTATION)
        return threefry.random_bits(keys, 32, (3,)), bits_of_jax(keys, 32, (3,))

    np.testing.assert_array_equal(*both(words))


@pytest.mark.parametrize("dtype", [np.uint32, np.int16])
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
