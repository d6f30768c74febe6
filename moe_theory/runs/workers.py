"""Worker pools: threads on this machine's devices, or the workers of any `concurrent.futures.Executor`."""

import itertools
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any, Protocol

import jax

from moe_theory.core.errors import ExecutorLostError, InvalidRunError
from moe_theory.runs.machine import available_cores

UNKNOWN_WORKERS = 64  # of an executor that does not say; it queues what it has no worker for


class WorkerPool(Protocol):
    """Workers, and how to reconnect when they are lost."""

    description: str  # "2 cpu workers"

    @property
    def num_workers(self) -> int:
        """How many there are now: clusters grow and shrink."""

    @property
    def num_local(self) -> int:
        """How many use this machine's memory, as far as is known; at least 1."""

    @property
    def grace(self) -> float | None:
        """Seconds that an interrupted run waits for running tasks; None: until they finish."""

    def open(self) -> Executor:
        """An executor of these workers; called again after a loss. Raises: ExecutorLostError where there is none."""

    def is_loss(self, failure: BaseException) -> bool:
        """Whether a task failed because its worker was lost, so that it may be retried."""

    def close(self) -> None:
        """Release the workers."""


class DevicePool:
    """Threads, each on one of this machine's devices."""

    grace = None  # a thread cannot be stopped

    def __init__(self, num_workers: int | None = None) -> None:
        if num_workers is not None and num_workers < 1:
            raise InvalidRunError(f"devices={num_workers} must be at least 1. Raise devices.")
        devices, platform = jax.local_devices(), jax.local_devices()[0].platform
        # On a CPU with one device a worker a core, which compile once and share it.
        default = len(devices) if len(devices) > 1 or platform != "cpu" else available_cores()
        self.num_workers = self.num_local = num_workers or default
        self.description = f"{self.num_workers} {platform} worker{'s' if self.num_workers > 1 else ''}"
        self._executor: _DeviceExecutor | None = None

    @property
    def num_devices(self) -> int:
        return min(self.num_workers, len(jax.local_devices()))

    def open(self) -> Executor:
        self._executor = self._executor or _DeviceExecutor(self.num_workers)
        return self._executor

    def is_loss(self, failure: BaseException) -> bool:
        """Never: threads end with their process."""
        del failure
        return False

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None


class ExecutorPool:
    """The workers of a `concurrent.futures.Executor` that its owner opens and closes."""

    grace = 30.0

    def __init__(self, executor: Executor, num_workers: int | None = None) -> None:
        self.description = type(executor).__name__
        self.num_workers = num_workers or getattr(executor, "_max_workers", None) or UNKNOWN_WORKERS
        self.num_local = 1  # they may be anywhere
        self._executor = executor
        self._is_lost = False

    def open(self) -> Executor:
        """The executor. Raises: ExecutorLostError after a loss: only its owner could open another."""
        if self._is_lost:
            raise ExecutorLostError(
                f"the workers of {self.description} are lost; finished chunks are kept. Run again with a new executor."
            )
        return self._executor

    def is_loss(self, failure: BaseException) -> bool:
        self._is_lost = self._is_lost or isinstance(failure, BrokenExecutor)
        return isinstance(failure, BrokenExecutor)

    def close(self) -> None:
        """Nothing: its owner closes it."""


class _DeviceExecutor(ThreadPoolExecutor):
    def __init__(self, num_workers: int) -> None:
        self._own = threading.local()
        self._places = itertools.count()
        super().__init__(num_workers, "sweep", initializer=self._take_device)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future:
        return super().submit(self._on_device, function, *arguments, **options)

    def _take_device(self) -> None:
        devices = jax.local_devices()
        self._own.device = devices[next(self._places) % len(devices)]

    def _on_device(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        with jax.default_device(self._own.device):
            return function(*arguments, **options)
