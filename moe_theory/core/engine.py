"""The engine of `simulate`: it scans one body for all rounds between records, and draws random numbers ahead."""

import functools
import itertools
import math
import os
import warnings
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from moe_theory.core import faults, programs, rounds, vmap
from moe_theory.core.ahead import require_counted, split_step
from moe_theory.core.batching import one_replicate, trailing_vmap, without_barriers
from moe_theory.core.constraints import is_known
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.faults import CompilerOptions
from moe_theory.core.machine import require_own_jax
from moe_theory.core.numerics import stored
from moe_theory.core.random import replicate_keys, step_key
from moe_theory.core.threads import on_all_cores

# Options of XLA for a CPU. On other devices its defaults apply. We drop the pass that expands optimisation barriers, so
# a value that passes a barrier is stored. Small loops must then not become functions, because their emitter ignores
# barriers. We also drop the pass that splits an operation between threads: for batches that fit a cache it costs more
# than it gains, so each thread takes a whole batch.
_BARRIERS_STORE: CompilerOptions = {
    "xla_disable_hlo_passes": "cse_barrier_expander,small-while-loop-hoisting,cpu-parallel-task-assigner",
    "xla_cpu_prefer_vector_width": 512,
}
# Options that other versions of XLA may not know. With `_BY_XLA`, XLA compiles everything itself. States with matrices
# do not use it, because a library is faster for them. With `_FURTHER`, loops copy less. LLVM's second level compiles
# faster than its third, to faster code.
_BY_XLA: CompilerOptions = {"xla_cpu_experimental_ynn_fusion_type": ""}
_FURTHER: CompilerOptions = {"xla_cpu_copy_insertion_use_region_analysis": True, "xla_backend_optimization_level": 2}

_UNTESTED = (0, 12)  # the first version of JAX whose programs are not tested
_RECORD_BYTES: dict[Hashable, int] = {}  # bytes of a run's records, by what the run is compiled for
_STATIC = (0, 4, 6, 7, 8)  # positions in `_run` of system, blocks, observe, reduce and is_batch, which are static


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
    is_plain: bool = False,
) -> tuple[Any, Any]:
    """Return the final state and stacked records of a run that starts from `state` or, if None, from `system.init`.

    With `is_batch`, keys have shape (B,), and leaves of states and records end in the replicate axis. With `is_plain`,
    or if the programs of the installed JAX cannot be rewritten, `vmap.run` does the run.
    """
    require_own_jax()
    # NumPy's integers are not instances of int, which `rounds.run_records` tests for.
    num_rounds = int(num_rounds)
    record_every = int(record_every)
    if state is not None and is_known(state.round):
        require_one_round(state.round)
    platform = platform_of(keys, state, params)
    if platform is None:
        faults.warn_of_own_programs()
    is_rewritten = platform is not None and not is_plain and can_rewrite()
    if state is None and is_rewritten:
        # A separate program, which all runs with the same `init` share.
        with programs.compiled_once((platform, "start")):
            start = _start_program(platform)
        state = start(system.init, keys, params, is_batch)
    if state is not None:
        # Systems with the same step then share a program, whatever their `init`.
        system = _Functions(None, system.step)
    num_replicates = keys.shape[0] if is_batch else 1
    is_large = state is not None and bytes_of(state) > ALONE_BYTES * num_replicates
    blocks = rounds.fixed_blocks(num_rounds, record_every)
    lengths = ()
    if is_rewritten:
        fewest = rounds.FEWEST_RECORDS if platform == "cpu" else 1
        blocks, lengths = rounds.planned(num_rounds, record_every, fewest)
    run_program = program(platform, is_plain, is_large)
    num_records = -(-num_rounds // record_every)  # rounded up
    before_blocks = (system, keys, state, params)
    after_blocks = (lengths, observe, reduce, is_batch)
    if blocks.room > num_records:
        compiled_for = (system.step, keys.shape, bytes_of((state, params)), blocks, observe, reduce, is_batch)
        if compiled_for not in _RECORD_BYTES:  # once, because tracing takes as long as a small run
            _, record_shapes = run_program.eval_shape(*before_blocks, blocks, *after_blocks)
            _RECORD_BYTES[compiled_for] = bytes_of(record_shapes)
        if _RECORD_BYTES[compiled_for] > SPARE_BYTES:
            blocks = blocks._replace(room=num_records)
    state, records = run_program(*before_blocks, blocks, *after_blocks)
    return state, rounds.without_room(records, blocks, num_records, platform)


def require_one_round(round_numbers: Any) -> None:
    """Raise InvalidValueError unless all replicates of a batch are at the same round, which is at least 0."""
    low = int(np.min(round_numbers))
    high = int(np.max(round_numbers))
    if low != high:
        raise InvalidValueError(
            f"the replicates of this state are at rounds {low} to {high}, but must all be at the same round. Join only "
            "checkpoints of the same round."
        )
    if low < 0:
        raise InvalidValueError(
            f"round={low} must be at least 0: negative rounds reuse the keys of other rounds. Change state.",
            argument="round",
        )


def platform_of(keys: Any, state: Any, params: Any) -> str | None:
    words = jax.random.key_data(keys)  # traced inside a program even if the keys themselves are known
    if not is_known((words, state, params)):
        return None
    return next(iter(words.devices())).platform


def program(platform: str | None, is_plain: bool = False, is_large: bool = False) -> Any:
    """Return `run` compiled for a platform, or for a caller's own jit if `platform` is None."""
    with programs.compiled_once((platform, is_plain, is_large)):
        return _program(platform, is_plain or not can_rewrite(), is_large)


@functools.cache
def _program(platform: str | None, is_plain: bool, is_large: bool) -> Any:
    options = cpu_options(is_large) if platform == "cpu" and not is_plain else None
    is_split = (platform or jax.default_backend()) == "cpu"
    traits = _RunTraits(options is not None, is_split, is_large, shares_round=platform is not None)
    body = _run_plainly if is_plain else functools.partial(_run, traits)
    return jax.jit(body, static_argnums=_STATIC, compiler_options=_without_faults(platform, options))


@functools.cache
def _start_program(platform: str) -> Any:
    options = cpu_options() if platform == "cpu" else None
    body = functools.partial(_start, options is not None)
    return jax.jit(body, static_argnums=(0, 3), compiler_options=_without_faults(platform, options))


def _without_faults(platform: str | None, options: CompilerOptions | None) -> CompilerOptions | None:
    if platform != "cpu":
        return options
    options = faults.avoiding() | (options or {})
    faults.require_none(options)
    return options


@functools.cache
def can_rewrite() -> bool:
    """Return whether the engine can rewrite the programs of the installed JAX.

    The engine can do this for all tested versions. A later version is tried on a small run. If that run fails or
    differs from `vmap.run`, a warning follows, and all runs use `vmap.run`.
    """
    if jax.__version_info__ < _UNTESTED:
        return True
    try:
        if _agrees_on_a_small_run():
            return True
        reason = "its results differ"
    except Exception as failure:  # depends on what a later JAX lacks
        reason = f"{type(failure).__name__}: {failure}"
    warnings.warn(
        f"moe_theory cannot rewrite programs of jax {jax.__version__} ({reason}). Results are right, but runs take "
        f"several times longer. Use a jax below {'.'.join(map(str, _UNTESTED))}, or a later version of moe_theory.",
        RuntimeWarning,
        stacklevel=2,
    )
    return False


class _RunTraits(NamedTuple):
    stores: bool  # whether barriers store
    is_split: bool  # whether draws are made ahead and the batch axis is last, as on a CPU
    is_large: bool  # whether replicates are matrices
    shares_round: bool  # whether all replicates of the initial state are known to be at the same round


class _Walk(NamedTuple):  # state of a random walk
    round: Any
    place: Any


def _agrees_on_a_small_run() -> bool:
    def init(key: Any, params: Any) -> _Walk:
        return _Walk(jnp.int32(0), jax.random.normal(key, (2,)))

    def step(key: Any, state: _Walk, params: Any) -> tuple[_Walk, Any]:
        jump = jax.random.normal(key, (2,))
        turn = jax.random.uniform(jax.random.fold_in(key, 1))
        place = jnp.where(turn < 0.5, state.place + params * jump, state.place[::-1] - jnp.sum(jump))
        return _Walk(state.round + 1, place), jnp.max(place)

    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(jax.random.key(0, impl="threefry2x32"), jnp.arange(3))
    blocks = rounds.fixed_blocks(num_rounds=5, record_every=2)
    arguments = (_Functions(init, step), keys, None, jnp.float32(0.5), blocks, ())
    arguments += (lambda state, info: (state, info), None, True)  # observe, reduce and is_batch
    traits = _RunTraits(stores=False, is_split=True, is_large=False, shares_round=True)
    rewritten = jax.jit(functools.partial(_run, traits), static_argnums=_STATIC)(*arguments)
    by_vmap = jax.jit(_run_by_vmap, static_argnums=_STATIC)(*arguments)
    for leaf, expected in zip(jax.tree.leaves(rewritten), jax.tree.leaves(by_vmap), strict=True):
        if leaf.shape != expected.shape or not jnp.allclose(leaf, expected, rtol=1e-5, atol=1e-5):
            return False
    return True


class _Functions(NamedTuple):
    init: Callable[..., Any] | None  # None if the run continues from a state
    step: Callable[..., Any]


@functools.cache
def cpu_options(is_large: bool = False) -> CompilerOptions | None:
    """Return options with which barriers store values on a CPU, or None if this XLA cannot do that."""
    flags = os.environ.get("XLA_FLAGS", "")
    options = _FURTHER | (faults.avoiding() if is_large else _BY_XLA)
    unset = {name: value for name, value in options.items() if f"--{name}" not in flags}
    for further in (unset, {}):
        if _stores(_BARRIERS_STORE | further):
            return _BARRIERS_STORE | further
    return None


def _stores(options: CompilerOptions) -> bool:
    """Return whether XLA accepts these options for a CPU and then preserves an optimisation barrier."""

    def with_barrier(number):
        return jax.lax.optimization_barrier(number + 1) * 2

    with jax.default_device(jax.devices("cpu")[0]):
        lowered = jax.jit(with_barrier, compiler_options=options).lower(0)
        try:
            return "opt-barrier" in (lowered.compile().as_text() or "")
        except jax.errors.JaxRuntimeError:
            return False


def num_programs() -> int:
    platforms = {None, "cpu", jax.default_backend()}
    kinds = itertools.product(platforms, (False, True), (False, True))  # platform, is_plain and is_large
    return sum(program(*kind)._cache_size() for kind in kinds)  # JAX has no public name for this method


def _run(traits: _RunTraits, system, keys, state, params, blocks, lengths, observe, reduce, is_batch) -> Any:
    """Return the final state and records. This body of `run` is compiled, and rewrites the system's operations."""
    if traits.is_large and is_batch and keys.shape == (1,):
        # Run it without the batch axis, because a trailing axis of length 1 costs copies of matrices.
        one_state = jax.tree.map(lambda leaf: leaf[..., 0], state)

        def reduce_one(leaf):
            batch = leaf[..., None]
            return batch if reduce is None else reduce(batch)

        arguments = (system, keys[0], one_state, params, blocks, lengths, observe, reduce_one)
        end_state, records = _run(traits, *arguments, is_batch=False)
        return jax.tree.map(lambda leaf: leaf[..., None], end_state), records
    start_state = _start(traits.stores, system.init, keys, params, is_batch) if state is None else state
    step = trailing_vmap(system.step, is_batched=(True, True, False)) if is_batch else system.step
    start_state = vmap.with_step_types(functools.partial(jax.eval_shape, step, keys), start_state, params)
    # Without a check, replicates may be at different rounds. Then each draws with its own round.
    is_at_one_round = state is None or traits.shares_round
    first_round = (jnp.max(start_state.round) if is_at_one_round else start_state.round) + 1
    machine = _machine(
        traits, system, keys, start_state, first_round, params=params, observe=observe, reduce=reduce, is_batch=is_batch
    )
    if blocks.fixed is None:
        return rounds.run_records(machine, start_state, blocks, *lengths)
    num_rounds, record_every = blocks.fixed
    num_left = num_rounds % record_every  # rounds of the last record, if they are fewer
    parts = []
    end_state = start_state
    full_strides = (0, num_rounds - num_left, record_every)  # rounds before, number of rounds, and stride
    last_stride = (num_rounds - num_left, num_left, num_left)
    for num_before, length, stride in (full_strides, last_stride):
        if length:
            strides = rounds.whole_blocks(length, stride)
            end_state, records = rounds.run_records(machine, end_state, strides, length, stride, num_before=num_before)
            parts.append(records)
    return end_state, jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)


def _run_plainly(system, keys, state, params, blocks, lengths, observe, reduce, is_batch) -> tuple[Any, Any]:
    """Return `vmap.run` of a system, after checking that steps count rounds, if this JAX's programs can be read."""
    if can_rewrite():
        one_key = one_replicate(keys) if is_batch else keys
        key = jax.eval_shape(lambda key: key, one_key)  # the key's shape
        if state is None:
            start_state = jax.eval_shape(system.init, key, params)
        else:
            start_state = one_replicate(state) if is_batch else state
        start_state = vmap.with_step_types(functools.partial(jax.eval_shape, system.step, key), start_state, params)
        split = split_step(system.step, key, start_state, params)
        vmap.require_step_result(start_state, split.shapes)
        require_counted(start_state, split.added)
    return _run_by_vmap(system, keys, state, params, blocks, lengths, observe=observe, reduce=reduce, is_batch=is_batch)


def _run_by_vmap(system, keys, state, params, blocks, lengths, observe, reduce, is_batch) -> tuple[Any, Any]:
    del lengths  # fixed blocks have none
    arguments = (system, keys, state, params, *blocks.fixed)  # the last two are num_rounds and record_every
    return vmap.run(*arguments, observe=observe, reduce=reduce, is_batch=is_batch)


def _start(stores: bool, init: Callable[..., Any], keys: Any, params: Any, is_batch: bool) -> Any:
    def start(key, params):
        return init(step_key(key, jnp.int32(0)), params)

    return _batching(is_batch, stores)(start, (True, False))(keys, params)


def _machine(traits, system, keys, state, first_round, params, observe, reduce, is_batch) -> rounds.Machine:
    stores = traits.stores
    batch = _batching(is_batch, stores, traits.is_split)
    one_key = one_replicate(keys) if is_batch else keys
    one_state = one_replicate(state) if is_batch else state
    split = split_step(system.step, one_key, one_state, params)
    vmap.require_step_result(one_state, split.shapes)
    require_counted(one_state, split.added)
    key_round = batch(step_key, (True, jnp.ndim(first_round) > 0))
    # Keys or draws, and the state, differ between replicates. Parameters do not.
    is_batched = (True, True, False)
    draw_round = batch(split.draw, is_batched)
    prepare_round = batch(split.prepare, is_batched)
    act_round = batch(split.act, is_batched)
    step_round = batch(system.step, is_batched)
    observe_round = batch(observe, (True, True))
    one_info = split.shapes[1]
    # A loop carries only the leaves of the last info that `observe` reads. Copying all leaves costs as much as a round.
    read_flags = _which_are_read(observe, one_state, one_info)
    structure = jax.tree.structure(one_info)

    if traits.is_split:

        def draw(num_done: Any) -> Any:
            earlier = split.count(state, num_done)
            draws = draw_round(key_round(keys, first_round + num_done), earlier, params)
            # Without storing, every operation in `prepare` would draw the numbers again.
            return prepare_round(stored(draws), earlier, params) if stores else draws

        def advance(draws: Any, state: Any) -> Any:
            prepared = draws if stores else prepare_round(draws, state, params)
            return act_round(prepared, state, params)

    else:

        def draw(num_done: Any) -> Any:
            return num_done

        def advance(draws: Any, state: Any) -> Any:  # `draws` is the number of rounds done
            return step_round(key_round(keys, first_round + draws), state, params)

    def act(draws, state):
        state, info = advance(draws, state)
        return state, [leaf for leaf, is_read in zip(jax.tree.leaves(info), read_flags, strict=True) if is_read]

    batch_shape = jnp.shape(keys) if is_batch else ()

    def make_zeros(are_read: bool) -> list[Any]:
        pairs = zip(jax.tree.leaves(one_info), read_flags, strict=True)
        return [jnp.zeros((*leaf.shape, *batch_shape), leaf.dtype) for leaf, is_read in pairs if is_read is are_read]

    def record(state, leaves):
        read = iter(leaves)
        unread = iter(make_zeros(are_read=False))  # the result does not depend on their values
        info_leaves = [next(read if is_read else unread) for is_read in read_flags]
        observed = observe_round(state, jax.tree.unflatten(structure, info_leaves))
        return observed if reduce is None else jax.tree.map(reduce, observed)

    return rounds.Machine(draw=jax.vmap(draw), act=act, record=record, blank=make_zeros(are_read=True))


def _batching(is_batch: bool, stores: bool, is_split: bool = True) -> Callable[..., Any]:
    """Return a function that takes (function, is_batched) and returns the function for all replicates at once."""
    if not is_batch:
        return lambda function, _: function
    if is_split:
        return functools.partial(trailing_vmap, stores=stores)
    # An accelerator's compiler fuses more if it may order the axes, and repeats fused operations cheaply.
    return lambda function, is_batched: vmap.trailing(without_barriers(function), is_batched)


def _which_are_read(observe: Callable[[Any, Any], Any], state: Any, info: Any) -> list[bool]:
    """Return for each leaf of the info whether `observe` reads it."""
    closed, shapes = jax.make_jaxpr(observe, return_shape=True)(state, info)
    vmap.require_whole_bytes("what is observed", shapes)
    program = closed.jaxpr
    operands = itertools.chain.from_iterable(equation.invars for equation in program.eqns)
    ids = {id(variable) for variable in [*operands, *program.outvars]}  # literals among them have no hash
    info_variables = program.invars[len(jax.tree.leaves(state)) :]
    return [id(variable) in ids for variable in info_variables]


# Measured on one core for the systems of `continual` and `edge`. For all states up to 400 kB narrower blocks cost more,
# and for most of them wider blocks cost up to twice as much.
BLOCK_WIDTH = 64
# Most bytes of state in a block. Larger blocks cost more than two blocks of half the width.
BLOCK_BYTES = 2**25
# Bytes of state above which replicates run one at a time. States of that size are matrices, whose products are slower
# in batches. A single replicate also takes only one branch where a batch takes all.
ALONE_BYTES = 2**20
# Replicates that fill an accelerator. On one H100 a round of one replicate costs about the same for 2^15 to 2^18
# replicates. With fewer it costs more, because the time to start kernels is fixed.
FILLING_WIDTH = 2**17
# Most bytes of records for which a program reserves spare room. With larger records we compile it for each count.
SPARE_BYTES = 2**24
# Bytes of memory assumed for an accelerator that does not report its memory.
UNKNOWN_BYTES = 2**33
# Copies of the state that a run needs: before and after a round, intermediate values, and values prepared ahead. XLA
# reports 3 to 18, the most for few experts with many features.
STATE_COPIES = 20


def width_for(state: Any, platform: str = "cpu", count: int | None = None, memory: int | None = None) -> int:
    """Return the number of replicates to run together, a power of two, for one replicate's state or its shapes.

    On a CPU the number is 1 to 64, so that the states fit a core's cache. On other devices the states fill `memory`, in
    bytes, by default the device's. The number is at most `count` rounded up to a power of two.
    """
    state_bytes = bytes_of(state)
    if platform == "cpu":
        most = 1 if state_bytes > ALONE_BYTES else BLOCK_WIDTH
        num_fitting = BLOCK_BYTES // max(state_bytes, 1)
    else:
        most = FILLING_WIDTH
        num_bytes = memory
        if not num_bytes:
            statistics = jax.local_devices(backend=platform)[0].memory_stats() or {}
            num_bytes = statistics.get("bytes_limit", UNKNOWN_BYTES)
        num_fitting = num_bytes // (STATE_COPIES * max(state_bytes, 1))
    width = min(most, 1 << (max(num_fitting, 1).bit_length() - 1))  # rounded down to a power of two
    if count is None:
        return width
    return min(width, 1 << (count - 1).bit_length())  # rounded up


def bytes_of(state: Any) -> int:
    arrays = [leaf for leaf in jax.tree.leaves(state) if hasattr(leaf, "dtype")]
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in arrays)


def run_in_blocks(
    width: int, system: Any, root: Any, names: np.ndarray, state: Any, settings: tuple
) -> tuple[Any, Any]:
    """Return `engine.run` of replicates `names` (B,) and `state` (..., B), in padded blocks of `width`.

    `settings` are the arguments of `engine.run` after the state.
    """
    if state is not None:
        require_one_round(state.round)
    count = len(names)

    def run_block(first: int) -> tuple[Any, Any]:
        # The last block is filled up with copies of the last replicate.
        places = np.minimum(np.arange(first, first + width), count - 1)
        block_state = jax.tree.map(functools.partial(_take_replicates, places), state)
        return run(system, replicate_keys(root, names[places]), block_state, *settings)

    first_block = run_block(0)  # compiles the program, before several threads need it
    blocks = [first_block, *on_all_cores(run_block, range(width, count, width))]
    return jax.tree.map(lambda *parts: _join(parts, count), *blocks)


def _join(parts: tuple[Any, ...], count: int) -> Any:
    if len(parts) == 1 and parts[0].shape[-1] == count:
        return parts[0]
    if not isinstance(parts[0].dtype, np.dtype):  # random keys, which NumPy does not have
        return jnp.concatenate(parts, axis=-1)[..., :count]
    joined = np.concatenate([np.asarray(part) for part in parts], axis=-1)
    return rounds.on_device_of(parts[0], joined[..., :count])


def _take_replicates(places: np.ndarray, leaf: Any) -> Any:
    if isinstance(leaf.dtype, np.dtype):
        leaf = np.asarray(leaf)
    return leaf[..., places]
