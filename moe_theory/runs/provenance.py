"""The versions, settings and hardware that decide numbers, besides the request and this package's code."""

import datetime
import functools
import os
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path

import jax
import jax.numpy as jnp

import moe_theory
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.machine import local_devices

LIBRARIES = ("jax", "jaxlib", "optax", "numpy", "scipy")
# JAX's settings that change numbers, except the precision, which the request gives.
DECISIVE_OPTIONS = (
    "jax_threefry_partitionable",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_softmax_custom_jvp",
    "jax_default_prng_impl",  # for keys that users create
    "jax_random_seed_offset",
    "jax_high_dynamic_range_gumbel",
    "jax_disable_jit",
    "jax_disable_most_optimizations",
    "jax_optimization_level",
    "jax_exec_time_optimization_effort",
)
CODE = ("moe-theory", "jax", "jaxlib", "optax", "code")  # entries that do not depend on the machine
NEUTRAL_FLAGS = ("--xla_force_host_platform_device_count", "--xla_dump")  # XLA's flags that do not affect numbers
INSTRUCTION_CAP = "--xla_cpu_max_isa="  # flag that makes different processors round equally


def fingerprint(code: str = "") -> dict[str, str]:
    """Return what decides numbers on this machine, including a digest of the `code`."""
    parts = versions()
    options = [f"{option}={jax.config.values.get(option)}" for option in DECISIVE_OPTIONS]
    return {
        **{name: parts[name] for name in ("moe-theory", "jax", "jaxlib", "optax")},
        "code": code[:16],
        "backend": backend(),
        "processor": _processor(),
        "configuration": ", ".join([*options, *_compiler_flags()]),
    }


def difference(actual: Mapping[str, str], expected: Mapping[str, str], names: Sequence[str] | None = None) -> str:
    """Return how two fingerprints differ, by default in any entry, such as "jax 0.10.1 and not 0.10.2", or ""."""
    differing = [name for name in names or expected if actual.get(name) != expected.get(name)]
    return ", ".join(f"{name} {actual.get(name)} and not {expected.get(name)}" for name in differing)


def require_same(actual: Mapping[str, str], expected: Mapping[str, str], what: str) -> None:
    """Raise InvalidValueError, on a worker, unless it has the fingerprint that the task expects."""
    different = difference(actual, expected)
    if different:
        raise InvalidValueError(
            f"the worker on {platform.node()} has {different}, so its {what} would differ. Use the same versions and "
            "settings on all machines. Different processors compute the same numbers if XLA_FLAGS has, for example, "
            f"{INSTRUCTION_CAP}AVX2 on all of them."
        )


def versions() -> dict[str, str]:
    numbers = {"moe-theory": moe_theory.__version__, "python": platform.python_version()}
    return numbers | {name: _version(name) for name in LIBRARIES}


_version = functools.cache(metadata.version)


def now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def is_x64() -> bool:
    return jnp.result_type(float) == jnp.float64


def backend() -> str:
    return jax.default_backend()


def processor_line(name: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(name)), "")


@functools.cache
def _instruction_set() -> str:
    flags = set(processor_line("flags").split())
    instruction_sets = {"avx512": {"avx512f"}, "avx2": {"avx2", "fma"}}  # the best first
    best = next((name for name, needed in instruction_sets.items() if needed <= flags), "")
    return " ".join(filter(None, [platform.machine(), best]))


def _processor() -> str:
    """Return the processor's instructions for XLA, or the device's kind, because they decide rounding."""
    if backend() != "cpu":
        return local_devices()[0].device_kind
    caps = [flag for flag in _compiler_flags() if flag.startswith(INSTRUCTION_CAP)]
    if caps:
        return caps[-1].removeprefix("--")
    return _instruction_set()


def _compiler_flags() -> list[str]:
    """Return XLA's flags in order, because the last of equal flags counts."""
    return [flag for flag in os.environ.get("XLA_FLAGS", "").split() if not flag.startswith(NEUTRAL_FLAGS)]
