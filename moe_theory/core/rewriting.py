"""Operations on single replicates, rewritten as operations along a batch.

A masked sum over all rows picks a row, and a choice by the same mask writes a row. A product of a matrix and a vector
becomes elementwise products and a sum.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.extend import core as jex_core

# Most numbers in an array, or products, for which an operation is rewritten. Its cost grows with them.
MOST_NUMBERS = 2**12

_CALLS = frozenset("jit pjit closed_call custom_jvp_call custom_vjp_call".split())
_CLIPPED = lax.GatherScatterMode.CLIP
_INDICES = (jnp.int32, jnp.int64)  # types that can number all places of an array


def called(equation: Any) -> Any:
    """Return the program that a traced operation calls, such as a nested jit, or None."""
    inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
    return inner if equation.primitive.name in _CALLS and isinstance(inner, jex_core.ClosedJaxpr) else None


def function_for(equation: Any) -> Callable[..., Any] | None:
    """Return a function with the operation's results up to rounding, or None if the operation is not rewritten."""
    rule = _RULES.get(equation.primitive.name)
    operands = [atom.aval for atom in equation.invars]
    is_plain = all(
        jnp.issubdtype(aval.dtype, jnp.number) or aval.dtype == bool for aval in operands if hasattr(aval, "dtype")
    )
    if rule is None or not is_plain or any(math.prod(aval.shape) > MOST_NUMBERS for aval in operands):
        return None
    return rule(equation, operands)


def _dot(equation: Any, operands: list[Any]) -> Callable[..., Any] | None:
    contracted, batched = equation.params["dimension_numbers"]
    free = []  # for both operands, the axes that remain
    for aval, axes in zip(operands, contracted, strict=True):
        free.append([axis for axis in range(aval.ndim) if axis not in axes])
    dtype = equation.outvars[0].aval.dtype
    terms = math.prod(operands[0].shape[axis] for axis in contracted[0])
    num_products = terms * math.prod(equation.outvars[0].aval.shape)
    is_small = 0 < num_products <= MOST_NUMBERS
    if any(batched) or len(free[0]) + len(free[1]) > 1 or not is_small or dtype not in (jnp.float32, jnp.float64):
        return None

    def product(*arrays: Any) -> Any:
        # The contracted axes come last. At most one array has another axis, so the two broadcast.
        first, second = [
            lax.transpose(array, (*free_axes, *axes)).astype(dtype)
            for array, free_axes, axes in zip(arrays, free, contracted, strict=True)
        ]
        num_free = len(free[0]) + len(free[1])
        return jnp.sum(first * second, axis=tuple(range(num_free, max(first.ndim, second.ndim))))

    return product


def _extreme(equation: Any, operands: list[Any]) -> Callable[..., Any] | None:
    (axis,) = equation.params["axes"]
    dtype = equation.params["index_dtype"]
    reduce = jnp.max if equation.primitive.name == "argmax" else jnp.min
    shape = operands[0].shape
    if shape[axis] == 0 or dtype not in _INDICES or jnp.issubdtype(operands[0].dtype, jnp.complexfloating):
        return None

    def first_place(array: Any) -> Any:
        array = array.astype(jnp.int32) if array.dtype == bool else array
        is_extreme = (array == reduce(array, axis=axis, keepdims=True)) | (array != array)  # a NaN counts as extreme
        places = lax.broadcasted_iota(dtype, shape, axis)
        return jnp.min(jnp.where(is_extreme, places, shape[axis]), axis=axis).astype(dtype)

    return first_place


def _erf_inv(equation: Any, operands: list[Any]) -> Callable[..., Any] | None:
    del equation
    return _inverse_error_function if operands[0].dtype == jnp.float32 else None


def _inverse_error_function(values: Any) -> Any:
    """Return erf^-1 in float32. Source: M. Giles, Approximating the erfinv function, 2011, table 5."""
    depth = -jnp.log((1 - values) * (1 + values))
    is_near = depth < 5
    place = jnp.where(is_near, depth - 2.5, jnp.sqrt(depth) - 3)
    ratio = jnp.zeros_like(values)
    for near, far in _RATIO:
        ratio = ratio * place + jnp.where(is_near, near, far).astype(values.dtype)
    return jnp.where(jnp.abs(values) == 1, values * jnp.inf, ratio * values)


def _slice(equation: Any, operands: list[Any]) -> Callable[..., Any] | None:
    shape = operands[0].shape
    sizes = equation.params["slice_sizes"]
    axes = _single_axes(shape, sizes)
    if axes is None or any(operands[1 + axis].dtype not in _INDICES for axis in axes):
        return None
    is_real = jnp.issubdtype(operands[0].dtype, jnp.floating)

    def rows(array: Any, *starts: Any) -> Any:
        blank = jnp.full((), -0.0 if is_real else 0, array.dtype)  # adding it to -0.0 keeps the sign
        for axis in axes:
            is_row = _is_place(array.shape, [axis], [starts[axis]])
            merge = jnp.any if array.dtype == bool else jnp.sum
            array = merge(jnp.where(is_row, array, blank), axis=axis, keepdims=True).astype(array.dtype)
        return array

    return rows


def _update(equation: Any, operands: list[Any]) -> Callable[..., Any] | None:
    shape = operands[0].shape
    axes = _single_axes(shape, operands[1].shape)
    if axes is None or any(operands[2 + axis].dtype not in _INDICES for axis in axes):
        return None

    def update(array: Any, rows: Any, *starts: Any) -> Any:
        is_row = _is_place(shape, axes, [starts[axis] for axis in axes])
        return jnp.where(is_row, jnp.broadcast_to(rows, shape), array)

    return update


def _scatter(equation: Any, operands: list[Any]) -> Callable[..., Any] | None:
    numbers = equation.params["dimension_numbers"]
    (array, indices, rows) = operands
    axes = numbers.inserted_window_dims
    is_sum = equation.primitive.name == "scatter-add"
    kept_axes = tuple(axis for axis in range(array.ndim) if axis not in axes)
    kept_shape = tuple(array.shape[axis] for axis in kept_axes)
    is_row = numbers.update_window_dims == tuple(range(rows.ndim)) and rows.shape == kept_shape
    is_single = numbers.scatter_dims_to_operand_dims == axes and indices.shape == (len(axes),)
    if not (is_row and is_single) or numbers.operand_batching_dims or indices.dtype not in _INDICES:
        return None

    def scattered(array: Any, indices: Any, row: Any) -> Any:
        places = [indices[number] for number in range(len(axes))]
        is_place = _is_place(array.shape, axes, places, is_clipped=equation.params["mode"] == _CLIPPED)
        row = lax.broadcast_in_dim(row.astype(array.dtype), array.shape, kept_axes)
        return jnp.where(is_place, array + row if is_sum else row, array)

    return scattered


def _single_axes(shape: Sequence[int], sizes: Sequence[int]) -> list[int] | None:
    """Return the axes on which a window has one place of several, or None if it has some but not all on an axis."""
    axes = [axis for axis, (size, full_size) in enumerate(zip(sizes, shape, strict=True)) if size != full_size]
    return axes if all(sizes[axis] == 1 for axis in axes) else None


def _is_place(shape: Sequence[int], axes: Sequence[int], places: Sequence[Any], is_clipped: bool = True) -> Any:
    """Return a mask, for an array of this shape, of the entries at these places on these axes."""
    mask = jnp.ones((), bool)
    for axis, place in zip(axes, places, strict=True):
        place = jnp.clip(place, 0, shape[axis] - 1) if is_clipped else place
        shape_of_axis = [1] * len(shape)  # broadcasts along all other axes
        shape_of_axis[axis] = shape[axis]
        mask = mask & (lax.broadcasted_iota(place.dtype, shape_of_axis, axis) == place)
    return mask


# Coefficients of erf^-1(x) / x, highest power first. Let L = -log(1 - x^2). The first column is for powers of L - 2.5
# if L < 5, and the second for powers of L^.5 - 3 otherwise.
_RATIO = (
    (2.81022636e-08, -0.000200214257),
    (3.43273939e-07, 0.000100950558),
    (-3.5233877e-06, 0.00134934322),
    (-4.39150654e-06, -0.00367342844),
    (0.00021858087, 0.00573950773),
    (-0.00125372503, -0.0076224613),
    (-0.00417768164, 0.00943887047),
    (0.246640727, 1.00167406),
    (1.50140941, 2.83297682),
)

ROUNDING = frozenset({"dot_general", "erf_inv"})  # operations whose last bits change by rewriting

# By operation: (equation, its operands' shapes) -> a function as `function_for` returns.
_RULES: dict[str, Callable[[Any, list[Any]], Callable[..., Any] | None]] = {
    "dot_general": _dot,
    "argmax": _extreme,
    "argmin": _extreme,
    "erf_inv": _erf_inv,
    "dynamic_slice": _slice,
    "dynamic_update_slice": _update,
    "scatter": _scatter,
    "scatter-add": _scatter,
}
