"""Costs of a sweep before it runs: counted, or timed on a short run on this machine."""

import dataclasses
import math
import os
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Hashable
from pathlib import Path

import numpy as np

from moe_theory.core.engine import bytes_of
from moe_theory.core.errors import InvalidRunError
from moe_theory.core.system import recorded_rounds
from moe_theory.runs.files import pack, unpack
from moe_theory.runs.packs import BACKLOG, LEAST_WAIT, MOST_BYTES, MOST_WAIT, WAITING, Packs
from moe_theory.runs.workers import DevicePool, WorkerPool
from moe_theory.sweep.blocks import MOST_BLOCKS
from moe_theory.sweep.grid import PADDED
from moe_theory.sweep.plan import PlannedChunk, SweepPlan, Task, chunk_shapes, computed, fingerprint, memory_of
from moe_theory.sweep.runner import find_missing
from moe_theory.sweep.specification import Specification
from moe_theory.sweep.statistics import ONLY, over_replicates

PROBE_ROUNDS = 200
REPEATS = 5  # of which the quickest counts: others work on this machine too
MOST_PROBES = 4  # programs that are timed; the others are taken to be like them
CLIENT_SECONDS = 1e-4  # of processor time that the process which hands out chunks takes for one (sweep_client)
WRITTEN = 2e8  # bytes a second that are checked, packed and written
DISK_BLOCK = 4096  # bytes that a file takes in steps of


@dataclasses.dataclass(frozen=True)
class SweepCost:
    """Work, memory, disk and time that a sweep takes. Seconds are of a clock unless they are of cores."""

    cells: int
    shape: dict[str, int]  # values on each axis
    replicates: int
    chunks: int
    present: int  # chunks that the folder has
    width: int  # replicates of the widest chunk
    programs: int  # each is compiled once for every device or process in use
    chunk_bytes: int  # memory of the largest chunk while it is computed
    client_bytes: int  # memory of the process that hands out the chunks, besides those that it computes
    most_client_bytes: int  # the same where results come faster than they can be written
    workers: int
    num_local: int  # of them on this machine
    disk_bytes: int  # in whole blocks
    files: int
    replicate_rounds: int  # to be computed
    padding: float  # share of them that no result is of: replicates that fill the last chunk of a cell
    padded_experts: float  # share of the time that cells with few experts spend on the largest number
    core_seconds: float  # of all workers together
    plan_seconds: float  # from the start of the process
    compile_seconds: float
    run_seconds: float
    result_seconds: float  # of statistics and results.nc
    client_share: float  # of its time that the process which hands out chunks is busy with that

    @property
    def seconds(self) -> float:
        return self.plan_seconds + self.compile_seconds + self.run_seconds + self.result_seconds


@dataclasses.dataclass(frozen=True)
class _Pace:
    """Seconds that a program takes."""

    compiling: float
    chunk: float  # for each chunk, whatever its rounds: of Python, which threads take turns at
    rounds: float  # for all rounds of a chunk
    statistics: float  # for a cell's, a chunk

    @property
    def each(self) -> float:
        return self.chunk + self.rounds


def estimate(
    sweep: Specification, folder: Path | None = None, workers: int | None = None, pool: WorkerPool | None = None
) -> SweepCost:
    """Count the work that a folder leaves of a sweep, and time a short run of its programs on this machine.

    Args:
        workers: as if so many, of one core each, computed it elsewhere.
        pool: where it would run; this machine's devices unless given.
    Raises: InvalidRunError for chunks that do not fit in memory, or fewer than one worker.
    """
    if workers is not None and workers < 1:
        raise InvalidRunError(f"workers={workers} must be at least 1. Raise workers.")
    pool = DevicePool() if pool is None else pool
    if workers is not None:
        num_workers, num_local = workers, 0
    else:
        num_workers, num_local = pool.num_workers, pool.num_local if isinstance(pool, DevicePool) else 0
    plan = SweepPlan(sweep, fingerprint(sweep.system))
    plan.require_memory(pool.num_local if workers is None else 1)
    there = Packs(folder) if folder is not None and folder.is_dir() else None
    missing = list(plan.chunks) if there is None else find_missing(plan, there)
    planned, memory = time.process_time(), _memory()

    left = Counter(chunk.of.program for chunk in missing)
    paces = _paces(plan, left)
    core_seconds = sum(number * paces[program].each for program, number in left.items())
    turns = sum(number * paces[program].chunk for program, number in left.items()) if num_local else 0.0
    client = CLIENT_SECONDS * len(missing)
    compiling = sum(paces[program].compiling for program in left)
    run_seconds = max(core_seconds / num_workers, turns, client)
    data, results = _disk(plan)
    statistics = sum(paces[program].statistics * number for program, number in left.items())
    waiting = min(data, BACKLOG + 3 * MOST_BYTES)
    files = 4 + math.ceil(max(_num_packs(run_seconds) if missing else 0, data / MOST_BYTES, 1))
    return SweepCost(
        cells=len(sweep.grid),
        shape={axis.name: size for axis, size in zip(sweep.grid.axes, sweep.grid.shape, strict=True)},
        replicates=sweep.replicates,
        chunks=len(plan.chunks),
        present=len(plan.chunks) - len(missing),
        width=max(task["width"] for task in plan.programs.values()),
        programs=len(plan.programs),
        chunk_bytes=max(memory_of(task).of(task["width"]) for task in plan.programs.values()),
        client_bytes=memory,
        most_client_bytes=memory + waiting,
        workers=num_workers,
        num_local=num_local,
        disk_bytes=data + 2 * results + files * DISK_BLOCK,
        files=files,
        replicate_rounds=sum(chunk.replicate_rounds for chunk in missing),
        padding=_padding(missing),
        padded_experts=_padded_experts(plan, paces) if missing else 0.0,
        core_seconds=core_seconds,
        plan_seconds=planned,
        compile_seconds=compiling,
        run_seconds=run_seconds,
        result_seconds=statistics / max(num_local, 1) + (data + 3 * results) / WRITTEN,
        client_share=client / run_seconds if run_seconds else 0.0,
    )


def _num_packs(seconds: float) -> float:
    """How often what has come is written in a run of so many seconds, if something comes all the time."""
    grows, ends = LEAST_WAIT / WAITING, MOST_WAIT / WAITING
    at_first, then = min(seconds, grows) / LEAST_WAIT, min(max(seconds, grows), ends)
    return at_first + math.log(then / grows) / WAITING + max(seconds - ends, 0) / MOST_WAIT


def _paces(plan: SweepPlan, left: Counter[Hashable]) -> dict[Hashable, _Pace]:
    """Of the programs that most chunks are of; the others are taken to be like them."""
    timed = {program: _probe(plan.programs[program]) for program, _ in left.most_common(MOST_PROBES)}
    if len(timed) == len(left):
        return timed
    typical = _Pace(*np.mean([dataclasses.astuple(pace) for pace in timed.values()], axis=0).tolist())
    return {program: timed.get(program, typical) for program in left}


def _probe(task: Task) -> _Pace:
    """Time a chunk of a program at two numbers of rounds."""
    every, batches = task["record_every"], -(-task["width"] // task["batch"])
    # Lengths with room for as many records share a program.
    records = max(4, 1 << max(PROBE_ROUNDS // every, 1).bit_length())
    short, long = (records // 2 + 1) * every, records * every
    few = task | {"width": task["batch"], "first": 0} | ({"quantiles": []} if "quantiles" in task else {})
    first = _timed(lambda: computed(few | {"rounds": short}))
    again = min(_timed(lambda: computed(few | {"rounds": short})) for _ in range(REPEATS))
    longer = min(_timed(lambda: computed(few | {"rounds": long})) for _ in range(REPEATS))
    slope = max(longer - again, 0.02 * again) / (long - short)
    few.pop("quantiles", None)
    chunk = unpack(computed(few | {"rounds": short}))[1]
    statistics = _timed(lambda: over_replicates([chunk], task["observables"], (0.5,)))
    more = len(recorded_rounds(task["rounds"], every)) / (records // 2 + 1)
    return _Pace(
        max(first - again, 0.0),
        batches * max(again - slope * short, 0.0),
        batches * slope * task["rounds"],
        statistics * (1 + more) / 2 * batches + 2e-4,
    )


def _timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _padding(missing: list[PlannedChunk]) -> float:
    widths = sum(chunk.of.task["width"] for chunk in missing)
    return 1 - sum(chunk.num_kept for chunk in missing) / widths if widths else 0.0


def _padded_experts(plan: SweepPlan, paces: dict[Hashable, _Pace]) -> float:
    """Share of the time of rounds that a program for each number of experts would save; 0 where each has its own."""
    cells = [cell for cell in plan.sweep.grid.cells if PADDED in dataclasses.asdict(cell.dims)]
    numbers = [(cell.params.num_experts, getattr(cell.dims, PADDED)) for cell in cells]
    if len(cells) < len(plan.sweep.grid) or all(experts == padded for experts, padded in numbers):
        return 0.0
    program, pace = next(iter(paces.items()))
    task = plan.programs[program]
    fewest, padded = min(experts for experts, _ in numbers), task["dims"][PADDED]
    if fewest >= padded:
        return 0.0
    own = _probe(task | {"dims": task["dims"] | {PADDED: fewest}, "params": task["params"] | {"num_experts": fewest}})
    slope = (1 - own.each / pace.each) / (padded - fewest)  # of the time, an expert
    return max(0.0, slope * float(np.mean([most - experts for experts, most in numbers])))


def _disk(plan: SweepPlan) -> tuple[int, int]:
    """Bytes of all chunks, and of the statistics of all cells."""
    number = Counter(chunk.of.program for chunk in plan.chunks)
    cells = Counter(chunks[0].of.program for chunks in plan.by_cell)
    data, numbers = 0, 0
    for program, task in plan.programs.items():
        records = chunk_shapes(task)[1]
        empty = len(pack(task, {name: np.zeros(0) for name in records}))
        num_records = len(recorded_rounds(task["rounds"], task["record_every"]))
        data += number[program] * (empty + num_records * bytes_of(records) * task["width"])
        own = sum(math.prod(record.shape) for record in records.values())
        numbers += cells[program] * num_records * own * (5 + len(plan.sweep.quantiles))
    data = 8 * numbers + 2000 * len(plan.chunks) if plan.sweep.keep == ONLY else data
    return data, 8 * numbers + 1000 * min(len(plan.by_cell), MOST_BLOCKS)


def _memory() -> int:
    """Bytes that this process has in memory."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
