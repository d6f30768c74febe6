"""The chunks that a sweep is made of, as plain data, and what a worker makes of each.

A chunk's name is a digest of its task, which holds everything that decides its numbers. A task can be sent anywhere,
and the bytes that come back are what is kept of the chunk, wherever and in whatever order it was computed.
"""

import dataclasses
import functools
import hashlib
import itertools
import json
import math
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from moe_theory.core.engine import STATE_COPIES, bytes_of, width_for
from moe_theory.core.errors import InvalidRunError
from moe_theory.core.machine import machine_memory
from moe_theory.core.programs import compiled_once
from moe_theory.core.system import check_system, recorded_rounds
from moe_theory.runs import provenance
from moe_theory.runs.cells import Cell, Chunk, compute_chunk
from moe_theory.runs.files import canonical
from moe_theory.runs.key import code_digest
from moe_theory.runs.store import pack
from moe_theory.sweep.grid import SweepCell
from moe_theory.sweep.specification import Specification
from moe_theory.sweep.statistics import ONLY, over_replicates
from moe_theory.sweep.systems import sweepable

Task = dict[str, Any]  # plain data: text, numbers, lists and dictionaries of them
VERSION = 1  # of what a task means
# Elsewhere than on a CPU nothing is gained by fitting a cache, and launching a kernel costs more.
ACCELERATOR_WIDTH = 4096
MOST_CHUNKS = 1_000_000
RECORD_COPIES = 6  # by batch and joined, in an archive and its bytes, on their way to the disk; measured: 4.9
LONGEST = 500  # characters of an error that is passed over
_HERE = "\u0001"  # stands for a chunk's first replicate
_QUOTED = json.dumps(_HERE).encode()

_FITTING: dict[Hashable, int] = {}  # replicates that fit a core's cache, by static shape


class PlannedCell:
    """What the chunks of a cell have in common."""

    def __init__(self, task: Task) -> None:
        """`task`: of its first chunk; the others differ in `first` alone."""
        self.task = task
        self.program: Hashable = sys.intern(program_of(task))

    def names_of(self, firsts: Iterable[int]) -> list[str]:
        """The names of the chunks from these replicates on: digests of their tasks, made by the million."""
        before, after = canonical(self.task | {"first": _HERE}).split(_QUOTED)
        return [hashlib.sha256(b"%b%d%b" % (before, first, after)).hexdigest() for first in firsts]


class PlannedChunk(NamedTuple):
    name: str  # its key in the store
    cell: int  # position in the grid
    first: int  # replicate
    num_kept: int  # replicates that count; the others are used when the sweep asks for more replicates
    of: PlannedCell

    @property
    def task(self) -> Task:
        return self.of.task | {"first": self.first}

    @property
    def replicate_rounds(self) -> int:
        return self.of.task["width"] * self.of.task["rounds"]


class Coverage(NamedTuple):
    """Completed part of a sweep."""

    chunks: int
    of_chunks: int
    replicates: int  # of all cells together
    of_replicates: int

    @property
    def is_complete(self) -> bool:
        return self.chunks == self.of_chunks


class SweepPlan:
    """The chunks of a sweep as the machine of this fingerprint computes them."""

    def __init__(self, sweep: Specification, fingerprint: Mapping[str, str]) -> None:
        self.sweep: Specification = sweep
        self.fingerprint: dict[str, str] = dict(fingerprint)
        width = self.task_of(0)["width"]
        count = len(sweep.grid) * -(-sweep.replicates // width)
        if count > MOST_CHUNKS:
            raise InvalidRunError(
                f"{count} chunks of {width} replicates are more than {MOST_CHUNKS}. Set chunk_width to "
                f"{width * -(-count // MOST_CHUNKS)} or more, or split the sweep."
            )

    @functools.cached_property
    def chunks(self) -> tuple[PlannedChunk, ...]:
        return tuple(itertools.chain.from_iterable(self.by_cell))

    @functools.cached_property
    def by_cell(self) -> tuple[Sequence[PlannedChunk], ...]:
        """The chunks of each cell."""
        return tuple(map(self._chunks_of, range(len(self.sweep.grid))))

    def _chunks_of(self, index: int) -> Sequence[PlannedChunk]:
        of, replicates = PlannedCell(self.task_of(index)), self.sweep.replicates
        width = of.task["width"]
        firsts = range(0, replicates, width)
        return [
            PlannedChunk(name, index, first, min(width, replicates - first), of)
            for name, first in zip(of.names_of(firsts), firsts, strict=True)
        ]

    def task_of(self, index: int) -> Task:
        """The task of a cell's first chunk; the others differ in `first` alone."""
        sweep, cell = self.sweep, self.sweep.grid.cells[index]
        width, batch = _widths(sweep, cell, self.fingerprint["backend"])
        return {
            **({"quantiles": list(sweep.quantiles)} if sweep.keep == ONLY else {}),
            "version": VERSION,
            "system": sweep.system,
            "dims": dataclasses.asdict(cell.dims),
            "choices": dict(cell.choices),
            "params": cell.params._asdict(),
            "rounds": sweep.rounds,
            "record_every": sweep.record_every,
            "observables": sorted(sweep.observables or ()),
            "seed": sweep.seed,
            "precision": sweep.precision,
            "first": 0,
            "width": width,
            "batch": batch,
            "fingerprint": self.fingerprint,
        }

    @functools.cached_property
    def programs(self) -> dict[Hashable, Task]:
        """The first task of each program to compile."""
        found: dict[Hashable, Task] = {}
        for first, *_ in self.by_cell:
            found.setdefault(first.of.program, first.of.task)
        return found

    def require_memory(self, num_workers: int) -> None:
        """Raise InvalidRunError, with the widest chunk that fits, for chunks that do not fit in memory."""
        available = machine_memory()
        for task in self.programs.values():
            need, share = memory_of(task), available / num_workers
            if need.of(task["width"]) > share:
                fitting, less = need.widest(share), "Record less often, or let fewer workers compute at once"
                name = "replicates" if "quantiles" in task else "chunk_width"
                way_out = f"Set {name} to {fitting} or less" if fitting else less
                raise InvalidRunError(
                    f"a chunk of {task['width']} replicates takes {need.of(task['width']) / 1e9:.1f} GB, and "
                    f"{num_workers} are computed at once, in {available / 1e9:.1f} GB of memory. {way_out}."
                )


def fingerprint(system: str) -> dict[str, str]:
    """Everything besides a task that decides its numbers on this machine."""
    return provenance.fingerprint(_code(sweepable(system).code))


@functools.cache
def _code(system: str) -> str:
    """A digest of a system's code, which is given as one, and of what is made of its runs."""
    return code_digest(system, _batches, _packed)


def program_of(task: Task) -> str:
    """Key of a task's compiled program."""
    decisive = ("system", "dims", "choices", "rounds", "record_every", "observables", "precision", "batch")
    return json.dumps({name: task[name] for name in decisive}, sort_keys=True)


class SentChunks(NamedTuple):
    """Chunks of one cell: what a worker is sent."""

    task: Task  # of one of them
    firsts: tuple[int, ...]  # replicates


def parts_of(chunks: Sequence[PlannedChunk]) -> list[SentChunks]:
    """Chunks, in their order, as a worker is sent them."""
    cells = itertools.groupby(chunks, lambda chunk: chunk.of)
    return [SentChunks(of.task, tuple(chunk.first for chunk in own)) for of, own in cells]


def compute(parts: Sequence[SentChunks], keeps_going: bool = False) -> list[bytes | str]:
    """Return what is saved of chunks of one program. This is what a worker does.

    Args:
        keeps_going: whether an error of one chunk is no reason not to compute the others. It is returned as text.
    Raises: InvalidRunError where the numbers would be others; what a chunk raises, unless it keeps going.
    """
    task = parts[0].task
    provenance.require_same(fingerprint(task["system"]), task["fingerprint"], "numbers")
    outcomes: list[bytes | str] = []
    for part in parts:
        for first in part.firsts:
            try:
                outcomes.append(computed(part.task | {"first": first}))
            except Exception as failure:
                if not keeps_going:
                    failure.add_note(f"in the cell with {part.task['params']} and {part.task['dims']}")
                    raise
                outcomes.append(f"{type(failure).__name__}: {' '.join(str(failure).split())[:LONGEST]}")
    return outcomes


def computed(task: Task) -> bytes:
    """What is kept of a chunk."""
    with jax.enable_x64(task["precision"] == "float64"), compiled_once(program_of(task)):
        records = _batches(task, _cell(task))
    return _packed(task, records)


def _batches(task: Task, cell: Cell) -> list[Any]:
    """Records of a chunk's replicates, as many at once as fit a core's cache."""
    end, batch = task["first"] + task["width"], task["batch"]
    return [
        compute_chunk(Chunk(cell, np.arange(first, first + batch), min(batch, end - first)), task["seed"])[1]
        for first in range(task["first"], end, batch)
    ]


def _packed(task: Task, parts: Sequence[Any]) -> bytes:
    if "quantiles" in task:
        return pack(over_replicates(parts, task["observables"], task["quantiles"]))
    arrays = {name: np.concatenate([part[name] for part in parts], axis=-1) for name in task["observables"]}
    return pack(arrays)


def chunk_shapes(task: Task) -> tuple[Any, Any]:
    with jax.enable_x64(task["precision"] == "float64"):
        cell = _cell(task)
        state = check_system(cell.system, cell.params)
        key = jax.eval_shape(lambda: jax.random.key(0))
        info = jax.eval_shape(cell.system.step, key, state, cell.params)[1]
        return state, jax.eval_shape(cell.observe, state, info)


class ChunkMemory(NamedTuple):
    """Bytes that computing a chunk takes: whatever its width, and for each replicate of it."""

    fixed: int
    each: int

    def of(self, width: int) -> int:
        return self.fixed + width * self.each

    def widest(self, available: float) -> int:
        """Replicates of the widest chunk that fits; 0 where none does."""
        return max(int((available - self.fixed) / self.each), 0)


def memory_of(task: Task) -> ChunkMemory:
    state, records = chunk_shapes(task)
    kept = len(recorded_rounds(task["rounds"], task["record_every"])) * bytes_of(records)
    return ChunkMemory(fixed=task["batch"] * (STATE_COPIES * bytes_of(state) + kept), each=RECORD_COPIES * kept)


def _cell(task: Task) -> Cell:
    kind = sweepable(task["system"])
    dims = kind.dims(**task["dims"])
    params = type(kind.readings[kind.default_reading].defaults)(**task["params"])
    system, observe = kind.system(dims, task["choices"]), kind.observe(task["observables"])
    return Cell("sweep", system, params, task["rounds"], task["record_every"], observe)


def _widths(sweep: Specification, cell: SweepCell, backend: str) -> tuple[int, int]:
    fitting = _fitting(sweep.system, cell) if backend == "cpu" else ACCELERATOR_WIDTH
    if sweep.keep == ONLY:  # a cell is one chunk, of which nothing but the statistics is kept
        return sweep.replicates, min(fitting, sweep.replicates)
    width = sweep.chunk_width or fitting
    return width, math.ceil(width / math.ceil(width / fitting))


def _fitting(system: str, cell: SweepCell) -> int:
    shape = (system, cell.dims, tuple(cell.choices.items()))
    if shape not in _FITTING:
        _FITTING[shape] = width_for(check_system(sweepable(system).system(cell.dims, cell.choices), cell.params))
    return _FITTING[shape]
