"""Samples that workers elsewhere take, those of a cluster or of an executor: they import claims by their names.

A task names a block of replicates: a worker runs all cells for them and sends back what the claims take, which is
kilobytes where runs are megabytes. Blocks end where chunks do, so that the samples are those that threads here take.
"""

import contextlib
import functools
import platform
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple

import jax

from moe_theory.core.errors import OWN_CODE, ExecutorLostError, InvalidRunError, UnknownNameError
from moe_theory.core.forks import after_fork
from moe_theory.runs import Cell, Progress, replicate_rounds, run_cells
from moe_theory.runs.cells import width_of
from moe_theory.runs.provenance import fingerprint, is_x64, require_same, versions
from moe_theory.runs.workers import WorkerPool
from moe_theory.verify import registry
from moe_theory.verify.archive import Keys
from moe_theory.verify.claim import Claim, Experiment, ReadingLike
from moe_theory.verify.evidence import find_overflows
from moe_theory.verify.interim import SequentialTest, Taken, is_of_study, reason_of, taken
from moe_theory.verify.request import AdjustedReading, Study, asked_of, set_to
from moe_theory.verify.verdict import Status

Outcome = tuple[dict[str, Taken], float]  # by claim, and the seconds that it took


class Task(NamedTuple):
    """Replicates of a study, and the claims that take samples of them, as plain data."""

    claims: dict[str, str]  # keys of their samples, by id
    reading: str
    settings: tuple[tuple[str, Any], ...]  # beside the reading's own choices
    cells: tuple[str, ...]
    random: tuple[str, ...]  # cells that a claim which is declared exact may not read
    first: int
    num_replicates: int
    is_first: bool  # whether nothing was taken before
    seed: int
    is_x64: bool
    machine: dict[str, str]  # versions, processor and configuration, which decide the numbers


def take_samples(task: Task) -> Outcome:
    """What a worker does. Raises: InvalidRunError where its samples would be others, or it lacks the claims; else as
    `run_cells`.
    """
    began = time.monotonic()
    with jax.enable_x64(task.is_x64):
        experiment, reading, claims = _found(tuple(task.claims), task.reading, task.settings)
        _require_same(task, claims, reading)
        cells = [cell for cell in experiment.cells_under(reading) if cell.name in task.cells]
        about: Any = {"first": task.first, "seed": task.seed, "width": experiment.width, "num_threads": 1}
        try:
            runs = run_cells(cells, task.num_replicates, **about)
        except OWN_CODE as failure:
            if not is_of_study(failure):
                raise
            end = Status.ERROR, reason_of(failure)
            kept = {claim.id: Taken(task.first, task.first + task.num_replicates, end=end) for claim in claims}
        else:
            overflows, random = find_overflows(runs), frozenset(task.random)
            kept = {
                claim.id: taken(claim, runs, overflows, random if claim.is_computed else frozenset(), task.is_first)
                for claim in claims
            }
    return kept, time.monotonic() - began


def remote_pool(
    studies: Sequence[Study], executor: Executor | None = None, dask: str | None = None
) -> WorkerPool | None:
    """The workers of an executor or a Dask cluster, for samples of these studies; None for this process's own. Raises:
    InvalidRunError for both, for an address that is none, or for what workers could not import.
    """
    simulated = [study for study in studies if study.experiment.source is None]
    pool = pool_for([claim for study in simulated for claim in study.claims], executor, dask)
    if pool is not None and any(isinstance(each.reading, AdjustedReading) and each.reading.own for each in simulated):
        raise InvalidRunError(
            "an algorithm of your own (--system) is of a file of this machine, and workers elsewhere import installed "
            "papers alone. Leave out --dask (executor)."
        )
    return pool


def pool_for(claims: Sequence[Claim], executor: Executor | None = None, dask: str | None = None) -> WorkerPool | None:
    """As `remote_pool`, for work on these claims."""
    if executor is None and dask is None:
        return None
    own = [claim.id for claim in claims if not registry.is_of_a_paper(claim)]
    if own:
        raise InvalidRunError(
            f"claim {own[0]} is of a file of your own, and workers elsewhere import installed papers alone. Leave out "
            "--dask (executor), or install the file as a paper, by an entry point of the group moe_theory.papers."
        )
    from moe_theory.sweep.runner import pool_of  # which takes a second to import

    return pool_of(executor, dask)


@contextlib.contextmanager
def remote_sampler(pool: WorkerPool | None, keys: Keys | None = None) -> Iterator["RemoteSampler | None"]:
    """The workers of a pool, which is closed at the end; None for this process's own."""
    with contextlib.nullcontext() if pool is None else contextlib.closing(pool):
        yield None if pool is None else RemoteSampler(pool, keys)


class RemoteSampler:
    """Workers elsewhere that take samples, and the keys by which they know whether these would be the same."""

    def __init__(self, pool: WorkerPool, keys: Keys | None = None) -> None:
        self.pool, self._keys = pool, keys or Keys()
        self._has_asked = False

    def begin(
        self, study: Study, tests: Sequence[SequentialTest], cells: Sequence[Cell], first: int, last: int
    ) -> "RunningSamples":
        """The samples of replicates `first` to `last` - 1, still to be begun. Claims without a common cell are tasks
        apart, once their components have names, which are those of all runs together. Raises: as the pool where its
        workers are asked what they have: those that would refuse get no tasks, and silence is said.
        """
        if not self._has_asked:
            try:
                self.pool.fingerprint(machine, machine())
            except Exception as failure:
                raise explained(failure, self.pool, "samples taken") from None
            self._has_asked = True
        groups = _apart(tests, cells) if first else [(tests, cells)]
        work = [(task, own) for of, own in groups for task in self._tasks(study, of, own, first, last)]
        return RunningSamples(self.pool, work)

    def _tasks(
        self, study: Study, tests: Sequence[SequentialTest], cells: Sequence[Cell], first: int, last: int
    ) -> list[Task]:
        reading, settings = asked_of(study.reading)
        claims = [test.claim for test in tests]
        whole = Task(
            claims={claim.id: self._keys.of(claim, study.reading, study.seed) for claim in claims},
            reading=reading,
            settings=tuple(settings.items()),
            cells=tuple(cell.name for cell in cells),
            random=tuple(study.random),
            first=first,
            num_replicates=last - first,
            is_first=first == 0,
            seed=study.seed,
            is_x64=is_x64(),
            machine=machine(),
        )
        width = max(width_of(cell, last - first, study.experiment.width) for cell in cells)
        # The last block has what is left over, so that none is narrower than a chunk, and chunks are as without blocks.
        starts = [*range(first, last - width + 1, width)] or [first]
        ends = [*starts[1:], last]
        spans = zip(starts, ends, strict=True)
        return [whole._replace(first=start, num_replicates=end - start) for start, end in spans]


class RunningSamples:
    """Samples that workers are taking, while the caller waits for others too; in the manner of `RunningCells`."""

    num_bytes = 0  # that are worth counting

    def __init__(self, pool: WorkerPool, work: Sequence[tuple[Task, Sequence[Cell]]]) -> None:
        self._pool = pool
        self._tasks = [(task, replicate_rounds(cells, task.num_replicates)) for task, cells in work]
        self._done: list[dict[str, Taken]] = []
        self._running: set[Future[Outcome]] = set()
        self.seconds = 0.0  # that workers have spent

    @property
    def is_finished(self) -> bool:
        return len(self._done) == len(self._tasks)

    def begin(self, tell: Callable[[Callable[[], None]], None], progress: Progress, what: str) -> None:
        """Submit all tasks. What there is to do when one is done goes to `tell`: call it, in the thread that waits.
        Raises: ExecutorLostError where the workers are lost.
        """
        self._progress = progress
        progress.add_work(sum(amount for _, amount in self._tasks))
        progress.running(f"{what}, on {self._pool.description}")
        for task, amount in self._tasks:
            try:
                future = self._pool.open().submit(take_samples, task)
            except Exception as failure:
                raise explained(failure, self._pool, "samples taken") from None
            self._running.add(future)
            future.add_done_callback(lambda future, amount=amount: tell(lambda: self._take(amount, future)))

    def cancel(self) -> None:
        for future in self._running:
            future.cancel()

    def taken(self) -> Mapping[str, Sequence[Taken]]:
        """What each claim has taken, by its id, once all tasks are done."""
        found: dict[str, list[Taken]] = {}
        for part in self._done:
            for claim, own in part.items():
                found.setdefault(claim, []).append(own)
        return {claim: sorted(parts, key=lambda part: part.first) for claim, parts in found.items()}

    def _take(self, amount: int, future: Future[Outcome]) -> None:
        self._running.discard(future)
        try:
            kept, seconds = future.result()
        except Exception as failure:
            raise explained(failure, self._pool, "samples taken") from None
        self._done.append(kept)
        self.seconds += seconds
        self._progress.advance(amount)


def explained(failure: Exception, pool: WorkerPool, what: str) -> Exception:
    """A failure of workers, which says where they were lost that `what` so far is kept."""
    if not pool.is_loss(failure):
        return failure
    return ExecutorLostError(
        f"the workers of {pool.description} are lost ({failure}): the {what} so far are kept where there is a folder "
        "for them. Start the workers, then run the same command again."
    )


def _apart(
    tests: Sequence[SequentialTest], cells: Sequence[Cell]
) -> list[tuple[Sequence[SequentialTest], Sequence[Cell]]]:
    """Tests that read common cells, with these: no two groups have one in common."""
    groups: list[tuple[list[SequentialTest], set[str]]] = []
    for test in tests:
        read = {cell.name for cell in cells} if test.cells is None else set(test.cells)
        shared = [group for group in groups if group[1] & read]
        groups = [group for group in groups if group not in shared]
        of = [each for own, _ in shared for each in own]
        groups.append(([*of, test], read.union(*(names for _, names in shared))))
    return [(of, [cell for cell in cells if cell.name in names]) for of, names in groups]


@functools.lru_cache(256)
def _found(
    ids: tuple[str, ...], reading: str, settings: tuple[tuple[str, Any], ...]
) -> tuple[Experiment, ReadingLike, Sequence[Claim]]:
    """The claims of these ids, with their experiment and reading. Raises: InvalidRunError where they are not there."""
    try:
        claims = registry.select_claims(ids)
        (chosen,) = registry.select_readings(claims[0].paper, [reading])
    except UnknownNameError as failure:
        raise InvalidRunError(
            f"the worker on {platform.node()} lacks what it should compute ({failure}) Install the same papers where "
            "the workers run, and start these again."
        ) from None
    ((experiment, chosen, claims),) = set_to((claims[0].experiment, chosen, claims), dict(settings))
    return experiment, chosen, claims


def _require_same(task: Task, claims: Sequence[Claim], reading: ReadingLike) -> None:
    require_same(machine(), task.machine, "samples")
    keys, lock = _worker_keys()
    with lock:
        others = [claim.id for claim in claims if keys.of(claim, reading, task.seed) != task.claims[claim.id]]
    if others:
        raise InvalidRunError(
            f"the worker on {platform.node()} has other code of claim {others[0]}, or of its runs: its samples "
            "would be others. Install the same code where the workers run, and start these again."
        )


def machine() -> dict[str, str]:
    """Versions, processor and configuration: what a worker must have alike."""
    return {**versions(), **fingerprint()}


@functools.cache
def _worker_keys() -> tuple[Keys, threading.Lock]:
    return Keys(), threading.Lock()


after_fork(_worker_keys.cache_clear)  # the lock may have been held by a thread that a forked process lacks
