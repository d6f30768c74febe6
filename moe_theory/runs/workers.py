"""Worker pools: threads on this machine's devices, or the workers of any `concurrent.futures.Executor`."""

import bisect
import contextlib
import functools
import itertools
import logging
import re
import threading
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import jax

from moe_theory.core import programs
from moe_theory.core.errors import ExecutorLostError, InvalidRunError
from moe_theory.core.forks import after_fork
from moe_theory.core.machine import available_cores
from moe_theory.runs.provenance import CODE, difference, is_x64

UNKNOWN_WORKERS = 64  # of an executor that does not say; it queues what it has no worker for
MOST_PER_CORE = 8  # devices that may be asked for
SILENCE = 8.0  # seconds of waiting before a line says for what
WAYS_OUT = {  # by the package of what is given in place of an executor
    "builtins": "an address of a Dask cluster is given as dask=",
    "dask": "give the address of its scheduler, as dask=",
    "distributed": "give the address of its scheduler, as dask=",
    "submitit": "submit the whole sweep as several jobs, as runs in one folder share its work: "
    "executor.map_array(sweep.run, [FOLDER] * 20)",
}

Fingerprint = dict[str, str]

_LOG = logging.getLogger(__name__)


class WorkerPool:
    """Workers, and how to reconnect when they are lost."""

    description: str  # "2 cpu workers"
    num_workers: int  # now: clusters grow and shrink
    num_local: int = 1  # of them that use this machine's memory, as far as is known; at least 1
    task_seconds: float = 10.0  # that a task should take: long for workers that are far away
    grace: float | None = 30.0  # seconds that an interrupted run waits for running tasks; None: until they finish

    def fingerprint(self, ask: Callable[[], Fingerprint], kept: Mapping[str, str] | None = None) -> Fingerprint:
        """The fingerprint of the workers that get tasks.

        Args:
            ask: tells the fingerprint of the process that calls it.
            kept: the fingerprint of the chunks in the folder.
        Raises: InvalidRunError where they run other code than this process; ExecutorLostError where none answers.
        """
        raise NotImplementedError

    def open(self) -> Executor:
        """An executor of these workers; called again after a loss. Raises: ExecutorLostError where there is none."""
        raise NotImplementedError

    def is_loss(self, failure: BaseException) -> bool:
        """Whether a task failed because its worker was lost, so that it may be retried."""
        del failure
        return False

    def close(self) -> None:
        """Release the workers, unless others use them."""


class DeviceExecutor(Executor):
    """Threads, each on one of this machine's devices.

    Jobs are taken by rank and then in their order, but none whose program another thread compiles: meanwhile a thread
    takes a later one.
    """

    def __init__(self, num_workers: int) -> None:
        self._jobs: list[_Job] = []
        self._numbers, self._places = itertools.count(), itertools.count()
        self._own = threading.local()
        self._threads = ThreadPoolExecutor(num_workers, "moe-theory", initializer=self._take_device)

    def submit(
        self,
        function: Callable[..., Any],
        /,
        *arguments: Any,
        program: Hashable = None,
        rank: tuple[int, ...] = (),
        **options: Any,
    ) -> Future[Any]:
        """Compute function(*arguments, **options), which runs `program` if one is named; the lowest `rank` is first."""
        call = functools.partial(function, *arguments, **options)
        job = _Job(rank, next(self._numbers), program, is_x64(), call, Future())
        with programs.changed:
            bisect.insort(self._jobs, job)
            programs.changed.notify_all()
        self._threads.submit(self._work)
        return job.future

    def _take_device(self) -> None:
        devices = jax.local_devices()
        self._own.device = devices[next(self._places) % len(devices)] if len(devices) > 1 else None

    def _work(self) -> None:
        device = self._own.device
        with contextlib.nullcontext() if device is None else jax.default_device(device):
            job, use = self._taken()
            try:
                with use, jax.enable_x64(job.is_x64) if job.is_x64 != is_x64() else contextlib.nullcontext():
                    if not job.future.set_running_or_notify_cancel():
                        raise CancelledError
                    result = job.call()
            except BaseException as failure:
                if not job.future.cancelled():
                    job.future.set_exception(failure)
            else:
                job.future.set_result(result)

    def _taken(self) -> "tuple[_Job, contextlib.ExitStack]":
        """The next job, and the use of its program."""
        with programs.changed, contextlib.ExitStack() as use:
            programs.changed.wait_for(self._next)
            job = self._next()
            assert job is not None  # it has been waited for
            self._jobs.remove(job)
            if job.program is not None:
                use.enter_context(programs.compiled_once(job.program))
            return job, use.pop_all()

    def _next(self) -> "_Job | None":
        return next((job for job in self._jobs if not programs.is_compiling(job.program)), None)


class _Job(NamedTuple):
    rank: tuple[int, ...]
    number: int
    program: Hashable
    is_x64: bool  # threads do not inherit it
    call: Callable[[], Any]
    future: Future[Any]


def num_device_workers() -> int:
    """One for each device or, where a CPU is the only one, for each core: they compile once and share it."""
    devices = jax.local_devices()
    return available_cores() if len(devices) == 1 and devices[0].platform == "cpu" else len(devices)


def check_devices(number: int) -> None:
    """Refuse what no machine has: each is a thread, and of a CPU a device of its own. Raises: InvalidRunError."""
    most = MOST_PER_CORE * available_cores()
    if not 1 <= number <= most:
        raise InvalidRunError(
            f"devices={number} must be at least 1, and at most {most}, {MOST_PER_CORE} for each core here: more would "
            "only wait. Change devices."
        )


def device_executor(num_workers: int | None = None) -> DeviceExecutor:
    """The executor with `num_workers` threads that all work of this process shares."""
    return _device_executor(num_workers or num_device_workers())


_device_executor = functools.cache(DeviceExecutor)
after_fork(_device_executor.cache_clear)  # a forked process has none of the threads


class DevicePool(WorkerPool):
    """Threads, each on one of this machine's devices."""

    grace, task_seconds = None, 1.0  # a thread cannot be stopped

    def __init__(self, num_workers: int | None = None) -> None:
        if num_workers is not None:
            check_devices(num_workers)
        self.num_workers = self.num_local = num_workers or num_device_workers()
        platform = jax.local_devices()[0].platform
        self.description = f"{self.num_workers} {platform} worker{'s' if self.num_workers > 1 else ''}"

    def fingerprint(self, ask: Callable[[], Fingerprint], kept: Mapping[str, str] | None = None) -> Fingerprint:
        """This process's own."""
        del kept
        return ask()

    def open(self) -> Executor:
        return device_executor(self.num_workers)


class ExecutorPool(WorkerPool):
    """The workers of a `concurrent.futures.Executor` that its owner opens and closes.

    Raises: InvalidRunError for what is no executor.
    """

    def __init__(self, executor: Executor, num_workers: int | None = None) -> None:
        if not isinstance(executor, Executor):
            kind, default = type(executor), "use ProcessPoolExecutor, or another one whose submit returns its futures"
            package = re.split("[._]", kind.__module__)[0]  # dask_jobqueue is Dask
            way_out = WAYS_OUT.get(package, default)
            raise InvalidRunError(f"executor={kind.__name__} is no concurrent.futures.Executor: {way_out}.")
        self.description = type(executor).__name__
        self.num_workers = num_workers or getattr(executor, "_max_workers", None) or UNKNOWN_WORKERS
        self._executor = executor
        self._is_lost = False

    def fingerprint(self, ask: Callable[[], Fingerprint], kept: Mapping[str, str] | None = None) -> Fingerprint:
        """That of the worker that answers first, as none can be addressed. Raises: InvalidRunError for other code than
        this process runs.
        """
        del kept
        future = self.open().submit(ask)
        if not isinstance(future, Future):
            raise InvalidRunError(
                f"executor={self.description} submits tasks that are no concurrent.futures.Future: use "
                "ProcessPoolExecutor, or another one whose submit returns them."
            )
        if not wait([future], SILENCE).done:
            message = (
                "no worker of %s has answered in %.0f s: it waits for one. See whether they have started; if this run "
                "is itself a task of theirs, give them one worker more"
            )
            _LOG.warning(message, self.description, SILENCE)
        found = future.result()
        if different := difference(found, ask(), CODE):
            raise InvalidRunError(
                f"the workers of {self.description} have {different}: install what this process has where they run."
            )
        return found

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
