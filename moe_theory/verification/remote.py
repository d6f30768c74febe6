"""Samples that workers elsewhere take, those of a cluster or of an executor: they import claims by their names.

A task names a block of replicates: a worker runs all cells for them and sends back what the claims take, which is
kilobytes where runs are megabytes. Blocks end where chunks do, so that the samples are those that threads here take.
"""

import functools
import platform
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import jax

from moe_theory.core.errors import InvalidValueError, UnknownNameError
from moe_theory.runs import Cell, replicate_rounds, run_cells
from moe_theory.runs.cells import width_of
from moe_theory.runs.pools import pool_of
from moe_theory.runs.provenance import fingerprint, is_x64, require_same, versions
from moe_theory.runs.runner import Result, Task
from moe_theory.runs.workers import WorkerPool
from moe_theory.verification import registry
from moe_theory.verification.archive import Keys
from moe_theory.verification.claim import Claim
from moe_theory.verification.evidence import ClaimSample, collect_sample, find_nan_runs
from moe_theory.verification.request import Study
from moe_theory.verification.settings import AdjustedReading, Group, asked_of, set_to

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
        experiment, reading, claims = _study_of(tuple(task.claims), task.reading, task.settings)
        require_same(machine(), task.machine, "samples")
        keys = _worker_keys()
        for claim in claims:
            if keys.of(claim, reading, task.seed) != task.claims[claim.id]:
                raise InvalidValueError(
                    f"the worker on {platform.node()} has other code of claim {claim.id}, or of its runs: its samples "
                    "would be others. Install the same code where the workers run, and start these again."
                )
        cells = [cell for cell in experiment.cells_under(reading) if cell.name in task.cells]
        runs = run_cells(
            cells, task.num_replicates, first=task.first, seed=task.seed, width=experiment.width, num_threads=1
        )
        overflows = find_nan_runs(runs)
        random = frozenset(task.random)
        samples = {claim.id: collect_sample(claim, runs, overflows, random, task.is_first) for claim in claims}
    return samples, time.monotonic() - start_time


def remote_pool(
    studies: Sequence[Study], executor: Executor | None = None, dask: str | None = None
) -> WorkerPool | None:
    """The workers of an executor or a Dask cluster, for samples of these studies; None for this process's own.

    Raises: InvalidValueError for both, for an address that is none, or for what workers could not import.
    """
    if executor is None and dask is None:
        return None
    for study in studies:
        if study.experiment.measured is None:
            _require_importable(study)
    return pool_of(executor, dask)


def _require_importable(study: Study) -> None:
    """Raise InvalidValueError for a study of code that workers elsewhere do not have."""
    own = [f"claim {claim.id} is of a file of your own" for claim in study.claims if not registry.is_of_a_paper(claim)]
    if isinstance(study.reading, AdjustedReading) and study.reading.own:
        own.append("an algorithm of your own (--system) is of a file of this machine")
    if own:
        raise InvalidValueError(
            f"{own[0]}, and workers elsewhere import installed papers alone. Leave out --dask (executor), or install "
            "the file as a paper, by an entry point of the group moe_theory.papers."
        )


class SampleBatch:
    """Samples of replicates `first` to `last` - 1 that workers take, and those that have come."""

    num_bytes = 0  # that are worth counting

    def __init__(
        self, study: Study, claims: Sequence[Claim], cells: Sequence[Cell], first: int, last: int, keys: Keys
    ) -> None:
        reading, settings = asked_of(study.reading)
        task = SampleTask(
            claims={claim.id: keys.of(claim, study.reading, study.seed) for claim in claims},
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
        spans = zip(starts, [*starts[1:], last], strict=True)
        self._tasks = [task._replace(first=start, num_replicates=end - start) for start, end in spans]
        self._cells = cells
        self._done: list[dict[str, ClaimSample]] = []
        self.seconds = 0.0  # that workers have spent

    @property
    def is_finished(self) -> bool:
        """Whether all samples have come."""
        return len(self._done) == len(self._tasks)

    def tasks(self) -> Iterator[Task]:
        """Yield the tasks for the runner."""
        for task in self._tasks:
            yield Task(functools.partial(take_samples, task), replicate_rounds(self._cells, task.num_replicates))

    def take(self, result: Result) -> None:
        """Keep what a task has taken. Raises: what it raised."""
        samples, seconds = result.value()
        self._done.append(samples)
        self.seconds += seconds

    def taken(self, claim: Claim) -> list[ClaimSample]:
        """Return what a claim has taken, once all tasks are done."""
        return sorted((samples[claim.id] for samples in self._done), key=lambda block: block.first)


_worker_keys = functools.cache(Keys)  # one a process, as it reads much code


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


def machine() -> dict[str, str]:
    """Versions, processor and configuration: what a worker must have alike."""
    return {**versions(), **fingerprint()}
