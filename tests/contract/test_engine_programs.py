"""What the engine compiles, and that nobody can tell: systems of all kinds, run alone, in batches and inside programs.

Every run is held against a plain loop of the system's own `step`, each round with its own key. Systems here forget
half of their state every round, so that rounding does not grow.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import continual, edge
from moe_theory.core import engine, threefry
from moe_theory.core.random import replicate_keys
from moe_theory.core.rounds import planned
from moe_theory.core.system import observe_info

from ..core.trees import assert_close

pytestmark = pytest.mark.usefixtures("much_room")
ROOT = mt.root_key(31)
NUM_REPLICATES = 4
NUM_ROUNDS = 5


class State(NamedTuple):
    """Of most systems here: numbers that change, numbers that stay, and the rounds done."""

    x: Any
    pool: Any
    round: Any


def begin(key, params):
    first, second = jax.random.split(key)
    return State(jax.random.normal(first, (3,)), params + jax.random.uniform(second, (3,)), jnp.int32(0))


def system_of(change: Callable[..., Any], init: Callable[..., Any] = begin) -> mt.System:
    """A system from (key, state, params) -> (the next x, info)."""

    def step(key, state, params):
        x, info = change(key, state, params)
        return state._replace(x=x, round=state.round + 1), info

    return mt.System(init, step)


def draws_inside_loops(key, state, params):
    walk = jax.lax.fori_loop(0, 3, lambda n, x: x / 2 + jax.random.normal(jax.random.fold_in(key, n), (3,)), state.x)
    either = jax.lax.cond(
        state.round % 2 == 0, lambda: jax.random.uniform(key, (3,)), lambda: -jax.random.uniform(key, (3,))
    )
    own = jax.lax.cond(state.x[0] > 0, lambda: jax.random.normal(key), lambda: jnp.float32(0))
    return walk + either, (either, own)


def draws_by_the_round_and_the_state(key, state, params):
    scheduled = jax.random.normal(jax.random.fold_in(key, state.round)) / (state.round + 1)
    own = jax.random.normal(jax.random.fold_in(key, jnp.sum(state.x > 0)))
    return state.x / 2 + scheduled + own, (scheduled, own, state.round)


def draws_nothing(key, state, params):
    return state.x / 2 + params * state.pool, state.x[0]


def shows_the_key(key, state, params):
    return state.x / 2, {"key": key, "none": None}


class Other(NamedTuple):
    """A state with the same numbers under other names, in another order, nested, and a key."""

    round: Any
    own: Any
    parts: Any


def begin_other(key, params):
    return Other(jnp.uint32(0), key, {"seen": jnp.zeros(2), "b": [jnp.int32(7), ()]})


def step_other(key, state, params):
    noise = jax.random.normal(jax.random.fold_in(state.own, state.round), (2,)) * params
    parts = {"seen": state.parts["seen"] / 2 + noise, "b": [state.parts["b"][0] + 1, ()]}
    return Other(state.round + 1, state.own, parts), noise + state.parts["b"][0]


def begin_late(key, params):
    return begin(key, params)._replace(round=jnp.int32(10))


def counted_late(key, state, params):
    noise = jax.random.normal(key, (3,)) * (state.round + 1)
    return state.x / 2 + noise, (state.round, noise)


SYSTEMS = {
    "draws-inside-loops": system_of(draws_inside_loops),
    "draws-by-the-round-and-the-state": system_of(draws_by_the_round_and_the_state),
    "draws-nothing": system_of(draws_nothing),
    "shows-the-key": system_of(shows_the_key),
    "another-state": mt.System(begin_other, step_other),
    "compiled-step": mt.System(begin, jax.jit(system_of(draws_by_the_round_and_the_state).step)),
    "round-that-starts-late": system_of(counted_late, begin_late),
}


ALONE = {"draws-inside-loops", "another-state"}
# Whose compiling takes long; and those like others.
SECOND = {"draws-inside-loops", "compiled-step"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name in SECOND)) for name in SYSTEMS]
)
def test_anybody_s_system_runs_as_its_own_loop(name: str) -> None:
    """Would catch a replicate that draws another's numbers, a round known wrongly, or a system that cannot be run."""
    run_as_its_loop(SYSTEMS[name], name in ALONE)


def run_as_its_loop(system: mt.System, is_alone_too: bool) -> Any:
    """Infos of a batch, whose replicates must be those of the loop."""
    params = jnp.float32(1.5)
    batch = mt.simulate_batch(system, ROOT, NUM_REPLICATES, params, NUM_ROUNDS)
    init, step = map(jax.jit, system)
    for replicate in range(NUM_REPLICATES):
        key = jax.random.fold_in(ROOT, replicate)
        expected = loop_of(init, step, key, params)
        assert_close(jax.tree.map(lambda leaf, place=replicate: leaf[..., place], batch), expected)
        if replicate == 1 and is_alone_too:
            assert_close(mt.simulate(system, key, params, NUM_ROUNDS), expected)
    return batch[1]


def draws_words(key, state, params):
    first, second = jax.random.split(key)
    folded = jax.random.normal(jax.random.fold_in(first, state.round))
    return state.x / 2 + folded, (jax.random.bits(second, (2, 3)), jax.random.bits(first, (5,), np.uint8))


def test_a_batch_draws_what_jax_would_in_either_mode() -> None:
    """Would catch numbers that are JAX's in one mode alone, and a compiled program that outlives its mode."""
    system = system_of(draws_words)
    before, _ = run_as_its_loop(system, False)
    with jax.threefry_partitionable(False):
        older, _ = run_as_its_loop(system, False)
    assert not np.array_equal(before, older)
    again, _ = mt.simulate_batch(system, ROOT, NUM_REPLICATES, jnp.float32(1.5), NUM_ROUNDS)[1]
    np.testing.assert_array_equal(again, before)


INNER = SYSTEMS["draws-by-the-round-and-the-state"]


def run(params: Any, root: Any = ROOT) -> Any:
    return mt.simulate_batch(INNER, root, NUM_REPLICATES, params, NUM_ROUNDS)


INSIDE = {
    "jit": lambda: jax.jit(run)(jnp.float32(1.5)),
    "jit-of-the-key": lambda: jax.jit(lambda root: run(1.5, root))(ROOT),
    "jit-of-nothing": lambda: jax.jit(lambda: run(1.5))(),
    "scan": lambda: first_of(jax.lax.scan(lambda none, params: (none, run(params)), None, jnp.array([1.5, 2.5]))[1]),
    "vmap": lambda: first_of(jax.jit(jax.vmap(run))(jnp.array([1.5, 2.5]))),
    "vmap-of-the-key": lambda: first_of(jax.vmap(lambda root: run(1.5, root))(jnp.stack([ROOT, mt.root_key(1)]))),
}


def first_of(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[0], tree)


INSIDE_OTHERS = INSIDE.keys() - {"vmap"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name in INSIDE_OTHERS)) for name in INSIDE]
)
def test_a_run_inside_somebody_s_program_is_the_run(name: str) -> None:
    """Would catch options for a compiler that a surrounding program cannot take, and other draws inside of it."""
    assert_close(INSIDE[name](), run(1.5))


def test_a_resumed_run_inside_a_program() -> None:
    """Would catch a state that is traced, with a key that is not, taken for a run of its own."""

    def go_on(state):
        return mt.simulate_batch(INNER, ROOT, NUM_REPLICATES, 1.5, NUM_ROUNDS, state=state)

    middle = run(1.5)[0]
    assert_close(jax.jit(go_on)(middle), go_on(middle))


@pytest.mark.parametrize("is_batch", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_runs_have_derivatives(is_batch: bool) -> None:
    """Would catch a barrier or a chain without a derivative, or one that drops it; against differences."""
    system = system_of(
        lambda key, state, params: (state.x * jnp.tanh(params) + params**2 * jax.random.normal(key, (3,)), ())
    )

    def end(params):
        if is_batch:
            return jnp.sum(mt.simulate_batch(system, ROOT, NUM_REPLICATES, params, NUM_ROUNDS)[0].x)
        return jnp.sum(mt.simulate(system, ROOT, params, NUM_ROUNDS)[0].x)

    with jax.enable_x64(True):
        at, step = jnp.float64(0.7), 1e-5
        slope = (end(at + step) - end(at - step)) / (2 * step)
        assert abs(jax.jit(jax.grad(end))(at) - slope) <= 1e-6 * (1 + abs(slope))


on_cpu = pytest.mark.skipif(jax.default_backend() != "cpu", reason="reads the program for a CPU")


ROTATIONS = 2 * threefry.ROUNDS  # of words, in a hash of four
TEXT_ALONE = {"xla_backend_optimization_level": 0}  # LLVM's, which comes after what is read


PAPERS = {  # at their published sizes, with the most kernels that a round may take
    "continual": (continual.system(continual.Dims(10, 6, 10, 6)), continual.Params(), 60),
    "edge": (edge.system(edge.Dims(10, 10, 15, 10, max_delay=10)), edge.Params(num_experts=10), 105),
}


@on_cpu
@pytest.mark.usefixtures("compiled_for_users")
@pytest.mark.thorough
@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_s_program_is_the_one_that_was_meant(name: str) -> None:
    """Would catch barriers that XLA drops, a hash that loops, and rounds that fall apart into more kernels.

    Each is some ten per cent to a multiple of the time of a run, and shows in no result.
    """
    system, params, most = PAPERS[name]
    keys = replicate_keys(ROOT, jnp.arange(64))
    arguments = (system, keys, None, params, *planned(160, 16), observe_info, None, True)
    assert engine.platform_of(*arguments[1:4]) == "cpu"
    compiled = engine.program("cpu").lower(*arguments).compile(TEXT_ALONE)
    program = computations(compiled.as_text())
    ((blocks, rounds),) = nested_loops(program)  # over blocks of rounds, and in each over the rounds: no other
    assert operations(program[blocks])["opt-barrier"] >= 5
    assert operations(program[rounds])["opt-barrier"] >= 10
    assert "custom-call" not in operations(program[rounds])
    drawn = re.findall(r"calls=%([^\s,]+)", "\n".join(program[blocks]))
    hashes = [name for name in drawn if operations(program[name])["shift-left"] > ROTATIONS - 4]
    assert len(hashes) == 2, "a pass for each pair of words that a hash gives, not one for each word"
    kernels = {name: count for name, count in operations(program[rounds]).items() if name not in FREE}
    assert sum(kernels.values()) <= most, kernels


DRAWN = 1024  # numbers of a round, of which a step uses three


@on_cpu
@pytest.mark.usefixtures("compiled_for_users")
def test_draws_that_a_step_leaves_out_are_not_kept() -> None:
    """Would catch a run that holds, for all rounds that are drawn ahead, what a step takes only a part of: twice the
    memory, as drawing needs that of one block of rounds.
    """
    system = system_of(lambda key, state, params: (state.x + jax.random.normal(key, (1, DRAWN))[0][:3], ()))
    arguments = (
        system,
        replicate_keys(ROOT, jnp.arange(64)),
        None,
        1.5,
        *planned(16, 16),
        observe_info,
        None,
    )
    memory = engine.program("cpu").lower(*arguments, True).compile(TEXT_ALONE).memory_analysis()
    assert memory.temp_size_in_bytes < 1.5 * np.dtype(np.float32).itemsize * 16 * DRAWN * 64


FREE = {"parameter", "constant", "get-tuple-element", "tuple", "bitcast", "opt-barrier"}  # no kernel of their own


def computations(text: str) -> dict[str, list[str]]:
    """A compiled program's computations: lines of instructions, by name."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if begins := re.match(r"(?:ENTRY )?%(\S+) .*{$", line):
            lines = found[begins[1]] = []
        elif line.startswith("  "):
            lines.append(line)
    return found


def operations(lines: list[str]) -> Counter[str]:
    """How often each operation occurs: its name is the first word before a parenthesis."""
    return Counter(re.search(r" ([a-z][a-z0-9-]*)\(", line)[1] for line in lines)


def nested_loops(program: dict[str, list[str]]) -> list[tuple[str, str]]:
    """The bodies of all loops that stand in another loop's body, with that."""
    inside = {name: re.findall(r" while\(.*body=%([^\s,]+)", "\n".join(lines)) for name, lines in program.items()}
    bodies = {body for found in inside.values() for body in found}
    return [(outer, inner) for outer in sorted(bodies) for inner in inside[outer]]


def loop_of(init: Callable[..., Any], step: Callable[..., Any], key: Any, params: Any) -> Any:
    """The documented run: the start from round 0's key, each round from its own; whatever the state counts."""
    state, shown = init(jax.random.fold_in(key, 0), params), []
    first = int(state.round) + 1
    for time in range(first, first + NUM_ROUNDS):
        state, info = step(jax.random.fold_in(key, time), state, params)
        shown.append(info)
    return state, jax.tree.map(stacked, *shown)


def stacked(*leaves: Any) -> Any:
    return jnp.stack(leaves) if jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key) else np.stack(leaves)


@pytest.mark.parametrize("is_batch", [pytest.param(False, marks=pytest.mark.thorough), True])
def test_what_a_step_tells_on_the_side_is_told(is_batch: bool) -> None:
    """Would catch a side effect that is dropped, because nothing that is returned depends on it, or told ahead."""
    told = []

    def change(key, state, params):
        jax.debug.callback(
            lambda drawn, time: told.append((float(drawn), int(time))), jax.random.uniform(key), state.round
        )
        return state.x / 2, None

    run = mt.simulate_batch(system_of(change), ROOT, [3], 1.0, NUM_ROUNDS) if is_batch else None
    run = run or mt.simulate(system_of(change), replicate_keys(ROOT, jnp.array([3]))[0], 1.0, NUM_ROUNDS)
    jax.block_until_ready(run)
    jax.effects_barrier()
    keys = [jax.random.fold_in(jax.random.fold_in(ROOT, 3), time + 1) for time in range(NUM_ROUNDS)]
    assert sorted(told, key=lambda pair: pair[1]) == [(float(jax.random.uniform(key)), n) for n, key in enumerate(keys)]
