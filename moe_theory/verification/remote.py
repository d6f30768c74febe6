"""Chunks that workers of a cluster or an executor compute, importing claims by name."""

import functools
import platform
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Int

from moe_theory.core.errors import InvalidValueError, UnknownNameError
from moe_theory.runs import Cell
from moe_theory.runs.cells import CellBatch, Chunk, Outcome, Place, chunk_of, compute_chunk
from moe_theory.runs.pools import pool_of
from moe_theory.runs.provenance import is_x64
from moe_theory.runs.runner import Result, Task
from moe_theory.runs.workers import WorkerPool
from moe_theory.verification import registry
from moe_theory.verification.archive import Keys
from moe_theory.verification.claim import Claim, ReadingLike
from moe_theory.verification.request import Study
from moe_theory.verification.settings import AdjustedReading, Group, asked_of, set_to


class ChunkTask(NamedTuple):
    claim: str  # of the study, by its id
    key: str  # of the claim's samples: a digest of all that decides them
    reading: str
    settings: tuple[tuple[str, Any], ...]  # beside the reading's own choices
    seed: int
    is_x64: bool
    cell: str
    replicates: Int[np.ndarray, " width"]
    num_kept: int  # replicates that count; the rest is padding


def compute_there(task: ChunkTask) -> tuple[Outcome, float]:
    """Compute a chunk on a worker. Raises: as `run_cells`, or InvalidValueError on an unlike machine."""
    with jax.enable_x64(task.is_x64):
        experiment, reading, (claim,) = _study_of(task.claim, task.reading, task.settings)
        if _key_of(claim, reading, task.seed) != task.key:
            raise InvalidValueError(
                f"the worker on {platform.node()} has another processor or version, or other code of claim "
                f"{claim.id}: its samples would be others. Install the same code where the workers run, and start "
                "these again."
            )
        (cell,) = (cell for cell in experiment.cells_under(reading) if cell.name == task.cell)
        start_time = time.monotonic()
        outcome = compute_chunk(Chunk(cell, task.replicates, task.num_kept), task.seed)
        return outcome, time.monotonic() - start_time


def remote_pool(
    studies: Sequence[Study], executor: Executor | None = None, dask: str | None = None
) -> WorkerPool | None:
    """Return the workers of an executor or a Dask cluster for these studies, or None without either.

    Raises: InvalidValueError for both, an invalid address, or code that workers could not import.
    """
    if executor is None and dask is None:
        return None
    for study in studies:
        module_claims = [f"claim {claim.id}" for claim in study.claims if not registry.is_of_a_paper(claim)]
        if isinstance(study.reading, AdjustedReading) and study.reading.own:
            module_claims.append("an algorithm of your own (--system)")
        if module_claims and study.experiment.measured is None:
            raise InvalidValueError(
                f"{module_claims[0]} is of a file of your own, and workers elsewhere import installed papers alone. "
                "Leave out --dask (executor), or install the file as a paper, by an entry point of the group "
                "moe_theory.papers."
            )
    return pool_of(executor, dask)


class RemoteBatch(CellBatch):
    """Chunks of replicates `first` to `last` - 1 of a study, for workers elsewhere."""

    def __init__(self, study: Study, cells: Sequence[Cell], first: int, last: int) -> None:
        super().__init__(cells, last - first, first=first, seed=study.seed, width=study.experiment.width)
        claim = study.claims[0]
        reading, settings = asked_of(study.reading)
        key = _key_of(claim, study.reading, study.seed)
        key_parts = (claim.id, key, reading, tuple(settings.items()), study.seed, is_x64())
        self._chunk_task = functools.partial(ChunkTask, *key_parts)
        self._structures: dict[str, Any] = {}  # of outcomes, by cell

    def take(self, result: Result) -> None:
        """Store a computed chunk. Raises: as `CellBatch.take`."""
        super().take(result)
        place = result.task.place
        # Each unpickled chunk has a class of records of its own: those of a cell get the first one's.
        leaves, structure = jax.tree.flatten(self._outcomes[place])
        self._outcomes[place] = jax.tree.unflatten(self._structures.setdefault(place[0], structure), leaves)

    def _task(self, place: Place) -> Task:
        name, index = place
        chunk = chunk_of(self._cells[name], index, self._num_replicates, self._widths[name], self._first)
        task = self._chunk_task(name, chunk.replicates, chunk.num_kept)
        return Task(functools.partial(compute_there, task), chunk.replicate_rounds, place=place)


@functools.cache
def _keys() -> tuple[Keys, threading.Lock]:
    return Keys(), threading.Lock()


def _key_of(claim: Claim, reading: ReadingLike, seed: int) -> str:
    keys, lock = _keys()
    with lock:
        return keys.of(claim, reading, seed)


@functools.lru_cache(256)
def _study_of(id: str, reading: str, settings: tuple[tuple[str, Any], ...]) -> Group:
    try:
        claims = registry.select_claims([id])
        (paper_reading,) = registry.select_readings(claims[0].paper, [reading])
    except UnknownNameError as failure:
        raise InvalidValueError(
            f"the worker on {platform.node()} lacks what it should compute ({failure}) Install the same papers where "
            "the workers run, and start these again."
        ) from None
    (study,) = set_to(Group(claims[0].experiment, paper_reading, claims), dict(settings))
    return study
