"""Tasks for those workers of a Dask cluster that compute the same numbers.

Workers are asked for their fingerprint when they join; those with another one get no tasks.
"""

import asyncio
import functools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, NamedTuple

from moe_theory.core.errors import ExecutorLostError, InvalidRunError, MoeTheoryError, shortened
from moe_theory.runs.provenance import CODE, INSTRUCTION_CAP, difference
from moe_theory.runs.workers import SILENCE, Fingerprint

LOOK = 1.0  # seconds between looks at which workers there are
SHORT_LOOK = 0.05  # the same, while some are about to answer
MOST_NAMED = 4  # hosts in a message
MOST_MOVES = 4  # of a task, each time that all workers for it were lost
NO_ANSWER = "no answer"
NO_SCHEDULER = "has a scheduler that does not answer: it waits for it. See whether it runs"

_LOG = logging.getLogger(__name__)


class _Refused(NamedTuple):
    """What a worker returns in place of a result that would be other numbers."""

    worker: str
    fingerprint: Fingerprint


def _checked(ask: Callable[[], Fingerprint], meant: Fingerprint, call: Callable[[], Any]) -> Any:
    """What a worker runs."""
    from distributed import get_worker

    own = ask()
    return call() if own == meant else _Refused(get_worker().address, own)


class _Roster:
    """Which workers there are, what each has, and which of them get tasks."""

    def __init__(
        self, client: Any, about: str, ask: Callable[[], Fingerprint] | None, meant: Fingerprint | None
    ) -> None:
        self.ask, self.meant = ask, meant
        self.threads: dict[str, int] = {}  # of each worker
        self.able: frozenset[str] | None = None  # those that get tasks; None: all, as none has been found unfit
        self.asked: dict[str, tuple[float, Future]] = {}  # since when
        self._client, self._about = client, about
        self._answers: dict[str, Fingerprint | BaseException] = {}
        self._were_fit: set[str] = set()  # also those that are gone
        self._named: set[str] = set()  # by warnings

    @property
    def num_threads(self) -> int:
        return sum(number for worker, number in self.threads.items() if self.able is None or worker in self.able)

    def update(self, threads: dict[str, int]) -> None:
        """Forget the workers that are gone, ask the new ones and note answers."""
        self.threads = threads
        for known in (self.asked, self._answers):
            for worker in known.keys() - threads.keys():
                del known[worker]
        if self.ask is None:
            return
        for worker in threads.keys() - self.asked.keys() - self._answers.keys():
            answer = asyncio.run_coroutine_threadsafe(self._answer(worker), self._client.loop.asyncio_loop)
            self.asked[worker] = time.monotonic(), answer
        for worker, (_, answer) in list(self.asked.items()):
            if answer.done():
                del self.asked[worker]
                self._answers[worker] = answer.result()
        self._sort()

    def refused(self, worker: str, fingerprint: Fingerprint) -> None:
        self._answers[worker] = fingerprint
        self._sort()

    def is_unfit(self, worker: str) -> bool:
        """Whether it is not known to be fit; if so, no worker gets tasks any more unless it is."""
        if self.meant is None or worker in self._were_fit:
            return False
        self.able = self.able or frozenset()
        self._sort()
        return True

    def choose(self, ours: Fingerprint, kept: Mapping[str, str] | None, is_late: bool) -> Fingerprint | None:
        """What tasks are for: the fingerprint `kept`, if a worker with the code of `ours` has it, else that of most of
        them; None while too few have answered. Raises: InvalidRunError where all have other code.
        """
        found = [answer for answer in self._answers.values() if not _difference(answer, ours, CODE)]
        if not self._answers or (self.asked and not (is_late and found)):
            return None
        if not found:
            reasons = {worker: _difference(answer, ours, CODE) for worker, answer in self._answers.items()}
            raise InvalidRunError(
                f"no worker of {self._about} has the code of this process ({_by_host(reasons)}): install the same "
                "version of moe-theory and of what it uses where they run."
            )
        counts = Counter(tuple(sorted(answer.items())) for answer in found if isinstance(answer, dict))
        self.meant = dict(kept) if kept is not None and kept in found else dict(counts.most_common(1)[0][0])
        self._sort()
        return self.meant

    def warn(self) -> None:
        """Name the workers that get no tasks, once."""
        reasons = dict.fromkeys(self._late(SILENCE), NO_ANSWER)
        if self.meant is not None:
            reasons |= {worker: _difference(answer, self.meant) for worker, answer in self._answers.items()}
        elif self._answers or not self._late(1.2 * SILENCE):  # a decision is near
            return
        fresh = {worker: why for worker, why in reasons.items() if why and f"{_host(worker)}: {why}" not in self._named}
        if not fresh:
            return
        self._named |= {f"{_host(worker)}: {why}" for worker, why in fresh.items()}
        texts = set(fresh.values())
        ways_out = ["install what the others have where they run"] if texts - {NO_ANSWER} else []
        if any("processor" in text for text in texts):
            ways_out.append(
                f"let other processors compute alike, by the same {INSTRUCTION_CAP}AVX2, say, in XLA_FLAGS of all"
            )
        if NO_ANSWER in texts:
            ways_out.append("look into the logs of those that do not answer")
        about = len(fresh), len(self.threads), self._about, _by_host(fresh), "; ".join(ways_out)
        _LOG.warning("%d of %d workers of %s get no tasks (%s): to use them, %s", *about)

    def _late(self, after: float) -> list[str]:
        return [worker for worker, (since, _) in self.asked.items() if time.monotonic() - since > after]

    def _sort(self) -> None:
        if self.meant is None:
            return
        fit = {worker for worker, answer in self._answers.items() if answer == self.meant}
        self._were_fit |= fit
        if self.able is not None or self._late(SILENCE) or len(fit) < len(self._answers):
            self.able = frozenset(fit)

    async def _answer(self, worker: str) -> Fingerprint | BaseException:
        try:
            return (await self._client.run(self.ask, workers=[worker], on_error="return"))[worker]
        except Exception as failure:
            return failure


class _Task(NamedTuple):
    call: Callable[[], Any]
    moves: int  # how often all workers that might compute it were lost
    workers: frozenset[str] | None  # that may compute it; None: all
    inner: Future | None  # Dask's; None: it is held until there is a worker for it


class WatchedExecutor(Executor):
    """Dask's executor: for workers with one fingerprint, with errors that say what to do, and never silent for long.

    A thread watches which workers there are.
    """

    def __init__(
        self,
        client: Any,
        about: str,
        scheduler: str,
        ask: Callable[[], Fingerprint] | None = None,
        meant: Fingerprint | None = None,
    ) -> None:
        self._client, self._about, self._scheduler = client, about, scheduler
        self._roster = _Roster(client, about, ask, meant)
        self._changed = threading.Condition()  # of everything below, and the roster
        self._tasks: dict[Future, _Task] = {}  # by the futures that callers have
        self._is_lost = self._is_told = False
        self._progressed = time.monotonic()  # when a task ended, or could be sent
        self._is_left = threading.Event()
        threading.Thread(target=self._watch, name="moe-theory-workers", daemon=True).start()

    @property
    def num_threads(self) -> int:
        with self._changed:
            return self._roster.num_threads

    def agree(self, ask: Callable[[], Fingerprint], kept: Mapping[str, str] | None) -> Fingerprint:
        """The fingerprint that tasks are for from now on. Raises: InvalidRunError; BrokenExecutor."""
        with self._changed:
            self._roster.ask, self._roster.meant = ask, None
        began, ours = time.monotonic(), ask()  # meanwhile the workers are asked
        with self._changed:
            while (meant := self._roster.choose(ours, kept, time.monotonic() - began > SILENCE)) is None:
                if self._is_lost:
                    raise self._loss()
                self._changed.wait(LOOK)
            self._roster.warn()
            return meant

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future:
        """Submit a task. Raises: BrokenExecutor where the scheduler is lost."""
        outer: Future = Future()
        outer.add_done_callback(self._pass_on_cancelling)
        self._begin(outer, functools.partial(function, *arguments, **options))
        return outer

    def leave(self) -> None:
        self._is_left.set()

    def _begin(self, outer: Future, call: Callable[[], Any], moves: int = 0) -> None:
        with self._changed:
            able, ask, meant = self._roster.able, self._roster.ask, self._roster.meant
            if not self._tasks:
                self._progressed = time.monotonic()
            if able is not None and not able:
                if self._is_lost:
                    raise self._loss()
                self._tasks[outer] = _Task(call, moves, able, None)
                return
            try:
                executor = self._client.get_executor(pure=False, **({} if able is None else {"workers": list(able)}))
                inner = executor.submit(*([call] if ask is None or meant is None else [_checked, ask, meant, call]))
            except Exception:
                if self._client.status == "running":
                    raise
                raise self._loss() from None
            # Found here, and not from the future: if they held each other, Dask would keep the result until a garbage
            # collection.
            self._tasks[outer] = _Task(call, moves, able, inner)
        inner.add_done_callback(functools.partial(self._pass_on_outcome, outer))

    def _pass_on_cancelling(self, outer: Future) -> None:
        if outer.cancelled():
            with self._changed:
                task = self._tasks.pop(outer, None)
            if task is not None and task.inner is not None:
                task.inner.cancel()

    def _pass_on_outcome(self, outer: Future, inner: Future) -> None:
        with self._changed:
            task = self._tasks.get(outer)
            if task is None or task.inner is not inner:  # cancelled, or sent elsewhere
                return
            del self._tasks[outer]
            self._progressed, self._is_told = time.monotonic(), False
            is_unfit = not inner.cancelled() and self._is_of_an_unfit_worker(inner)
        if is_unfit:
            self._begin_again(outer, task.call, task.moves)
        elif outer.set_running_or_notify_cancel():
            failure = self._loss() if inner.cancelled() else inner.exception()
            if failure is None:
                outer.set_result(inner.result())
            else:
                outer.set_exception(_explained(failure, self._about))

    def _is_of_an_unfit_worker(self, inner: Future) -> bool:
        """Whether a task ended as it did because of the worker alone."""
        from distributed import KilledWorker

        failure = inner.exception()
        if isinstance(failure, KilledWorker):
            return self._roster.is_unfit(failure.last_worker.address)
        if failure is None and isinstance(refused := inner.result(), _Refused):
            self._roster.refused(*refused)
            return True
        return False

    def _begin_again(self, outer: Future, call: Callable[[], Any], moves: int) -> None:
        try:
            if moves > MOST_MOVES:
                raise ExecutorLostError(
                    f"all workers of {self._about} that may compute were lost {moves} times; finished chunks are kept. "
                    "Their logs say why; then run the same command again."
                )
            self._begin(outer, call, moves)
        except Exception as failure:
            if outer.set_running_or_notify_cancel():
                outer.set_exception(failure)

    def _loss(self) -> BrokenExecutor:
        return BrokenExecutor(f"the scheduler of {self._about} was lost")

    def _watch(self) -> None:
        pause = 0.0
        while not self._is_left.wait(pause):
            try:
                threads, failure = self._client.nthreads(callback_timeout=SILENCE), None
            except Exception as caught:
                threads, failure = {}, caught
            if self._is_left.is_set():
                return
            with self._changed:
                self._is_lost = failure is not None and not isinstance(failure, TimeoutError)
                if failure is None:
                    self._roster.update(threads)
                again = self._to_begin_again()
                pause = SHORT_LOOK if self._roster.asked or not threads else LOOK
                self._changed.notify_all()
                self._roster.warn()
            for each in again:
                self._begin_again(*each)
            self._tell(self._lack() if failure is None else NO_SCHEDULER if isinstance(failure, TimeoutError) else "")

    def _to_begin_again(self) -> list[tuple[Future, Callable[[], Any], int]]:
        """Tasks whose workers are all gone, and those held if there is a worker now."""
        able, again = self._roster.able, []
        for outer, task in self._tasks.items():
            if task.inner is None:
                if able or self._is_lost:
                    again.append((outer, task.call, task.moves))
            elif able is not None and task.workers is not None and task.workers.isdisjoint(able):
                again.append((outer, task.call, task.moves + 1))
        for outer, *_ in again:
            if (inner := self._tasks.pop(outer).inner) is not None:
                inner.cancel()
        return again

    def _lack(self) -> str:
        """What tasks wait for, if for anything but their end."""
        with self._changed:
            threads, able = self._roster.threads, self._roster.able
            if not threads:
                return f"has no workers: it waits for one. To start some: dask worker {self._scheduler}"
            if able is not None and not able:
                return "has no worker left that may compute: it waits for one"
            if not self._tasks:
                self._progressed, self._is_told = time.monotonic(), False
            if self._is_told or time.monotonic() - self._progressed < SILENCE:
                return ""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        if any(each.get("status") != "paused" for worker, each in workers.items() if able is None or worker in able):
            self._progressed = time.monotonic()  # not to ask for so much every time
            return ""
        hosts = ", ".join(sorted({each["host"] for each in workers.values()}))
        return (
            f"has paused all its workers, at their memory limit ({hosts}): it waits for them. Start them with a larger "
            "--memory-limit, or fewer on a host"
        )

    def _tell(self, lack: str) -> None:
        """Log it, once it has lasted."""
        if lack and not self._is_told and time.monotonic() - self._progressed > SILENCE:
            self._is_told = True
            _LOG.warning("%s %s", self._about, lack)


def _host(worker: str) -> str:
    return worker.rpartition("://")[2].rpartition(":")[0]


def _by_host(reasons: Mapping[str, str]) -> str:
    """What is wrong with workers, most frequent first."""
    counts = Counter(f"{_host(worker)}: {why}" for worker, why in reasons.items())
    named = [f"{what} ({count} workers)" if count > 1 else what for what, count in counts.most_common(MOST_NAMED)]
    return "; ".join(named) + ("; ..." if len(counts) > MOST_NAMED else "")


def _difference(
    answer: Fingerprint | BaseException, meant: Mapping[str, str], names: Sequence[str] | None = None
) -> str:
    return shortened(str(answer)) if isinstance(answer, BaseException) else difference(answer, meant, names)


def _explained(failure: BaseException, about: str) -> BaseException:
    """A task's error, with the way out where Dask says too little."""
    from distributed import KilledWorker

    if isinstance(failure, MoeTheoryError):
        return failure
    if isinstance(failure, KilledWorker):
        return ExecutorLostError(
            f"{failure.allowed_failures + 1} workers of {about} died over the same task, the last of them at "
            f"{failure.last_worker.address}; finished chunks are kept. Its log says why. Where it ran out of memory, "
            "start workers with more, or lower chunk_width; then run the same command again."
        )
    if isinstance(failure, ImportError) or "deserialization of the task graph" in str(failure):
        return InvalidRunError(
            f"the scheduler or a worker of {about} cannot load the task ({str(failure).splitlines()[0]}): install the "
            "same version of moe-theory where the scheduler and the workers run."
        )
    return failure
