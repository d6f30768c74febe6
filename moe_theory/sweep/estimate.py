"""Costs of a sweep before it runs: counted, or timed on a short run."""

import dataclasses
import time
from collections import Counter
from collections.abc import Hashable
from pathlib import Path

import numpy as np

from moe_theory.core.engine import bytes_of
from moe_theory.core.system import recorded_rounds
from moe_theory.runs.files import pack
from moe_theory.runs.packs import Packs
from moe_theory.runs.workers import DevicePool
from moe_theory.sweep.plan import SweepPlan, Task, chunk_shapes, computed, fingerprint, memory_of
from moe_theory.sweep.runner import find_missing
from moe_theory.sweep.specification import Specification

PROBE_ROUNDS = 100
MOST_PROBES = 4  # programs that are timed; the others are taken to be like them


@dataclasses.dataclass(frozen=True)
class SweepCost:
    """Work, memory, disk and time that a sweep takes."""

    cells: int
    shape: dict[str, int]  # values on each axis
    replicates: int
    chunks: int
    present: int  # chunks that the folder has
    width: int  # replicates of the widest chunk
    programs: int  # each is compiled once for every device in use
    chunk_bytes: int  # memory of the largest chunk while it is computed
    workers: int
    disk_bytes: int
    replicate_rounds: int  # to be computed
    compile_seconds: float
    run_seconds: float


def estimate(sweep: Specification, folder: Path | None = None, workers: int | None = None) -> SweepCost:
    """Count the work that a folder leaves of a sweep, and time a short run of its programs on this machine."""
    pool = DevicePool(workers)
    plan = SweepPlan(sweep, fingerprint(sweep.system))
    plan.require_memory(pool.num_workers)
    missing = list(plan.chunks)
    if folder is not None and folder.is_dir():
        missing = find_missing(plan, Packs(folder))
    number = Counter(chunk.of.program for chunk in plan.chunks)
    left: dict[Hashable, int] = {}
    for chunk in missing:
        left[chunk.of.program] = left.get(chunk.of.program, 0) + chunk.replicate_rounds
    timed = {program: _probe(plan.programs[program]) for program in list(left)[:MOST_PROBES]}
    typical = tuple(np.mean(list(timed.values()), axis=0)) if timed else (0.0, 0.0)
    seconds = [timed.get(program, typical) for program in left]
    run_seconds = sum(work * pace for work, (_, pace) in zip(left.values(), seconds, strict=True))
    disk_bytes = 0
    for program, task in plan.programs.items():
        records = chunk_shapes(task)[1]
        empty = len(pack(task, {name: np.zeros(0) for name in records}))
        num_records = len(recorded_rounds(task["rounds"], task["record_every"]))
        disk_bytes += number[program] * (empty + num_records * bytes_of(records) * task["width"])
    return SweepCost(
        cells=len(sweep.grid),
        shape={axis.name: size for axis, size in zip(sweep.grid.axes, sweep.grid.shape, strict=True)},
        replicates=sweep.replicates,
        chunks=len(plan.chunks),
        present=len(plan.chunks) - len(missing),
        width=max(task["width"] for task in plan.programs.values()),
        programs=len(plan.programs),
        chunk_bytes=max(memory_of(task).of(task["width"]) for task in plan.programs.values()),
        workers=pool.num_workers,
        disk_bytes=disk_bytes,
        replicate_rounds=sum(left.values()),
        compile_seconds=float(sum(compiling for compiling, _ in seconds)) * pool.num_devices,
        run_seconds=float(run_seconds / pool.num_workers),
    )


def _probe(task: Task) -> tuple[float, float]:
    """Seconds to compile a task's program, and to compute a replicate-round of it."""
    rounds = min(task["rounds"], max(PROBE_ROUNDS, task["record_every"]))
    short = task | {"rounds": rounds, "width": task["batch"]}
    times = []
    for _ in range(2):
        began = time.perf_counter()
        computed(short)
        times.append(time.perf_counter() - began)
    first, again = times
    return max(first - again, 0.0), again / (rounds * task["batch"])
