"""Forked children: what they begin anew, and that they cannot use JAX where their parent has used it."""

import os
import sys
from collections.abc import Callable

from moe_theory.core.errors import InvalidValueError

_parent: int | None = None  # the process whose JAX this one has a copy of, without its threads


def require_own_jax() -> None:
    """Raise InvalidValueError in a forked child whose parent has used JAX: it would wait for XLA's threads for ever."""
    if _parent is not None:
        raise InvalidValueError(
            f"process {os.getpid()} was forked from process {_parent}, which had used JAX: it has none of XLA's "
            'threads, and would hang. Start it by multiprocessing.get_context("spawn"), or fork before JAX is used.'
        )


def after_fork(function: Callable[[], object]) -> None:
    """Have a forked child call this before anything else, where processes can fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)


def _note_parent() -> None:
    global _parent
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and bridge.backends_are_initialized():
        _parent = os.getppid()


after_fork(_note_parent)
