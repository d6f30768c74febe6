"""Runs of a system's cells, in chunks of replicates on workers.

A chunk is a fixed number of replicates of one cell, in any order. Chunks of another width have the same draws, and may
round differently.
"""

import contextlib
import dataclasses
import functools
import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int

from moe_theory.core import engine, programs
from moe_theory.core.engine import BLOCK_WIDTH, width_for
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.machine import machine_memory
from moe_theory.core.random import replicate_keys, root_key
from moe_theory.core.system import (
    Observe,
    Params,
    State,
    System,
    check_replicates,
    check_run,
    check_system,
    observe_info,
    recorded_rounds,
)
from moe_theory.runs.progress import Progress, quiet
from moe_theory.runs.provenance import is_x64
from moe_theory.runs.runner import Result, Runner, Task, programs_first

Start = Callable[[Any, np.ndarray, Params], State]  # (root key, replicates, params) -> initial states (..., B)
Place = tuple[str, int]  # a cell's name and a chunk's number
Outcome = tuple[Any, Any]  # final states and records of a chunk
Call = Callable[[], tuple[Outcome, float]]  # also returns its seconds


@dataclasses.dataclass(frozen=True)
class Cell:
    """A setting of a system's parameters, and its records."""

    name: str
    system: System
    params: Params
    num_rounds: int
    record_every: int = 1
    observe: Observe = observe_info
    start: Start | None = None  # initial states other than the system's own, say on shared pools
    keep: tuple[int, ...] | None = None  # which of the recorded rounds, by position, stay in memory; None: all
    keeps_state: bool = True  # whether final states stay in memory; otherwise they are None
    is_double: bool = False  # whether it runs in float64 whatever the precision of JAX
    dims: Any = None  # static shapes of the system, which nothing of the run itself depends on

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which JAX has this cell's precision."""
        return jax.enable_x64(True) if self.is_double else contextlib.nullcontext()

    @property
    def rounds(self) -> Int[np.ndarray, " R"]:
        """Recorded rounds. Raises: InvalidValueError for impossible rounds or recording."""
        rounds = recorded_rounds(self.num_rounds, self.record_every)
        if self.keep is None:
            return rounds
        return rounds[list(self.keep)]


class Run(NamedTuple):
    """A cell's replicates on the host, with the replicate axis B at the end of leaves."""

    params: Params
    rounds: Int[np.ndarray, " R"]  # the recorded rounds, 1-based
    replicates: Int[np.ndarray, " B"]
    state: Any  # final states (..., B); None for a cell that does not keep them
    records: Any  # what `observe` kept (R, ..., B)
    dims: Any = None  # static shapes, where the cell names them


class Chunk(NamedTuple):
    cell: Cell
    replicates: Int[np.ndarray, " width"]  # padded to the chunk's width
    num_kept: int  # replicates that count; the rest is padding

    @property
    def replicate_rounds(self) -> int:
        return self.num_kept * self.cell.num_rounds


def run_cells(
    cells: Sequence[Cell],
    num_replicates: int,
    *,
    first: int = 0,
    seed: int = 0,
    width: int | None = None,
    progress: Progress = quiet,
    what: str | None = None,
) -> Mapping[str, Run]:
    """Run replicates of every cell, from number `first` on, and return the runs by cell.

    Replicate i draws the same numbers in every cell, and all arguments are checked before anything runs.

    Args:
        width: replicates of a chunk, by default suited to each cell's state.
        what: name in the progress, by default the cells' names.
    Raises: InvalidValueError or DeclarationError for impossible cells.

    Examples:
        >>> from moe_theory import continual, sweep
        >>> dims = continual.Dims(max_experts=3, num_tasks=4, num_features=6, num_samples=2)
        >>> system, params = continual.system(dims), continual.Params(num_experts=3)
        >>> cells = [sweep.Cell(f"eta = {rate}", system, params._replace(learning_rate=rate), 4) for rate in (0.1, 0.5)]
        >>> runs = sweep.run_cells(cells, num_replicates=64)
        >>> run = runs["eta = 0.5"]
        >>> run.records.forgetting.shape, sweep.replicate_rounds(cells, 64)  # 2 cells of 4 rounds
        ((4, 64), 512)
    """
    batch = CellBatch(cells, num_replicates, first=first, seed=seed, width=width)
    with Runner(progress=progress) as runner:
        runner.add(
            batch,
            batch.tasks(),
            replicate_rounds(cells, num_replicates),
            what or ", ".join(cell.name for cell in cells),
        )
        while runner.is_busy:
            for result in runner.wait():
                batch.take(result)
    return batch.runs()


class CellBatch:
    """The chunks of some cells, and their results, with arguments and errors of `run_cells`."""

    def __init__(
        self,
        cells: Sequence[Cell],
        num_replicates: int,
        *,
        first: int = 0,
        seed: int = 0,
        width: int | None = None,
        call_of: Callable[[Chunk], Call] | None = None,
    ) -> None:
        """Make the chunks in this process, unless `call_of` says how other processes make one."""
        if num_replicates < 1:
            raise InvalidValueError(
                f"replicates={num_replicates} must be at least 1. Raise replicates.", argument="replicates"
            )
        check_replicates([first, first + num_replicates - 1])
        self._cells = {cell.name: cell for cell in cells}
        if len(self._cells) < len(cells):
            raise InvalidValueError(
                f"cells must have different names, not {[cell.name for cell in cells]}.", argument="cells"
            )
        self._num_replicates = num_replicates
        self._first = first
        self._call_of = call_of or (lambda chunk: functools.partial(timed_chunk, chunk, seed))
        self._widths = {cell.name: width_of(cell, num_replicates, width) for cell in cells}
        self._counts = {name: math.ceil(num_replicates / width) for name, width in self._widths.items()}
        self._unmeasured: Counter[Hashable] = Counter()  # chunks by program
        for name, count in self._counts.items():
            self._unmeasured[self._program_of(name)] += count
        self._outcomes: dict[Place, Outcome] = {}
        self.seconds = 0.0  # that workers have spent
        self.num_bytes = 0  # that the runs need, as far as is known

    @property
    def is_finished(self) -> bool:
        return len(self._outcomes) == sum(self._counts.values())

    def tasks(self) -> Iterator[Task]:
        names = programs_first(self._cells, self._program_of)
        for index in range(max(self._counts.values())):
            for name in names:
                if index < self._counts[name]:
                    yield self._task(name, index)

    def take(self, result: Result) -> None:
        """Store a chunk. Raises: its error, or InvalidValueError for runs that do not fit in memory."""
        outcome, seconds = result.future.result()
        self._outcomes[result.task.place] = outcome
        self.seconds += seconds
        num_chunks = self._unmeasured.pop(self._program_of(result.task.place[0]), 0)
        if num_chunks:
            self._require_memory(outcome, num_chunks)

    def _require_memory(self, outcome: Outcome, num_chunks: int) -> None:
        """Raise an error for runs that will not fit in memory, by a program's first chunk."""
        # Joining chunks holds them twice for a while.
        self.num_bytes += 2 * num_chunks * sum(leaf.nbytes for leaf in jax.tree.leaves(outcome))
        available = machine_memory()
        if self.num_bytes > available:
            fitting = int(self._num_replicates * available / self.num_bytes)
            raise InvalidValueError(
                f"replicates={self._num_replicates} would need {self.num_bytes / 1e9:.0f} GB of this machine's "
                f"{available / 1e9:.0f} GB. Lower replicates to {fitting} or record less often.",
                argument="replicates",
            )

    def runs(self) -> Mapping[str, Run]:
        replicates = np.arange(self._first, self._first + self._num_replicates)
        runs = {}
        for name, cell in self._cells.items():
            parts = [self._outcomes[name, index] for index in range(self._counts[name])]
            # By leaves, as records from other processes have classes of their own.
            leaves = zip(*map(jax.tree.leaves, parts), strict=True)
            joined = [np.concatenate(pieces, axis=-1) for pieces in leaves]
            state, records = jax.tree.unflatten(jax.tree.structure(parts[0]), joined)
            runs[name] = Run(cell.params, cell.rounds, replicates, state, records, dims=cell.dims)
        return runs

    def _program_of(self, name: str) -> Hashable:
        return program_of(self._cells[name], self._widths[name])

    def _task(self, name: str, index: int) -> Task:
        chunk = chunk_of(self._cells[name], index, self._num_replicates, self._widths[name], self._first)
        return Task(self._call_of(chunk), chunk.replicate_rounds, (name, index))


def timed_chunk(chunk: Chunk, seed: int) -> tuple[Outcome, float]:
    """Return what `compute_chunk` does, and its seconds, where one thread alone compiles a program."""
    start_time = time.monotonic()
    with programs.compiled_once(program_of(chunk.cell, len(chunk.replicates))):
        outcome = compute_chunk(chunk, seed)
    return outcome, time.monotonic() - start_time


def program_of(cell: Cell, width: int) -> Hashable:
    """Return what decides the program that runs chunks of a cell."""
    run = (cell.system.step, cell.num_rounds, cell.record_every, cell.observe, cell.start is None)
    return (*run, width, cell.is_double or is_x64())


def replicate_rounds(cells: Sequence[Cell], num_replicates: int) -> int:
    """Return the replicates times the rounds of all cells."""
    return num_replicates * sum(cell.num_rounds for cell in cells)


def width_of(cell: Cell, num_replicates: int, width: int | None = None) -> int:
    """Return a chunk's replicates: `width`, or what suits the state. Raises: as `run_cells`."""
    check_run(cell.num_rounds, cell.record_every)
    with cell.precision():
        state = check_system(cell.system, cell.params, cell.num_rounds)
    # No wider than there are replicates, but a core's block at least, so that few share the program of many.
    least = max(BLOCK_WIDTH, 1 << (num_replicates - 1).bit_length())
    return width or min(width_for(state, jax.default_backend()), least)


def chunk_of(cell: Cell, index: int, num_replicates: int, width: int = BLOCK_WIDTH, first: int = 0) -> Chunk:
    """Return chunk `index` of `num_replicates` replicates from `first` on, the last one padded."""
    start = index * width
    return Chunk(cell, np.arange(first + start, first + start + width), min(width, num_replicates - start))


def compute_chunk(chunk: Chunk, seed: int) -> Outcome:
    """Return a chunk's final states and records, on the host, without padding."""
    with chunk.cell.precision():
        cell = chunk.cell
        root = root_key(seed)
        state = cell.start and cell.start(root, chunk.replicates, cell.params)
        keys = replicate_keys(root, jnp.asarray(chunk.replicates, jnp.uint32))
        # Not `simulate_batch`: the cell has been checked once, and a check costs as much as a short chunk.
        state, records = engine.run(
            cell.system, keys, state, cell.params, cell.num_rounds, cell.record_every, cell.observe, None, True
        )
        places = slice(None) if cell.keep is None else list(cell.keep)
        if not cell.keeps_state:
            state = None
        return (
            jax.tree.map(lambda leaf: np.asarray(leaf)[..., : chunk.num_kept], state),
            jax.tree.map(lambda leaf: np.asarray(leaf)[places][..., : chunk.num_kept], records),
        )
