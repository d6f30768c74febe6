"""Large batches in blocks: catches replicates that a block loses, doubles, pads into the result or starts anew."""

import contextlib
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core import engine
from moe_theory.core.batching import trailing_vmap
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.random import replicate_keys
from moe_theory.core.rounds import planned, without_room
from moe_theory.core.system import check_system, observe_info

ROOT = mt.root_key(5)
NUM_ROUNDS = 6


class Walk(NamedTuple):
    place: jax.Array
    round: jax.Array


class Mixed(NamedTuple):
    words: jax.Array
    round: jax.Array


def begin(key, params):
    return Walk(jax.random.normal(key, (2,)), jnp.int32(0))


def walk(key, state, params):
    place = params * state.place + jax.random.normal(key, (2,))
    return Walk(place, state.round + 1), jnp.sum(place)


def run(replicates, num_rounds=NUM_ROUNDS, **options):
    walks = mt.simulate_batch(mt.System(begin, walk), ROOT, replicates, 0.5, num_rounds, 3, **options)
    return jax.tree.map(np.asarray, walks)


@pytest.mark.parametrize("count", [65, 130])
def test_a_replicate_is_the_same_in_any_large_batch(count):
    names = np.arange(count)[::-1] * 3 + 1
    whole, least = run(names), run(names[-engine.BLOCK_WIDTH :])
    assert all(leaf.shape[-1] == count for leaf in jax.tree.leaves(whole))
    chex.assert_trees_all_equal(jax.tree.map(lambda leaf: leaf[..., -engine.BLOCK_WIDTH :], whole), least)


@pytest.mark.parametrize("is_double", [False, True])
def test_threads_compute_as_their_caller_does(is_double):
    """Would catch blocks of another precision, which threads have where a caller's was set for a while, or other bits
    than those of a caller that is a thread itself.
    """
    with jax.enable_x64(True) if is_double else contextlib.nullcontext():
        here = run(200)
    with ThreadPoolExecutor(1) as thread:
        there = thread.submit(run, 200).result()
    if is_double:
        assert {leaf.dtype for leaf in jax.tree.leaves(here)} == {np.dtype(np.float64), np.dtype(np.int32)}
    else:
        chex.assert_trees_all_equal(here, there)


def test_small_batches_share_programs():
    """Would catch a program for each size of a batch, or replicates that a padded one loses or doubles."""
    run(8)
    before = engine.num_programs()
    for count in (5, 6, 7):
        chex.assert_trees_all_equal(run(count), jax.tree.map(lambda leaf, n=count: leaf[..., :n], run(8)))
    assert engine.num_programs() == before


@pytest.mark.parametrize(
    ("lengths", "num_programs"),
    [
        ([(200, 100), (300, 100), (250, 100), (101, 100)], 1),
        ([(320, 320), (500, 500), (417, 417), (6400, 6400)], 1),
        ([(40, 7), (33, 7), (7, 7), (3, 7), (17, 100), (1, 1), (18, 1)], 5),
    ],
    ids=str,
)
def test_runs_of_other_lengths_share_programs(lengths, num_programs):
    """Would catch a program for every number of rounds; and a block of draws, a record or a last round that is lost,
    doubled or moved: words that every round mixes with its own bits say which they were.
    """

    def mix(key, state, params):
        words = state.words * np.uint32(31) + jax.random.bits(key, (2,))
        return Mixed(words, state.round + 1), words

    system = mt.System(lambda key, params: Mixed(jax.random.bits(key, (2,)), jnp.int32(0)), mix)
    before = engine.num_programs()
    runs = [mt.simulate_batch(system, ROOT, 3, (), *length) for length in lengths]
    assert engine.num_programs() - before == num_programs
    _, words = mt.simulate_batch(system, ROOT, 3, (), max(lengths)[0], plain=True)
    for (num_rounds, record_every), (state, records) in zip(lengths, runs, strict=True):
        np.testing.assert_array_equal(state.words, words[num_rounds - 1])
        np.testing.assert_array_equal(state.round, 3 * [num_rounds])
        np.testing.assert_array_equal(records, words[mt.recorded_rounds(num_rounds, record_every) - 1])


@pytest.mark.parametrize(("num_rounds", "record_every"), [(17, 1), (60, 20)])
def test_large_records_have_no_spare_room(num_rounds, record_every, monkeypatch):
    """Would catch a few large records of a small state that take the memory of 16, and one of them that is lost."""
    held = []
    monkeypatch.setattr(
        engine.rounds, "without_room", lambda records, *how: held.append(records) or without_room(records, *how)
    )

    def watched(key, state, params):
        state, total = walk(key, state, params)
        return state, total * jnp.arange(engine.SPARE_BYTES // 16)

    system = mt.System(begin, watched)
    _, records = mt.simulate(system, ROOT, 0.5, num_rounds, record_every)
    assert engine.bytes_of(held) <= engine.bytes_of(records) + engine.SPARE_BYTES
    _, totals = mt.simulate(mt.System(begin, walk), ROOT, 0.5, num_rounds, record_every)
    np.testing.assert_array_equal(records[:, 1], totals)


@pytest.mark.parametrize("record_every", [4, 19])
def test_an_accelerator_s_program_runs_the_same_rounds(record_every):
    """Would catch rounds that are drawn, stepped or recorded otherwise where arrivals are not drawn ahead."""
    system, keys = mt.System(begin, walk), replicate_keys(ROOT, jnp.arange(7))
    arguments = (system, keys, None, 0.5, *planned(40, record_every), observe_info, None, True)
    here, there = (engine.program(platform)(*arguments) for platform in ("cpu", "gpu"))
    assert "optimization_barrier" not in str(engine.program("gpu").trace(*arguments).jaxpr)
    chex.assert_trees_all_close(there, here, rtol=1e-5, atol=1e-5)


def test_blocks_of_other_ages_are_refused():
    """Would catch a batch whose blocks go on from rounds of their own."""
    state, _ = mt.simulate_batch(mt.System(begin, walk), ROOT, 70, 0.5, 3)
    older = state._replace(round=state.round.at[69].add(1))
    with pytest.raises(InvalidValueError):
        run(70, state=older)


def test_a_system_is_checked_once_a_setting():
    """Would catch a start that is traced at every call, and one that is not traced for another setting."""
    traced = []

    def counted(key, params):
        traced.append(params)
        if params[0] < 0:
            raise InvalidValueError("below 0")
        return begin(key, params)

    system = mt.System(counted, lambda key, state, params: walk(key, state, params[0]))
    settings = [(0.5,), (0.5,), (np.float32(0.5),), (np.array([0.5]),), (np.array([0.5]),), (0.25,)]
    for params in settings:
        check_system(system, params)
    assert len(traced) == 4
    with pytest.raises(InvalidValueError):
        check_system(system, (-0.5,))
    with jax.enable_x64(True):
        assert check_system(system, (0.5,)).place.dtype == np.float64


def test_a_checkpoint_of_blocks_goes_on():
    half, first = run(130)
    end, second = run(130, state=half)
    straight, info = run(130, 2 * NUM_ROUNDS)
    chex.assert_trees_all_equal(end, straight)
    np.testing.assert_array_equal(np.concatenate([first, second]), info)


class Heavy(NamedTuple):
    walk: Walk
    round: jax.Array
    bulk: jax.Array  # of so many bytes that a replicate runs alone


def test_replicates_that_fill_a_core_run_alone():
    """Would catch an axis of the batch that is lost or doubled in states, records or what `reduce` is given."""

    def start(key, params):
        state = begin(key, params)
        return Heavy(state, state.round, jnp.ones(engine.ALONE_BYTES // 4 + 1))

    def step(key, state, params):
        after, shown = walk(key, state.walk, params)
        return Heavy(after, state.round + 1, state.bulk), shown

    heavy = mt.System(start, step)
    assert engine.width_for(jax.eval_shape(start, ROOT, None)) == 1
    for count, options in ((3, {}), (1, {"reduce": lambda leaf: leaf.sum(axis=-1)})):
        small = run(count, **options)
        state, shown = mt.simulate_batch(heavy, ROOT, count, 0.5, NUM_ROUNDS, 3, **options)
        large = jax.tree.map(np.asarray, (state.walk, shown))
        chex.assert_trees_all_equal_shapes_and_dtypes(large, small)
        chex.assert_trees_all_close(large, small, rtol=1e-5)


def test_widths_fit_the_state():
    def width(count):
        return engine.width_for({"x": jax.ShapeDtypeStruct((count,), np.float32)})

    assert [width(count) for count in (1, 2**17, 2**17 + 1, 2**18, 2**18 + 1)] == [64, 64, 32, 32, 1]


def test_widths_on_an_accelerator_fill_it_and_fit_into_its_memory():
    """Would catch a batch that a device of many gigabytes runs 64 by 64, or one that it has no room for."""

    def width(count, memory):
        return engine.width_for({"x": jax.ShapeDtypeStruct((count,), np.float32)}, "gpu", memory=memory)

    assert width(1000, 80 * 10**9) == engine.FILLING_WIDTH
    for count, memory in ((1000, 10**9), (10**6, 8 * 10**9), (1024, 2**30)):
        assert memory / 2 < width(count, memory) * engine.STATE_COPIES * 4 * count <= memory
    assert width(10**6, 10**6) == 1


def test_a_batch_of_one_keeps_its_branches():
    """Would catch a lone replicate whose branch on its own state became both branches, or whose numbers changed."""

    class State(NamedTuple):
        table: jax.Array
        round: jax.Array

    def init(key, params):
        return State(jax.random.normal(key, (4, 4)), jnp.int32(0))

    def step(key, state, params):
        def many(table):
            return jax.lax.fori_loop(0, state.round, lambda _, table: table @ table.T / 9, table)

        table = jax.lax.cond(state.table[0, 0] > 0, many, jnp.sin, state.table)
        table = table.at[state.round % 4, 1].add(jax.random.normal(key))
        return State(table, state.round + 1), table[0]

    system = mt.System(init, step)
    alone, info = mt.simulate(system, jax.random.fold_in(ROOT, 3), 0.0, NUM_ROUNDS)
    batch, infos = mt.simulate_batch(system, ROOT, [3], 0.0, NUM_ROUNDS)
    np.testing.assert_allclose(batch.table[..., 0], alone.table, rtol=1e-5)
    np.testing.assert_allclose(infos[..., 0], info, rtol=1e-5)
    batched = trailing_vmap(lambda state: step(jax.random.key(0), state, 0.0)[0], (True,))
    assert " cond[" in str(jax.make_jaxpr(batched)(jax.tree.map(lambda leaf: leaf[..., None], alone)))
