"""What networks start from: kernels by He's rule, biases of zero."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key


def he_kernels(key: Key[Array, ""], shapes: Sequence[tuple[int, ...]]) -> list[Float[Array, "..."]]:
    """Independent normal entries of mean 0 and variance 2 / fan-in, for kernels whose last axis is the outputs.

    So a ReLU layer hands on the size of what it is given, however many layers there are. With smaller kernels and a
    squared loss behind a sigmoid, networks die early (all ReLUs at 0); as a dead expert stays where it is, the locality
    loss then favours it ever after. All kernels come from one call of the generator, which compiles once, not once a
    kernel.

    Source: He, Zhang, Ren and Sun, "Delving Deep into Rectifiers" (2015), Eq. (10); the papers do not say.
    """
    dtype = jnp.result_type(float)
    sizes = [math.prod(shape) for shape in shapes]
    normals = jnp.split(jax.random.normal(key, (sum(sizes),), dtype), np.cumsum(sizes)[:-1])
    return [
        math.sqrt(2 / math.prod(shape[:-1])) * values.reshape(shape)
        for shape, values in zip(shapes, normals, strict=True)
    ]


def zeros(size: int) -> Float[Array, " size"]:
    """What biases and shifts start from."""
    return jnp.zeros(size, jnp.result_type(float))


def ones(size: int) -> Float[Array, " size"]:
    """What scales start from."""
    return jnp.ones(size, jnp.result_type(float))
