"""Formulas that work with NumPy in float64 on the host, and with JAX in the run's precision inside a scan."""

from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Numbers = jax.Array | np.ndarray  # arguments of formulas that work in both
Scalar = jax.Array | float | int  # a parameter, traced or not


def array_namespace(*arrays: Any) -> ModuleType:
    """Return `jax.numpy` if any of `arrays` is a JAX array or tracer, else `numpy`."""
    return jnp if any(isinstance(array, jax.Array) for array in arrays) else np


def plain(value: Any) -> float | np.ndarray:
    """Return one number as a float, and an array in float64."""
    array = np.asarray(value, float)
    return float(array) if array.ndim == 0 else array


def rounded(product: jax.Array, zero: jax.Array) -> jax.Array:
    """Return `product`, rounded before any sum with it. The integer `zero` is 0, but a compiler cannot know that."""
    integer_type = jnp.int32 if product.dtype == jnp.float32 else jnp.int64
    bits = jax.lax.bitcast_convert_type(product, integer_type)
    return jax.lax.bitcast_convert_type(bits ^ zero.astype(integer_type), product.dtype)


def rounded_positive(product: jax.Array) -> jax.Array:
    """Return `rounded` of a product that is at least 0, by way of its absolute value."""
    return jnp.abs(product)


def stored(arrays: Any) -> Any:
    """Return `arrays`. The engine's programs for a CPU compute each array once and store it."""
    # Each array gets its own barrier. With a joint barrier, XLA's emitter of small functions causes a memory fault.
    return jax.tree.map(jax.lax.optimization_barrier, arrays)
