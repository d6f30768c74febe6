"""The compiled programs of this process."""

import contextlib
import functools
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import jax

from moe_theory.core import faults
from moe_theory.core.constraints import is_known

_changed = threading.Condition()  # notified whenever a program may be had that was being compiled
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


@contextlib.contextmanager
def compiled_once(program: Hashable) -> Iterator[None]:
    """Use a program, alone until a use has succeeded and so compiled it."""
    use = program, _device()
    me = threading.get_ident()
    with _changed:
        _changed.wait_for(lambda: _compiling.get(use, me) == me)
        is_first = use[1] not in _compiled.get(program, ()) and use not in _compiling
        if is_first:
            _compiling[use] = me
    try:
        yield
        if is_first:
            _compiled.setdefault(program, set()).add(use[1])
    finally:
        if is_first:
            with _changed:
                del _compiling[use]
                _changed.notify_all()


def _device() -> Any:
    return jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
