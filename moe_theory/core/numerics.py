"""One formula, two homes: NumPy in float64 on the host, JAX in the run's own precision inside a scan."""

from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Numbers = jax.Array | np.ndarray  # what formulas take that serve both homes
Scalar = jax.Array | float | int  # a parameter, traced or not


def array_namespace(*arrays: Any) -> ModuleType:
    """`jax.numpy` when any of `arrays` is a JAX array or tracer, else `numpy`."""
    return jnp if any(isinstance(array, jax.Array) for array in arrays) else np
