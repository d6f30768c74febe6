"""Trees of arrays, with keys among them, compared; and the operations of a program."""

from collections import Counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def assert_close(actual: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """The same structure, shapes and types, weak ones too; floats within the tolerance, for numbers near 1 in float32,
    and all else equal."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for (path, one), other in zip(jax.tree.leaves_with_path(actual), jax.tree.leaves(expected), strict=True):
        assert one.shape == other.shape, path
        assert one.dtype == other.dtype, path
        assert getattr(one, "weak_type", False) == getattr(other, "weak_type", False), path
        if jnp.issubdtype(one.dtype, jax.dtypes.prng_key):
            one, other = jax.random.key_data(one), jax.random.key_data(other)
        if jnp.issubdtype(one.dtype, jnp.floating):
            one, other = np.asarray(one, np.float64), np.asarray(other, np.float64)
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=str(path))
        else:
            np.testing.assert_array_equal(one, other, err_msg=str(path))


def primitives_of(program: Any) -> Counter[str]:
    """Return how often each primitive occurs in a program, and in those inside it."""
    counts = Counter(equation.primitive.name for equation in program.eqns)
    for equation in program.eqns:
        for value in jax.tree.leaves([*equation.params.values()], is_leaf=lambda leaf: hasattr(leaf, "eqns")):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                counts += primitives_of(inner)
    return counts
