"""`vmap` with the batch on the trailing axis of every array, also inside the computation.

The function is traced for one replicate. Its operations are then replayed on arrays that end in the batch axis, and an
operation without a rule falls back to `jax.vmap`.
"""

import functools
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
from jax import lax
from jax.extend import core as jex_core

from moe_theory.core import rewriting, threefry
from moe_theory.core.numerics import stored

# Sums are written as chains of additions. Unlike XLA's own reductions, chains fill whole registers along the batch and
# fuse with the operations around them. A sum that is longer than a chain is first divided into parts.
LONGEST_CHAIN = 16
# Most parts that are added at once. A longer sum takes 1.5 times as long, because XLA fuses nothing with it.
MOST_PARTS = 15
MOST_TERMS = 1024  # in a sum along one axis. Longer axes are left to XLA's own reductions

# How an operation is batched.
SHARED = "shared"  # it runs once for all replicates
STORED = "stored"  # it is written as chains or hashes, whose results are stored
WRITTEN = "written"  # it is written as other operations (`rewriting`)
TRAILING = "trailing"  # it runs unchanged on arrays that end in the batch axis
FALLBACK = "vmap"  # `jax.vmap` moves the batch axis to the front
_Params = Mapping[str, tuple[int, ...] | None]  # an operation's parameters that have an entry for every axis
Log = list[tuple[Any, str, tuple[Any, ...]]]  # (operation, how it is batched, calls that contain it)


class _Value(NamedTuple):
    """A value in the replayed computation. Its array ends in the batch axis if it is batched."""

    array: Any
    is_batched: bool


def trailing_vmap(
    function: Callable[..., Any], is_batched: tuple[bool, ...], *, stores: bool = False, log: Log | None = None
) -> Callable[..., Any]:
    """Vectorise a function of one replicate over the trailing axis of its batched arguments and results.

    Args:
        is_batched: for each positional argument, whether its leaves end in the batch axis.
        stores: whether optimisation barriers in the surrounding program store their values.
        log: a list that receives every operation and how it is batched.
    """

    def batched(*arguments: Any) -> Any:
        leaves, structure = jax.tree.flatten(arguments)
        flags: list[bool] = []
        for flag, argument in zip(is_batched, arguments, strict=True):
            flags += [flag] * len(jax.tree.leaves(argument))
        inputs = [_Value(leaf, flag) for leaf, flag in zip(leaves, flags, strict=True)]
        size = next(value.array.shape[-1] for value in inputs if value.is_batched)
        single = [one_replicate(value.array) if value.is_batched else value.array for value in inputs]
        program, result = jax.make_jaxpr(function, return_shape=True)(*jax.tree.unflatten(structure, single))
        outputs = _replay(program, inputs, _Context(size, stores, log))
        return jax.tree.unflatten(jax.tree.structure(result), [_to_batched(output, size) for output in outputs])

    return batched


def without_barriers(function: Callable[..., Any]) -> Callable[..., Any]:
    def barrier_free(*arguments: Any) -> Any:
        program, result = jax.make_jaxpr(function, return_shape=True)(*arguments)
        inputs = [_Value(leaf, is_batched=False) for leaf in jax.tree.leaves(arguments)]
        outputs = _replay(program, inputs, _Context(size=1, stores=False, log=None, drops_barriers=True))
        return jax.tree.unflatten(jax.tree.structure(result), [output.array for output in outputs])

    return barrier_free


def one_replicate(batched: Any) -> Any:
    """Return the shapes of one replicate in a pytree of arrays that end in the batch axis."""
    return jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape[:-1], leaf.dtype, weak_type=getattr(leaf, "weak_type", False)),
        batched,
    )


def _to_batched(value: _Value, size: int, shape: tuple[int, ...] | None = None) -> Any:
    """Return the value's array with the batch axis after the axes of `shape`, by default those of the value."""
    array, is_batched = value
    own_shape = jax.numpy.shape(array)
    if is_batched:
        own_shape = own_shape[:-1]
    if shape is None:
        shape = own_shape
    if is_batched and array.ndim == len(shape) + 1:
        return array
    # Only a scalar is broadcast to another shape, so a batched array has the batch axis alone.
    axes = (len(shape),) if is_batched else tuple(range(len(own_shape)))
    return lax.broadcast_in_dim(array, (*shape, size), axes)


class _Context(NamedTuple):
    size: int  # size of the batch
    stores: bool
    log: Log | None
    calls: tuple[Any, ...] = ()  # calls that contain the operation
    drops_barriers: bool = False


def _replay(closed: Any, inputs: list[_Value], context: _Context) -> list[_Value]:
    """Return the outputs of a traced program, whose operations are applied to the batched inputs one by one."""
    program = closed.jaxpr
    values: dict[Any, _Value] = dict(zip(program.invars, inputs, strict=True))
    constants = [_Value(constant, is_batched=False) for constant in closed.consts]
    values.update(zip(program.constvars, constants, strict=True))

    def read(atom: Any) -> _Value:
        return _Value(atom.val, is_batched=False) if isinstance(atom, jex_core.Literal) else values[atom]

    for equation in program.eqns:
        operands = [read(atom) for atom in equation.invars]
        values.update(zip(equation.outvars, _apply(equation, operands, context), strict=True))
    return [read(atom) for atom in program.outvars]


def _apply(equation: Any, operands: list[_Value], context: _Context) -> list[_Value]:
    name = equation.primitive.name
    size = context.size
    inner = rewriting.called(equation)
    if inner is not None:
        return _replay(inner, operands, context._replace(calls=(equation, *context.calls)))
    if context.drops_barriers and name == "optimization_barrier":
        return operands
    rule = _rule(equation, operands, context)
    if context.log is not None:
        context.log.append((equation, rule, context.calls))
    if rule == SHARED:
        return _results(equation, _bind(equation, [operand.array for operand in operands]), is_batched=False)
    if rule == STORED:
        outputs = _STORED[name](equation, *(operand.array for operand in operands))
        return _results(equation, outputs, is_batched=True)
    if rule == WRITTEN:
        rewritten = rewriting.function_for(equation)
        if rewritten is not None:  # always, because `_rule` has checked it
            shapes = [jax.ShapeDtypeStruct(atom.aval.shape, atom.aval.dtype) for atom in equation.invars]
            program = jax.make_jaxpr(rewritten)(*shapes)
            return _replay(program, operands, context._replace(log=None))  # the log already has this operation
    if rule == TRAILING:
        if name in _RESHAPES:
            outputs = _bind(equation, [operands[0].array], _RESHAPES[name](equation, size))
        else:
            shape = equation.outvars[0].aval.shape if _is_elementwise(equation) else None
            outputs = _bind(equation, [_to_batched(operand, size, shape) for operand in operands])
        return _results(equation, outputs, is_batched=True)
    if size == 1:  # without `vmap`, branches and loops stay as they are
        single = [lax.squeeze(array, (array.ndim - 1,)) if is_batched else array for array, is_batched in operands]
        results = _results(equation, _bind(equation, single), is_batched=True)
        return [value._replace(array=lax.expand_dims(value.array, (value.array.ndim,))) for value in results]
    axes = tuple(-1 if operand.is_batched else None for operand in operands)
    mapped = jax.vmap(lambda *arrays: _bind(equation, list(arrays)), in_axes=axes, out_axes=-1, axis_size=size)
    return _results(equation, mapped(*(operand.array for operand in operands)), is_batched=True)


def _rule(equation: Any, operands: list[_Value], context: _Context) -> str:
    """Return how an operation is batched: `SHARED`, `STORED`, `WRITTEN`, `TRAILING` or `FALLBACK`."""
    name = equation.primitive.name
    if not any(operand.is_batched for operand in operands):
        return SHARED
    if context.stores and _is_stored(equation, operands):
        return STORED
    # A single replicate needs no operations along the batch, but must be rounded like one of many.
    needs_rewriting = context.size > 1 or name in rewriting.ROUNDING
    if context.stores and needs_rewriting and rewriting.function_for(equation) is not None:
        return WRITTEN
    is_trailing = name in _SAME_AXES or (name in _RESHAPES and len(operands) == 1) or _is_elementwise(equation)
    return TRAILING if is_trailing else FALLBACK


def _is_elementwise(equation: Any) -> bool:
    if equation.primitive.name == "bitcast_convert_type":  # only between types of equal width
        return equation.invars[0].aval.shape == equation.outvars[0].aval.shape
    return equation.primitive.name in _ELEMENTWISE


def _bind(equation: Any, arrays: list[Any], changed_params: _Params = MappingProxyType({})) -> Any:
    return equation.primitive.bind(*arrays, **{**equation.params, **changed_params})


def _results(equation: Any, outputs: Any, is_batched: bool) -> list[_Value]:
    outputs = outputs if equation.primitive.multiple_results else [outputs]
    return [_Value(output, is_batched) for output in outputs]


def _is_stored(equation: Any, operands: list[_Value]) -> bool:
    name = equation.primitive.name
    if name in ("random_bits", "random_fold_in", "random_split"):
        is_single = all(atom.aval.shape == () for atom in equation.invars)
        return is_single and operands[0].is_batched and threefry.is_served(operands[0].array)
    if name not in _STORED:
        return False
    array = equation.invars[0].aval
    sizes = [array.shape[axis] for axis in equation.params["axes"]]
    return all(0 < size <= MOST_TERMS for size in sizes) and array.dtype not in _NARROW


def _chain(combine: Callable[[Any, Any], Any], equation: Any, array: Any) -> Any:
    """Return a reduction over the equation's axes, such as a sum, as a chain of `combine` with the terms in order."""
    for axis in sorted(equation.params["axes"], reverse=True):  # from the last, so that earlier axes keep their numbers
        parts = [array]
        size = array.shape[axis]
        if size > LONGEST_CHAIN:
            # Slices of equal width are combined to one slice, and the terms behind the last slice follow it.
            width = max(math.isqrt(size), size // MOST_PARTS)
            end = width * min(size // width, MOST_PARTS)
            slices = [lax.slice_in_dim(array, start, start + width, axis=axis) for start in range(0, end, width)]
            parts = [stored(functools.reduce(combine, slices)), lax.slice_in_dim(array, end, size, axis=axis)]
        terms = []
        for part in parts:
            terms += [lax.index_in_dim(part, i, axis, keepdims=False) for i in range(part.shape[axis])]
        array = terms[0] if size == 1 else stored(functools.reduce(combine, terms))
    return array


# Operations on each number alone.
_ELEMENTWISE = frozenset(
    "add sub mul div rem max min pow integer_pow square sqrt rsqrt exp exp2 log log1p expm1 neg abs sign floor ceil "
    "round eq ne lt le gt ge and or not xor is_finite erf erf_inv erfc logistic tanh sin cos atan2 select_n "
    "convert_element_type shift_left shift_right_logical shift_right_arithmetic stop_gradient copy copy_p "
    "clamp nextafter reduce_precision complex real imag".split()
)

_NARROW = (jax.numpy.float16, jax.numpy.bfloat16)  # XLA adds these in float32

# By operation: (equation, *arrays of its operands) -> its result for the whole batch.
_STORED: dict[str, Callable[..., Any]] = {
    "random_bits": lambda equation, keys: stored(
        threefry.random_bits(keys, equation.params["bit_width"], equation.params["shape"])
    ),
    "random_fold_in": lambda _, keys, data: threefry.fold_in(keys, data),
    "random_split": lambda equation, keys: threefry.split(keys, equation.params["shape"]),
    "reduce_sum": functools.partial(_chain, lax.add),
    "reduce_max": functools.partial(_chain, lax.max),
    "reduce_min": functools.partial(_chain, lax.min),
    "reduce_and": functools.partial(_chain, lax.bitwise_and),
    "reduce_or": functools.partial(_chain, lax.bitwise_or),
}

# Operations that run unchanged, because their parameters number only axes before the batch axis.
_SAME_AXES = frozenset(
    "reduce_sum reduce_max reduce_min reduce_and reduce_or reduce_prod cumsum cumprod cummax cummin concatenate stack "
    "squeeze rev split optimization_barrier".split()
)

# By operation: (equation, size of the batch) -> the parameters that have an entry for every axis.
_RESHAPES: dict[str, Callable[[Any, int], _Params]] = {
    "broadcast_in_dim": lambda equation, size: {
        "shape": (*equation.params["shape"], size),
        "broadcast_dimensions": (*equation.params["broadcast_dimensions"], len(equation.params["shape"])),
    },
    "reshape": lambda equation, size: {"new_sizes": (*equation.params["new_sizes"], size)},
    "transpose": lambda equation, size: {
        "permutation": (*equation.params["permutation"], len(equation.params["permutation"]))
    },
    "slice": lambda equation, size: {
        "start_indices": (*equation.params["start_indices"], 0),
        "limit_indices": (*equation.params["limit_indices"], size),
        "strides": None if equation.params["strides"] is None else (*equation.params["strides"], 1),
    },
}
