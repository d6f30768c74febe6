"""Threads of this process for work that needs no pool of its own."""

import functools
import multiprocessing
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax

from moe_theory.core.forks import after_fork
from moe_theory.core.machine import available_cores


def on_all_cores(function: Callable[[Any], None], arguments: Iterable[Any]) -> None:
    """Call `function` of each argument, on all cores where they are this call's to take: by the main thread of a
    process that is nobody's worker, on a CPU, and where other threads compute as this one does, which do not inherit
    what a `with` block has set, such as `jax.enable_x64`.
    """
    is_ours = threading.current_thread() is threading.main_thread() and multiprocessing.parent_process() is None
    if not is_ours or jax.default_backend() != "cpu" or len(jax.local_devices()) > 1 or available_cores() == 1:
        threads = None
    else:
        threads = _threads()
        if threads.submit(_settings).result() != _settings():
            threads = None
    if threads is None:
        for argument in arguments:
            function(argument)
        return
    futures = [threads.submit(function, argument) for argument in arguments]
    try:
        for future in futures:
            future.result()
    finally:
        for future in futures:
            future.cancel()


def _settings() -> dict[str, Any]:
    return dict(jax.config.values)


@functools.cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(available_cores(), "moe-theory-blocks")


after_fork(_threads.cache_clear)  # a forked process has none of the threads
