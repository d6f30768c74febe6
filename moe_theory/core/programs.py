"""The compiled programs of this process."""

import contextlib
import functools
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import jax

from moe_theory.core import faults
from moe_theory.core.constraints import is_known

_compiled: set[Hashable] = set()  # pairs of a program and its device
_locks: dict[Hashable, threading.RLock] = {}  # held while a program is compiled


def jit(function: Callable[..., Any], static_argnums: int | tuple[int, ...] | None = None) -> Callable[..., Any]:
    """Return `jax.jit` of a function. It avoids known faults of libraries, except inside another program."""
    inside = jax.jit(function, static_argnums=static_argnums)
    # Made at the first call, because `faults.avoiding` compiles a program.
    alone = functools.cache(
        lambda: jax.jit(function, static_argnums=static_argnums, compiler_options=faults.avoiding())
    )

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        # JAX refuses compiler options inside another program, in which even the result of `full` is traced.
        is_alone = is_known(jax.lax.full((), 0), arguments, named)
        program = alone() if is_alone else inside
        return program(*arguments, **named)

    return call


@contextlib.contextmanager
def compiled_once(program: Hashable) -> Iterator[None]:
    """Enter the context to use a program. Only one thread can be inside until the program has been compiled."""
    program_on_device = (program, jax.config.jax_default_device)  # pyright: ignore[reportAttributeAccessIssue]
    with contextlib.ExitStack() as first_use:
        first_use.enter_context(_locks.setdefault(program_on_device, threading.RLock()))
        if program_on_device in _compiled:
            first_use.close()  # releases the lock
        yield
        _compiled.add(program_on_device)
