"""Run a sweep in a folder: the missing chunks are computed wherever there are workers. Running again resumes."""

import contextlib
import dataclasses
import functools
import logging
import os
import platform
import time
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from typing import Any

from moe_theory.core.errors import (
    DamagedChunkError,
    ExecutorLostError,
    InvalidRunError,
    MissingChunkError,
    MoeTheoryError,
)
from moe_theory.core.machine import available_cores
from moe_theory.runs import provenance
from moe_theory.runs.files import made_folder
from moe_theory.runs.locks import held_by
from moe_theory.runs.progress import Progress, quiet
from moe_theory.runs.store import Store
from moe_theory.runs.workers import DeviceExecutor, DevicePool, ExecutorPool, WorkerPool
from moe_theory.sweep import plan as planning
from moe_theory.sweep.dask import dask_pool
from moe_theory.sweep.manifest import kept_fingerprint, recorded, require_version, versions_in
from moe_theory.sweep.plan import PlannedChunk, SweepPlan, program_of
from moe_theory.sweep.specification import Specification

TASKS_AHEAD = 2  # in flight for each worker, so that none waits for the disk
MOST_LOSSES = 5  # of workers in a row, with nothing finished between them
POLL = 0.2  # seconds between looks at what other processes are doing
_LOG = logging.getLogger(__name__)
WAY_OUT = "finished chunks are kept. Make room there or make it writable, then run the same command again"


@dataclasses.dataclass
class ChunkCounts:
    num_chunks: int = 0
    present: int = 0  # before the run
    damaged: dict[str, str] = dataclasses.field(default_factory=dict)  # what is wrong, by chunk
    computed: int = 0  # by this run
    elsewhere: int = 0  # by other processes, meanwhile

    @property
    def done(self) -> int:
        return self.present + self.computed + self.elsewhere


@dataclasses.dataclass(frozen=True)
class Outcome:
    plan: SweepPlan
    store: Store
    counts: ChunkCounts


def run(
    sweep: Specification,
    folder: str | os.PathLike[str],
    *,
    pool: WorkerPool | None = None,
    progress: Progress = quiet,
    arguments: Sequence[str] = (),
    is_stopped: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Compute the missing chunks of a sweep in a folder; running again resumes.

    Args:
        pool: where to compute; this machine's devices unless given.
        arguments: of the command that asked for it, for the manifest.
        is_stopped: whether to stop, with a KeyboardInterrupt. An interrupt by itself may be lost: Python drops one that
            comes in the middle of a callback.
    Raises: OutputError, InvalidRunError, ExecutorLostError; whatever was finished before is kept.
    """
    pool = DevicePool() if pool is None else pool
    store = Store(made_folder(folder), WAY_OUT)
    require_version(store.folder)
    try:
        progress.running(f"a first task on {pool.description}")
        plan = SweepPlan(sweep, fingerprint_of(pool, sweep.system, kept_fingerprint(store.folder)))
        plan.require_memory(pool.num_local)
        _warn_of_others(plan, store)
        record = _record(pool, plan.fingerprint, arguments)
        with recorded(store.folder, sweep.to_json(), plan.fingerprint, record):
            store.remove_leftovers()
            counts, missing = find_missing(plan, store)
            try:
                _Dispatcher(plan, store, pool, counts, missing, progress).run(is_stopped)
            finally:
                record |= {"finished": provenance.now(), "computed": counts.computed}
                record |= {"chunks": counts.done, "of": counts.num_chunks}
        return Outcome(plan, store, counts)
    finally:
        pool.close()
        store.close()


def other_versions(store: Store, plan: SweepPlan) -> dict[str, SweepPlan]:
    """Plans of the other versions that were run in a folder, by ID; only of those that this code can read."""
    others = {}
    for version, manifest in versions_in(store.folder).items():
        if (manifest["specification"], manifest["fingerprint"]) != (plan.sweep.to_json(), plan.fingerprint):
            with contextlib.suppress(MoeTheoryError):
                others[version] = SweepPlan(plan.sweep.from_json(manifest["specification"]), manifest["fingerprint"])
    return others


def _warn_of_others(plan: SweepPlan, store: Store) -> None:
    """Say that chunks of other code, or of another machine, are there and not used."""
    for version, other in other_versions(store, plan).items():
        if different := provenance.difference(plan.fingerprint, other.fingerprint):
            count = sum(chunk.name in store for chunk in other.chunks)
            message = "%d chunks in %s are of another version and not used (this one has %s). To see them: %s"
            command = f"moe-theory sweep show {store.folder} --version {version}"
            _LOG.warning(message, count, store.folder, different, command)


def pool_of(
    executor: Executor | None = None, dask: str | None = None, devices: int | None = None, security: Any = None
) -> WorkerPool:
    """The workers asked for: an executor's, a Dask cluster's, or local devices. Raises: InvalidRunError for more than
    one of them, or for one that is invalid.
    """
    asked = {"executor": executor, "dask": dask, "devices": devices}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise InvalidRunError(f"{' and '.join(given)} exclude one another: give one of them.")
    if security is not None and dask is None:
        raise InvalidRunError("security is for a Dask cluster: give its address as dask=, or leave security out.")
    if executor is not None:
        return ExecutorPool(executor)
    return DevicePool(devices) if dask is None else dask_pool(dask, security=security)


def fingerprint_of(pool: WorkerPool, system: str, kept: Mapping[str, str] | None = None) -> dict[str, str]:
    """The fingerprint of the pool's workers. Raises: ExecutorLostError where none answers; InvalidRunError where they
    run other code than this process.
    """
    for _ in range(MOST_LOSSES):
        try:
            return pool.fingerprint(functools.partial(planning.fingerprint, system), kept)
        except Exception as failure:
            if not pool.is_loss(failure):
                raise
    raise ExecutorLostError(f"no worker of {pool.description} answers: look at the workers' logs, then run again.")


def find_missing(plan: SweepPlan, store: Store) -> tuple[ChunkCounts, list[PlannedChunk]]:
    """Count the chunks that are there and whole, and list those to compute."""
    counts, missing = ChunkCounts(num_chunks=len(plan.chunks)), []
    for chunk in plan.chunks:
        try:
            store.read(chunk.name, chunk.task)
            counts.present += 1
        except MissingChunkError:
            missing.append(chunk)
        except DamagedChunkError as failure:
            counts.damaged[chunk.name] = failure.reason
            missing.append(chunk)
    return counts, missing


class _Dispatcher:
    """Submits missing chunks to workers and keeps each as it comes back."""

    def __init__(
        self,
        plan: SweepPlan,
        store: Store,
        pool: WorkerPool,
        counts: ChunkCounts,
        missing: Sequence[PlannedChunk],
        progress: Progress,
    ) -> None:
        self.plan, self.store, self.pool, self.counts, self.progress = plan, store, pool, counts, progress
        self.waiting = deque(missing)
        self.busy: deque[PlannedChunk] = deque()  # chunks that other processes are computing
        self.in_flight: dict[Future, PlannedChunk] = {}
        self.damaged = set(counts.damaged)  # and not yet computed again
        self.left_of_cell = Counter(chunk.cell for chunk in self.waiting)
        self.cells_left = len(self.left_of_cell)
        self.compiled: set[Hashable] = set()
        self.is_compiling: bool | None = None
        self.losses = 0
        self.progress.add_work(sum(chunk.replicate_rounds for chunk in self.waiting))

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

    def _run(self, is_stopped: Callable[[], bool]) -> None:
        executor = self.pool.open() if self.waiting else None
        self._show_position()
        self._show_activity()
        while self.waiting or self.in_flight or self.busy:
            if is_stopped():
                raise KeyboardInterrupt
            while executor is not None and self.waiting and len(self.in_flight) < TASKS_AHEAD * self.pool.num_workers:
                executor = self._submit(executor, self.waiting.popleft())
            if self.in_flight:
                finished, _ = wait(self.in_flight, timeout=1.0, return_when=FIRST_COMPLETED)
                lost = [failure for future in finished if (failure := self._take(future)) is not None]
                executor = self._reopened(lost[0]) if lost else executor
            elif self.busy:
                self.is_compiling = None
                holders = [self.store.holder(chunk.name) for chunk in self.busy]
                self.progress.running(f"nothing: {held_by(holders, 'chunk', 'chunks')}")
                time.sleep(POLL)
            # What others have not finished by the time everything else is done may have been left behind by them.
            if not self.waiting:
                self.waiting, self.busy = self.busy, deque()

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
        for chunk in self.in_flight.values():
            self.store.release(chunk.name)

    def _submit(self, executor: Executor, chunk: PlannedChunk) -> Executor:
        if not self.store.claim(chunk.name):
            self.busy.append(chunk)
            return executor
        if chunk.name not in self.damaged and chunk.name in self.store:
            self.store.release(chunk.name)
            self.counts.elsewhere += 1
            self.progress.add_work(-chunk.replicate_rounds)
            self._done(chunk, 0)
            return executor
        try:
            submit = executor.submit
            if isinstance(executor, DeviceExecutor):
                submit = functools.partial(submit, program=program_of(chunk.task))
            self.in_flight[submit(planning.compute, chunk.task)] = chunk
        except Exception as failure:
            if not self.pool.is_loss(failure):
                raise
            self.waiting.appendleft(chunk)
            return self._reopened(failure)
        return executor

    def _take(self, future: Future) -> BaseException | None:
        """Keep a task's result; or return the loss that it ended in."""
        chunk = self.in_flight[future]
        try:
            data = future.result()
        except (Exception, CancelledError) as failure:
            del self.in_flight[future]
            self.store.release(chunk.name)
            if not self.pool.is_loss(failure):
                raise
            self.waiting.appendleft(chunk)
            return failure
        self.store.write(chunk.name, data)
        del self.in_flight[future]  # not before: an interrupt in the middle of writing must not lose it
        self.store.release(chunk.name)
        self.damaged.discard(chunk.name)
        self.counts.computed += 1
        self.losses = 0
        self.compiled.add(program_of(chunk.task))
        self._done(chunk, chunk.replicate_rounds)
        return None

    def _reopened(self, failure: BaseException) -> Executor:
        """The workers, after a loss; their tasks wait again."""
        self.losses += 1
        if self.losses > MOST_LOSSES:
            raise ExecutorLostError(
                f"workers of {self.pool.description} were lost {self.losses} times in a row ({failure}); "
                f"{self.counts.done} of {self.counts.num_chunks} chunks are kept. Look at the workers' logs, "
                "then run the same command again."
            ) from None
        for future, chunk in self.in_flight.items():
            future.cancel()
            self.store.release(chunk.name)
            self.waiting.appendleft(chunk)
        self.in_flight = {}
        self.is_compiling = None
        self.progress.running(f"a search for the workers of {self.pool.description}")
        return self.pool.open()

    def _done(self, chunk: PlannedChunk, own_work: int) -> None:
        self.left_of_cell[chunk.cell] -= 1
        self.cells_left -= self.left_of_cell[chunk.cell] == 0
        self._show_position()
        self.progress.advance(own_work)
        self._show_activity()

    def _show_position(self) -> None:
        cells = len(self.plan.sweep.grid)
        done, number = self.counts.done, self.counts.num_chunks
        self.progress.at(f"{cells - self.cells_left:,} of {cells:,} cells, {done:,} of {number:,} chunks")

    def _show_activity(self) -> None:
        pending = [*self.in_flight.values(), *([self.waiting[0]] if self.waiting else [])]
        is_compiling = any(program_of(chunk.task) not in self.compiled for chunk in pending)
        if is_compiling != self.is_compiling:
            self.is_compiling = is_compiling
            (self.progress.compiling if is_compiling else self.progress.running)(f"on {self.pool.description}")


def _record(pool: WorkerPool, fingerprint: Mapping[str, str], arguments: Sequence[str]) -> dict[str, Any]:
    return {
        "started": provenance.now(),
        "finished": None,
        "argv": list(arguments),
        "executor": pool.description,
        "device": f"{fingerprint['backend']}: {fingerprint['processor']}",
        "machine": f"{platform.node()}, {platform.machine()}, {available_cores()} cores",
        "versions": provenance.versions(),
    }
