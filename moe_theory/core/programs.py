"""The compiled programs of this process."""

import contextlib
import functools
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import jax

from moe_theory.core import faults
from moe_theory.core.constraints import is_known
from moe_theory.core.forks import after_fork

changed = threading.Condition()  # notified whenever a program may be had that was being compiled
_compiled: dict[Hashable, set[Any]] = {}  # the devices that a program is compiled for
_compiling: dict[tuple[Hashable, Any], int] = {}  # by which thread, for a program and a device


def jit(function: Callable[..., Any], **keywords: Any) -> Callable[..., Any]:
    """Return `jax.jit` of a function, which avoids known faults of libraries except inside another program."""
    inside = jax.jit(function, **keywords)
    alone = functools.cache(lambda: jax.jit(function, compiler_options=faults.avoiding(), **keywords))

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        # Of a program inside another one JAX takes no options.
        is_alone = is_known(jax.lax.full((), 0), arguments, named)
        return (alone() if is_alone else inside)(*arguments, **named)

    return call


def is_compiled(program: Hashable) -> bool:
    return program in _compiled


def is_compiling(program: Hashable) -> bool:
    me = threading.get_ident()
    return _compiling.get((program, _device()), me) != me


@contextlib.contextmanager
def compiled_once(program: Hashable) -> Iterator[None]:
    """Use a program, alone until a use has succeeded and so compiled it."""
    use = program, _device()
    with changed:
        changed.wait_for(lambda: not is_compiling(program))
        is_first = use[1] not in _compiled.get(program, ()) and use not in _compiling
        if is_first:
            _compiling[use] = threading.get_ident()
    try:
        yield
        if is_first:
            _compiled.setdefault(program, set()).add(use[1])
    finally:
        if is_first:
            with changed:
                del _compiling[use]
                changed.notify_all()


def _device() -> Any:
    return jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]


def _forget_threads() -> None:
    """Forget compiling threads, which a forked process lacks, and a lock that they held."""
    global changed
    changed = threading.Condition()
    _compiling.clear()


after_fork(_forget_threads)
