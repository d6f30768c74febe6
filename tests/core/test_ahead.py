"""`split_step`: the parts together are the step, and each holds what it should and nothing that it may not know."""

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from moe_theory import continual, edge
from moe_theory.core.ahead import StepParts, split_step

from .trees import primitives_of

assert_equal = functools.partial(chex.assert_trees_all_equal, strict=True)  # dtypes and shapes too
quickly = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
KEY = jax.random.key(0)
PARAMS = (jnp.float32(0.7), {"count": jnp.int32(3)})
TABLE = np.array([3.0, 1.0, 2.0], np.float32)  # closed over: a constant of the traced program


class State(NamedTuple):
    """Of a toy system: what no step changes, what steps change, and the rounds done."""

    pool: Any
    x: Any
    round: Any


STATE = State(jnp.array([1.5, -0.25, 4.0]), jnp.array([0.3, -1.2, 2.5]), jnp.int32(4))


AHEAD = 5


def spoiled(state: State) -> State:
    """An earlier state of the same run, as far as the parts that go ahead may know."""
    return state._replace(x=jnp.full_like(state.x, jnp.nan), round=state.round - AHEAD)


def in_parts(split: StepParts, key: Any, early: Any, state: Any, params: Any) -> Any:
    """The step of `state`, from what is known AHEAD rounds before it."""
    early = split.count(early, jnp.int32(AHEAD))
    return split.act(split.prepare(split.draw(key, early, params), early, params), state, params)


def assert_parts_are(runs: list[tuple[Callable[[Any, Any, Any], Any], StepParts, Any, Any]]) -> None:
    """Of steps, by one program, in which nothing is optimised: every operation rounds alike wherever it stands."""

    @quickly
    def both(states):
        pairs = zip(runs, states, strict=True)
        return [(in_parts(run[1], KEY, *pair, PARAMS), run[0](KEY, pair[1], PARAMS)) for run, pair in pairs]

    for parts, whole in both([run[2:] for run in runs]):
        assert_equal(parts, whole)


class Case(NamedTuple):
    """A step, how many arrays are prepared, the next round among them (None where that does not matter), what waits."""

    step: Callable[[Any, Any, Any], Any]
    num_prepared: int | None = None
    hashes_late: bool = False  # whether acting still has to hash, because a key depends on the state


def plain(key, state, params):
    return state.x + params[0] * jax.random.normal(key, (3,))


def nested_splitting(key, state, params):
    first, second = jax.random.split(key)
    inner = jax.random.split(jax.random.fold_in(second, 11), 4)
    deep = jax.vmap(lambda key: jax.random.normal(jax.random.split(key)[1], (3,)))(inner)
    return state.x + jnp.sum(deep, axis=0) * jax.random.bernoulli(first)


def draws_of_params(key, state, params):
    scale, counts = params
    low = jnp.exp(scale)
    return state.x + jax.random.uniform(key, (3,), minval=low, maxval=2 * low) ** counts["count"] + low


def draws_of_no_next_state(key, state, params):
    """Its result is not (state, info): neither round nor pool are known ahead."""
    return state.x + state.pool + jax.random.normal(jax.random.fold_in(key, state.round), (3,))


def both_kinds(key, state, params):
    first, second, third = jax.random.split(key, 3)
    early = jax.random.normal(first, (3,)) * state.pool
    late = jax.random.uniform(second, (3,), maxval=early**2 + 1)
    last = jax.random.bernoulli(jax.random.fold_in(third, jnp.sum(state.x).astype(int)), shape=(3,))
    return State(state.pool, state.x + early * late * last, state.round + 1), (early, late, last)


def draws_of_round_and_pool(key, state, params):
    draw = state.pool * jax.random.normal(jax.random.fold_in(key, state.round), (3,)) / (state.round + 1)
    return State(state.pool, state.x + draw, state.round + 1), ()


def rare_draws(key, state, params):
    """A round decides what is drawn: a schedule."""
    noise = lax.cond(state.round % 3 == 0, lambda: jax.random.normal(key, (3,)), lambda: jnp.zeros(3))
    return State(state.pool, state.x * 0.5 + noise, state.round + 1), noise


def passed_through(key, state, params):
    return state, params, jax.random.bits(key), jax.random.bits(key)


def constants(key, state, params):
    return TABLE * jax.random.normal(key, (3,)) + state.x @ jnp.diag(jnp.asarray(TABLE)), jnp.asarray(TABLE)


def loops(key, state, params):
    draws = lax.scan(lambda key, _: tuple(jax.random.split(key)), key, length=3)[1]
    walk = lax.fori_loop(0, 3, lambda i, x: x + jax.random.normal(draws[i]), state.x)
    return lax.cond(walk[0] > 2, lambda k, x: x + jax.random.normal(k), lambda k, x: x, key, walk)


def one_jit(key, state, params):
    return jax.jit(both_kinds)(key, state, params)


def swapped(key, state, params):
    """Leaves that a step passes on, but not to their own place, change."""
    return State(state.x, state.pool, state.round + 1), jax.random.normal(key) * jnp.sum(state.pool)


def constant_leaf(key, state, params):
    """A leaf that every step sets to the same number is another before the first."""
    return State(jnp.zeros(3), state.x + 1, state.round + 1), jax.random.normal(key, (3,)) * state.pool


CASES = {
    "plain": Case(plain, 1),
    "nested-splitting": Case(nested_splitting, 1),
    "draws-of-params": Case(draws_of_params),
    "draws-of-no-next-state": Case(draws_of_no_next_state, 1, hashes_late=True),
    "both-kinds": Case(both_kinds, hashes_late=True),
    "draws-of-round-and-pool": Case(draws_of_round_and_pool, 2),
    "rare-draws": Case(rare_draws, 2),
    "passed-through": Case(passed_through, 2),
    "constants": Case(constants, 1),
    "loops": Case(loops, hashes_late=True),
    "one-jit": Case(one_jit, 1, hashes_late=True),
    "swapped": Case(swapped, 2),
    "constant-leaf": Case(constant_leaf, 2),
}
# Steps that change the pool, which then is spoiled as well.
CHANGING_POOL = {"swapped", "constant-leaf"}


@functools.cache
def results() -> dict[str, list[tuple[Any, Any]]]:
    """Results of every case's parts and of its step, from two keys and states, by one program."""
    splits = {name: split_step(case.step, KEY, STATE, PARAMS) for name, case in CASES.items()}  # for another key

    @quickly
    def both(key, state, params):
        pairs = {}
        for name, case in CASES.items():
            early = spoiled(state)
            if not is_next(name) or name in CHANGING_POOL:
                early = early._replace(pool=jnp.full(3, jnp.nan))
            pairs[name] = in_parts(splits[name], key, early, state, params), case.step(key, state, params)
        return pairs

    found = []
    for seed in (1, 2):
        state = State(STATE.pool / seed, seed * STATE.x, STATE.round + seed)
        found.append(both(jax.random.key(seed), state, (PARAMS[0] / seed, PARAMS[1])))
    return {name: [each[name] for each in found] for name in CASES}


def is_next(name: str) -> bool:
    """Whether the first result of a case's step is the next state."""
    result = jax.eval_shape(CASES[name].step, KEY, STATE, PARAMS)
    return isinstance(result, tuple) and isinstance(result[0], State)


@pytest.mark.parametrize("name", CASES)
def test_the_parts_one_after_another_are_the_step(name: str) -> None:
    """Would catch work done before what it depends on is known, a lost output, a part computed for another key, a split
    that leaves everything, or nothing, to the last part, and a draw that is hashed ahead and hashed again.
    """
    case = CASES[name]
    split = split_step(case.step, KEY, STATE, PARAMS)
    for actual, expected in results()[name]:
        assert_equal(actual, expected)
    prepared = shapes_of(split, STATE, PARAMS)[1]
    assert case.num_prepared is None or len(prepared) == case.num_prepared
    whole, parts = jax.make_jaxpr(case.step)(KEY, STATE, PARAMS).jaxpr, programs_of(split, STATE, PARAMS)
    assert ("random_bits" in primitives_of(parts.act)) == case.hashes_late
    assert "random_bits" not in primitives_of(parts.prepare)
    assert case.step is not draws_of_round_and_pool or "div" not in primitives_of(parts.act)  # the pool is known ahead
    together = sum(map(primitives_of, parts), Counter())
    assert all(together[hashing] <= primitives_of(whole)[hashing] for hashing in HASHES)  # less what nobody uses
    assert ("random_bits" in together) == ("random_bits" in primitives_of(whole))


HASHES = ("random_bits", "random_split", "random_fold_in")


CLOCKS = {  # rules for the next round
    "none": lambda time, x, params: time,
    "one-more": lambda time, x, params: time + 1,
    "two-more": lambda time, x, params: time + 2,
    "one-less": lambda time, x, params: time - 1,
    "sometimes": lambda time, x, params: jnp.where(x[0] > 0, time + 1, time),
    "reset": lambda time, x, params: (time + 1) % 7,
    "constant": lambda time, x, params: jnp.int32(1),
    "of-a-parameter": lambda time, x, params: time + params[1]["count"],
    "of-the-state": lambda time, x, params: time + (x[0] > 0),
    "doubled": lambda time, x, params: time + time,
    "twice-one-more": lambda time, x, params: (time + 1) + 1,
}
KNOWN_CLOCKS = {"none": 0, "one-more": 1}  # those that are known ahead, by how much they move


def test_a_round_is_known_ahead_only_where_each_step_adds_one_or_none() -> None:
    """Would catch draws for a round that a run never has, or of a run that resets, skips or stops its clock."""
    runs = []
    for name, after in CLOCKS.items():
        is_known, moves = name in KNOWN_CLOCKS, KNOWN_CLOCKS.get(name, 1)

        def step(key, state, params, after=after):
            noise = jax.random.normal(jax.random.fold_in(key, state.round), (3,))
            return State(state.pool, state.x + noise, after(state.round, state.x, params)), noise

        split = split_step(step, KEY, STATE, PARAMS)
        parts = programs_of(split, STATE, PARAMS)
        assert ("random_bits" in primitives_of(parts.draw)) == is_known, name
        assert ("random_bits" in primitives_of(parts.act)) != is_known, name
        assert int(split.count(STATE, jnp.int32(3)).round) == STATE.round + 3 * is_known * moves, name
        runs.append((step, split, spoiled(STATE)._replace(round=STATE.round - AHEAD * moves), STATE))
    assert_parts_are(runs)


WIDE = 1000


def repeated(draw, state):
    return jnp.sum(jnp.broadcast_to(draw[0], (WIDE,)) * state.x[0])


def repeated_in_rows(draw, state):
    return jnp.sum(jnp.broadcast_to(draw, (WIDE, 3)) * state.x[None, :], axis=0)


def masked(draw, state):
    return jnp.sum(jnp.where(jnp.arange(WIDE) < 100 * draw[0], state.x[0], 0.0))


def masked_twice(draw, state):
    chosen = (jnp.arange(WIDE) == draw[0]) | ~(jnp.arange(WIDE) >= draw[1])
    return jnp.sum(chosen[:, None] * state.x[None, :], axis=0)


def test_what_is_larger_than_its_sources_is_not_stored() -> None:
    """Would catch masks and copies of a number that are written to memory and read again."""
    runs = []
    for expand in (repeated, repeated_in_rows, masked, masked_twice):

        def step(key, state, params, expand=expand):
            draw = jax.random.normal(key, (3,))
            return State(state.pool, state.x + expand(draw, state), state.round + 1), ()

        split = split_step(step, KEY, STATE, PARAMS)
        assert sum(value.size for value in shapes_of(split, STATE, PARAMS)[1]) <= 4, expand
        runs.append((step, split, spoiled(STATE), STATE))
    assert_parts_are(runs)


COSTLY = {"random_bits", "random_split", "random_fold_in", "erf_inv", "exp", "log", "log1p", "expm1", "pow", "sort"}
COSTLY |= {"tanh", "logistic", "sin", "cos", "cumsum", "dot_general", "scan", "while", "cond", "gather", "top_k"}
COSTLY |= {"optimization_barrier"}


def test_what_is_costly_is_drawn() -> None:
    """Would catch a logarithm among what XLA may compute again in every use."""

    def step(key, state, params):
        noise = jax.random.uniform(key, (3,))
        logs = jnp.log(noise + state.round) * state.pool
        walk = jnp.cumsum(logs + 1)
        mixed = jax.nn.softplus(walk * params[0])
        return State(state.pool, state.x + mixed + logs + noise, state.round + 1), jnp.sort(mixed)

    split = split_step(step, KEY, STATE, PARAMS)
    parts = programs_of(split, STATE, PARAMS)
    assert {"random_bits", "log", "cumsum", "sort"} <= set(primitives_of(parts.draw))
    assert not COSTLY & set(primitives_of(parts.prepare))
    assert not COSTLY & set(primitives_of(parts.act))
    assert_parts_are([(step, split, spoiled(STATE), STATE)])


def real_cases() -> dict[str, Callable[[], tuple[Any, Any, int]]]:
    """Papers' systems and parameters, and how many numbers a round of them draws."""

    def learning(dims, **changes):
        system, params = continual.system(dims), jax.tree.map(jnp.asarray, continual.Params(**changes))
        draws = 3 + dims.num_features * (dims.num_samples - 1) + dims.max_experts  # task, slot, strength; noise; r
        return system, params, draws

    def serving(dims, **changes):
        system, params = edge.system(dims), jax.tree.map(jnp.asarray, edge.Params(**changes))
        draws = 6 + dims.num_features * dims.num_samples + 3 * dims.max_experts
        return system, params, draws

    return {
        "continual": lambda: learning(continual.Dims(10, 6, 10, 6), num_experts=10),
        "continual-top-2": lambda: learning(continual.Dims(4, 3, 4, 2, 2), num_experts=3, num_active=2),
        "edge": lambda: serving(edge.Dims(10, 10, 15, 10, max_delay=10), num_experts=10),
        "edge-small": lambda: serving(edge.Dims(3, 3, 4, 2), num_experts=3),
    }


@pytest.mark.parametrize("name", real_cases())
def test_a_paper_s_arrivals_do_not_wait_for_its_state(name: str) -> None:
    """Would catch masks or copies among what is stored, and draws, logarithms or quantiles made late or twice.

    Twice a round's draws is stored, and 20 numbers in the smallest: features, their projections, products with a pool.
    """
    system, params, num_draws = real_cases()[name]()
    step, state = system.step, jax.eval_shape(system.init, KEY, params)
    split = split_step(step, KEY, state, params)
    drawn, prepared = shapes_of(split, state, params)
    assert sum(value.size for value in drawn) <= num_draws
    assert num_draws / 2 <= sum(value.size for value in prepared) <= 2 * num_draws + 20
    parts = programs_of(split, state, params)
    made = primitives_of(parts.draw)
    assert (made["random_unwrap"], made["log"]) == (1, 2 + (name[:4] == "edge"))  # one call of the generator
    acts = primitives_of(parts.act)
    late = {"optimization_barrier": name[:4] == "edge", "random_unwrap": 0}  # it stores the weights of its gates' step
    assert {operation: acts[operation] for operation in late} == late
    assert not COSTLY & set(primitives_of(parts.prepare))
    whole = primitives_of(jax.make_jaxpr(step)(KEY, state, params).jaxpr)
    for costly in late:
        assert primitives_of(parts.draw)[costly] == whole[costly] - late[costly]


@pytest.mark.parametrize("name", ["continual-top-2", pytest.param("edge-small", marks=pytest.mark.thorough)])
def test_a_paper_s_step_is_its_parts(name: str) -> None:
    """Would catch an arrival that hangs on the state beyond its pool, its servers and its round.

    Without optimisation every operation rounds alike, so the parts agree with the step to the last bit. Everything is
    prepared from the state before the first round, with the round that will be.
    """
    system, params, _ = real_cases()[name]()
    step, start = system.step, quickly(system.init)(jax.random.key(9), params)
    split = split_step(step, KEY, start, params)

    def parts_of(key, state, params):
        early = start._replace(round=state.round - AHEAD)
        return in_parts(split, key, early, state, params)

    whole, parts, state = quickly(step), quickly(parts_of), start
    for time in range(20):
        expected = whole(jax.random.key(time), state, params)
        assert_equal(parts(jax.random.key(time), state, params), expected)
        state = expected[0]


class Programs(NamedTuple):
    """The three parts, traced."""

    draw: Any
    prepare: Any
    act: Any


def shapes_of(split: StepParts, state: Any, params: Any) -> tuple[Any, Any]:
    drawn = jax.eval_shape(split.draw, KEY, state, params)
    return drawn, jax.eval_shape(split.prepare, drawn, state, params)


def programs_of(split: StepParts, state: Any, params: Any) -> Programs:
    inputs = (KEY, *shapes_of(split, state, params))
    parts = zip(split[:3], inputs, strict=True)
    return Programs(*(jax.make_jaxpr(part)(values, state, params).jaxpr for part, values in parts))
