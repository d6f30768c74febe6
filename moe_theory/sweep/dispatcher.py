"""Sends the missing chunks of a sweep to workers, several at a time, and keeps what comes back."""

import contextlib
import dataclasses
import functools
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, wait
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from moe_theory.core.errors import ExecutorLostError, OutputError
from moe_theory.runs import provenance
from moe_theory.runs.locks import held_by
from moe_theory.runs.packs import BACKLOG, Keeper, News, Packs
from moe_theory.runs.progress import Progress
from moe_theory.runs.workers import DeviceExecutor, WorkerPool
from moe_theory.sweep import plan as planning
from moe_theory.sweep.manifest import Report
from moe_theory.sweep.plan import PlannedChunk, SweepPlan, parts_of

TASKS_AHEAD = 2  # in flight for each worker, so that none waits for the next
MOST_LOSSES = 5  # of workers in a row, with nothing finished between them
BETWEEN_REPORTS = 10.0  # seconds
LOOK = 1.0  # seconds after which what other processes are to be told or asked is looked at
POLL, LONGEST_POLL = 0.2, 5.0  # the same where there is nothing else to do, at first and in the end
MOST_RANGES = 4096  # into which processes that share a folder divide a sweep


@dataclasses.dataclass
class ChunkCounts:
    num_chunks: int = 0
    present: int = 0  # before the run
    damaged: dict[str, str] = dataclasses.field(default_factory=dict)  # what is wrong, by chunk
    computed: int = 0  # by this run
    elsewhere: int = 0  # by other processes, meanwhile
    failed: dict[str, str] = dataclasses.field(default_factory=dict)  # what went wrong, by chunk

    @property
    def done(self) -> int:
        return self.present + self.computed + self.elsewhere


class ChunkRange(NamedTuple):
    """Chunks that one process claims together."""

    name: str
    chunks: list[PlannedChunk]


def ranges_of(plan: SweepPlan, missing: Iterable[PlannedChunk]) -> list[ChunkRange]:
    """The missing chunks, divided alike by all processes that run this sweep."""
    size = math.ceil(len(plan.chunks) / MOST_RANGES)
    wanted = {chunk.name for chunk in missing}
    found = []
    for first in range(0, len(plan.chunks), size):
        every = plan.chunks[first : first + size]
        if own := [chunk for chunk in every if chunk.name in wanted]:
            found.append(ChunkRange(every[0].name, own))
    return found


class _Claimed(NamedTuple):
    chunk: PlannedChunk
    of: str  # the range


class Dispatcher:
    """Of missing chunks.

    All that happens, in workers and on the disk, comes as an event to the thread that runs it.
    """

    def __init__(
        self,
        plan: SweepPlan,
        packs: Packs,
        pool: WorkerPool,
        counts: ChunkCounts,
        missing: Sequence[PlannedChunk],
        progress: Progress,
        report: Report,
        keeps_going: bool = False,
    ) -> None:
        """`keeps_going`: whether an error of a chunk is counted, and no reason to stop."""
        self.plan, self.packs, self.pool, self.counts, self.progress = plan, packs, pool, counts, progress
        self.report, self.keeps_going = report, keeps_going
        self.hosts: dict[str, Counter[str]] = {}  # tasks, chunks and seconds of each, since the beginning
        self.work_left = sum(chunk.replicate_rounds for chunk in missing)
        self.progress.add_work(self.work_left)
        self.last_report = time.monotonic(), self.work_left
        self.unclaimed = deque(ranges_of(plan, missing))
        self.busy: list[ChunkRange] = []  # that other processes are at
        self.claimed: dict[str, _Claimed] = {}  # chunks that are not kept yet, by name
        self.ready: deque[PlannedChunk] = deque()  # claimed, and not in flight
        self.in_flight: dict[Future, list[PlannedChunk]] = {}
        self.num_left = len(missing)  # neither kept nor failed
        self.left_of: dict[str, int] = {}  # chunks that are not kept yet, by claimed ranges
        self.left_of_cell = Counter(chunk.cell for chunk in missing)
        self.cells_left = len(self.left_of_cell)
        self.pace: dict[Hashable, float] = {}  # seconds a replicate-round, by program; of those that are compiled
        self.compiling: Counter[Hashable] = Counter()  # tasks in flight of programs that are not compiled yet
        self.is_compiling: bool | None = None
        self.losses = 0
        self.pause = POLL
        self.events: SimpleQueue[Future | News] = SimpleQueue()
        self.keeper = Keeper(packs, self.events.put)

    def run(self, is_stopped: Callable[[], bool]) -> None:
        """Until every chunk is there; where it stops before, what has come back is kept. Raises: OutputError where the
        folder takes no more; ExecutorLostError where workers are lost again and again; KeyboardInterrupt; what a task
        raises.
        """
        try:
            self._run(is_stopped)
        except BaseException:
            self._wind_up()
            raise
        finally:
            self.keeper.close()
            for event in self._at_hand():
                if isinstance(event, list):
                    self._kept(event)

    def _run(self, is_stopped: Callable[[], bool]) -> None:
        self._show_position()
        while self.num_left:
            if is_stopped():
                raise KeyboardInterrupt
            self._submit()
            if not self.num_left:  # others have computed the rest
                break
            self.packs.publish()
            if time.monotonic() - self.last_report[0] > BETWEEN_REPORTS:
                self.report(self.facts())
            is_idle = not self.in_flight and not self.keeper.backlog and self.events.empty()  # in this order
            if is_idle and self.busy:
                self._wait_for_others()
                continue
            if not self.in_flight and not self.ready and not self.unclaimed:
                self.keeper.hurry()
            with contextlib.suppress(Empty):
                self._handle(self.events.get(timeout=LOOK))
                for event in self._at_hand():
                    self._handle(event)

    def _at_hand(self) -> Iterator[Future | News]:
        """The events that have come."""
        with contextlib.suppress(Empty):
            while True:
                yield self.events.get_nowait()

    def facts(self) -> dict[str, Any]:
        """How the run goes."""
        now, (before, work) = time.monotonic(), self.last_report
        self.last_report = now, self.work_left
        rate = (work - self.work_left) / max(now - before, 1e-9)
        cells, tasks = len(self.plan.sweep.grid), Counter[str]()
        for each in self.hosts.values():
            tasks.update(each)
        return {
            "time": provenance.now(),
            "activity": "compiling" if self.compiling else "running" if self.in_flight else "waiting",
            "cells": cells - self.cells_left,
            "of_cells": cells,
            "chunks": self.counts.done,
            "of_chunks": self.counts.num_chunks,
            "replicate_rounds_a_second": round(rate),
            "seconds_left": round(self.work_left / rate) if rate else None if self.work_left else 0,
            "seconds_a_chunk": tasks["seconds"] / tasks["chunks"] if tasks["chunks"] else None,
            "hosts": {host: dict(each) for host, each in self.hosts.items()},
            "tasks_in_flight": len(self.in_flight),
            "workers": self.pool.num_workers,
            "losses": self.losses,
            "failed": len(self.counts.failed),
        }

    def _handle(self, event: Future | News) -> None:
        if isinstance(event, OutputError):
            raise event
        if isinstance(event, list):
            self._kept(event)
        elif event in self.in_flight and (failure := self._take(event)) is not None:
            self._lost(failure)

    def _wind_up(self) -> None:
        """Keep running tasks, as far as they finish soon, and cancel the rest."""
        running = [future for future in self.in_flight if not future.cancel()]
        if running:
            self.progress.running("the last tasks to their end")
        with contextlib.suppress(KeyboardInterrupt):  # of a user who does not want to wait
            wait(running, timeout=self.pool.grace)
        for future in running:
            if future.done():
                with contextlib.suppress(Exception):
                    self._take(future)

    def _submit(self) -> None:
        """Send tasks. Raises: ExecutorLostError where the workers are lost for good."""
        executor, most = self.pool.open(), TASKS_AHEAD * self.pool.num_workers
        while len(self.in_flight) < most and self.keeper.backlog < BACKLOG and (chunks := self._next(most)):
            program = chunks[0].of.program
            try:
                submit = executor.submit
                if isinstance(executor, DeviceExecutor):
                    submit = functools.partial(submit, program=program)
                future = submit(planning.compute, parts_of(chunks), self.keeps_going)
            except Exception as failure:
                self._give_back(chunks)
                if not self.pool.is_loss(failure):
                    raise
                self._lost(failure)
                return
            self.in_flight[future] = chunks
            if program not in self.pace:
                self.compiling[program] += 1
            self._show_activity()
            future.add_done_callback(self.events.put)

    @property
    def num_unsent(self) -> int:
        """Chunks that are neither kept, sent nor claimed by others."""
        unclaimed = self.num_left - len(self.claimed) - sum(len(each.chunks) for each in self.busy)
        return unclaimed + len(self.ready)

    def _next(self, most: int) -> list[PlannedChunk]:
        """Chunks of one program for a task, as many as take the time that a task should, and no more than its share of
        what is left; none where nothing can be claimed.
        """
        while not self.ready and self.unclaimed:  # others may have computed all that has just been claimed
            self._claim(1)
        if not self.ready:
            return []
        first = self.ready[0]
        seconds = self.pace.get(first.of.program, math.inf) * first.replicate_rounds
        number = max(1, min(int(self.pool.task_seconds / max(seconds, 1e-9)), self.num_unsent // most))
        if len(self.ready) < number:
            self._claim(number - len(self.ready))
        chunks: list[PlannedChunk] = []
        while self.ready and len(chunks) < number and self.ready[0].of.program == first.of.program:
            chunks.append(self.ready.popleft())
        return chunks

    def _claim(self, number: int) -> None:
        """Claim ranges of so many chunks; what others have computed meanwhile is done."""
        found: list[ChunkRange] = []
        while self.unclaimed and sum(len(each.chunks) for each in found) < number:
            each = self.unclaimed.popleft()
            (found if self.packs.claim(each.name) else self.busy).append(each)
        if found:
            self.packs.refresh()
        for each in found:
            self.left_of[each.name] = len(each.chunks)
            for chunk in each.chunks:
                self.claimed[chunk.name] = _Claimed(chunk, each.name)
                if chunk.name in self.packs:
                    self.counts.elsewhere += 1
                    self.progress.add_work(-chunk.replicate_rounds)
                    self.work_left -= chunk.replicate_rounds
                    self._done(chunk)
                else:
                    self.ready.append(chunk)

    def _wait_for_others(self) -> None:
        """What others have not finished by the time everything else is done may have been left behind by them."""
        self.is_compiling = None
        holders = zip(self.packs.holders(each.name for each in self.busy), self.busy, strict=True)
        holders = [holder for holder, each in holders for _ in each.chunks]
        self.progress.running(f"nothing: {held_by(holders, 'chunk', 'chunks')}")
        with contextlib.suppress(Empty):
            self.events.put(self.events.get(timeout=self.pause))
        self.pause = min(1.5 * self.pause, LONGEST_POLL)
        self.unclaimed.extend(self.busy)
        self.busy = []

    def _take(self, future: Future) -> BaseException | None:
        """Hand a task's results to the keeper; or return the loss that it ended in."""
        chunks = self.in_flight.pop(future)
        program = chunks[0].of.program
        try:
            found, seconds, host = future.result()
        except (Exception, CancelledError) as failure:
            self._give_back(chunks)
            if not self.pool.is_loss(failure):
                raise
            return failure
        finally:
            self.compiling -= Counter([program])
        self.losses = 0
        work = sum(chunk.replicate_rounds for chunk in chunks)
        self.work_left -= work
        if not any(isinstance(data, str) for data in found):  # an error takes no time, or any
            self.pace[program] = min(self.pace.get(program, math.inf), seconds / work)
        self.hosts.setdefault(host, Counter()).update({"tasks": 1, "chunks": len(chunks), "seconds": seconds})
        for chunk, data in zip(chunks, found, strict=True):
            if isinstance(data, str):
                self.counts.failed[chunk.name] = data
                self.left_of_cell[chunk.cell] += 1  # it is never whole
                self._done(chunk)
            else:
                self.keeper.keep(chunk.name, data)
        self.progress.advance(work)
        self._show_activity()
        return None

    def _give_back(self, chunks: Sequence[PlannedChunk]) -> None:
        self.ready.extendleft(reversed(chunks))

    def _lost(self, failure: BaseException) -> None:
        """After a loss of workers their tasks wait again. Raises: ExecutorLostError after many in a row."""
        self.losses += 1
        if self.losses > MOST_LOSSES:
            written = len(self.claimed) - len(self.ready) - sum(map(len, self.in_flight.values()))  # or about to be
            raise ExecutorLostError(
                f"workers of {self.pool.description} were lost {self.losses} times in a row ({failure}); "
                f"{self.counts.done + written} of {self.counts.num_chunks} chunks are kept. Look at the workers' logs, "
                "then run the same command again."
            ) from None
        for future, chunks in self.in_flight.items():
            future.cancel()
            self._give_back(chunks)
        self.in_flight, self.compiling, self.is_compiling = {}, Counter(), None
        self.progress.running(f"a search for the workers of {self.pool.description}")

    def _kept(self, names: list[str]) -> None:
        """Chunks are on the disk."""
        self.counts.computed += len(names)
        for name in names:
            self._done(self.claimed[name].chunk)
        self._show_position()

    def _done(self, chunk: PlannedChunk) -> None:
        self.num_left -= 1
        self.left_of_cell[chunk.cell] -= 1
        self.cells_left -= self.left_of_cell[chunk.cell] == 0
        of = self.claimed.pop(chunk.name).of
        self.left_of[of] -= 1
        if not self.left_of[of]:
            del self.left_of[of]
            self.packs.release(of)

    def _show_position(self) -> None:
        cells = len(self.plan.sweep.grid)
        done, number = self.counts.done, self.counts.num_chunks
        self.progress.at(f"{cells - self.cells_left:,} of {cells:,} cells, {done:,} of {number:,} chunks")

    def _show_activity(self) -> None:
        is_compiling = bool(self.compiling)
        if is_compiling != self.is_compiling:
            self.is_compiling = is_compiling
            (self.progress.compiling if is_compiling else self.progress.running)(f"on {self.pool.description}")
