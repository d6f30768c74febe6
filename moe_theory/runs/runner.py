"""A runner that sends tasks to workers and returns results as they arrive."""

import contextlib
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import Any, NamedTuple, TypeVar

from moe_theory.core.errors import WorkersError
from moe_theory.runs.progress import Progress, quiet
from moe_theory.runs.workers import DeviceExecutor, WorkerPool, device_pool

TASKS_AHEAD = 2  # submitted tasks per worker, so that no worker waits
T = TypeVar("T")
GRACE = 30.0  # seconds that an interrupted run waits for running tasks in other processes


class Task(NamedTuple):
    call: Callable[[], Any]  # other processes need plain data and importable functions
    work: int  # replicate-rounds
    place: Any = None  # identifies the task in its job


class Result(NamedTuple):
    job: Any
    task: Task
    future: Future[Any]  # the finished call


class _Queue(NamedTuple):
    rank: tuple[int, ...]
    job: Any
    title: str  # name in the progress display
    tasks: Iterator[Task]  # those that are not yet submitted


_ABANDONED: weakref.WeakSet[Future[Any]] = weakref.WeakSet()  # workers keep running calls alive


def has_abandoned() -> bool:
    """Return whether workers still run abandoned calls."""
    return any(not future.done() for future in _ABANDONED)


def run_within(call: Callable[[], T], seconds: float | None) -> T | None:
    """Run a call that may use the workers. After some seconds it is abandoned, and the result is None."""
    if seconds is None:
        return call()
    future = DeviceExecutor(1).submit(call)  # on a shared worker, the call could wait for tasks that need this worker
    try:
        wait([future], seconds)
        return future.result() if future.done() else None
    finally:
        if not future.done():
            _ABANDONED.add(future)


def programs_first(users: Iterable[T], program_of: Callable[[T], Hashable]) -> list[T]:
    """Return users of programs, first one of each program, so that workers do not all wait for one compilation."""
    users = list(users)
    firsts: dict[Hashable, T] = {}
    for user in users:
        firsts.setdefault(program_of(user), user)
    return [*firsts.values(), *(user for user in users if firsts[program_of(user)] is not user)]


class Runner:
    """Sends tasks of several jobs to workers. Tasks of the lowest rank go first."""

    def __init__(self, pool: WorkerPool | None = None, progress: Progress = quiet) -> None:
        """Use this machine's devices unless a `pool` is given."""
        self.pool: WorkerPool = pool or device_pool()
        self.progress = progress
        self._most_pending = TASKS_AHEAD * self.pool.num_workers
        self._queues: list[_Queue] = []  # sorted by rank
        self._pending: dict[Future[Any], tuple[_Queue, Task]] = {}
        self._shown_title = ""  # name in the progress display

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_busy(self) -> bool:
        return bool(self._queues or self._pending)

    def add(self, job: Any, tasks: Iterator[Task], work: int, title: str, rank: tuple[int, ...] = ()) -> None:
        """Add a job's tasks, which have together `work` replicate-rounds and are read when workers need them."""
        self.progress.add_work(work)
        self._queues.append(_Queue(rank, job, title, tasks))
        self._queues.sort(key=lambda queue: queue.rank)
        self._submit()

    def wait(self, seconds: float | None = None) -> list[Result]:
        """Return new results, after the first of them or `seconds`. Raises: WorkersError if the workers are lost."""
        self._submit()
        finished = wait(self._pending, seconds, FIRST_COMPLETED).done
        in_order = [future for future in self._pending if future in finished]  # in the order of their tasks
        results = []
        for future in in_order:
            queue, task = self._pending.pop(future)
            self._require_workers(future)
            self.progress.advance(task.work)
            results.append(Result(queue.job, task, future))
        self._submit()
        return results

    def drop(self, job: Any) -> None:
        """Drop a job's waiting tasks. Its running tasks still return results."""
        dropped = [queue for queue in self._queues if queue.job is job]
        for queue in dropped:
            self.progress.add_work(-sum(task.work for task in queue.tasks))  # reads the remaining tasks
            self._queues.remove(queue)

    def stop(self) -> list[Result]:
        """Cancel waiting tasks, and return results that arrive soon."""
        self._queues.clear()
        running = {future: queued for future, queued in self._pending.items() if not future.cancel()}
        self._pending.clear()
        with contextlib.suppress(KeyboardInterrupt):  # the user may not want to wait
            # We wait for threads, because they cannot be stopped and the process ends only after them.
            most_seconds = None if self.pool.are_threads else GRACE
            wait(running, most_seconds)
        finished = {future: queued for future, queued in running.items() if future.done()}
        return [Result(queue.job, task, future) for future, (queue, task) in finished.items()]

    def abandon(self) -> None:
        """Cancel waiting tasks, and leave running tasks to the workers."""
        self._queues.clear()
        _ABANDONED.update(future for future in self._pending if not future.cancel())
        self._pending.clear()

    def _submit(self) -> None:
        while self._queues and len(self._pending) < self._most_pending:
            queue = self._queues[0]
            task = next(queue.tasks, None)
            if task is None:
                self._queues.remove(queue)
                continue
            try:
                self._pending[self.pool.executor.submit(task.call)] = (queue, task)
            except BrokenExecutor as failure:
                raise self._lost(failure) from None
        queue_of_oldest, _ = next(iter(self._pending.values()), (None, None))
        if queue_of_oldest is not None and queue_of_oldest.title != self._shown_title:
            self._shown_title = queue_of_oldest.title
            self.progress.running(self._shown_title)

    def _require_workers(self, future: Future[Any]) -> None:
        try:
            failure = future.exception()
        except CancelledError as cancelled:  # the scheduler is lost
            failure = cancelled
        if isinstance(failure, (BrokenExecutor, CancelledError)):
            raise self._lost(failure) from None

    def _lost(self, failure: BaseException) -> WorkersError:
        return WorkersError(
            f"the workers of {self.pool.description} are lost ({failure}). If you named a folder, finished results are "
            "saved. Start the workers, then rerun the same command."
        )
