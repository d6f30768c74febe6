"""What the engine counts by: every way to break it is refused in a line wherever a run can begin, none is misread."""

import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core.errors import DeclarationError, InvalidValueError, MoeTheoryError
from moe_theory.runs import Cell, run_cells

ROOT = mt.root_key(41)
ONE = jnp.int32(1)


class State(NamedTuple):
    words: Any  # mixed with every round's bits: what they end with names the keys and their order
    other: Any
    round: Any


def system_of(after: Callable[[Any, State, Any], Any], start: Any = 0, dtype: Any = jnp.int32) -> mt.System:
    """A system whose next `round` is a function of (key, state, params)."""

    def step(key, state, params):
        words = state.words * np.uint32(31) + jax.random.bits(jax.random.fold_in(key, state.round), (2,))
        return State(words, state.other + 1, after(key, state, params)), words

    return mt.System(lambda key, params: State(jnp.zeros(2, jnp.uint32), jnp.int32(0), dtype(start)), step)


def by_branches(*branches: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda key, state, params: jax.lax.cond(state.words[0] % 2 == 0, *branches, state.round)


def add_one(number: Any) -> Any:
    return number + 1


GOOD = {
    "plus one": lambda key, state, params: state.round + 1,
    "one plus": lambda key, state, params: 1 + state.round,
    "an array of JAX": lambda key, state, params: state.round + ONE,
    "a number of NumPy": lambda key, state, params: np.int32(1) + state.round,
    "ones": lambda key, state, params: state.round + jnp.ones((), jnp.int32),
    "minus minus one": lambda key, state, params: state.round - -1,
    "two steps": lambda key, state, params: state.round + 3 - 2,
    "cast": lambda key, state, params: jnp.asarray(state.round.astype(jnp.int32) + 1, jnp.int32),
    "a call": lambda key, state, params: jax.jit(add_one)(state.round),
    "a call of calls": lambda key, state, params: jax.jit(lambda number: jax.jit(add_one)(number + 1) - 1)(state.round),
    "either branch": by_branches(add_one, lambda number: jax.jit(add_one)(number)),
    "either choice": lambda key, state, params: jnp.where(state.words[0] > 5, state.round + 1, 1 + state.round),
    "a barrier": lambda key, state, params: jax.lax.optimization_barrier(state.round + 1),
}
BAD = {
    "stays": lambda key, state, params: state.round,
    "by two": lambda key, state, params: state.round + 2,
    "back": lambda key, state, params: state.round - 1,
    "by two in a call": lambda key, state, params: jax.jit(add_one)(state.round + 1),
    "set": lambda key, state, params: jnp.int32(1),
    "wraps": lambda key, state, params: (state.round + 1) % 3,
    "stops": lambda key, state, params: jnp.minimum(state.round + 1, 4),
    "by a draw": lambda key, state, params: state.round + jax.random.randint(key, (), 1, 3),
    "by a parameter": lambda key, state, params: state.round + jnp.int32(params),
    "by the state": lambda key, state, params: jnp.where(state.words[0] > 5, state.round + 1, state.round),
    "by a branch": by_branches(add_one, lambda number: number),
    "by the other branch": by_branches(lambda number: number, add_one),
    "another's": lambda key, state, params: state.other + 1,
    "through a byte": lambda key, state, params: (state.round + 1).astype(jnp.int8).astype(jnp.int32),
    "negated": lambda key, state, params: 1 - state.round,
}
RUNS = {
    "one": lambda system, **how: mt.simulate(system, ROOT, 1, 3, **how),
    "plain": lambda system, **how: mt.simulate(system, ROOT, 1, 3, plain=True, **how),
    "a batch": lambda system, **how: mt.simulate_batch(system, ROOT, 3, 1, 3, **how),
    "a plain batch": lambda system, **how: mt.simulate_batch(system, ROOT, 3, 1, 3, plain=True, **how),
    "blocks": lambda system, **how: mt.simulate_batch(system, ROOT, 100, 1, 3, **how),
    "inside a program": lambda system, **how: jax.eval_shape(lambda: mt.simulate_batch(system, ROOT, 3, 1, 3, **how)),
    "cells": lambda system: run_cells([Cell("cell", system, 1, 3)], 3),
}


def refusal(error: type[MoeTheoryError], run: Callable[[], Any], case: Any = None) -> MoeTheoryError:
    """The error of a run, which is told in a line."""
    with pytest.raises(error) as caught:
        pytest.fail(f"{case} is run: {run()}")
    assert "\n" not in str(caught.value), case
    return caught.value


def test_a_round_that_does_not_rise_by_one_is_refused_by_every_run() -> None:
    """Would catch runs whose numbers differ from those of `plain`, or repeat their draws, without a word."""
    for name, after in BAD.items():
        for place, run in RUNS.items():
            if place == "one" or name in ("stays", "by a draw"):
                error = refusal(DeclarationError, functools.partial(run, system_of(after)), (name, place))
                assert re.match(r"`step` .*Return round=state.round . 1", str(error)), (name, place)


def test_a_round_that_rises_by_one_in_any_way_is_run() -> None:
    """Would catch a contract that refuses what keeps it."""
    for after in GOOD.values():
        for run in (functools.partial(mt.simulate, plain=True), functools.partial(mt.simulate_batch, replicates=3)):
            simulated = functools.partial(run, system_of(after), ROOT, params=1, num_rounds=3)
            assert jax.eval_shape(simulated)[0].round.dtype == jnp.int32


@pytest.mark.parametrize("dtype", [jnp.int8, jnp.uint16, jnp.int32, jnp.uint32])
def test_rounds_that_a_type_cannot_count_are_refused_beforehand(dtype: Any) -> None:
    """Would catch a `round` that wraps, after which the engine and the state count otherwise."""
    most = int(jnp.iinfo(dtype).max)
    late = system_of(GOOD["plus one"], most - 3, dtype)
    assert jax.eval_shape(lambda: mt.simulate(late, ROOT, 1, 3))[0].round.dtype == dtype
    begun = State(np.zeros(2, np.uint32), np.int32(0), np.array(most - 3, dtype))
    kept = system_of(GOOD["plus one"], dtype=dtype)
    for run in (
        lambda: mt.simulate(late, ROOT, 1, 4),
        lambda: mt.simulate(late, ROOT, 1, 4, plain=True),
        lambda: mt.simulate_batch(late, ROOT, 3, 1, 4),
        lambda: run_cells([Cell("cell", late, 1, 4)], 3),
        lambda: mt.simulate(kept, ROOT, 1, 4, state=begun),
        lambda: mt.simulate(kept, ROOT, 1, most + 1),
    ):
        assert f"must together be at most {most}, because" in str(refusal(InvalidValueError, run))


STARTS = {
    "drawn": lambda key, params: jax.random.randint(key, (), 0, 3),
    "of the key in a call": lambda key, params: jax.jit(lambda key: jax.random.key_data(key)[0].astype(jnp.int32))(key),
    "before the first": lambda key, params: jnp.int32(-1),
    "made of a parameter": lambda key, params: jnp.int32(params) - 2,
}


def begin_at(start: Callable[..., Any], key: Any, params: Any) -> State:
    return State(jnp.zeros(2, jnp.uint32), ONE, start(key, params))


def test_replicates_that_may_begin_at_different_rounds_are_refused() -> None:
    """Would catch a batch that draws all its numbers by the round of one of its replicates."""
    for name, start in STARTS.items():
        system = system_of(GOOD["plus one"])._replace(init=functools.partial(begin_at, start))
        for place in ("one", "plain", "a batch", "cells") if name == "drawn" else ("a batch",):
            error = refusal(DeclarationError, functools.partial(RUNS[place], system), (name, place))
            assert str(error).startswith("`init` returns "), (name, place)


def mixed(rounds: list[int]) -> State:
    count = len(rounds)
    words = np.arange(2 * count, dtype=np.uint32).reshape(2, count)
    return State(words, np.zeros(count, np.int32), np.array(rounds, np.int32))


def start_at_different_rounds(root, replicates, params):
    return mixed([4] * (len(replicates) - 1) + [6])


def test_checkpoints_of_different_ages_do_not_go_on_as_one_batch() -> None:
    """Would catch a joined batch that repeats or skips draws of some replicates."""
    system = system_of(GOOD["plus one"])
    go_on = functools.partial(mt.simulate_batch, system, ROOT, 3, 1, 3)
    for is_plain in (False, True):
        refusal(InvalidValueError, functools.partial(go_on, state=mixed([4, 6, 4]), plain=is_plain))
    assert refusal(InvalidValueError, lambda: go_on(state=mixed([-2, -2, -2]))).argument == "round"
    refusal(InvalidValueError, lambda: run_cells([Cell("cell", system, 1, 3, start=start_at_different_rounds)], 64))


def test_traced_replicates_go_on_from_their_own_rounds() -> None:
    """Would catch ages that nobody can look at, inside a caller's program, taken for one."""
    system, state = system_of(GOOD["plus one"]), mixed([4, 6, 0])
    go_on = functools.partial(mt.simulate_batch, system, ROOT, params=1, num_rounds=3)
    together, _ = jax.jit(lambda state: go_on([7, 8, 9], state=state))(state)
    np.testing.assert_array_equal(together.round, [7, 9, 3])
    for place, name in enumerate([7, 8, 9]):
        one = jax.tree.map(lambda leaf, place=place: leaf[..., place : place + 1], state)
        np.testing.assert_array_equal(together.words[:, place], go_on([name], state=one)[0].words[:, 0])


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_keys_of_generators_that_a_batch_changes_are_refused(impl: str) -> None:
    """Would catch replicates that draw other numbers in another batch."""
    system = system_of(GOOD["plus one"])
    for key in (jax.random.key(4, impl=impl), jax.random.PRNGKey(4, impl=impl)):
        for run in (mt.simulate, functools.partial(mt.simulate_batch, replicates=3)):
            refusal(InvalidValueError, functools.partial(run, system, key, params=1, num_rounds=3))


class Place(NamedTuple):
    place: Any
    round: Any


def walk(dtype: Any, shown: Any = None) -> mt.System:
    def step(key, state, params):
        place = state.place.astype(jnp.float32) + jax.random.uniform(key, (3,))
        return Place(place.astype(dtype), state.round + 1), state.place.astype(shown or dtype)

    return mt.System(lambda key, params: Place(jnp.zeros(3, dtype), jnp.int32(0)), step)


def test_types_of_less_than_a_byte_are_refused() -> None:
    """Would catch a process that XLA ends where it joins arrays of such a type."""
    for dtype in (jnp.int4, jnp.float4_e2m1fn):
        for system in (walk(dtype), walk("float32", dtype)):
            for place in ("one", "plain", "cells"):
                error = refusal(DeclarationError, functools.partial(RUNS[place], system), (dtype, place))
                assert "a type of less than a byte" in str(error)


def test_a_checkpoint_of_another_precision_is_refused() -> None:
    """Would catch numbers that are rounded, or that look more precise than they are, on the way into a run."""
    system, states = walk(float), {}
    for is_double in (False, True):
        with jax.enable_x64(is_double):
            like = system.init(ROOT, 0)
            states[is_double] = jax.device_get(Place(like.place, jnp.int32(2)))
    for is_double in (False, True):
        with jax.enable_x64(is_double):
            for state in (states[not is_double], jax.tree.map(jnp.asarray, states[False]) if is_double else None):
                if state is not None:
                    refusal(InvalidValueError, functools.partial(mt.simulate, system, ROOT, 1, 3, state=state))


@pytest.mark.parametrize(
    ("run", "is_plain"),
    [(mt.simulate, True), (functools.partial(mt.simulate_batch, replicates=2), False)],
    ids=["one", "two"],
)
def test_numbers_of_python_s_take_the_step_s_type_in_info_too(run, is_plain) -> None:
    """Would catch a TypeError of `lax.scan`, whose carry must not change its type."""

    def step(key, state, params):
        return Place(state.place + jax.random.uniform(key), state.round + 1), (state.place, state.round)

    system = mt.System(lambda key, params: Place(0, 0), step)
    state, (places, _) = run(system, ROOT, params=1, num_rounds=3, plain=is_plain)
    assert (state.place.dtype, places.dtype, state.round.dtype) == (jnp.float32, jnp.float32, jnp.int32)
    assert np.all(state.round == 3)
    assert np.all((state.place > places[-1]) & (state.place < 3))
    rounded = mt.System(lambda key, params: Place(0.5, 0), lambda key, state, params: (Place(1, state.round + 1), ()))
    refusal(DeclarationError, lambda: run(rounded, ROOT, params=1, num_rounds=3, plain=is_plain))


@pytest.mark.parametrize("count", [2**32, 10**15])
def test_more_replicates_than_there_is_memory_for_are_refused_before_any_is_taken(count: int) -> None:
    system = system_of(GOOD["plus one"])
    big = mt.System(lambda key, params: Place(jnp.zeros(10**6), jnp.int32(0)), system.step)
    for run in (
        lambda: mt.simulate_batch(big, ROOT, count, 1, 3),
        lambda: run_cells([Cell("cell", system, 1, 3)], count, first=1),
    ):
        assert "replicates" in str(refusal(InvalidValueError, run))


def walking(rate=None) -> mt.System:
    """A walk that forgets half of where it was."""

    def step(key, state, params):
        move = params if rate is None else rate
        return Place(state.place / 2 + move * jax.random.normal(key, (3,)), state.round + 1), state.place.sum()

    return mt.System(lambda key, params: Place(jnp.ones(3), jnp.int32(0)), step)


def test_whole_numbers_of_numpy_are_lengths_like_any():
    """Would catch a length that is no int: it failed, and made the same gradient fail afterwards with an int."""
    system, key = walking(), mt.root_key(3)
    one, other = (mt.simulate(system, key, 0.5, kind(5), kind(2)) for kind in (int, np.int64))
    assert jax.tree.all(jax.tree.map(np.array_equal, one, other))
    slopes = [jax.grad(lambda x, n=n: mt.simulate(system, key, x, n)[1].sum())(0.5) for n in (np.int64(5), 5)]
    assert slopes[0] == slopes[1] != 0


def test_a_step_may_know_a_number_that_is_traced():
    """Would catch records that are cut on the host while JAX maps or differentiates over what a step knows."""

    def total(rate):
        return mt.simulate(walking(rate), mt.root_key(3), (), 5)[1].sum()

    rates = jnp.arange(3.0)
    np.testing.assert_allclose(jax.vmap(total)(rates), [total(rate) for rate in rates], rtol=1e-5)
    assert np.isfinite(jax.jvp(total, (1.0,), (1.0,))[1])


def carried(jaxpr) -> list[int]:
    """Sizes of what the loops of a program carry from one turn to the next."""
    found = []
    for equation in jaxpr.eqns:
        if equation.primitive.name == "scan":
            first = equation.params["num_consts"]
            found += [each.aval.size for each in equation.invars[first : first + equation.params["num_carry"]]]
        inner = [getattr(each, "jaxpr", None) for each in equation.params.values()]
        found += [size for each in inner if each is not None for size in carried(each)]
    return found


@pytest.mark.parametrize("every", [1, 20])
def test_a_gradient_carries_no_records(every):
    """Would catch loops that carry all records, which a gradient then goes through once for each: time squared."""
    num_records = 512

    def total(rate):
        return mt.simulate(walking(), mt.root_key(3), rate, num_records * every, every)[1].sum()

    sizes = carried(jax.make_jaxpr(jax.grad(total))(0.5).jaxpr)
    assert sizes
    assert max(sizes) < num_records
