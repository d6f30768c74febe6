"""Explain how the engine runs a step: which of its operations run batch-last, and which hold it up."""

import functools
import linecache
import math
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from moe_theory.core.batching import FALLBACK, SHARED, Log, trailing_vmap
from moe_theory.core.fields import documented
from moe_theory.core.system import Params, System, check_system

# Elementwise operations that are calls of a library, replicate by replicate, where others are vector instructions.
CALLS = {"pow": "a product, jnp.square, or jnp.exp(p * jnp.log(x))"}
OF_KEYS = {"random_unwrap", "random_wrap"}  # two numbers of a key, which there is no way around
REPLICATES = 8  # traced, not run
_HERE = Path(__file__).parent


@documented
class Operation(NamedTuple):
    """Operations of one kind at one place of the source."""

    name: str  # of the primitive of JAX
    way: str  # stored, written, trailing: batch-last; vmap: not; shared: the same for all; call: one by one
    times: int  # in a round
    numbers: int  # that their results hold, a replicate
    where: str  # FILE:LINE of the user's code, and the line


@documented
class Explanation(NamedTuple):
    """A step as the engine runs it, what holds it up first."""

    operations: list[Operation]

    @property
    def held_up(self) -> list[Operation]:
        """The operations that leave the fast path: batched by `jax.vmap`, or calls of a library."""
        slow = [each for each in self.operations if each.way in (FALLBACK, "call")]
        return [each for each in slow if each.name not in OF_KEYS]

    def __repr__(self) -> str:
        total = sum(each.times for each in self.operations if each.way != SHARED)
        held = self.held_up
        lines = [f"{total} operations a round, {sum(each.times for each in held)} of them off the fast path"]
        for each in held:
            why = "moves the batch to the front" if each.way == FALLBACK else "calls a library for each replicate"
            instead = f"; instead: {CALLS[each.name]}" if each.name in CALLS else ""
            numbers = f"{each.numbers:,} numbers" if each.numbers != 1 else "1 number"
            lines.append(f"  {each.times} x {each.name} ({numbers} a replicate) {why}{instead}\n    {each.where}")
        numbers = sum(each.numbers for each in self.operations if each.name == "random_bits")
        if numbers:
            lines.append(f"{numbers:,} numbers a replicate are of `jax.random`: `mt.draws` is faster")
        return "\n".join(lines)


def explain(system: System, params: Params) -> Explanation:
    """List the operations of a system's `step` that run batch-last, and those that hold it up; nothing is run.

    The engine traces a step for one replicate and replays it on arrays whose last axis is the batch. An operation
    that it knows runs along the batch in vector instructions; any other is given to `jax.vmap`, which is right and
    slower. Reductions, elementwise operations and reshapes are known, and up to a few thousand numbers rows that an
    index picks or writes, an argmax, and products with a vector; sorts, products of two matrices, rows by several
    indices, loops and branches are not.

    Raises: InvalidRunError, InvalidDimsError, InvalidParamsError or InvalidSystemError for what cannot be run.

    Examples:
        >>> from typing import NamedTuple
        >>> import jax.numpy as jnp
        >>> import moe_theory as mt
        >>> class State(NamedTuple):
        ...     loads: jnp.ndarray
        ...     round: jnp.ndarray
        >>> def step(key, state, params):
        ...     return State(jnp.sort(state.loads.at[state.round % 4].add(1)), state.round + 1), ()
        >>> system = mt.System(lambda key, params: State(jnp.zeros(4), jnp.int32(0)), step)
        >>> [operation.name for operation in mt.explain(system, ()).held_up]
        ['sort']
    """
    state = check_system(system, params)
    batched = functools.partial(jax.tree.map, lambda leaf: jax.ShapeDtypeStruct((*leaf.shape, REPLICATES), leaf.dtype))
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), REPLICATES))
    params = jax.tree.map(jnp.asarray, params)
    counts: Counter[tuple[str, str, str]] = Counter()
    numbers: Counter[tuple[str, str, str]] = Counter()
    log: Log = []
    jax.eval_shape(trailing_vmap(system.step, (True, True, False), stores=True, log=log), keys, batched(state), params)
    for equation, rule, calls in log:
        name = equation.primitive.name
        way = "call" if name in CALLS and rule != SHARED else rule
        kind = (name, way, next(filter(None, map(_place, (equation, *calls))), ""))
        counts[kind] += 1
        numbers[kind] += sum(math.prod(result.aval.shape) for result in equation.outvars)
    found = [Operation(*kind[:2], count, numbers[kind], kind[2]) for kind, count in counts.items()]
    return Explanation(sorted(found, key=lambda each: (each.way not in (FALLBACK, "call"), -each.numbers)))


def _place(equation: Any) -> str:
    """The innermost line of a traced operation that is no library's; empty without one."""
    traceback = equation.source_info.traceback
    for frame in traceback.frames if traceback is not None else ():
        path = Path(frame.file_name)
        if "site-packages" not in path.parts and path.parent != _HERE and "frozen" not in frame.file_name:
            line = linecache.getline(frame.file_name, frame.line_num).strip()
            return f"{path.name}:{frame.line_num}: {line}"
    return ""
