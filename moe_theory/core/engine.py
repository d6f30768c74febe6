"""The engine under `simulate`: one body for the rounds, scanned between records, fed with numbers drawn ahead."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from moe_theory.core.ahead import split_draws
from moe_theory.core.batching import one_replicate, trailing_vmap
from moe_theory.core.random import step_key

# Random numbers of this many rounds are drawn at once: enough to amortise, few enough for the cache.
ROUNDS_AHEAD = 16


class _Machine(NamedTuple):
    """A system's step, batched and in two parts, for one root of keys and one setting."""

    draw: Callable[[Any], Any]  # times (K,) -> draws (K, ...)
    act: Callable[[Any, Any], tuple[Any, list[Any]]]  # draws of a round, state -> state, the leaves of info observed
    record: Callable[[Any, list[Any]], Any]  # state, those leaves -> what is kept


@functools.partial(jax.jit, static_argnames=("system", "num_rounds", "record_every", "observe", "reduce", "is_batch"))
def run(
    system: Any,
    keys: Any,
    state: Any,
    params: Any,
    num_rounds: int,
    record_every: int,
    observe: Callable[[Any, Any], Any],
    reduce: Callable[[Any], Any] | None,
    is_batch: bool,
) -> tuple[Any, Any]:
    """Final state and stacked records of a run, from `state` or, where that is None, from the system's own start.

    With `is_batch`, keys (B,) and every leaf of states and records end in the replicate axis.
    """
    batch = trailing_vmap if is_batch else lambda function, _: function

    def start(key, params):
        return system.init(step_key(key, jnp.int32(0)), params)

    begun = batch(start, (True, False))(keys, params) if state is None else state
    machine = _machine(system, keys, begun, params, observe, reduce, batch, is_batch)
    first = jnp.max(begun.round) + 1  # all replicates of a batch are at the same round
    count, rest = divmod(num_rounds, record_every)
    pieces = []
    if count:
        begun, records = _run_records(machine, begun, first, count, record_every)
        pieces.append(records)
    if rest:
        begun, records = _run_records(machine, begun, first + count * record_every, 1, rest)
        pieces.append(records)
    return begun, jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *pieces)


def _machine(system, keys, state, params, observe, reduce, batch, is_batch) -> _Machine:
    one_key, one_state = (one_replicate(part) if is_batch else part for part in (keys, state))
    draw_part, act_part = split_draws(system.step, one_key, one_state, params)
    draw_round = batch(lambda key, time, params: draw_part(step_key(key, time), params), (True, False, False))
    act_round = batch(act_part, (True, True, False))
    observe_round = batch(observe, (True, True))
    one_info = jax.eval_shape(lambda key, state: act_part(draw_part(key, params), state, params)[1], one_key, one_state)
    # A loop carries its last info from round to round: only what is looked at, or copying it costs as much as a round.
    is_observed = _reads(observe, one_state, one_info)
    structure = jax.tree.structure(one_info)

    def act(draws, state):
        state, info = act_round(draws, state, params)
        return state, [leaf for leaf, is_read in zip(jax.tree.leaves(info), is_observed, strict=True) if is_read]

    def record(state, leaves):
        size = jnp.shape(keys) if is_batch else ()
        unread = (jnp.zeros((*leaf.shape, *size), leaf.dtype) for leaf in jax.tree.leaves(one_info))
        read = iter(leaves)
        filled = [next(read) if is_read else blank for blank, is_read in zip(unread, is_observed, strict=True)]
        observed = observe_round(state, jax.tree.unflatten(structure, filled))
        return observed if reduce is None else jax.tree.map(reduce, observed)

    return _Machine(
        draw=lambda times: jax.vmap(lambda time: draw_round(keys, time, params))(times),
        act=act,
        record=record,
    )


def _run_records(machine: _Machine, state: Any, first: Any, count: int, stride: int) -> tuple[Any, Any]:
    """`count` records, `stride` rounds apart, from round `first` on.

    Short strides share a block of draws between records; long ones take several blocks for each.
    """
    ahead = _largest_divisor(stride, ROUNDS_AHEAD)
    shared = _largest_divisor(count, ROUNDS_AHEAD // stride) if stride <= ROUNDS_AHEAD else 1
    blank = _blank_info(machine, state)

    # Lengths are spelled out: a system that draws nothing has no arrays to tell them.
    def play(carry, draws, length):
        return jax.lax.scan(lambda carry, draws: (machine.act(draws, carry[0]), None), carry, draws, length)[0]

    def long_block(state, time):
        def part(carry, offset):
            return play(carry, machine.draw(time + offset + jnp.arange(ahead)), ahead), None

        state, info = jax.lax.scan(part, (state, blank), jnp.arange(0, stride, ahead))[0]
        return state, jax.tree.map(lambda leaf: leaf[None], machine.record(state, info))

    def short_block(state, time):
        def one_record(state, draws):
            state, info = play((state, blank), draws, stride)
            return state, machine.record(state, info)

        draws = machine.draw(time + jnp.arange(shared * stride))
        by_record = jax.tree.map(lambda leaf: leaf.reshape(shared, stride, *leaf.shape[1:]), draws)
        return jax.lax.scan(one_record, state, by_record, shared)

    starts = first + jnp.arange(0, count * stride, shared * stride)
    state, records = jax.lax.scan(long_block if stride > ahead else short_block, state, starts)
    return state, jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[2:]), records)


def _reads(observe: Callable[[Any, Any], Any], state: Any, info: Any) -> list[bool]:
    """For each leaf of `info`, whether `observe` looks at it."""
    program = jax.make_jaxpr(observe)(state, info).jaxpr
    looked_at = {id(atom) for equation in program.eqns for atom in equation.invars} | set(map(id, program.outvars))
    return [id(variable) in looked_at for variable in program.invars[len(jax.tree.leaves(state)) :]]


def _blank_info(machine: _Machine, state: Any) -> list[Any]:
    """Zeros for what a loop over rounds carries of an info before its first round."""

    def one_round(state):
        draws = jax.tree.map(lambda leaf: leaf[0], machine.draw(jnp.zeros(1, jnp.int32)))
        return machine.act(draws, state)[1]

    return jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(one_round, state))


def _largest_divisor(number: int, limit: int) -> int:
    return max(divisor for divisor in range(1, max(limit, 1) + 1) if number % divisor == 0)
