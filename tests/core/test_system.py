"""The engine against a plain loop of the same rounds, and everything it promises about recording and resuming."""

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core.errors import DeclarationError, InvalidValueError
from moe_theory.core.random import replicate_keys

ROOT_SEED = 20
ROOT = mt.root_key(ROOT_SEED)
# Lengths and strides: nothing but a rest, records that share a block of draws, of one round each and of several, and
# of several blocks each with a rest; batches add a record a block, with a rest.
RUNS = [(1, 7), (40, 4), (97, 50)]


class ToyParams(NamedTuple):
    factor: Any = 31  # odd


class ToyState(NamedTuple):
    start: Any
    mixture: Any
    round: Any


class ToyInfo(NamedTuple):
    bits: Any
    mixture: Any
    doubled: Any
    expected_round: Any


def toy_init(key, params):
    del params
    start = jax.random.bits(key, (2,))
    return ToyState(start=start, mixture=start, round=jnp.int32(0))


def toy_step(key, state, params):
    bits = jax.random.bits(key, (2,))
    mixture = state.mixture * jnp.uint32(params.factor) + bits
    after = ToyState(state.start, mixture, state.round + 1)
    return after, ToyInfo(bits[0], mixture, 2.0 * (bits[1] >> 16), state.round + 1)


toy = mt.System(toy_init, toy_step)


@functools.cache
def documented_bits(replicate: int, num_rounds: int) -> np.ndarray:
    """The bits (T + 1, 2) of a replicate: round t draws from fold_in(fold_in(root, replicate), t), the start from 0."""
    key = jax.random.fold_in(ROOT, replicate)
    times = jnp.arange(98)
    bits = jax.vmap(lambda time: jax.random.bits(jax.random.fold_in(key, time), (2,)))(times)
    return np.asarray(bits, np.uint64)[: num_rounds + 1]


def toy_loop(replicate: int, num_rounds: int, factor: int = 31) -> list[tuple[int, list[int], float, int]]:
    """What every round shows, in Python's whole numbers."""
    start, *rounds = documented_bits(replicate, num_rounds).tolist()
    mixture, shown = start, []
    for time, bits in enumerate(rounds, start=1):
        mixture = [(value * factor + bit) % 2**32 for value, bit in zip(mixture, bits, strict=True)]
        shown.append((bits[0], mixture, 2.0 * (bits[1] >> 16), time))
    return shown


def assert_shown(records: ToyInfo, replicate: int, num_rounds: int, rounds: np.ndarray) -> None:
    shown = [toy_loop(replicate, num_rounds)[time - 1] for time in rounds]
    for actual, expected in zip(records, zip(*shown, strict=True), strict=True):
        np.testing.assert_array_equal(actual, np.array(expected))


def rounds_to_record(num_rounds: int, record_every: int) -> np.ndarray:
    return np.array([time for time in range(1, num_rounds + 1) if time % record_every == 0 or time == num_rounds])


@pytest.mark.parametrize(("num_rounds", "record_every"), RUNS)
def test_a_run_is_the_loop_of_its_rounds(num_rounds: int, record_every: int) -> None:
    """Would catch a key, order, block length or record that is off by one anywhere."""
    rounds = rounds_to_record(num_rounds, record_every)
    np.testing.assert_array_equal(mt.recorded_rounds(num_rounds, record_every), rounds)
    assert rounds[-1] == num_rounds

    key = jax.random.fold_in(ROOT, 5)
    state, records = mt.simulate(toy, key, ToyParams(), num_rounds, record_every)
    assert state.round == num_rounds
    np.testing.assert_array_equal(state.start, documented_bits(5, num_rounds)[0])
    np.testing.assert_array_equal(state.mixture, toy_loop(5, num_rounds)[-1][1])
    assert_shown(records, 5, num_rounds, rounds)


@pytest.mark.parametrize(("num_rounds", "record_every"), [(1, 1), (40, 16)])
def test_a_batch_is_the_loop_of_each_replicate(num_rounds: int, record_every: int) -> None:
    """Would catch a replicate that takes part in another, or a batch that records otherwise than a single run."""
    states, records = mt.simulate_batch(toy, ROOT, [5, 0, 77], ToyParams(), num_rounds, record_every)
    assert states.mixture.shape == (2, 3)
    np.testing.assert_array_equal(states.round, 3 * [num_rounds])
    for place, replicate in enumerate([5, 0, 77]):
        np.testing.assert_array_equal(states.start[:, place], documented_bits(replicate, num_rounds)[0])
        np.testing.assert_array_equal(states.mixture[:, place], toy_loop(replicate, num_rounds)[-1][1])
        one = jax.tree.map(lambda leaf, place=place: leaf[..., place], records)
        assert_shown(one, replicate, num_rounds, rounds_to_record(num_rounds, record_every))


def test_a_resumed_run_is_the_undisturbed_one() -> None:
    """Would catch a single run that starts anew, or from another round."""
    run = functools.partial(mt.simulate, toy, jax.random.fold_in(ROOT, 2), ToyParams())
    half, first = run(13)
    end, second = run(13, state=half)
    assert end.round == 26
    np.testing.assert_array_equal(end.mixture, toy_loop(2, 26)[-1][1])
    joined = jax.tree.map(lambda one, other: np.concatenate([one, other]), first, second)
    assert_shown(joined, 2, 26, np.arange(1, 27))


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_state_goes_on_with_nothing_but_what_it_came_from(is_batch) -> None:
    """Would catch draws of another key, or of other replicates, that a run goes on with as if they were its own."""
    options = {"params": ToyParams(), "num_rounds": 2}
    batch = functools.partial(mt.simulate_batch, toy, **options)
    start = functools.partial(batch, replicates=[3, 8]) if is_batch else functools.partial(mt.simulate, toy, **options)
    state, _ = start(ROOT)
    others = [functools.partial(start, mt.root_key(1))]
    others += [functools.partial(batch, ROOT, names) for names in ([8, 3], [3, 9], 2)] if is_batch else []
    for other in others:
        for begun in (state, state._replace(mixture=state.mixture + 1)):
            with pytest.raises(InvalidValueError):
                other(state=begun)
        other(state=jax.tree.map(jnp.copy, state))
    later, _ = start(mt.root_key(ROOT_SEED), state=state)
    del state
    assert np.max(later.round) == 4


def test_one_program_goes_on_from_every_checkpoint() -> None:
    """Would catch a run that is compiled anew for other replicates, settings, a later round, or a file's checkpoint."""
    traces = 0

    def counted(key, state, params):
        nonlocal traces
        traces += 1
        return toy_step(key, state, params)

    run = functools.partial(mt.simulate_batch, mt.System(toy_init, counted), ROOT, params=ToyParams(), num_rounds=4)
    state, _ = run([3, 8])
    once = traces
    run([1, 2], params=ToyParams(factor=33))
    assert traces == once
    state, _ = run([3, 8], state=state)
    once = traces
    run([3, 8], state=jax.device_get(state))
    assert traces == once


def test_replicates_may_be_a_count_a_list_or_an_array() -> None:
    """Would catch names that mean other replicates in another container."""
    expected = mt.simulate_batch(toy, ROOT, 3, ToyParams(), 4)
    names = ([0, 1, 2], (0, 1, 2), range(3), np.arange(3), np.arange(3, dtype=np.uint8), jnp.arange(3), np.int64(3))
    for replicates in names:
        chex.assert_trees_all_equal(mt.simulate_batch(toy, ROOT, replicates, ToyParams(), 4), expected)
    last = 2**32 - 1
    states, _ = mt.simulate_batch(toy, ROOT, [last, 1, last], ToyParams(), 4)
    np.testing.assert_array_equal(states.mixture[:, 0], states.mixture[:, 2])
    key = jax.random.fold_in(ROOT, np.uint32(last))
    np.testing.assert_array_equal(states.mixture[:, 0], mt.simulate(toy, key, ToyParams(), 4)[0].mixture)
    np.testing.assert_array_equal(states.mixture[:, 1], expected[0].mixture[:, 1])
    keys = replicate_keys(ROOT, np.array([0, last], np.uint32))
    np.testing.assert_array_equal(jax.random.key_data(keys[1]), jax.random.key_data(key))


def test_rounds_and_strides_that_are_no_counts_are_refused() -> None:
    """Would catch an empty run taken for a result, a division by zero, or an error from deep inside a loop."""
    rounds = {"num_rounds": [(value, 1) for value in (0, -1, 2.5, 4.0)]}
    for argument, pairs in (rounds | {"record_every": [(5, value) for value in (0, -7, 1.5, 2.0)]}).items():
        for pair in pairs:
            for run in (
                functools.partial(mt.simulate, toy, ROOT, ToyParams()),
                functools.partial(mt.simulate_batch, toy, ROOT, 2, ToyParams()),
                mt.recorded_rounds,
            ):
                with pytest.raises(InvalidValueError) as caught:
                    pytest.fail(f"{pair} are run: {run(*pair)}")
                assert caught.value.argument == argument


COUNTS = [0, -3, 2.7, 2.0, np.float32(3), float("nan"), None, "ab"]
NAMES = [[], [1.0], [0.5, 2], [[1, 2]], np.zeros((2, 2), int), np.arange(0), [True], [-1, 2], [0, 2**32]]


def test_replicates_that_are_no_names_are_refused() -> None:
    """Would catch names that wrap around, are rounded, or flattened into others; and 2.7 replicates run as 2."""
    for replicates in (*COUNTS, *NAMES):
        with pytest.raises(InvalidValueError) as caught:
            pytest.fail(f"{replicates} are run: {mt.simulate_batch(toy, ROOT, replicates, ToyParams(), 2)}")
        assert str(caught.value).startswith("replicates"), replicates


def test_a_checkpoint_of_other_replicates_is_refused() -> None:
    """Would catch a checkpoint of 3 replicates continued as 4, or as one."""
    state, _ = mt.simulate_batch(toy, ROOT, 3, ToyParams(), 4)
    with pytest.raises(InvalidValueError):
        mt.simulate_batch(toy, ROOT, 4, ToyParams(), 4, state=state)


class Walk(NamedTuple):
    place: Any
    round: Any


COUNT, PLACE = jnp.int32(0), np.zeros(3, np.float32)
STARTS = {
    "a dict": ({"round": COUNT}, "the state is a 'dict' without a field `round`,"),
    "an array": (PLACE, "the state is an array without a field `round`,"),
    "a tuple": ((COUNT,), "the state is a 'tuple' without a field `round`,"),
    "other fields": (ToyParams(), "without a field `round` among factor,"),
    "a real round": (Walk(PLACE, jnp.float32(0)), r"`round` is float32 \(\), not a whole number"),
    "many rounds": (Walk(PLACE, jnp.zeros(2, int)), r"`round` is int\d\d \(2,\), not"),
    "no round": (Walk(PLACE, None), "`round` is a NoneType, not"),
}
STEPS = {
    "a shape": (lambda state: (state._replace(place=state.place[:2]), ()), r"place as float32 \(2,.*float32 \(3,"),
    "a type": (lambda state: (state._replace(place=state.place > 0), ()), r"place as bool \(3,.*float32 \(3,"),
    "a field": (lambda state: (state._replace(round=None), ()), r"NoneType\) as state, but `init` returned Walk\("),
    "a tuple": (lambda state: (tuple(state), ()), r"a tuple as state, but `init` returned Walk\(place, round\)"),
    "the state alone": (lambda state: state, r"must return the pair \(state, info\)"),
    "nothing": (lambda state: None, r"must return the pair \(state, info\)"),
}


def broken_systems() -> Iterator[tuple[str, mt.System, str]]:
    """Systems whose state cannot be carried, each with its name and what is said."""
    for name, (state, message) in STARTS.items():
        yield name, mt.System(lambda key, params, start=state: start, lambda key, state, params: (state, ())), message
    for name, (change, message) in STEPS.items():
        step = functools.partial(lambda change, key, state, params: change(state), change)
        yield name, mt.System(lambda key, params: Walk(PLACE, COUNT), step), message


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("run", [mt.simulate, functools.partial(mt.simulate_batch, replicates=4)], ids=["one", "four"])
def test_a_state_that_cannot_be_carried_is_told_in_a_line(run, plain) -> None:
    """Would catch an error from inside `lax.scan`, which names neither the field nor the way out."""
    for name, system, message in broken_systems():
        with pytest.raises(DeclarationError, match=message) as caught:
            pytest.fail(f"{name} is run: {run(system, ROOT, params=(), num_rounds=3, plain=plain)}")
        assert "\n" not in str(caught.value), name


@pytest.mark.parametrize("seed", [-1, 2**32, 2**70])
def test_seeds_that_would_alias_are_refused(seed: int) -> None:
    """Would catch two seeds that silently give one experiment."""
    with pytest.raises(InvalidValueError) as caught:
        mt.root_key(seed)
    assert caught.value.argument == "seed"


def test_seeds_give_different_experiments() -> None:
    """Would catch a seed that is ignored or truncated, at the ends of the range too; the generator is threefry."""
    seeds = [0, 1, 2**16, 2**31, 2**32 - 1]
    assert len({tuple(np.asarray(jax.random.key_data(mt.root_key(seed)))) for seed in seeds}) == len(seeds)
    assert str(jax.random.key_impl(mt.root_key(0))) == "threefry2x32"
