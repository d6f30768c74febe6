"""Known faults of the libraries that compute for JAX, options that avoid them, and tests.

Programs of this package are compiled with these options, which a caller's own `jax.jit` cannot have, so there a warning
names the faults.
"""

import functools
import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxlib import version

from moe_theory.core.errors import InvalidValueError

Options = Mapping[str, Any]  # of XLA's compiler, by name


class Fault(NamedTuple):
    """A known fault: programs for a CPU that give wrong numbers."""

    name: str  # what such a program does
    source: str  # where it is reported
    option: str  # of XLA's compiler that it depends on
    avoiding: str  # a value of that option with which there is no fault
    probe: Callable[[Options], bool]  # whether a program compiled with these options is wrong


def _sums_wrongly(options: Options) -> bool:
    numbers = np.zeros((2**15 + 8, 3), np.float32)
    numbers[:, 0] = np.arange(len(numbers))

    def largest(rows: Any) -> Any:
        return jnp.max(jnp.eye(3, dtype=rows.dtype) @ rows.T, axis=0)

    with jax.default_device(jax.devices("cpu")[0]), jax.disable_jit(False):  # which a caller may have switched off
        lowered = jax.jit(largest, compiler_options=dict(options)).lower(numbers)
        return not np.array_equal(lowered.compile()(numbers), numbers[:, 0])


FAULTS = (
    Fault(
        "reduces products of more than 32,768 rows (16,384 in float64) with a small matrix",
        "https://github.com/jax-ml/jax/issues/39103",
        "xla_cpu_experimental_ynn_fusion_type",
        # Products by that library, and nothing joined to them.
        "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT",
        _sums_wrongly,
    ),
)


@functools.cache
def avoiding() -> dict[str, Any]:
    """Return options of XLA's CPU compiler that avoid all faults, except unknown ones or those in `XLA_FLAGS`."""
    flags = os.environ.get("XLA_FLAGS", "")
    options = {fault.option: fault.avoiding for fault in FAULTS if f"--{fault.option}" not in flags}
    return {name: value for name, value in options.items() if _is_known({name: value})}


def require_none(options: Options | None) -> None:
    """Raise InvalidValueError if a program for a CPU, compiled with these options, has a fault."""
    for fault in _present(tuple((options or {}).items())):
        flags = f"XLA_FLAGS={os.environ['XLA_FLAGS']!r}" if "XLA_FLAGS" in os.environ else "no XLA_FLAGS"
        raise InvalidValueError(
            f"jaxlib {version.__version__} with {flags} gives wrong numbers where a program {fault.name} "
            f"({fault.source}). Leave {fault.option} out of XLA_FLAGS, or install another jaxlib."
        )


@functools.cache
def warn_of_own_programs() -> None:
    """Warn, once a process, of faults in programs that a caller compiles."""
    if jax.default_backend() != "cpu":
        return
    for fault in _present(()):
        warnings.warn(
            f"jaxlib {version.__version__} gives wrong numbers where a jax.jit of yours, or a run with debug=True, "
            f"{fault.name} ({fault.source}). Set XLA_FLAGS=--{fault.option}= before JAX starts, or let moe_theory "
            "compile the run.",
            RuntimeWarning,
            stacklevel=4,
        )


@functools.cache
def _present(options: tuple[tuple[str, Any], ...]) -> list[Fault]:
    return [fault for fault in FAULTS if fault.probe(dict(options))]


def _is_known(options: Options) -> bool:
    with jax.default_device(jax.devices("cpu")[0]), jax.disable_jit(False):
        lowered = jax.jit(lambda number: number + 1, compiler_options=dict(options)).lower(0)
        try:
            lowered.compile()
        except jax.errors.JaxRuntimeError:
            return False
    return True
