"""Forked children of a process that has used JAX: they cannot use it."""

import os
import sys

from moe_theory.core.errors import InvalidRunError

_parent: int | None = None  # the process whose JAX this one has a copy of, without its threads


def require_own_jax() -> None:
    """Raise InvalidRunError in a forked child whose parent has used JAX: it would wait for XLA's threads, which a fork
    does not copy, for ever.
    """
    if _parent is not None:
        raise InvalidRunError(
            f"process {os.getpid()} was forked from process {_parent}, which had used JAX: it has none of XLA's "
            'threads, and would hang. Start it by multiprocessing.get_context("spawn"), or fork before JAX is used.'
        )


def _note_parent() -> None:
    global _parent
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and getattr(bridge, "backends_are_initialized", lambda: True)():
        _parent = os.getppid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_parent)
