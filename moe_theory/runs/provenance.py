"""Dependencies of numbers besides request and code."""

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
# Of JAX's configuration, what changes numbers; the precision is the request's to say.
DECISIVE_OPTIONS = (
    "jax_threefry_partitionable",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_softmax_custom_jvp",
    "jax_default_prng_impl",  # of keys that a user's own code makes
    "jax_random_seed_offset",
    "jax_high_dynamic_range_gumbel",
    "jax_disable_jit",
    "jax_disable_most_optimizations",
    "jax_optimization_level",
    "jax_exec_time_optimization_effort",
)
CODE = ("moe-theory", "jax", "jaxlib", "optax", "code")  # entries of a fingerprint that no machine decides
NEUTRAL_FLAGS = ("--xla_force_host_platform_device_count", "--xla_dump")  # XLA's flags that change no number
INSTRUCTION_CAP = "--xla_cpu_max_isa="  # the flag by which different processors can be made to compute alike


def fingerprint(code: str = "") -> dict[str, str]:
    """Return a fingerprint of machine and code."""
    parts = versions()
    options = jax.config.values
    return {
        **{name: parts[name] for name in ("moe-theory", "jax", "jaxlib", "optax")},
        "code": code[:16],
        "backend": backend(),
        "processor": _processor(),
        "configuration": ", ".join(
            [*(f"{option}={options.get(option)}" for option in DECISIVE_OPTIONS), *_compiler_flags()]
        ),
    }


def difference(own: Mapping[str, str], meant: Mapping[str, str], names: Sequence[str] | None = None) -> str:
    """Return two fingerprints' difference, "jax 0.10.1 and not 0.10.2", or ""."""
    pairs = {name: (own.get(name), meant.get(name)) for name in names or meant}
    return ", ".join(f"{name} {mine} and not {other}" for name, (mine, other) in pairs.items() if mine != other)


def require_same(own: Mapping[str, str], meant: Mapping[str, str], what: str) -> None:
    """Raise InvalidValueError for a worker that would compute other numbers."""
    different = difference(own, meant)
    if different:
        raise InvalidValueError(
            f"the worker on {platform.node()} has {different}: its {what} would be others. Use the same versions and "
            "settings on all machines; processors of different kinds compute alike with the same "
            f"{INSTRUCTION_CAP}AVX2, say, in XLA_FLAGS on all of them."
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


def processor_fact(name: str) -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(name)), "")


@functools.cache
def _instruction_set() -> str:
    """Return this machine's instruction set, which affects rounding."""
    flags = set(processor_fact("flags").split())
    sets = {"avx512": {"avx512f"}, "avx2": {"avx2", "fma"}}
    best = next((name for name, needed in sets.items() if needed <= flags), "")
    return " ".join(filter(None, [platform.machine(), best]))


def _processor() -> str:
    """Return facts that decide rounding: the processor's instructions for XLA, or a device's kind."""
    if backend() != "cpu":
        return local_devices()[0].device_kind
    caps = [flag for flag in _compiler_flags() if flag.startswith(INSTRUCTION_CAP)]
    if caps:
        return caps[-1].removeprefix("--")
    return _instruction_set()


def _compiler_flags() -> list[str]:
    """Return XLA's flags in order, because the later of two counts."""
    return [flag for flag in os.environ.get("XLA_FLAGS", "").split() if not flag.startswith(NEUTRAL_FLAGS)]
