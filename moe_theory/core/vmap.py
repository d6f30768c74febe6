"""A run by `jax.vmap` and `lax.scan` alone: what the engine must agree with, and what runs where it cannot rewrite.

The engine (`core/engine.py`) rewrites a step's program so that the batch stays on the trailing axis and random numbers
are drawn rounds ahead. That needs to know JAX's programs; this needs nothing but JAX's public functions.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from moe_theory.core.random import step_key


def trailing(function: Callable[..., Any], is_batched: tuple[bool, ...]) -> Callable[..., Any]:
    """`function` of one replicate over the last axis of its batched arguments and of all its results."""
    axes = tuple(-1 if flag else None for flag in is_batched)
    return jax.vmap(function, in_axes=axes, out_axes=-1)


def run(*arguments: Any) -> tuple[Any, Any]:
    """Final state and stacked records of a run: arguments and results of `engine.run`."""
    system, keys, state, params, num_rounds, record_every, observe, reduce, is_batch = arguments
    batched = trailing if is_batch else lambda function, _: function
    start = batched(lambda key, params: system.init(step_key(key, jnp.int32(0)), params), (True, False))
    one_round = batched(lambda key, state, params: system.step(step_key(key, state.round + 1), state, params), _STEP)
    observed = batched(observe, (True, True))
    begun = start(keys, params) if state is None else state
    blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(one_round, keys, begun, params))

    def play(carry: Any, _: None) -> tuple[Any, None]:
        return one_round(keys, carry[0], params), None

    def one_record(length: int, state: Any, _: None) -> tuple[Any, Any]:
        state, info = jax.lax.scan(play, (state, blank[1]), None, length)[0]
        kept = observed(state, info)
        return state, kept if reduce is None else jax.tree.map(reduce, kept)

    count, rest = divmod(num_rounds, record_every)
    begun, records = jax.lax.scan(functools.partial(one_record, record_every), begun, None, count)
    if rest:
        begun, last = one_record(rest, begun, None)
        records = jax.tree.map(lambda leaf, end: jnp.concatenate([leaf, end[None]]), records, last)
    return begun, records


_STEP = (True, True, False)  # keys and states are batched, parameters are not
