"""Systems and how they are run: one replicate's pure step function, scanned over rounds, vmapped over replicates.

A system's functions are written for ONE replicate. Batching puts the replicates on the TRAILING axis of every array,
inside the scan, so that elementwise work over replicates is contiguous in memory.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, PyTree

from moe_theory.core.ahead import split_draws
from moe_theory.core.batching import one_replicate, trailing_vmap
from moe_theory.core.errors import InvalidRunError
from moe_theory.core.random import replicate_keys, step_key

Params = Any  # a NamedTuple of arrays or Python numbers, all of them traced
State = Any  # a NamedTuple of arrays with a field `round`: the checkpoint
Info = Any  # a NamedTuple of arrays: what a round shows


_ROUNDS_AHEAD = 16  # random numbers of this many rounds are drawn at once: enough to amortise, few enough for the cache


class System(NamedTuple):
    """A paper's algorithm as two pure functions of one replicate."""

    init: Callable[[Key[Array, ""], Params], State]
    step: Callable[[Key[Array, ""], State, Params], tuple[State, Info]]  # draws an arrival, then calls `learn`


Observe = Callable[[State, Info], PyTree]


def observe_info(state: State, info: Info) -> Info:
    """Record the whole `Info` of a recorded round; the default of `simulate` and `simulate_batch`."""
    del state
    return info


def simulate(
    system: System,
    key: Key[Array, ""],
    params: Params,
    num_rounds: int,
    record_every: int = 1,
    *,
    observe: Observe = observe_info,
    state: State | None = None,
) -> tuple[State, PyTree]:
    """Run one replicate for `num_rounds` rounds, compiled once for each system and length.

    Rounds `record_every`, 2 `record_every`, ... and always the last are recorded (`recorded_rounds` names them).
    With `state`, the run goes on from that checkpoint; the same key continues the same replicate.

    Args:
        observe: what a recorded round keeps, (state, info) -> PyTree; a module-level function compiles once.
    Returns: the final state, and the records stacked on a leading axis.
    Raises: InvalidRunError, InvalidDimsError or InvalidParamsError for what cannot be run.
    """
    check_run(num_rounds, record_every)
    check_system(system, params)
    return _run(system, key, state, params, num_rounds, record_every, observe, None, False)


def simulate_batch(
    system: System,
    root_key: Key[Array, ""],
    replicates: int | Sequence[int] | Int[Any, " B"],
    params: Params,
    num_rounds: int,
    record_every: int = 1,
    *,
    observe: Observe = observe_info,
    reduce: Callable[[Array], PyTree] | None = None,
    state: State | None = None,
) -> tuple[State, PyTree]:
    """Run B replicates at once; leaves of state and records end in a replicate axis.

    A replicate is named by an integer and draws the same numbers in any batch. `replicates` is those integers, or a
    count B for 0, ..., B - 1.

    Args:
        observe: what a recorded round keeps of one replicate.
        reduce: applied inside the scan to each recorded leaf (..., B); `moments.over_replicates` keeps moments
            instead of replicates, so that memory does not grow with B.
        state: a batch to go on from, as returned by an earlier call with the same replicates.
    Returns: the final states (..., B), and the records (records, ..., B), or what `reduce` makes of them.
    Raises: InvalidRunError, InvalidDimsError or InvalidParamsError for what cannot be run.
    """
    check_run(num_rounds, record_every)
    check_system(system, params)
    keys = replicate_keys(root_key, jnp.asarray(check_replicates(replicates)))
    return _run(system, keys, state, params, num_rounds, record_every, observe, reduce, True)


def recorded_rounds(num_rounds: int, record_every: int = 1) -> np.ndarray:
    """The rounds (1-based) that a run records: every `record_every`-th, and the last."""
    check_run(num_rounds, record_every)
    return np.minimum(np.arange(1, -(-num_rounds // record_every) + 1) * record_every, num_rounds)


def check_run(num_rounds: int, record_every: int) -> None:
    """Raise InvalidRunError unless `num_rounds` and `record_every` are at least 1."""
    if num_rounds < 1:
        raise InvalidRunError(f"num_rounds={num_rounds} must be at least 1. Raise num_rounds.")
    if record_every < 1:
        raise InvalidRunError(f"record_every={record_every} must be at least 1: 1 records every round.")


def check_replicates(replicates: int | Sequence[int] | Int[Any, " B"]) -> np.ndarray:
    """The replicates' integers as uint32 (B,); raise InvalidRunError where they cannot name replicates."""
    if np.ndim(replicates) == 0:
        replicates = range(int(replicates))  # type: ignore[arg-type]
    names = np.asarray(replicates)
    if names.ndim != 1 or names.size == 0 or not np.issubdtype(names.dtype, np.integer):
        raise InvalidRunError(f"replicates={replicates!r} must be a count of at least 1, or a list of integers.")
    if names.min() < 0 or int(names.max()) >= 2**32:
        raise InvalidRunError("replicates must be in [0, 2**32): an integer outside would alias another replicate.")
    return names.astype(np.uint32)


def check_system(system: System, params: Params) -> None:
    """Let the system refuse `params` on the host, before anything is compiled.

    A system's `init` validates the parameters that are concrete; here they are, while its key is abstract.
    """
    jax.eval_shape(lambda key: system.init(key, params), jax.eval_shape(lambda: jax.random.key(0)))


@functools.partial(jax.jit, static_argnames=("system", "num_rounds", "record_every", "observe", "reduce", "is_batch"))
def _run(
    system: System,
    keys: Key[Array, "*B"],
    state: State | None,
    params: Params,
    num_rounds: int,
    record_every: int,
    observe: Observe,
    reduce: Callable[[Array], PyTree] | None,
    is_batch: bool,
) -> tuple[State, PyTree]:
    """The engine: one body for the rounds, scanned between records, fed with numbers drawn some rounds ahead."""
    batch = trailing_vmap if is_batch else lambda function, _: function
    if state is None:
        state = batch(lambda key, params: system.init(step_key(key, jnp.int32(0)), params), (True, False))(keys, params)
    one_key, one_state = (one_replicate(part) if is_batch else part for part in (keys, state))
    draw, act = split_draws(system.step, one_key, one_state, params)

    def draw_rounds(times):
        drawn = batch(lambda key, time, params: draw(step_key(key, time), params), (True, False, False))
        return jax.vmap(lambda time: drawn(keys, time, params))(times)

    def play(carry, draws):
        def one(carry, draws):
            return batch(act, (True, True, False))(draws, carry[0], params), None

        return jax.lax.scan(one, carry, draws)[0]

    def record(state, info):
        observed = batch(observe, (True, True))(state, info)
        return observed if reduce is None else jax.tree.map(reduce, observed)

    def run_records(state, start, count, stride):
        """`count` records, `stride` rounds apart: short strides share a block of draws, long ones take several."""
        ahead = _largest_divisor(stride, _ROUNDS_AHEAD)
        shared = _largest_divisor(count, _ROUNDS_AHEAD // stride) if stride <= _ROUNDS_AHEAD else 1
        draws = jax.eval_shape(draw_rounds, jnp.zeros(1, jnp.int32))
        first = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), draws)
        shapes = jax.eval_shape(
            lambda draws, state: batch(act, (True, True, False))(draws, state, params), first, state
        )
        blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes[1])

        def block(state, time):
            if stride > ahead:

                def part(carry, offset):
                    return play(carry, draw_rounds(time + offset + jnp.arange(ahead))), None

                state, info = jax.lax.scan(part, (state, blank), jnp.arange(0, stride, ahead))[0]
                return state, jax.tree.map(lambda leaf: leaf[None], record(state, info))

            def one_record(state, draws):
                state, info = play((state, blank), draws)
                return state, record(state, info)

            draws = draw_rounds(time + jnp.arange(shared * stride))
            draws = jax.tree.map(lambda leaf: leaf.reshape(shared, stride, *leaf.shape[1:]), draws)
            return jax.lax.scan(one_record, state, draws)

        state, records = jax.lax.scan(block, state, start + jnp.arange(0, count * stride, shared * stride))
        return state, jax.tree.map(lambda leaf: leaf.reshape(count, *leaf.shape[2:]), records)

    start = jnp.max(state.round) + 1  # all replicates of a batch are at the same round
    count, rest = divmod(num_rounds, record_every)
    pieces = []
    if count:
        state, records = run_records(state, start, count, record_every)
        pieces.append(records)
    if rest:
        state, records = run_records(state, start + count * record_every, 1, rest)
        pieces.append(records)
    return state, jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *pieces)


def _largest_divisor(number: int, limit: int) -> int:
    return max(divisor for divisor in range(1, max(limit, 1) + 1) if number % divisor == 0)
