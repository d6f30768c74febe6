"""What numbers depend on besides the request: versions, precision, the source of the package; and when it was."""

import datetime
import functools
import hashlib
import platform
from importlib import metadata
from pathlib import Path

import jax
import jax.numpy as jnp

import moe_theory

LIBRARIES = ("jax", "jaxlib", "optax", "numpy", "scipy", "statsmodels")


def versions() -> dict[str, str]:
    """Versions by name: of the package, of Python and of the libraries that compute."""
    return dict(_versions())


@functools.cache
def _versions() -> tuple[tuple[str, str], ...]:
    own = (("moe-theory", moe_theory.__version__), ("python", platform.python_version()))
    return (*own, *((name, metadata.version(name)) for name in LIBRARIES))


def now() -> str:
    """The time, UTC, for people who read a record."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def is_x64() -> bool:
    """Whether runs are in double precision."""
    return jnp.result_type(float) == jnp.float64


def backend() -> str:
    """The kind of device that runs are on."""
    return jax.default_backend()


def source_digest(*folders: str) -> str:
    """A digest of the package's own source, or of the files of some of its folders: other source, other numbers.

    Args:
        folders: such as "core", or the path of one outside the package; the files in them, not those in folders further
            down. None: the whole package.
    """
    return _digest(folders)


@functools.cache
def instruction_set() -> str:
    """The instructions that programs for this machine's processor may use: roundings differ between sets."""
    flags = set(processor_fact("flags").split())
    sets = {"avx512": {"avx512f"}, "avx2": {"avx2", "fma"}}
    best = next((name for name, needed in sets.items() if needed <= flags), "")
    return " ".join(filter(None, [platform.machine(), best]))


def processor_fact(name: str) -> str:
    """What Linux says of the processor under this name, such as "flags"; nothing where it says nothing."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(name)), "")


@functools.cache
def _digest(folders: tuple[str, ...]) -> str:
    root = Path(moe_theory.__file__).parent
    paths = [path for folder in folders for path in (root / folder).glob("*.py")] if folders else root.rglob("*.py")
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(str(path).removeprefix(f"{root}/").encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
