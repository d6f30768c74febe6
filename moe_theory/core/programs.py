"""The compiled programs of this process: whichever thread comes first with one compiles it, and others wait."""

import contextlib
import os
import threading
from collections.abc import Hashable, Iterator
from typing import Any

import jax

changed = threading.Condition()  # notified whenever a program may be had that was being compiled


class _Known:
    def __init__(self) -> None:
        self.compiled: dict[Hashable, set[Any]] = {}  # the devices that a program is compiled for
        self.compiling: dict[tuple[Hashable, Any], int] = {}  # by which thread, for a program and a device

    def __fingerprint__(self) -> str:
        """Nothing of it decides a number."""
        return ""


_known = _Known()


def is_compiled(program: Hashable) -> bool:
    return program in _known.compiled


def is_compiling(program: Hashable) -> bool:
    """Whether another thread compiles it now, for the device that this one uses."""
    me = threading.get_ident()
    return _known.compiling.get((program, _device()), me) != me


@contextlib.contextmanager
def compiled_once(program: Hashable) -> Iterator[None]:
    """Use a program: alone for as long as it has not been used before, as its first use compiles it. A use that fails
    leaves that to the next.
    """
    use = program, _device()
    with changed:
        changed.wait_for(lambda: not is_compiling(program))
        is_first = use[1] not in _known.compiled.get(program, ()) and use not in _known.compiling
        if is_first:
            _known.compiling[use] = threading.get_ident()
    try:
        yield
        if is_first:
            _known.compiled.setdefault(program, set()).add(use[1])
    finally:
        if is_first:
            with changed:
                del _known.compiling[use]
                changed.notify_all()


def _device() -> Any:
    return jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]


def _forget_threads() -> None:
    """A forked process has none of the threads that were compiling, and maybe a lock that one of them held."""
    global changed
    changed = threading.Condition()
    _known.compiling.clear()


os.register_at_fork(after_in_child=_forget_threads)
