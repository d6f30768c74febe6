"""Samples that workers elsewhere take, those of a cluster or of an executor: they import claims by their names.

A task names a block of replicates: a worker runs all cells for them and sends back what the claims take, which is
kilobytes where runs are megabytes. Blocks end where chunks do, so that the samples are those that threads here take.
"""

import contextlib
import functools
import platform
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import jax

from moe_theory.core.errors import OWN_CODE, InvalidValueError, UnknownNameError
from moe_theory.core.forks import after_fork
from moe_theory.runs import Cell, replicate_rounds, run_cells
from moe_theory.runs.cells import width_of
from moe_theory.runs.pools import pool_of
from moe_theory.runs.provenance import fingerprint, is_x64, require_same, versions
from moe_theory.runs.runner import Result, Task
from moe_theory.runs.workers import WorkerPool
from moe_theory.verification import registry
from moe_theory.verification.archive import Keys
from moe_theory.verification.claim import Claim, ReadingLike
from moe_theory.verification.evidence import ClaimSample, collect_sample, find_nan_runs, is_of_study, reason_of
from moe_theory.verification.interim import SequentialTest
from moe_theory.verification.request import Study
from moe_theory.verification.settings import AdjustedReading, Group, asked_of, set_to
from moe_theory.verification.verdict import Status

Outcome = tuple[dict[str, ClaimSample], float]  # by claim, and the seconds that it took


class SampleTask(NamedTuple):
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


def take_samples(task: SampleTask) -> Outcome:
    """What a worker does. Raises: InvalidValueError where its samples would be others, or it lacks the claims; else as
    `run_cells`.
    """
    start_time = time.monotonic()
    with jax.enable_x64(task.is_x64):
        study = _study_of(tuple(task.claims), task.reading, task.settings)
        _require_same(task, study.claims, study.reading)
        samples = _samples(task, study)
    return samples, time.monotonic() - start_time


def _samples(task: SampleTask, study: Group) -> dict[str, ClaimSample]:
    """The samples of each claim, from runs of the task's replicates."""
    experiment, reading, claims = study
    cells = [cell for cell in experiment.cells_under(reading) if cell.name in task.cells]
    try:
        runs = run_cells(
            cells, task.num_replicates, first=task.first, seed=task.seed, width=experiment.width, num_threads=1
        )
    except OWN_CODE as failure:
        if not is_of_study(failure):
            raise
        end = Status.ERROR, reason_of(failure)
        return {claim.id: ClaimSample(task.first, task.first + task.num_replicates, end=end) for claim in claims}
    overflows = find_nan_runs(runs)
    samples = {}
    for claim in claims:
        random = frozenset(task.random) if claim.is_computed else frozenset[str]()
        samples[claim.id] = collect_sample(claim, runs, overflows, random, task.is_first)
    return samples


def remote_pool(
    studies: Sequence[Study], executor: Executor | None = None, dask: str | None = None
) -> WorkerPool | None:
    """The workers of an executor or a Dask cluster, for samples of these studies; None for this process's own.

    Raises: InvalidValueError for both, for an address that is none, or for what workers could not import.
    """
    if executor is None and dask is None:
        return None
    simulated = [study for study in studies if study.experiment.measured is None]
    for study in simulated:
        for claim in study.claims:
            if not registry.is_of_a_paper(claim):
                raise InvalidValueError(
                    f"claim {claim.id} is of a file of your own, and workers elsewhere import installed papers alone. "
                    "Leave out --dask (executor), or install the file as a paper, by an entry point of the group "
                    "moe_theory.papers."
                )
    pool = pool_of(executor, dask)
    if any(isinstance(study.reading, AdjustedReading) and study.reading.own for study in simulated):
        raise InvalidValueError(
            "an algorithm of your own (--system) is of a file of this machine, and workers elsewhere import installed "
            "papers alone. Leave out --dask (executor)."
        )
    return pool


@contextlib.contextmanager
def remote_sampler(pool: WorkerPool, keys: Keys | None = None) -> Iterator["RemoteSampler"]:
    """Yield the workers of a pool, which is closed at the end."""
    with contextlib.closing(pool):
        yield RemoteSampler(pool, keys)


class RemoteSampler:
    """Workers elsewhere that take samples, and the keys by which they know whether these would be the same."""

    def __init__(self, pool: WorkerPool, keys: Keys | None = None) -> None:
        self.pool, self._keys = pool, keys or Keys()
        self._has_asked = False

    def batch(
        self, study: Study, tests: Sequence[SequentialTest], cells: Sequence[Cell], first: int, last: int
    ) -> "SampleBatch":
        """Return the tasks that take samples of replicates `first` to `last` - 1.

        Claims without a common cell are tasks apart, once their components have names, which are those of all runs
        together. Raises: InvalidValueError where workers have other code.
        """
        if not self._has_asked:
            self.pool.fingerprint(machine)
            self._has_asked = True
        groups = _apart(tests, cells) if first else [(tests, cells)]
        batch = SampleBatch()
        for group, group_cells in groups:
            for task in self._tasks(study, group, group_cells, first, last):
                batch.add(task, replicate_rounds(group_cells, task.num_replicates))
        return batch

    def _tasks(
        self, study: Study, tests: Sequence[SequentialTest], cells: Sequence[Cell], first: int, last: int
    ) -> list[SampleTask]:
        reading, settings = asked_of(study.reading)
        claims = [test.claim for test in tests]
        task = SampleTask(
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
        return [task._replace(first=start, num_replicates=end - start) for start, end in spans]


class SampleBatch:
    """Samples that workers take, and those that have come."""

    num_bytes = 0  # that are worth counting

    def __init__(self) -> None:
        self._tasks: list[Task] = []
        self._done: list[dict[str, ClaimSample]] = []
        self.seconds = 0.0  # that workers have spent

    def add(self, task: SampleTask, work: int) -> None:
        """Add a block of replicates, of so many replicate-rounds."""
        self._tasks.append(Task(functools.partial(take_samples, task), work))

    @property
    def is_finished(self) -> bool:
        """Whether all samples have come."""
        return len(self._done) == len(self._tasks)

    def tasks(self) -> Iterator[Task]:
        """Return the tasks for the runner."""
        return iter(self._tasks)

    def take(self, result: Result) -> None:
        """Keep what a task has taken. Raises: what it raised."""
        samples, seconds = result.value()
        self._done.append(samples)
        self.seconds += seconds

    def taken(self) -> Mapping[str, Sequence[ClaimSample]]:
        """Return what each claim has taken, by its id, once all tasks are done."""
        parts: dict[str, list[ClaimSample]] = {}
        for samples in self._done:
            for claim, part in samples.items():
                parts.setdefault(claim, []).append(part)
        return {claim: sorted(blocks, key=lambda block: block.first) for claim, blocks in parts.items()}


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
def _study_of(ids: tuple[str, ...], reading: str, settings: tuple[tuple[str, Any], ...]) -> Group:
    """Return the claims of these ids, with their experiment and reading.

    Raises: InvalidValueError where they are not there.
    """
    try:
        claims = registry.select_claims(ids)
        (paper_reading,) = registry.select_readings(claims[0].paper, [reading])
    except UnknownNameError as failure:
        raise InvalidValueError(
            f"the worker on {platform.node()} lacks what it should compute ({failure}) Install the same papers where "
            "the workers run, and start these again."
        ) from None
    (study,) = set_to(Group(claims[0].experiment, paper_reading, claims), dict(settings))
    return study


def _require_same(task: SampleTask, claims: Sequence[Claim], reading: ReadingLike) -> None:
    require_same(machine(), task.machine, "samples")
    keys, lock = _worker_keys()
    with lock:
        differing = [claim.id for claim in claims if keys.of(claim, reading, task.seed) != task.claims[claim.id]]
    if differing:
        raise InvalidValueError(
            f"the worker on {platform.node()} has other code of claim {differing[0]}, or of its runs: its samples "
            "would be others. Install the same code where the workers run, and start these again."
        )


def machine() -> dict[str, str]:
    """Versions, processor and configuration: what a worker must have alike."""
    return {**versions(), **fingerprint()}


@functools.cache
def _worker_keys() -> tuple[Keys, threading.Lock]:
    return Keys(), threading.Lock()


after_fork(_worker_keys.cache_clear)  # the lock may have been held by a thread that a forked process lacks
