"""Runner that sends tasks to workers, and returns results as they come."""

import contextlib
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import Any, NamedTuple, TypeVar

from moe_theory.core.errors import WorkersError
from moe_theory.runs.progress import Progress, quiet
from moe_theory.runs.workers import WorkerPool, device_pool

TASKS_AHEAD = 2  # in flight for each worker, so that none waits for the next
T = TypeVar("T")
GRACE = 30.0  # seconds that an interrupted run waits for the tasks of workers that are no threads


class Task(NamedTuple):
    call: Callable[[], Any]  # plain data and importable functions, where workers are other processes
    work: int  # replicate-rounds
    place: Any = None  # which task of its job it is


class Result(NamedTuple):
    job: Any
    task: Task
    future: Future[Any]  # of the call, which has ended


class _Queue(NamedTuple):
    rank: tuple[int, ...]
    job: Any
    what: str
    tasks: Iterator[Task]


_ABANDONED: weakref.WeakSet[Future[Any]] = weakref.WeakSet()  # their workers hold those that run


def has_abandoned() -> bool:
    """Return whether abandoned tasks are running."""
    return any(not future.done() for future in _ABANDONED)


def programs_first(users: Iterable[T], program_of: Callable[[T], Hashable]) -> list[T]:
    """Return users of programs, the first of each before all others, so that workers compile different ones."""
    users = list(users)
    firsts: dict[Hashable, T] = {}
    for user in users:
        firsts.setdefault(program_of(user), user)
    return [*firsts.values(), *(user for user in users if firsts[program_of(user)] is not user)]


class Runner:
    """Tasks of several jobs, the lowest rank first."""

    def __init__(self, pool: WorkerPool | None = None, progress: Progress = quiet) -> None:
        """Use this machine's devices unless given a pool."""
        self.pool: WorkerPool = pool or device_pool()
        self.progress = progress
        self._most_pending = TASKS_AHEAD * self.pool.num_workers
        self._queues: list[_Queue] = []  # by their ranks
        self._pending: dict[Future[Any], tuple[_Queue, Task]] = {}
        self._shown = ""

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def is_busy(self) -> bool:
        return bool(self._queues or self._pending)

    def add(self, job: Any, tasks: Iterator[Task], work: int, what: str, rank: tuple[int, ...] = ()) -> None:
        """Add the tasks of a job.

        Args:
            job: comes back with results.
            tasks: read as needed.
            work: replicate-rounds of all tasks.
            what: name in the progress.
        """
        self.progress.add_work(work)
        self._queues.append(_Queue(rank, job, what, tasks))
        self._queues.sort(key=lambda queue: queue.rank)
        self._submit()

    def wait(self, seconds: float | None = None) -> list[Result]:
        """Return the results that have come, after the first or `seconds`. Raises: WorkersError if the workers are
        lost.
        """
        self._submit()
        futures = wait(self._pending, seconds, FIRST_COMPLETED).done
        results = []
        for future in [future for future in self._pending if future in futures]:  # in the order of their tasks
            queue, task = self._pending.pop(future)
            self._require_workers(future)
            self.progress.advance(task.work)
            results.append(Result(queue.job, task, future))
        self._submit()
        return results

    def drop(self, job: Any) -> None:
        """Drop a job's waiting tasks. Results of running tasks still come."""
        for queue in [queue for queue in self._queues if queue.job is job]:
            self.progress.add_work(-sum(task.work for task in queue.tasks))
            self._queues.remove(queue)

    def stop(self) -> list[Result]:
        """Cancel waiting tasks, and return results that come soon."""
        self._queues.clear()
        running = {future: sent for future, sent in self._pending.items() if not future.cancel()}
        self._pending.clear()
        with contextlib.suppress(KeyboardInterrupt):  # of a user who does not want to wait
            # A thread cannot be stopped, and its process could not end before it does.
            wait(running, None if self.pool.are_threads else GRACE)
        return [Result(queue.job, task, future) for future, (queue, task) in running.items() if future.done()]

    def abandon(self) -> None:
        """Cancel waiting tasks, and leave running ones alone."""
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
        oldest, _ = next(iter(self._pending.values()), (None, None))
        if oldest is not None and oldest.what != self._shown:
            self._shown = oldest.what
            self.progress.running(oldest.what)

    def _require_workers(self, future: Future[Any]) -> None:
        try:
            failure = future.exception()
        except CancelledError as cancelled:  # by the loss of a scheduler
            failure = cancelled
        if isinstance(failure, (BrokenExecutor, CancelledError)):
            raise self._lost(failure) from None

    def _lost(self, failure: BaseException) -> WorkersError:
        return WorkersError(
            f"the workers of {self.pool.description} are lost ({failure}). What was finished before is saved where "
            "there is a folder for it. Start the workers, then run the same command again."
        )
