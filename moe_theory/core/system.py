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
from moe_theory.core.ahead import trace_start
from moe_theory.core.constraints import is_known
from moe_theory.core.errors import DeclarationError, InvalidValueError, shortened
from moe_theory.core.machine import machine_memory
from moe_theory.core.random import replicate_keys, typed_key

HASHED_BYTES = 2**16  # parameters of more bytes are not remembered, but checked again in every run
MOST_STARTS = 128  # settings for which the shapes of the initial state are remembered
BYTES_OF_NAME = 16  # least bytes of a replicate's number and the copies of its key

Params = Any  # a NamedTuple of arrays or Python numbers, which are all traced
# A NamedTuple of arrays, which is also the checkpoint. Its field `round` is a whole number, which starts equal in all
# replicates and grows by 1 in every step. A state with room for a limited number of rounds has a field `max_rounds`.
State = Any
Info = Any  # a NamedTuple of arrays, the observable values of a round


class System(NamedTuple):
    """A paper's algorithm as two pure functions of one replicate.

    Gradients ignore that routing can jump. In float32 they can be wrong for long runs. In `continual` without early
    termination, one of 64 slopes is wrong by 1 % after 80 rounds and by half after 100 (`benchmarks/gradients.py`).

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
    """Record the whole `Info` of a round. This is the default of `simulate` and `simulate_batch`."""
    del state
    return info


@functools.cache
def fields(*paths: str | Observe, **named: str | Observe) -> Observe:
    """Return an observer that records some fields of a round as a named tuple.

    Args:
        paths: paths such as "info.task", recorded under the last name, or observers, which add their fields.
        named: paths or observers, by the name of the field that receives their value.
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
        return _record(*columns)._make(columns.values())

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
        observe: (state, info) -> PyTree returns the record of a round. A module-level function is compiled once.
        state: a checkpoint to continue from. Pass the key that it came from. A state that this process returned is
            refused with another key, but a copy of it is not.
        plain: use only `jax.vmap` and `lax.scan` and leave the step unchanged. The result is the same up to rounding.
        debug: like `plain`, but every round asserts that numbers are finite and in their field's range, and that array
            indices are in bounds (`core/debug.py`).
    Returns: the final state, and the records stacked on a leading axis.
    Raises: InvalidValueError for input that cannot be run, such as a key other than the state's. With `debug` also for
        a failed assertion, naming its round and field. DeclarationError if `step` does not increase the state's `round`
        by 1, or if the state has a type of less than a byte, or another form than `init`'s. Warns: RuntimeWarning in a
        caller's `jax.jit`, if the installed jaxlib has a fault that only compiler options avoid (`core/faults.py`).

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
    arguments = (system, key, state, params, num_rounds, record_every, observe)
    if debug:
        from moe_theory.core.debug import run as run_asserting  # imports chex

        end_state, records = run_asserting(*arguments, reduce=None, is_batch=False)
    else:
        end_state, records = engine.run(*arguments, reduce=None, is_batch=False, is_plain=plain)
    lineage.remember(end_state, digest)
    return end_state, records


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
    """Run B replicates at once. State and records have the replicate axis last.

    An integer names a replicate, which draws the same numbers in any batch. Only last bits may differ.

    Args:
        replicates: the integers, or a count B for 0, ..., B - 1.
        observe: (state, info) -> PyTree returns the record of one replicate's round.
        reduce: a function such as `moments.over_replicates`, applied to each recorded leaf (..., B) inside the scan.
        state: a batch at one round to continue, from an earlier call with the same key and replicates.
        plain, debug: as for `simulate`.
    Returns: the final states (..., B), and the records (R, ..., B) or what `reduce` returns. In a large batch, which
        runs in blocks, a replicate's last bits are the same for any B.
    Raises: the errors of `simulate`, and InvalidValueError if replicates differ in round or do not fit into memory.

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
    settings = (params, num_rounds, record_every, observe, reduce, True)  # of a batch, after its keys and state
    platform = engine.platform_of(root_key, state, params)
    if debug:
        from moe_theory.core.debug import run as run_asserting

        end_state, records = run_asserting(system, replicate_keys(root_key, names), state, *settings)
    elif reduce is None and platform is not None:
        width = engine.width_for(shapes, platform, len(names))
        settings = (*settings, plain)
        end_state, records = engine.run_in_blocks(width, system, root_key, names, state=state, settings=settings)
    else:
        end_state, records = engine.run(system, replicate_keys(root_key, names), state, *settings, is_plain=plain)
    lineage.remember(end_state, digest)
    return end_state, records


def recorded_rounds(num_rounds: int, record_every: int = 1) -> np.ndarray:
    """Return the rounds, counted from 1, that a run records.

    Returns: every `record_every`-th round and the last one, in shape (R,).
    Raises: InvalidValueError unless both are whole numbers of at least 1.

    Examples:
        >>> import moe_theory as mt
        >>> mt.recorded_rounds(num_rounds=10, record_every=4).tolist()
        [4, 8, 10]
    """
    check_run(num_rounds, record_every)
    num_records = -(-num_rounds // record_every)  # rounded up
    return np.minimum(np.arange(1, num_records + 1) * record_every, num_rounds)


def check_run(num_rounds: int, record_every: int) -> None:
    for name, value in (("num_rounds", num_rounds), ("record_every", record_every)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise InvalidValueError(
                f"{name}={value} must be a whole number of at least 1. Raise {name}.", argument=name
            )


def check_replicates(replicates: int | Sequence[int] | Int[Any, " B"], num_bytes: int = 0) -> np.ndarray:
    """Return the replicates' integers as uint32 (B,). A replicate's state of `num_bytes` limits their count."""
    names = np.asarray(replicates)
    is_count = names.ndim == 0
    if names.dtype.kind not in "iu" or names.ndim > 1 or names.size == 0 or (is_count and names < 1):
        raise InvalidValueError(
            f"replicates={replicates!r} must be a count of at least 1, or a list of integers.", argument="replicates"
        )
    least_refused = 2**32 + 1 if is_count else 2**32
    if (names >= least_refused).any() or names.min() < 0:
        raise InvalidValueError(
            "replicates must be in [0, 2**32): other integers would repeat a replicate.", argument="replicates"
        )
    if not is_count:
        return names.astype(np.uint32)
    most = machine_memory() // (num_bytes + BYTES_OF_NAME)
    if names > most:
        raise InvalidValueError(
            f"replicates={replicates} must be at most {most}, because keys and states of more replicates do not fit "
            "this machine's memory. Lower replicates, or run them in several parts.",
            argument="replicates",
        )
    return np.arange(int(names), dtype=np.uint32)


def check_checkpoint(state: State | None, like: State, shape: tuple[int, ...]) -> None:
    """Raise InvalidValueError unless `state` is None or has the form of `like`, with the replicate axes `shape`."""
    if state is None:
        return
    if jax.tree.structure(state) != jax.tree.structure(like):
        raise InvalidValueError(
            "the state does not belong to this system. Continue with the system and optimizer that made it."
        )
    leaves = jax.tree_util.tree_leaves_with_path(state)
    for (path, leaf), expected in zip(leaves, jax.tree.leaves(like), strict=True):
        is_weak = expected.weak_type or not hasattr(leaf, "dtype")  # Python numbers can have any type
        has_type = is_weak or leaf.dtype == expected.dtype
        expected_shape = (*expected.shape, *shape)
        if jnp.shape(leaf) != expected_shape or not has_type:
            raise InvalidValueError(
                f"the state's {jax.tree_util.keystr(path, simple=True, separator='.')} has shape {jnp.shape(leaf)} and "
                f"type {jnp.result_type(leaf)}, but this call needs {expected_shape} and {expected.dtype}. "
                "Continue with the same system, sizes, replicates and setting of jax_enable_x64 as before."
            )


def check_system(system: System, params: Params, num_rounds: int = 0, state: State | None = None) -> State:
    """Let the system check `params` on the host, and return the shapes of its initial state."""
    promotion = jax.config.values["jax_numpy_dtype_promotion"]
    if promotion != "standard":
        raise InvalidValueError(
            f"jax_numpy_dtype_promotion={promotion} refuses sums of integers and reals, which systems compute. Set "
            "this option to standard.",
            argument="jax_numpy_dtype_promotion",
        )
    shapes, rounds_done = _begin_once(system.init, params)
    if state is not None:
        count = getattr(state, "round", 0)  # `check_checkpoint` refuses a state without one
        rounds_done = int(np.max(count)) if is_known(count) else 0
    max_rounds = getattr(shapes, "max_rounds", None)
    if max_rounds is not None and rounds_done + num_rounds > max_rounds:
        raise InvalidValueError(
            f"num_rounds={num_rounds} and the {rounds_done} rounds before must together be at most "
            f"max_rounds={max_rounds}, the size of the state's memory. Lower num_rounds or raise Dims.max_rounds.",
            argument="num_rounds",
        )
    dtype = jnp.result_type(shapes.round)
    most = min(int(jnp.iinfo(dtype).max), 2**32 - 1)  # a key has 32 bits for the round
    if rounds_done + num_rounds > most:
        raise InvalidValueError(
            f"num_rounds={num_rounds} and the {rounds_done} rounds before must together be at most {most}, because the "
            f"state's `round` is {dtype}. Lower num_rounds, or let `init` begin at round=jnp.int32(0).",
            argument="num_rounds",
        )
    return shapes


_STARTS: dict[Any, tuple[State, int]] = {}  # shapes of the initial state, and its round, by setting
_STARTS_LOCK = threading.Lock()


def _begin_once(init: Callable[..., State], params: Params) -> tuple[State, int]:
    """Return the shapes of a state from `init`, and its round, or 0 if that is unknown."""
    leaves, structure = jax.tree.flatten(params)
    values = tuple(_hashable_value(leaf) for leaf in leaves)
    if None in values:
        return _begin(init, params)
    setting = (init, structure, values, jax.config.values["jax_enable_x64"], engine.can_rewrite())
    start = _STARTS.get(setting)
    if start is None:
        start = _begin(init, params)
        with _STARTS_LOCK:
            if len(_STARTS) >= MOST_STARTS:
                oldest = next(iter(_STARTS))
                del _STARTS[oldest]
            _STARTS[setting] = start
    return start


def _begin(init: Callable[..., State], params: Params) -> tuple[State, int]:
    key = jax.eval_shape(lambda: jax.random.key(0, impl=threefry.IMPLEMENTATION))
    if engine.can_rewrite():
        shapes, start = trace_start(lambda key: init(key, params), key)
    else:
        shapes = jax.eval_shape(lambda key: init(key, params), key)
        start = 0
    require_round(shapes)
    if start is not None and start < 0:
        raise DeclarationError(f"`init` returns round={start}, which must be at least 0. Return round=jnp.int32(0).")
    return shapes, start or 0


def _hashable_value(leaf: Any) -> Any:
    """Return a value that decides what `init` does with a parameter, or None if `init` has to check it every time."""
    if isinstance(leaf, (bool, int, float)):
        return type(leaf), leaf
    if not isinstance(leaf, (np.ndarray, np.generic, jax.Array)) or not is_known(leaf) or leaf.nbytes > HASHED_BYTES:
        return None
    if jnp.issubdtype(leaf.dtype, jax.dtypes.extended):
        return None
    return type(leaf), leaf.dtype, leaf.shape, getattr(leaf, "weak_type", False), np.asarray(leaf).tobytes()


def require_round(shapes: Any) -> None:
    way_out = "Use a NamedTuple with a `round` that is jnp.int32(0) in `init` and grows by 1 in every `step`."
    if not hasattr(shapes, "round"):
        kind = "an array" if hasattr(shapes, "dtype") else f"a {shortened(type(shapes).__name__)}"
        fields = f" among {', '.join(shapes._fields)}" if hasattr(shapes, "_fields") else ""
        raise DeclarationError(
            f"the state is {kind} without a field `round`{fields}, but the engine counts rounds with it. {way_out}"
        )
    count = shapes.round
    if getattr(count, "shape", None) != () or not jnp.issubdtype(count.dtype, jnp.integer):
        raise DeclarationError(f"the state's `round` is {vmap.described_array(count)}, not a whole number. {way_out}")
