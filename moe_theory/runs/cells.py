"""Runs of a system's cells, on workers and in chunks of replicates.

A chunk is a fixed number of replicates of one cell. Workers compute chunks in any order. Chunks of another width draw
the same numbers, but may round differently.
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
from moe_theory.core import system as systems
from moe_theory.core.engine import BLOCK_WIDTH, width_for
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.machine import machine_memory
from moe_theory.core.random import replicate_keys, root_key
from moe_theory.core.system import Observe, Params, State, System, observe_info
from moe_theory.runs.progress import Progress, quiet
from moe_theory.runs.provenance import is_x64
from moe_theory.runs.runner import Result, Runner, Task, programs_first

Start = Callable[[Any, np.ndarray, Params], State]  # (root key, replicates, params) -> initial states (..., B)
Place = tuple[str, int]  # a cell's name and a chunk's number
Outcome = tuple[Any, Any]  # final states and records of a chunk
Call = Callable[[], tuple[Outcome, float]]  # the outcome and the seconds it took


@dataclasses.dataclass(frozen=True)
class Cell:
    """A setting of a system's parameters, and its records."""

    name: str
    system: System
    params: Params
    num_rounds: int
    record_every: int = 1
    observe: Observe = observe_info
    start: Start | None = None  # replaces the system's initial states
    keep: tuple[int, ...] | None = None  # positions of the recorded rounds that stay in memory, by default all
    keeps_state: bool = True  # whether final states stay in memory. If not, they are None
    is_double: bool = False  # whether the cell runs in float64 whatever JAX's precision
    dims: Any = None  # the system's static sizes, which the run ignores

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which JAX has this cell's precision."""
        return jax.enable_x64(True) if self.is_double else contextlib.nullcontext()

    @property
    def rounds(self) -> Int[np.ndarray, " R"]:
        """Recorded rounds. Raises: InvalidValueError for impossible `num_rounds` or `record_every`."""
        rounds = systems.recorded_rounds(self.num_rounds, self.record_every)
        if self.keep is None:
            return rounds
        return rounds[list(self.keep)]


class Run(NamedTuple):
    """A cell's replicates on the host. The replicate axis B is the last axis of all leaves."""

    params: Params
    rounds: Int[np.ndarray, " R"]  # the recorded rounds, counted from 1
    replicates: Int[np.ndarray, " B"]
    state: Any  # final states (..., B), or None if the cell drops them
    records: Any  # records of `observe` (R, ..., B)
    dims: Any = None  # static sizes, if the cell has them


class Chunk(NamedTuple):
    cell: Cell
    replicates: Int[np.ndarray, " width"]  # padded to the chunk's width
    num_kept: int  # replicates that count. Others are padding

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
    """Run replicates of every cell, starting from number `first`, and return the runs by cell.

    Replicate i draws the same numbers in every cell. All arguments are checked before anything runs.

    Args:
        width: replicates per chunk. The default suits each cell's state.
        what: name in the progress display. The default lists the cells' names.
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
        work = replicate_rounds(cells, num_replicates)
        runner.add(batch, batch.tasks(), work=work, title=what or ", ".join(cell.name for cell in cells))
        while runner.is_busy:
            for result in runner.wait():
                batch.take(result)
    return batch.runs()


class CellBatch:
    """The chunks of some cells, and their results. Arguments and errors are as in `run_cells`."""

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
        """Prepare chunks for this process, unless `call_of` returns calls for other processes."""
        if num_replicates < 1:
            raise InvalidValueError(
                f"replicates={num_replicates} must be at least 1. Raise replicates.", argument="replicates"
            )
        systems.check_replicates([first, first + num_replicates - 1])
        self._cells = {cell.name: cell for cell in cells}
        if len(self._cells) < len(cells):
            names = [cell.name for cell in cells]
            raise InvalidValueError(f"cells must have different names, not {names}.", argument="cells")
        self._num_replicates = num_replicates
        self._first = first
        self._call_of = call_of or (lambda chunk: functools.partial(timed_chunk, chunk, seed))
        self._widths = {cell.name: width_of(cell, num_replicates, width) for cell in cells}
        self._num_chunks = {name: math.ceil(num_replicates / own_width) for name, own_width in self._widths.items()}
        # Number of chunks by program, until the program's first chunk shows how many bytes a chunk needs.
        self._unmeasured: Counter[Hashable] = Counter()
        for name, num_chunks in self._num_chunks.items():
            self._unmeasured[self._program_of(name)] += num_chunks
        self._outcomes: dict[Place, Outcome] = {}
        self.seconds = 0.0  # seconds that workers have spent
        self.num_bytes = 0  # bytes that the runs need, as far as known

    @property
    def is_finished(self) -> bool:
        return len(self._outcomes) == sum(self._num_chunks.values())

    def tasks(self) -> Iterator[Task]:
        names = programs_first(self._cells, self._program_of)
        for index in range(max(self._num_chunks.values(), default=0)):
            for name in names:
                if index < self._num_chunks[name]:
                    width = self._widths[name]
                    chunk = chunk_of(self._cells[name], index, self._num_replicates, width=width, first=self._first)
                    yield Task(self._call_of(chunk), work=chunk.replicate_rounds, place=(name, index))

    def take(self, result: Result) -> None:
        """Store a chunk. Raises: its error, or InvalidValueError if the runs do not fit in memory."""
        outcome, seconds = result.future.result()
        name, _ = result.task.place
        self._outcomes[result.task.place] = outcome
        self.seconds += seconds
        num_chunks = self._unmeasured.pop(self._program_of(name), 0)
        if num_chunks:
            self._require_memory(outcome, num_chunks)

    def _require_memory(self, outcome: Outcome, num_chunks: int) -> None:
        # While chunks are joined, they are in memory twice.
        self.num_bytes += 2 * num_chunks * sum(leaf.nbytes for leaf in jax.tree.leaves(outcome))
        available = machine_memory()
        if self.num_bytes > available:
            fitting = int(self._num_replicates * available / self.num_bytes)
            raise InvalidValueError(
                f"replicates={self._num_replicates} would need {self.num_bytes / 1e9:.0f} GB, but this machine has "
                f"{available / 1e9:.0f} GB. Lower replicates to {fitting} or record less often.",
                argument="replicates",
            )

    def runs(self) -> Mapping[str, Run]:
        replicates = np.arange(self._first, self._first + self._num_replicates)
        runs = {}
        for name, cell in self._cells.items():
            parts = [self._outcomes[name, index] for index in range(self._num_chunks[name])]
            # We join leaves, because records from other processes have other classes.
            leaves_of_parts = [jax.tree.leaves(part) for part in parts]
            joined = [np.concatenate(pieces, axis=-1) for pieces in zip(*leaves_of_parts, strict=True)]
            state, records = jax.tree.unflatten(jax.tree.structure(parts[0]), joined)
            runs[name] = Run(cell.params, cell.rounds, replicates, state=state, records=records, dims=cell.dims)
        return runs

    def _program_of(self, name: str) -> Hashable:
        return program_of(self._cells[name], self._widths[name])


def timed_chunk(chunk: Chunk, seed: int) -> tuple[Outcome, float]:
    """Return the result of `compute_chunk` and its seconds. Only one thread compiles a program."""
    start_time = time.monotonic()
    with programs.compiled_once(program_of(chunk.cell, len(chunk.replicates))):
        outcome = compute_chunk(chunk, seed)
    return outcome, time.monotonic() - start_time


def program_of(cell: Cell, width: int) -> Hashable:
    """Return the values that decide which program runs chunks of a cell."""
    is_double = cell.is_double or is_x64()
    return cell.system.step, cell.num_rounds, cell.record_every, cell.observe, cell.start is None, width, is_double


def replicate_rounds(cells: Sequence[Cell], num_replicates: int) -> int:
    """Return the number of replicates times the rounds of all cells."""
    return num_replicates * sum(cell.num_rounds for cell in cells)


def width_of(cell: Cell, num_replicates: int, width: int | None = None) -> int:
    """Return the replicates per chunk, which are `width` or suit the state. Raises: the errors of `run_cells`."""
    systems.check_run(cell.num_rounds, cell.record_every)
    with cell.precision():
        state = systems.check_system(cell.system, cell.params, cell.num_rounds)
    if width:
        return width
    # At least a block, so that small runs share a program. Otherwise the replicates rounded up to a power of two.
    most = max(BLOCK_WIDTH, 1 << (num_replicates - 1).bit_length())
    return min(width_for(state, jax.default_backend()), most)


def chunk_of(cell: Cell, index: int, num_replicates: int, width: int = BLOCK_WIDTH, first: int = 0) -> Chunk:
    """Return chunk `index` of a cell that runs `num_replicates` replicates, starting from number `first`."""
    num_before = index * width
    start = first + num_before
    return Chunk(cell, np.arange(start, start + width), num_kept=min(width, num_replicates - num_before))


def compute_chunk(chunk: Chunk, seed: int) -> Outcome:
    cell = chunk.cell
    with cell.precision():
        root = root_key(seed)
        state = None if cell.start is None else cell.start(root, chunk.replicates, cell.params)
        keys = replicate_keys(root, jnp.asarray(chunk.replicates, jnp.uint32))
        # `simulate_batch` would check the cell again, which costs as much as a short chunk.
        run = (cell.system, keys, state, cell.params, cell.num_rounds, cell.record_every, cell.observe)
        end_state, records = engine.run(*run, reduce=None, is_batch=True)
        if not cell.keeps_state:
            end_state = None  # a tree without leaves
        places = slice(None) if cell.keep is None else list(cell.keep)  # recorded rounds to keep
        return (
            jax.tree.map(lambda leaf: np.asarray(leaf)[..., : chunk.num_kept], end_state),
            jax.tree.map(lambda leaf: np.asarray(leaf)[places][..., : chunk.num_kept], records),
        )
