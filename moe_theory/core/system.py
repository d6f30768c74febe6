"""Systems and their runs: one replicate's pure step, scanned over rounds, vmapped over replicates.

A system's functions are for ONE replicate, and inside the scan replicates are on the TRAILING axis of every array.
"""

import collections
import functools
import operator
import threading
import types
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, PyTree

from moe_theory.core import engine, lineage, threefry, vmap
from moe_theory.core.ahead import require_same_start
from moe_theory.core.constraints import is_known
from moe_theory.core.errors import DeclarationError, InvalidValueError, shortened
from moe_theory.core.machine import machine_memory
from moe_theory.core.random import replicate_keys, typed_key

NAMED_BYTES = 2**16  # of a parameter, up to which it is compared to know whether its system has been checked
MOST_STARTS = 128  # settings whose start is remembered
BYTES_OF_NAME = 16  # of a replicate's number and of its key, which is made twice

Params = Any  # a NamedTuple of arrays or Python numbers, all of them traced
# A NamedTuple of arrays: the checkpoint. Its `round` is a whole number that all replicates begin alike and every step
# adds 1 to; `max_rounds`, if its memory has an end.
State = Any
Info = Any  # a NamedTuple of arrays: what a round shows


class System(NamedTuple):
    """A paper's algorithm as two pure functions of one replicate.

    Gradients ignore the jumps of the routing. In float32 they can be wrong at long horizons: for `continual` without
    early termination one slope of 64 is off by 1 % after 80 rounds, and by half after 100 (`benchmarks/gradients.py`).

    Examples:
        >>> from typing import NamedTuple
        >>> import jax.numpy as jnp
        >>> import moe_theory as mt
        >>> class State(NamedTuple):
        ...     round: int
        >>> def step(key, state, params):
        ...     return State(state.round + 1), state
        >>> system = mt.System(lambda key, params: State(jnp.array(0)), step)
        >>> state, info = mt.simulate(system, mt.root_key(0), params=(), num_rounds=3)
        >>> int(state.round), info.round.tolist()
        (3, [0, 1, 2])
    """

    init: Callable[[Key[Array, ""], Params], State]
    step: Callable[[Key[Array, ""], State, Params], tuple[State, Info]]  # draws an arrival, then calls `learn`


Observe = Callable[[State, Info], PyTree]


def observe_info(state: State, info: Info) -> Info:
    """Record the whole `Info` of a recorded round, the default of `simulate` and `simulate_batch`."""
    del state
    return info


@functools.cache
def fields(*paths: str | Observe, **named: str | Observe) -> Observe:
    """Return an observer that records some fields of a round as a named tuple.

    Args:
        paths: such as "info.task", recorded by its last name, or observers, which add their fields.
        named: paths by the name in the record, or observers, whose result is the field.
    """

    def observe(state: State, info: Info) -> Any:
        sources = types.SimpleNamespace(state=state, info=info)
        columns = {}
        for path in paths:
            if isinstance(path, str):
                columns[path.rpartition(".")[2]] = operator.attrgetter(path)(sources)
            else:
                columns |= path(state, info)._asdict()
        for name, path in named.items():
            columns[name] = operator.attrgetter(path)(sources) if isinstance(path, str) else path(state, info)
        return _record(*columns)(**columns)

    return observe


@functools.cache
def _record(*names: str) -> Any:
    return collections.namedtuple("Record", names)


def simulate(
    system: System,
    key: Key[Array, ""],
    params: Params,
    num_rounds: int,
    record_every: int = 1,
    *,
    observe: Observe = observe_info,
    state: State | None = None,
    plain: bool = False,
    debug: bool = False,
) -> tuple[State, Any]:
    """Run one replicate for `num_rounds` rounds.

    Args:
        observe: the record of a round, (state, info) -> PyTree, compiled once if it is a module-level function.
        state: a checkpoint to continue from, with the same key for the same replicate. A state that this process
            returned is refused under another key, a copy is not.
        plain: run the step as it is, by `jax.vmap` and `lax.scan` alone, with the same result up to rounding.
        debug: as `plain`, with assertions in every round (`core/debug.py`): finite numbers in their field's range, and
            indices of arrays inside them.
    Returns: the final state, and the records stacked on a leading axis.
    Raises: InvalidValueError for input that cannot be run, such as another key than the state came from. With `debug`,
        also for a fault, with its round and field. DeclarationError for a state without a `round` that `step` adds 1
        to, with a type of less than a byte, or other than `init`'s. Warns: RuntimeWarning inside a caller's `jax.jit`,
        if the installed jaxlib has a fault that only compiler options avoid (`core/faults.py`).

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import continual
        >>> dims = continual.Dims(max_experts=3, num_tasks=4, num_features=6, num_samples=2)
        >>> system, params = continual.system(dims), continual.Params(num_experts=3)
        >>> state, info = mt.simulate(system, mt.root_key(0), params, num_rounds=5)
        >>> int(state.round), info.forgetting.shape
        (5, (5,))
    """
    check_run(num_rounds, record_every)
    shapes = check_system(system, params, num_rounds, state)
    check_checkpoint(state, shapes, ())
    key = typed_key(key)
    digest = lineage.digest_of(key)
    lineage.require_same(state, digest)
    run = (state, params, num_rounds, record_every, observe, None, False)
    if debug:
        from moe_theory.core.debug import run as run_asserting  # it imports chex

        end, records = run_asserting(system, key, *run)
    else:
        end, records = engine.run(system, key, *run, plain)
    lineage.remember(end, digest)
    return end, records


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
    plain: bool = False,
    debug: bool = False,
) -> tuple[State, Any]:
    """Run B replicates at once, with a replicate axis at the end of state and records.

    A replicate, named by an integer, draws the same numbers in any batch, and only last bits may differ.

    Args:
        replicates: the integers, or a count B for 0, ..., B - 1.
        observe: the record of a round of one replicate.
        reduce: applied inside the scan to each recorded leaf (..., B), such as `moments.over_replicates`.
        state: a batch from an earlier call with the same key and replicates, at one round, to continue.
        plain, debug: as for `simulate`.
    Returns: the final states (..., B), and the records (records, ..., B), or the result of `reduce`. A large batch runs
        in blocks, where a replicate is the same to the last bit for any B.
    Raises: as `simulate`, and InvalidValueError for replicates at different rounds, or more than fit into memory.

    Examples:
        >>> import moe_theory as mt
        >>> from moe_theory import continual
        >>> dims = continual.Dims(max_experts=3, num_tasks=4, num_features=6, num_samples=2)
        >>> system, params = continual.system(dims), continual.Params(num_experts=3)
        >>> state, info = mt.simulate_batch(system, mt.root_key(0), 64, params, num_rounds=4)
        >>> state.experts.shape, info.forgetting.shape
        ((3, 6, 64), (4, 64))
    """
    check_run(num_rounds, record_every)
    shapes = check_system(system, params, num_rounds, state)
    names = check_replicates(replicates, engine.bytes_of(shapes))
    check_checkpoint(state, shapes, names.shape)
    root_key = typed_key(root_key)
    digest = lineage.digest_of(root_key, names)
    lineage.require_same(state, digest)
    run = (state, params, num_rounds, record_every, observe, reduce, True)
    platform = engine.platform_of(root_key, state, params)
    if debug:
        from moe_theory.core.debug import run as run_asserting

        end, records = run_asserting(system, replicate_keys(root_key, names), *run)
    elif reduce is None and platform is not None:
        width = engine.width_for(shapes, platform, len(names))
        end, records = engine.run_in_blocks(width, system, root_key, names, *run, plain)
    else:
        end, records = engine.run(system, replicate_keys(root_key, names), *run, plain)
    lineage.remember(end, digest)
    return end, records


def recorded_rounds(num_rounds: int, record_every: int = 1) -> np.ndarray:
    """Return the rounds (1-based) that a run records.

    Returns: the rounds (R,), every `record_every`-th and the last.
    Raises: InvalidValueError unless both are whole numbers of at least 1.

    Examples:
        >>> import moe_theory as mt
        >>> mt.recorded_rounds(num_rounds=10, record_every=4).tolist()
        [4, 8, 10]
    """
    check_run(num_rounds, record_every)
    return np.minimum(np.arange(1, -(-num_rounds // record_every) + 1) * record_every, num_rounds)


def check_run(num_rounds: int, record_every: int) -> None:
    """Raise InvalidValueError unless `num_rounds` and `record_every` are whole numbers of at least 1."""
    for name, value in (("num_rounds", num_rounds), ("record_every", record_every)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise InvalidValueError(
                f"{name}={value} must be a whole number of at least 1. Raise {name}.", argument=name
            )


def check_replicates(replicates: int | Sequence[int] | Int[Any, " B"], num_bytes: int = 0) -> np.ndarray:
    """Return the replicates' integers as uint32 (B,)."""
    names = np.asarray(replicates)
    if names.dtype.kind not in "iu" or names.ndim > 1 or names.size == 0 or (names.ndim == 0 and names < 1):
        raise InvalidValueError(
            f"replicates={replicates!r} must be a count of at least 1, or a list of integers.", argument="replicates"
        )
    if (names >= 2**32 + (names.ndim == 0)).any() or names.min() < 0:
        raise InvalidValueError(
            "replicates must be in [0, 2**32): an integer outside would alias another replicate.", argument="replicates"
        )
    if names.ndim == 1:
        return names.astype(np.uint32)
    most = machine_memory() // (num_bytes + BYTES_OF_NAME)
    if names > most:
        raise InvalidValueError(
            f"replicates={replicates} must be at most {most}, whose keys and states fill this machine's memory. "
            "Lower replicates, or run them a part at a time.",
            argument="replicates",
        )
    return np.arange(int(names), dtype=np.uint32)


def check_checkpoint(state: State | None, like: State, shape: tuple[int, ...]) -> None:
    """Raise InvalidValueError unless `state` is None or like the system's, with replicates () or (B,)."""
    if state is None:
        return
    if jax.tree.structure(state) != jax.tree.structure(like):
        raise InvalidValueError(
            "the state is not one of this system: go on with the system and optimizer it came from."
        )
    leaves = jax.tree_util.tree_leaves_with_path(state)
    for (path, leaf), expected in zip(leaves, jax.tree.leaves(like), strict=True):
        is_weak = expected.weak_type or not hasattr(leaf, "dtype")  # Python's numbers, which take any type
        is_typed = is_weak or leaf.dtype == expected.dtype
        if jnp.shape(leaf) != (*expected.shape, *shape) or not is_typed:
            raise InvalidValueError(
                f"the state's {jax.tree_util.keystr(path, simple=True, separator='.')} has shape {jnp.shape(leaf)} and "
                f"type {jnp.result_type(leaf)}, where this call has {(*expected.shape, *shape)} and {expected.dtype}: "
                "go on with the system, sizes, precision (jax_enable_x64) and replicates that it came from."
            )


def check_system(system: System, params: Params, num_rounds: int = 0, state: State | None = None) -> State:
    """Check `params` by the system on the host, and return the shapes of its state."""
    promotion = jax.config.values["jax_numpy_dtype_promotion"]
    if promotion != "standard":
        raise InvalidValueError(
            f"jax_numpy_dtype_promotion={promotion} refuses sums of a count and a real, which systems have. Set it to "
            "standard.",
            argument="jax_numpy_dtype_promotion",
        )
    shapes, rounds_done = _begin_once(system.init, params)
    if state is not None:
        count = getattr(state, "round", 0)  # `check_checkpoint` refuses a state without one
        rounds_done = int(np.max(count)) if is_known(count) else 0
    max_rounds = getattr(shapes, "max_rounds", None)
    if max_rounds is not None and rounds_done + num_rounds > max_rounds:
        raise InvalidValueError(
            f"num_rounds={num_rounds} after {rounds_done} rounds must be at most max_rounds={max_rounds} in all, which "
            "there is memory for. Lower num_rounds or raise Dims.max_rounds.",
            argument="num_rounds",
        )
    dtype = jnp.result_type(shapes.round)
    most = min(int(jnp.iinfo(dtype).max), 2**32 - 1)  # a round's key has no more
    if rounds_done + num_rounds > most:
        raise InvalidValueError(
            f"num_rounds={num_rounds} after {rounds_done} rounds must be at most {most} in all, as far as the state's "
            f"`round` counts, which is {dtype}. Lower num_rounds, or let `init` begin at round=jnp.int32(0).",
            argument="num_rounds",
        )
    return shapes


_STARTS: dict[Any, tuple[State, int]] = {}  # by what decides it, as many as a search goes through again and again
_STARTS_LOCK = threading.Lock()


def _begin_once(init: Callable[..., State], params: Params) -> tuple[State, int]:
    """Return the shapes of a state that `init` begins, and its round, or 0 if unknown."""
    leaves, structure = jax.tree.flatten(params)
    names = tuple(_named(leaf) for leaf in leaves)
    if None in names:
        return _begin(init, params)
    setting = (init, structure, names, jax.config.values["jax_enable_x64"], engine.can_rewrite())
    start = _STARTS.get(setting)
    if start is None:
        start = _begin(init, params)
        with _STARTS_LOCK:
            if len(_STARTS) >= MOST_STARTS:
                del _STARTS[next(iter(_STARTS))]
            _STARTS[setting] = start
    return start


def _begin(init: Callable[..., State], params: Params) -> tuple[State, int]:
    key = jax.eval_shape(lambda: jax.random.key(0, impl=threefry.IMPLEMENTATION))
    if engine.can_rewrite():
        shapes, start = require_same_start(lambda key: init(key, params), key)
    else:
        shapes = jax.eval_shape(lambda key: init(key, params), key)
        start = 0
    require_round(shapes)
    if start is not None and start < 0:
        raise DeclarationError(f"`init` gives round={start}, which must be at least 0. Give round=jnp.int32(0).")
    return shapes, start or 0


def _named(leaf: Any) -> Any:
    if isinstance(leaf, (bool, int, float)):
        return type(leaf), leaf
    if not isinstance(leaf, (np.ndarray, np.generic, jax.Array)) or not is_known(leaf) or leaf.nbytes > NAMED_BYTES:
        return None
    if jnp.issubdtype(leaf.dtype, jax.dtypes.extended):
        return None
    return type(leaf), leaf.dtype, leaf.shape, getattr(leaf, "weak_type", False), np.asarray(leaf).tobytes()


def require_round(shapes: Any) -> None:
    """Raise DeclarationError unless a state of these shapes has a field `round` that is one whole number."""
    way_out = "give a NamedTuple a `round`, which `init` begins at jnp.int32(0) and `step` adds 1 to."
    if not hasattr(shapes, "round"):
        kind = "an array" if hasattr(shapes, "dtype") else f"of type {shortened(type(shapes).__name__)}"
        fields = f" among {', '.join(shapes._fields)}" if hasattr(shapes, "_fields") else ""
        raise DeclarationError(
            f"a state that is {kind} has no field `round`{fields}, which the engine counts by: {way_out}"
        )
    count = shapes.round
    if getattr(count, "shape", None) != () or not jnp.issubdtype(count.dtype, jnp.integer):
        raise DeclarationError(f"the state's `round` is {vmap.described_array(count)}, not a whole number: {way_out}")
