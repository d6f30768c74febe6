"""The memory, cores and devices that this process may use, and a check for places where JAX cannot run."""

import os
import sys
from pathlib import Path
from typing import Any

from moe_theory.core.errors import InvalidValueError, enclosed

_CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_parent: int | None = None  # if forked: the process that used JAX, whose threads are missing here


def machine_memory() -> int:
    """Return the bytes of memory that this process may use, limited by the machine or its container."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CGROUP_LIMITS:
        try:
            limits.append(int(Path(path).read_text()))
        except (OSError, ValueError):
            continue
    return min(limits)


def available_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def require_own_jax() -> None:
    """Raise InvalidValueError if there is no device, or in a forked child of a process that used JAX."""
    if _parent is not None:
        raise InvalidValueError(
            f"process {os.getpid()} was forked from process {_parent}, which had used JAX. It would hang, because "
            'XLA\'s threads are missing. Use multiprocessing.get_context("spawn"), or fork before you use JAX.'
        )
    local_devices()


def local_devices() -> list[Any]:
    """Return the devices of this process. Raises: InvalidValueError if JAX_PLATFORMS names a device that is missing."""
    import jax  # imported here, because commands that print published results load this module too

    try:
        return jax.local_devices()
    except (AssertionError, RuntimeError) as failure:
        names = os.environ.get("JAX_PLATFORMS", "")
        reason = enclosed(": ", " ".join(str(failure).split()))
        raise InvalidValueError(
            f"JAX_PLATFORMS={names}: JAX finds no such device{reason}. Unset this variable, or install jax[cuda12].",
            argument="JAX_PLATFORMS",
        ) from None


def _note_parent() -> None:
    global _parent
    bridge = sys.modules.get("jax._src.xla_bridge")  # private, but only this module tells without an import of JAX
    if bridge is not None and bridge.backends_are_initialized():
        _parent = os.getppid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_parent)
