"""Runner that sends tasks to workers, and returns results as they come."""

import contextlib
import dataclasses
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Future, wait
from typing import Any, NamedTuple

from moe_theory.core.errors import WorkersError
from moe_theory.runs.progress import Progress, quiet
from moe_theory.runs.workers import WorkerPool, device_pool

TASKS_AHEAD = 2  # in flight for each worker, so that none waits for the next
GRACE = 30.0  # seconds that an interrupted run waits for the tasks of workers that are no threads


class Task(NamedTuple):
    call: Callable[[], Any]  # plain data and importable functions, where workers are other processes
    work: int  # replicate-rounds
    place: Any = None  # which task of its job it is


class Result(NamedTuple):
    job: Any
    task: Task
    future: Future[Any]

    def value(self) -> Any:
        """Return the call's value. Raises: its error."""
        return self.future.result()


@dataclasses.dataclass
class _Queue:
    rank: tuple[int, ...]
    job: Any
    what: str
    tasks: Iterator[Task]
    work: int  # replicate-rounds that are left
    next_task: Task | None

    def pop(self) -> Task:
        task = self.next_task
        assert task is not None  # a queue without one is removed
        self.next_task = next(self.tasks, None)
        self.work -= task.work
        return task


_ABANDONED: weakref.WeakSet[Future[Any]] = weakref.WeakSet()  # their workers hold those that run


def has_abandoned() -> bool:
    """Return whether abandoned tasks are running."""
    return any(not future.done() for future in _ABANDONED)


class Runner:
    """Tasks of several jobs, the lowest rank first."""

    def __init__(
        self, pool: WorkerPool | None = None, progress: Progress = quiet, most_pending: int | None = None
    ) -> None:
        """Use this machine's devices unless given a pool, with at most `most_pending` tasks at once."""
        self.pool: WorkerPool = pool or device_pool()
        self.progress = progress
        self._most_pending = most_pending or TASKS_AHEAD * self.pool.num_workers
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
        self._queues.append(_Queue(rank, job, what, tasks=tasks, work=work, next_task=next(tasks, None)))
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
            self.progress.add_work(-queue.work)
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

    def abandon(self, others: Iterable[Future[Any]] = ()) -> None:
        """Cancel waiting tasks, and leave others alone."""
        self._queues.clear()
        _ABANDONED.update(future for future in [*self._pending, *others] if not future.cancel())
        self._pending.clear()

    def _submit(self) -> None:
        while len(self._pending) < self._most_pending and (queue := self._next_queue()) is not None:
            task = queue.pop()
            self._pending[self._submitted(task)] = (queue, task)
        self._show()

    def _next_queue(self) -> _Queue | None:
        self._queues = [queue for queue in self._queues if queue.next_task is not None]
        return next(iter(self._queues), None)

    def _submitted(self, task: Task) -> Future[Any]:
        try:
            return self.pool.executor.submit(task.call)
        except BrokenExecutor as failure:
            raise self._lost(failure) from None

    def _show(self) -> None:
        for queue, _ in self._pending.values():
            if queue.what != self._shown:
                self._shown = queue.what
                self.progress.running(queue.what)
            break

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
