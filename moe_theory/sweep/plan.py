"""The chunks of a sweep as plain data, and how a worker computes one.

A chunk's name is a digest of everything that decides its numbers. It does not depend on where or when the chunk runs.
"""

import dataclasses
import functools
import hashlib
import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import jax
import numpy as np

from moe_theory.core.engine import width_for
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.programs import compiled_once
from moe_theory.core.system import check_system, recorded_rounds
from moe_theory.core.userfile import function_at, is_place
from moe_theory.runs import cells, provenance
from moe_theory.runs.files import canonical
from moe_theory.runs.key import code_digest
from moe_theory.runs.store import pack
from moe_theory.sweep.grid import SweepCell
from moe_theory.sweep.specification import Specification
from moe_theory.sweep.systems import ClosedForm, sweepable
from moe_theory.sweep.vocabulary import Value

# Replicates per chunk on a device other than a CPU. Wide chunks save kernel launches, and caches do not matter.
ACCELERATOR_WIDTH = 4096
MAX_CHUNKS = 1_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class CellTask:
    """Everything that decides a cell's numbers, and how its chunks run."""

    system: str
    dims: Mapping[str, Value]
    choices: Mapping[str, str]
    params: Mapping[str, Value]
    rounds: int
    record_every: int
    observables: tuple[str, ...]
    seed: int
    precision: str
    width: int  # replicates per chunk
    batch: int  # replicates of a chunk that run together
    fingerprint: Mapping[str, str]

    @functools.cached_property
    def digest(self) -> bytes:
        return hashlib.sha256(canonical(dataclasses.asdict(self))).digest()

    @functools.cached_property
    def program(self) -> Hashable:
        """A digest that tasks with the same program share."""
        return dataclasses.replace(self, params={}, seed=0, width=0).digest


class PlannedChunk(NamedTuple):
    task: CellTask
    cell: int  # its position in the grid
    first: int  # its first replicate
    num_kept: int  # replicates that the sweep asks for. A chunk may have more, for a larger sweep later

    @property
    def name(self) -> str:
        return hashlib.sha256(b"%b%d" % (self.task.digest, self.first)).hexdigest()

    @property
    def replicate_rounds(self) -> int:
        return self.task.width * self.task.rounds


class Coverage(NamedTuple):
    chunks: int  # saved chunks
    of_chunks: int  # all chunks
    replicates: int  # saved replicates of all cells together
    of_replicates: int

    @property
    def is_complete(self) -> bool:
        return self.chunks == self.of_chunks


class SweepPlan:
    def __init__(self, sweep: Specification, fingerprint: Mapping[str, str]) -> None:
        """Raises: InvalidValueError for too many chunks."""
        self.sweep: Specification = sweep
        self.fingerprint: dict[str, str] = dict(fingerprint)
        self._widths: dict[Hashable, int] = {}  # replicates that fit a core's cache, by sizes and choices
        width = self._make_task(sweep.grid.cells[0]).width
        count = len(sweep.grid) * math.ceil(sweep.replicates / width)
        if count > MAX_CHUNKS:
            raise InvalidValueError(
                f"{count} chunks of {width} replicates are too many: at most {MAX_CHUNKS} are allowed. Set chunk_width "
                f"to {width * math.ceil(count / MAX_CHUNKS)} or more, or split the sweep."
            )
        self.by_cell: list[list[PlannedChunk]] = []  # sorted by replicates
        for index, cell in enumerate(sweep.grid.cells):
            task = self._make_task(cell)
            chunks = []
            for first in range(0, sweep.replicates, task.width):
                num_kept = min(task.width, sweep.replicates - first)
                chunks.append(PlannedChunk(task, index, first, num_kept))
            self.by_cell.append(chunks)
        self.chunks: list[PlannedChunk] = list(itertools.chain.from_iterable(self.by_cell))

    def _make_task(self, cell: SweepCell) -> CellTask:
        sweep = self.sweep
        fitting_width = self._fitting_width(cell) if self.fingerprint["backend"] == "cpu" else ACCELERATOR_WIDTH
        width = sweep.chunk_width or fitting_width
        num_batches = math.ceil(width / fitting_width)
        return CellTask(
            system=sweep.system,
            dims=dataclasses.asdict(cell.dims),
            choices=cell.choices,
            params=cell.params._asdict(),
            rounds=sweep.rounds,
            record_every=sweep.stride,
            observables=tuple(sorted(sweep.observables or ())),
            seed=sweep.seed,
            precision=sweep.precision,
            width=width,
            batch=math.ceil(width / num_batches),  # batches of equal size, which fit
            fingerprint=self.fingerprint,
        )

    def _fitting_width(self, cell: SweepCell) -> int:
        shape = (cell.dims, tuple(cell.choices.items()))
        if shape not in self._widths:
            system = sweepable(self.sweep.system).system(cell.dims, cell.choices)
            self._widths[shape] = width_for(check_system(system, cell.params))
        return self._widths[shape]


_cached_digest = functools.cache(code_digest)


def fingerprint(system: str, observables: Sequence[str] = ()) -> dict[str, str]:
    """Return everything besides a task that decides its numbers."""
    user_functions = [function_at(name, "observables") for name in observables if is_place(name)]
    return provenance.fingerprint(_cached_digest(sweepable(system).code, compute_chunk, *user_functions))


def compute(chunk: PlannedChunk) -> bytes:
    """Return a chunk's content, on a worker. Raises: the run's errors. InvalidValueError on another kind of machine."""
    task = chunk.task
    provenance.require_same(fingerprint(task.system, task.observables), task.fingerprint, "numbers")
    try:
        return compute_chunk(task, chunk.first)
    except Exception as failure:
        failure.add_note(f"in the cell with {task.params} and {task.dims}")
        raise


def compute_chunk(task: CellTask, first: int) -> bytes:
    """Return the packed arrays (R, ..., B), by observable, of the chunk whose first replicate is `first`."""
    end = first + task.width
    described = sweepable(task.system)
    dims = described.make_dims(task.dims)
    params = described.make_params(task.params)
    with jax.enable_x64(task.precision == "float64"), compiled_once(task.program):
        system = described.system(dims, task.choices)
        observe = described.observe(task.observables)
        cell = cells.Cell("sweep", system, params, task.rounds, record_every=task.record_every, observe=observe)
        batches = []
        for start in range(first, end, task.batch):  # a batch fits a core's cache
            replicates = np.arange(start, start + task.batch)
            chunk = cells.Chunk(cell, replicates, num_kept=min(task.batch, end - start))
            _, records = cells.compute_chunk(chunk, task.seed)
            batches.append(records)
    arrays = {}
    for name, quantity in described.quantities(task.observables).items():
        pieces = [batch[name] for batch in batches]  # arrays, or a closed form's inputs as trees
        joined = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=-1), *pieces)
        if isinstance(quantity, ClosedForm):
            rounds = recorded_rounds(task.rounds, task.record_every)
            values = quantity.formula(dims, params, rounds[:, None], joined)
            joined = np.broadcast_to(np.asarray(values, np.float64), (len(rounds), task.width))
        arrays[name] = joined
    return pack(arrays)
