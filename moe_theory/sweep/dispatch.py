"""Running a sweep: what is not there is computed, wherever there are workers, and written as it comes back."""

import contextlib
import dataclasses
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait

from moe_theory.core.errors import ExecutorLostError
from moe_theory.runs.progress import Progress, quiet
from moe_theory.runs.store import Store
from moe_theory.runs.workers import WorkerPool
from moe_theory.sweep import tasks
from moe_theory.sweep.tasks import Part, Plan

TASKS_AHEAD = 2  # in flight for each worker, so that none waits for the disk
MOST_LOSSES = 5  # of workers in a row, with nothing finished between them
PATIENCE = 0.2  # seconds between looks at what other processes are doing


@dataclasses.dataclass
class Tally:
    """What became of a sweep's chunks."""

    num_chunks: int = 0
    present: int = 0  # before the run
    damaged: dict[str, str] = dataclasses.field(default_factory=dict)  # what was found, in words, by chunk
    computed: int = 0  # by this run
    elsewhere: int = 0  # by other processes, meanwhile

    @property
    def done(self) -> int:
        """Chunks that are there."""
        return self.present + self.computed + self.elsewhere


def survey(plan: Plan, store: Store) -> tuple[Tally, list[Part]]:
    """What is there and whole, and the chunks that are to be computed."""
    tally, missing = Tally(num_chunks=len(plan.parts)), []
    for part in plan.parts:
        if part.name not in store:
            missing.append(part)
        elif (reason := store.damage(part.name)) is not None:
            tally.damaged[part.name] = reason
            missing.append(part)
        else:
            tally.present += 1
    return tally, missing


def carry_out(
    plan: Plan,
    store: Store,
    pool: WorkerPool,
    tally: Tally,
    missing: Iterable[Part],
    progress: Progress = quiet,
    is_stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Compute the `missing` chunks and keep each as it comes back; `tally` counts along.

    Args:
        is_stopped: whether somebody has asked for the end, which then comes as a KeyboardInterrupt. An interrupt by
            itself may be lost: Python drops one that comes in the middle of a callback.
    Raises: OutputError where the folder takes no more; ExecutorLostError where workers are lost again and again;
        what a task raises. Everything that came back before is kept, and everything is where `survey` finds it.
    """
    run = _Run(plan, store, pool, tally, missing, progress)
    try:
        run.go(is_stopped)
    except BaseException:
        run.wind_up()
        raise


class _Run:
    def __init__(
        self, plan: Plan, store: Store, pool: WorkerPool, tally: Tally, missing: Iterable[Part], progress: Progress
    ) -> None:
        self.plan, self.store, self.pool, self.tally, self.progress = plan, store, pool, tally, progress
        self.waiting = deque(missing)
        self.busy: deque[Part] = deque()  # chunks that other processes are computing
        self.flying: dict[Future, Part] = {}
        self.damaged = set(tally.damaged)  # and not yet computed again
        self.left_of_cell = Counter(part.cell for part in self.waiting)
        self.cells_left = len(self.left_of_cell)
        self.compiled: set[Hashable] = set()
        self.is_compiling: bool | None = None
        self.losses = 0
        self.progress.add_work(sum(part.replicate_rounds for part in self.waiting))

    def go(self, is_stopped: Callable[[], bool]) -> None:
        """Until everything is there."""
        executor = self.pool.open() if self.waiting else None
        self._tell_place()
        self._tell_state()
        while self.waiting or self.flying or self.busy:
            if is_stopped():
                raise KeyboardInterrupt
            while executor is not None and self.waiting and len(self.flying) < TASKS_AHEAD * self.pool.num_workers:
                executor = self._submit(executor, self.waiting.popleft())
            if self.flying:
                finished, _ = wait(self.flying, timeout=1.0, return_when=FIRST_COMPLETED)
                lost = [failure for future in finished if (failure := self._take(future)) is not None]
                executor = self._reopened(lost[0]) if lost else executor
            elif self.busy:
                self.is_compiling = None
                self.progress.running(f"nothing: {len(self.busy):,} chunks are in the hands of other processes")
                time.sleep(PATIENCE)
            # What others have not finished by the time everything else is done may have been left behind by them.
            if not self.waiting:
                self.waiting, self.busy = self.busy, deque()

    def wind_up(self) -> None:
        """Keep what is being computed, as far as it comes back soon, and give up the rest."""
        running = [future for future in self.flying if not future.cancel()]
        if running:
            self.progress.running("the chunks in hand to their end")
        with contextlib.suppress(KeyboardInterrupt):  # of somebody who does not want to wait
            wait(running, timeout=self.pool.grace)
        for future in running:
            if future.done():
                with contextlib.suppress(Exception):
                    self._take(future)
        for part in self.flying.values():
            self.store.release(part.name)

    def _submit(self, executor: Executor, part: Part) -> Executor:
        if not self.store.claim(part.name):
            self.busy.append(part)
            return executor
        if part.name not in self.damaged and part.name in self.store:
            self.store.release(part.name)
            self.tally.elsewhere += 1
            self.progress.add_work(-part.replicate_rounds)
            self._done(part, 0)
            return executor
        try:
            self.flying[executor.submit(tasks.compute, part.task)] = part
        except Exception as failure:
            if not self.pool.is_loss(failure):
                raise
            self.waiting.appendleft(part)
            return self._reopened(failure)
        return executor

    def _take(self, future: Future) -> BaseException | None:
        """Keep what a task gave; or the loss that it ended in."""
        part = self.flying[future]
        try:
            data = future.result()
        except (Exception, CancelledError) as failure:
            del self.flying[future]
            self.store.release(part.name)
            if not self.pool.is_loss(failure):
                raise
            self.waiting.appendleft(part)
            return failure
        self.store.write(part.name, data)
        del self.flying[future]  # not before: an interrupt in the middle of writing must not lose it
        self.store.release(part.name)
        self.damaged.discard(part.name)
        self.tally.computed += 1
        self.losses = 0
        self.compiled.add(tasks.program_of(part.task))
        self._done(part, part.replicate_rounds)
        return None

    def _reopened(self, failure: BaseException) -> Executor:
        """The workers, after a loss; what was with them is to be done again."""
        self.losses += 1
        if self.losses > MOST_LOSSES:
            raise ExecutorLostError(
                f"workers of {self.pool.description} were lost {self.losses} times in a row ({failure}); "
                f"{self.tally.done} of {self.tally.num_chunks} chunks are kept. Look at the workers' logs, "
                "then run the same command again."
            ) from None
        for future, part in self.flying.items():
            future.cancel()
            self.store.release(part.name)
            self.waiting.appendleft(part)
        self.flying = {}
        self.is_compiling = None
        self.progress.running(f"a search for the workers of {self.pool.description}")
        return self.pool.open()

    def _done(self, part: Part, own_work: int) -> None:
        self.left_of_cell[part.cell] -= 1
        self.cells_left -= self.left_of_cell[part.cell] == 0
        self._tell_place()
        self.progress.advance(own_work)
        self._tell_state()

    def _tell_place(self) -> None:
        cells = len(self.plan.sweep.grid)
        self.progress.at(
            f"{cells - self.cells_left:,} of {cells:,} cells, {self.tally.done:,} of {self.tally.num_chunks:,} chunks"
        )

    def _tell_state(self) -> None:
        pending = [*self.flying.values(), *([self.waiting[0]] if self.waiting else [])]
        is_compiling = any(tasks.program_of(part.task) not in self.compiled for part in pending)
        if is_compiling != self.is_compiling:
            self.is_compiling = is_compiling
            (self.progress.compiling if is_compiling else self.progress.running)(f"on {self.pool.description}")
