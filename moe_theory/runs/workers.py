"""Workers: local threads, a Dask cluster, or a `concurrent.futures.Executor`."""

import contextlib
import dataclasses
import functools
import itertools
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

import jax

from moe_theory.core.constraints import Size, require
from moe_theory.core.errors import InvalidValueError, plural
from moe_theory.core.machine import available_cores, local_devices
from moe_theory.runs.provenance import CODE, difference, is_x64

UNKNOWN_WORKERS = 64  # assumed for an executor that does not tell. It queues the other tasks


@dataclasses.dataclass(frozen=True)
class WorkerPool:
    executor: Executor
    description: str  # such as "2 cpu workers"
    num_workers: int
    are_threads: bool = False  # threads of this process share compiled programs and all objects
    close: Callable[[], None] = lambda: None  # releases the workers, unless others use them

    def fingerprint(self, compute: Callable[[], dict[str, str]]) -> dict[str, str]:
        """Return the fingerprint that `compute` finds on a worker. Raises: InvalidValueError for other code there."""
        local = compute()
        if self.are_threads:
            return local
        future = self.executor.submit(compute)
        remote = future.result()
        different = difference(remote, local, CODE)
        if different:
            raise InvalidValueError(f"the workers of {self.description} have {different}. Install the same versions.")
        return remote


class DeviceExecutor(ThreadPoolExecutor):
    """Threads on this machine's devices. A call has the precision of the thread that submits it."""

    def __init__(self, num_workers: int) -> None:
        self._thread_numbers = itertools.count()
        self._thread = threading.local()  # its `device` is that of the thread, or None for the default
        super().__init__(num_workers, "moe-theory", initializer=self._take_device)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        call = functools.partial(function, *arguments, **options)
        return super().submit(self._compute, call, is_x64())

    def _take_device(self) -> None:
        devices = local_devices()
        number = next(self._thread_numbers)
        self._thread.device = devices[number % len(devices)] if len(devices) > 1 else None

    def _compute(self, call: Callable[[], Any], is_double: bool) -> Any:
        # Threads inherit neither the device nor the precision. Setting an unchanged value could cause a compilation.
        with contextlib.ExitStack() as settings:
            if self._thread.device is not None:
                settings.enter_context(jax.default_device(self._thread.device))
            if is_double != is_x64():
                settings.enter_context(jax.enable_x64(is_double))
            return call()


def num_device_workers() -> int:
    devices = local_devices()
    if len(devices) == 1 and devices[0].platform == "cpu":
        return available_cores()
    return len(devices)


def device_pool(num_workers: int | None = None) -> WorkerPool:
    """Return threads on this machine's devices, by default on all. Raises: InvalidValueError."""
    if num_workers is not None:
        require(Size, devices=num_workers)
    number = num_workers or num_device_workers()
    platform = local_devices()[0].platform
    description = f"{number} {platform} {plural(number, 'worker')}"
    return WorkerPool(_device_executor(number), description, number, are_threads=True)


_device_executor = functools.cache(DeviceExecutor)  # shared by all work of this process


def executor_pool(executor: Executor) -> WorkerPool:
    """Return an executor's workers, which stay open. Raises: InvalidValueError for another object."""
    if not isinstance(executor, Executor):
        raise InvalidValueError(
            f"executor={type(executor).__name__} is not a concurrent.futures.Executor. Use ProcessPoolExecutor, or an "
            "executor whose submit returns its futures. Pass the address of a Dask cluster as dask=.",
            argument="executor",
        )
    number = getattr(executor, "_max_workers", None) or UNKNOWN_WORKERS  # no public attribute tells it
    return WorkerPool(executor, type(executor).__name__, number)
