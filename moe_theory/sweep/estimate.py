"""What a sweep would take, counted before it runs."""

import dataclasses
import math
from collections import Counter
from pathlib import Path

from moe_theory.core.engine import bytes_of
from moe_theory.core.system import recorded_rounds
from moe_theory.runs.store import Store
from moe_theory.sweep.plan import SweepPlan, chunk_shapes, fingerprint, memory_of
from moe_theory.sweep.results import MOMENTS
from moe_theory.sweep.specification import Specification
from moe_theory.sweep.statistics import ONLY

BYTES_A_CHUNK = 1_000  # in the store, besides its numbers


@dataclasses.dataclass(frozen=True)
class SweepCost:
    """Work, memory and disk that a sweep takes."""

    cells: int
    shape: dict[str, int]  # values on each axis
    replicates: int  # of each cell
    chunks: int
    present: int  # chunks that the folder has
    width: int  # replicates of the widest chunk
    programs: int  # each is compiled once for every device or process in use
    chunk_bytes: int  # memory of the largest chunk while it is computed
    disk_bytes: int
    replicate_rounds: int  # to be computed


def estimate(sweep: Specification, folder: Path | None = None) -> SweepCost:
    """Count the work that a folder leaves of a sweep. Raises: InvalidValueError for chunks that do not fit in
    memory.
    """
    plan = SweepPlan(sweep, fingerprint(sweep.system))
    plan.require_memory(1)
    saved = set() if folder is None else Store(folder).keys()
    missing = [chunk for chunk in plan.chunks if chunk.name not in saved]
    return SweepCost(
        cells=len(sweep.grid),
        shape={axis.name: axis.num_values for axis in sweep.grid.axes},
        replicates=sweep.replicates,
        chunks=len(plan.chunks),
        present=len(plan.chunks) - len(missing),
        width=max(task.width for task in plan.programs.values()),
        programs=len(plan.programs),
        chunk_bytes=max(memory_of(task).of(task.width) for task in plan.programs.values()),
        disk_bytes=_disk_bytes(plan),
        replicate_rounds=sum(chunk.replicate_rounds for chunk in missing),
    )


def _disk_bytes(plan: SweepPlan) -> int:
    """Bytes of all chunks in the store."""
    num_chunks = Counter(chunk.task.program for chunk in plan.chunks)
    total = BYTES_A_CHUNK * len(plan.chunks)
    for program, task in plan.programs.items():
        records = chunk_shapes(task)[1]
        num_rounds = len(recorded_rounds(task.rounds, task.record_every))
        if plan.sweep.keep == ONLY:
            num_numbers = sum(math.prod(record.shape) for record in records.values())
            chunk_bytes = 8 * num_numbers * (len(MOMENTS) + len(plan.sweep.quantiles))
        else:
            chunk_bytes = bytes_of(records) * task.width
        total += num_chunks[program] * num_rounds * chunk_bytes
    return total
