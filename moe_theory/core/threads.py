"""Threads of this process, for work that does not need worker processes."""

import functools
import multiprocessing
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax

from moe_theory.core.machine import available_cores


def on_all_cores(function: Callable[[Any], Any], arguments: Iterable[Any]) -> list[Any]:
    """Map `function` over the arguments, on all cores if that is safe.

    This is safe on a CPU, in the main thread of the main process, outside `with` blocks that change JAX's settings.
    """
    arguments = list(arguments)
    if len(arguments) < 2 or not _can_use_threads():
        return [function(argument) for argument in arguments]

    def compute(argument: Any) -> Any:
        return jax.block_until_ready(function(argument))

    futures = [_threads().submit(compute, value) for value in arguments]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def _can_use_threads() -> bool:
    is_main = threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None
    is_one_cpu = jax.default_backend() == "cpu" and len(jax.local_devices()) == 1
    if not is_main or not is_one_cpu or available_cores() == 1:
        return False
    # Threads do not inherit settings from `with` blocks.
    return _threads().submit(lambda: dict(jax.config.values)).result() == dict(jax.config.values)


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(available_cores(), "moe-theory-blocks")
