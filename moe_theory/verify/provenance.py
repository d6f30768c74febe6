"""What numbers depend on besides the request: versions, precision, and the source of the package."""

import functools
import hashlib
import platform
from importlib import metadata
from pathlib import Path

import jax
import jax.numpy as jnp

import moe_theory

LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "statsmodels")


def versions() -> dict[str, str]:
    """Versions by name: of the package, of Python and of the libraries that compute."""
    return {
        "moe-theory": moe_theory.__version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in LIBRARIES},
    }


def is_x64() -> bool:
    """Whether runs are in double precision."""
    return jnp.result_type(float) == jnp.float64


def backend() -> str:
    """The kind of device that runs are on."""
    return jax.default_backend()


@functools.cache
def source_digest() -> str:
    """A digest of the package's own source: samples of other source are others."""
    folder = Path(moe_theory.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(str(path.relative_to(folder)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
