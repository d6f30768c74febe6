"""The cost of a sweep, counted before it runs."""

import dataclasses
from pathlib import Path

from moe_theory.core.engine import bytes_of
from moe_theory.core.system import recorded_rounds
from moe_theory.runs.store import Store
from moe_theory.sweep.plan import SweepPlan, fingerprint, memory_of, saved_shapes
from moe_theory.sweep.specification import Specification

BYTES_A_CHUNK = 1_000  # in the store, besides its numbers


@dataclasses.dataclass(frozen=True)
class SweepCost:
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
    """Count a sweep's missing work in a folder. Raises: InvalidValueError if chunks do not fit in memory."""
    plan = SweepPlan(sweep, fingerprint(sweep.system, sweep.observables or ()))
    plan.require_memory(1)
    saved = set() if folder is None else Store(folder).keys()
    missing = [chunk for chunk in plan.chunks if chunk.name not in saved]
    sizes = {}
    for program, task in plan.programs.items():
        num_records = len(recorded_rounds(task.rounds, task.record_every))
        sizes[program] = BYTES_A_CHUNK + bytes_of(saved_shapes(task)) * task.width * num_records
    return SweepCost(
        cells=len(sweep.grid),
        shape={axis.name: axis.num_values for axis in sweep.grid.axes},
        replicates=sweep.replicates,
        chunks=len(plan.chunks),
        present=len(plan.chunks) - len(missing),
        width=max(task.width for task in plan.programs.values()),
        programs=len(plan.programs),
        chunk_bytes=max(memory_of(task).of(task.width) for task in plan.programs.values()),
        disk_bytes=sum(sizes[chunk.task.program] for chunk in plan.chunks),
        replicate_rounds=sum(chunk.replicate_rounds for chunk in missing),
    )
