"""Where chunks are computed: on this machine's devices, or on the workers of any executor."""

import contextlib
import itertools
import os
import threading
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any, Protocol

import jax

from moe_theory.core.errors import ExecutorLostError, InvalidRunError
from moe_theory.sweep import tasks

UNKNOWN_WORKERS = 64  # of an executor that does not say; it keeps for later what it has no worker for


class Crew(Protocol):
    """Workers, and how to get them back when they are lost."""

    about: str  # for people: "2 cpu workers"

    @property
    def num_workers(self) -> int:
        """How many there are now: clusters grow and shrink."""
        ...

    @property
    def num_here(self) -> int:
        """How many compute in this machine's memory, as far as is known; at least 1."""
        ...

    @property
    def grace(self) -> float | None:
        """Seconds that an interrupted run waits for the chunks in hand; None: until they are done."""
        ...

    def open(self) -> Executor:
        """An executor of these workers; called again after a loss. Raises: ExecutorLostError where there is none."""
        ...

    def is_loss(self, failure: BaseException) -> bool:
        """Whether a task failed because its worker was lost, so that it may be tried again."""
        ...

    def close(self) -> None:
        """Let the workers go."""
        ...


def default_workers() -> int:
    """The devices that there are; on a CPU with one, a worker a core, which compile once and share it."""
    devices = jax.local_devices()
    if len(devices) > 1 or devices[0].platform != "cpu":
        return len(devices)
    return available_cores()


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def num_devices(num_workers: int) -> int:
    """How many devices so many workers of this machine use."""
    return min(num_workers, len(jax.local_devices()))


class DeviceCrew:
    """A thread for each worker, each on one of this machine's devices; whole chunks go to one device."""

    grace = None  # a thread cannot be stopped

    def __init__(self, num_workers: int | None = None) -> None:
        if num_workers is not None and num_workers < 1:
            raise InvalidRunError(f"devices={num_workers} must be at least 1. Raise devices.")
        self.num_workers = self.num_here = num_workers or default_workers()
        platform = jax.local_devices()[0].platform
        self.about = f"{self.num_workers} {platform} worker{'s' if self.num_workers > 1 else ''}"
        self._executor: _DeviceExecutor | None = None

    def open(self) -> Executor:
        """The threads."""
        self._executor = self._executor or _DeviceExecutor(self.num_workers)
        return self._executor

    def is_loss(self, failure: BaseException) -> bool:
        """Never: threads end with their process."""
        del failure
        return False

    def close(self) -> None:
        """End the threads, each after the chunk that it may still be computing."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None


class ExecutorCrew:
    """The workers of a `concurrent.futures.Executor` that somebody else opened, and will close."""

    grace = 30.0

    def __init__(self, executor: Executor, num_workers: int | None = None) -> None:
        self.about = type(executor).__name__
        self.num_workers = num_workers or getattr(executor, "_max_workers", None) or UNKNOWN_WORKERS
        self.num_here = 1  # they may be anywhere
        self._executor = executor
        self._is_lost = False

    def open(self) -> Executor:
        """The executor. Raises: ExecutorLostError after a loss: only its owner could open another."""
        if self._is_lost:
            raise ExecutorLostError(
                f"the workers of {self.about} are lost; finished chunks are kept. Run again with a new executor."
            )
        return self._executor

    def is_loss(self, failure: BaseException) -> bool:
        """Whether the executor says so."""
        self._is_lost = self._is_lost or isinstance(failure, BrokenExecutor)
        return isinstance(failure, BrokenExecutor)

    def close(self) -> None:
        """Nothing: it is not ours."""


class _DeviceExecutor(ThreadPoolExecutor):
    """Threads that each have a device, and wait for one another to compile a program rather than compile it twice."""

    def __init__(self, num_workers: int) -> None:
        self._own = threading.local()
        self._places = itertools.count()
        self._compiling: dict[Hashable, threading.Lock] = {}
        self._compiled: set[Hashable] = set()
        super().__init__(num_workers, "sweep", initializer=self._take_device)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future:
        """Run a function on the device of the thread that takes it."""
        return super().submit(self._on_device, function, *arguments, **options)

    def _take_device(self) -> None:
        devices = jax.local_devices()
        self._own.device = devices[next(self._places) % len(devices)]

    def _on_device(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        with jax.default_device(self._own.device), self._turn(function, *arguments):
            return function(*arguments, **options)

    @contextlib.contextmanager
    def _turn(self, function: Callable[..., Any], *arguments: Any) -> Iterator[None]:
        if function is not tasks.compute:
            yield
            return
        program = (self._own.device, tasks.program_of(arguments[0]))
        if program in self._compiled:
            yield
            return
        lock = self._compiling.setdefault(program, threading.Lock())
        lock.acquire()
        if program in self._compiled:  # by the thread that had the lock before
            lock.release()
            yield
            return
        try:
            yield
            self._compiled.add(program)
        finally:
            lock.release()
