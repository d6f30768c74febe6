"""Storage of compiled programs between processes."""

import contextlib
import hashlib
import os
import platform
from pathlib import Path

from moe_theory.core.errors import OutputError
from moe_theory.runs.files import user_cache
from moe_theory.runs.provenance import processor_line

VARIABLE = "JAX_COMPILATION_CACHE_DIR"  # JAX's own variable, which child processes inherit
# With these limits JAX saves all programs, even those that are small or compile quickly.
THRESHOLDS = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": 0.0, "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": -1}


def keep_programs(folder: str | os.PathLike[str] | None = None) -> Path | None:
    """Save compiled programs on disk, so that a later process need not compile them again.

    Args:
        folder: by default a folder in the user's cache, unless JAX_COMPILATION_CACHE_DIR is set or JAX's cache is off.
    Returns: the folder, or None if the environment names one or programs are not saved.
    Raises: OutputError if the given folder is not writable.

    Examples:
        >>> import moe_theory as mt
        >>> mt.keep_programs("programs")  # doctest: +SKIP
        >>> verdicts = mt.verify("continual.lemma-4", readings="quick")  # doctest: +SKIP
    """
    if folder is None and VARIABLE in os.environ:
        return None
    # Different kinds of machines may share a home folder, but not programs.
    facts = [platform.machine(), platform.processor(), *map(processor_line, ("model name", "flags"))]
    processor = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:12]
    path = user_cache() / f"programs-{processor}" if folder is None else Path(folder)
    with contextlib.suppress(OSError, ValueError):
        path.mkdir(parents=True, exist_ok=True)
    if not os.access(path, os.W_OK):
        if folder is None:
            return None
        raise OutputError(f"{path} cannot be written, so programs would not be saved. Name another folder.")
    import jax

    for name, value in {**THRESHOLDS, VARIABLE: str(path)}.items():
        os.environ[name] = str(value)
        jax.config.update(name.lower(), value)  # JAX may already have read its environment
    return path
