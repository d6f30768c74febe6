"""Chunks that workers of a cluster or an executor compute. They import claims by name."""

import functools
import platform
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Int

from moe_theory.core.errors import InvalidValueError, UnknownNameError
from moe_theory.runs.cells import Call, Chunk, Outcome, timed_chunk
from moe_theory.runs.pools import pool_of
from moe_theory.runs.provenance import is_x64
from moe_theory.runs.workers import WorkerPool
from moe_theory.verification import registry
from moe_theory.verification.archive import Keys
from moe_theory.verification.request import Study
from moe_theory.verification.settings import AdjustedReading, Group, name_and_settings, set_to


class ChunkTask(NamedTuple):
    claim: str  # the id of the study's first claim
    reading: str
    settings: tuple[tuple[str, Any], ...]  # values by name, in addition to the reading's choices
    seed: int
    is_x64: bool
    key: str  # the key of the claim's samples
    cell: str
    replicates: Int[np.ndarray, " width"]
    num_kept: int  # replicates that count. Others are padding


def compute_there(task: ChunkTask) -> tuple[Outcome, float]:
    """Compute a chunk on a worker. Raises: the errors of `run_cells`, and InvalidValueError if samples would differ."""
    with jax.enable_x64(task.is_x64):
        group, key = _group_of(task.claim, task.reading, task.settings, seed=task.seed, is_x64=task.is_x64)
        if key != task.key:
            raise InvalidValueError(
                f"the worker on {platform.node()} has another processor, other versions, or other code of claim "
                f"{task.claim}, so its samples would differ. Install the same code there, and restart the workers."
            )
        cells = group.experiment.cells_under(group.reading)
        (cell,) = [cell for cell in cells if cell.name == task.cell]
        return timed_chunk(Chunk(cell, task.replicates, task.num_kept), task.seed)


def remote_pool(
    studies: Sequence[Study], executor: Executor | None = None, dask: str | None = None
) -> WorkerPool | None:
    """Return the workers of an executor or a Dask cluster for these studies, or None if neither is given."""
    if executor is None and dask is None:
        return None
    for study in studies:
        module_claims = [f"claim {claim.id}" for claim in study.claims if not registry.is_of_a_paper(claim)]
        if isinstance(study.reading, AdjustedReading) and study.reading.own:
            module_claims.append("your own algorithm (--system)")
        if module_claims and study.experiment.measured is None:
            raise InvalidValueError(
                f"{module_claims[0]} is in your own file, but remote workers import only installed papers. Leave out "
                "--dask (in Python: the argument dask or executor), or install the file as a paper, with an entry "
                "point in the group moe_theory.papers."
            )
    return pool_of(executor, dask)


def remote_calls(study: Study) -> Callable[[Chunk], Call]:
    reading, settings = name_and_settings(study.reading)
    inputs = (study.claims[0].id, reading, tuple(settings.items()), study.seed, is_x64())  # first fields of a task
    _, key = _group_of(*inputs)
    return lambda chunk: functools.partial(
        compute_there, ChunkTask(*inputs, key, chunk.cell.name, chunk.replicates, chunk.num_kept)
    )


@functools.lru_cache(256)
def _group_of(
    id: str, reading: str, settings: tuple[tuple[str, Any], ...], seed: int, is_x64: bool
) -> tuple[Group, str]:
    """Return the group of a claim, and the key of its samples, which depends on JAX's precision `is_x64`."""
    try:
        claims = registry.select_claims([id])
        (paper_reading,) = registry.select_readings(claims[0].paper, [reading])
    except UnknownNameError as failure:
        raise InvalidValueError(
            f"the worker on {platform.node()} cannot find the claim or reading ({failure}) Install the same papers on "
            "the workers' machines, and restart the workers."
        ) from None
    (group,) = set_to(Group(claims[0].experiment, paper_reading, claims), dict(settings))
    return group, Keys().of(group.claims[0], group.reading, seed)
