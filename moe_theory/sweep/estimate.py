"""What a sweep will cost, before it runs: counted where it can be, and measured on a short run where not."""

import dataclasses
import time
from pathlib import Path
from typing import Any

import numpy as np

from moe_theory.core.system import recorded_rounds
from moe_theory.runs import machine
from moe_theory.runs.files import pack
from moe_theory.runs.store import Store
from moe_theory.runs.workers import DevicePool
from moe_theory.sweep import runner, tasks
from moe_theory.sweep.dispatch import survey
from moe_theory.sweep.spec import Sweep
from moe_theory.sweep.tasks import Plan, Task

PROBE_ROUNDS = 100
MOST_PROBES = 4  # programs that are timed; the others are taken to be like them


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a sweep needs."""

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

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return dataclasses.asdict(self)


def estimate(sweep: Sweep, folder: Path | None = None, workers: int | None = None) -> Estimate:
    """Count a sweep's work, and time a short run of its programs on this machine.

    Args:
        folder: where chunks may be already.
        workers: that compute at once; this machine's devices unless given.
    """
    pool = DevicePool(workers)
    workers = pool.num_workers
    plan = Plan(sweep, tasks.fingerprint(sweep.system))
    runner.require_memory(plan, workers)
    missing = list(plan.parts)
    if folder is not None and folder.is_dir():
        missing = survey(plan, Store(folder))[1]
    by_program: dict[Any, list[tasks.Part]] = {}
    for part in plan.parts:
        by_program.setdefault(tasks.program_of(part.task), []).append(part)
    left: dict[Any, int] = {}
    for part in missing:
        program = tasks.program_of(part.task)
        left[program] = left.get(program, 0) + part.replicate_rounds
    timed = {program: _probe(by_program[program][0].task) for program in list(left)[:MOST_PROBES]}
    typical = tuple(np.mean(list(timed.values()), axis=0)) if timed else (0.0, 0.0)
    seconds = [timed.get(program, typical) for program in left]
    return Estimate(
        cells=len(sweep.grid),
        shape={axis.name: size for axis, size in zip(sweep.grid.axes, sweep.grid.shape, strict=True)},
        replicates=sweep.replicates,
        chunks=len(plan.parts),
        present=len(plan.parts) - len(missing),
        width=max(part.task["width"] for part in plan.parts),
        programs=len(by_program),
        chunk_bytes=max(runner.chunk_need(parts[0].task).of(parts[0].task["width"]) for parts in by_program.values()),
        workers=workers,
        disk_bytes=sum(len(parts) * _file_bytes(parts[0].task) for parts in by_program.values()),
        replicate_rounds=sum(left.values()),
        compile_seconds=float(sum(compiling for compiling, _ in seconds)) * pool.num_devices,
        run_seconds=float(sum(work * pace for work, (_, pace) in zip(left.values(), seconds, strict=True)) / workers),
    )


def _probe(task: Task) -> tuple[float, float]:
    """Seconds to compile a task's program, and to compute a replicate-round of it."""
    rounds = min(task["rounds"], max(PROBE_ROUNDS, task["record_every"]))
    short = task | {"rounds": rounds, "width": task["batch"]}
    began = time.perf_counter()
    tasks.compute(short)
    first = time.perf_counter() - began
    began = time.perf_counter()
    tasks.compute(short)
    again = time.perf_counter() - began
    return max(first - again, 0.0), again / (rounds * task["batch"])


def _file_bytes(task: Task) -> int:
    records = tasks.chunk_shapes(task)[1]
    around = len(pack(task, {name: np.zeros(0) for name in records}))
    kept = len(recorded_rounds(task["rounds"], task["record_every"])) * machine.bytes_of(records)
    return around + kept * task["width"]
