"""A known fault of jaxlib, which makes programs for a CPU give wrong numbers, and the option that avoids it.

This package compiles its programs with that option. Inside a caller's own `jax.jit` it can only warn.
"""

import functools
import os
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxlib import version

from moe_theory.core.errors import InvalidValueError

FAULT = (
    "reduces products of more than 32,768 rows (16,384 in float64) with a small matrix "
    "(https://github.com/jax-ml/jax/issues/39103)"
)
OPTION = "xla_cpu_experimental_ynn_fusion_type"
VALUE = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT"  # the library computes products, and nothing is fused with them


CompilerOptions = dict[str, str | int | bool]  # values of XLA's options by name


@functools.cache
def avoiding() -> dict[str, str | bool]:
    """Return the option of XLA's CPU compiler that avoids the fault, unless it is unknown or set in `XLA_FLAGS`."""
    options: dict[str, str | bool] = {OPTION: VALUE}
    if f"--{OPTION}" in os.environ.get("XLA_FLAGS", ""):
        return {}
    with jax.default_device(jax.devices("cpu")[0]), jax.disable_jit(False):  # a caller may have disabled jit
        lowered = jax.jit(lambda number: number + 1, compiler_options=options).lower(0)  # any program shows it
        try:
            lowered.compile()
        except jax.errors.JaxRuntimeError:
            return {}
    return options


def require_none(options: CompilerOptions | None) -> None:
    """Raise InvalidValueError if a program for a CPU, compiled with these options, has the fault."""
    if is_wrong(tuple((options or {}).items())):
        flags = f"XLA_FLAGS={os.environ['XLA_FLAGS']!r}" if "XLA_FLAGS" in os.environ else "no XLA_FLAGS"
        raise InvalidValueError(
            f"jaxlib {version.__version__} with {flags} gives wrong numbers where a program {FAULT}. Remove {OPTION} "
            "from XLA_FLAGS, or install another jaxlib."
        )


@functools.cache
def warn_of_own_programs() -> None:
    """Warn once per process of the fault in programs that a caller compiles."""
    if jax.default_backend() == "cpu" and is_wrong(()):
        warnings.warn(
            f"jaxlib {version.__version__} gives wrong numbers where your own jax.jit, or a run with debug=True, "
            f"{FAULT}. Set XLA_FLAGS=--{OPTION}= before JAX starts, or let moe_theory compile the run.",
            RuntimeWarning,
            stacklevel=4,  # the caller of `simulate`
        )


@functools.cache
def is_wrong(options: tuple[tuple[str, str | int | bool], ...]) -> bool:
    """Return whether a program for a CPU, compiled with these options, gives wrong numbers."""
    numbers = np.zeros((2**15 + 8, 3), np.float32)  # more than 32,768 rows
    numbers[:, 0] = np.arange(len(numbers))

    def largest(rows: Any) -> Any:
        return jnp.max(jnp.eye(3, dtype=rows.dtype) @ rows.T, axis=0)

    with jax.default_device(jax.devices("cpu")[0]), jax.disable_jit(False):
        lowered = jax.jit(largest, compiler_options=dict(options)).lower(numbers)
        return not np.array_equal(lowered.compile()(numbers), numbers[:, 0])
