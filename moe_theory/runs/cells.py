"""Run cells of a system: chunks of replicates on a thread for every core, the same numbers whatever the order.

The unit of work is a chunk, a fixed number of replicates of one cell. Chunks of another width have the same draws, and
may round differently.
"""

import dataclasses
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Int, PyTree

from moe_theory.core import engine
from moe_theory.core.engine import BLOCK_WIDTH, width_for
from moe_theory.core.errors import InvalidRunError
from moe_theory.core.random import replicate_keys, root_key
from moe_theory.core.system import (
    Observe,
    Params,
    State,
    System,
    check_run,
    check_system,
    observe_info,
    recorded_rounds,
)
from moe_theory.runs.machine import available_cores, machine_memory
from moe_theory.runs.progress import Progress, quiet

Start = Callable[[Any, np.ndarray, Params], State]  # (root key, replicates, params) -> initial states (..., B)
Job = tuple[str, int]  # a cell's name and a chunk's number
Outcome = tuple[PyTree, PyTree]  # final states and records of a chunk

_COMPILED: set[Hashable] = set()  # programs that this process has run: what tells compiling from running


@dataclasses.dataclass(frozen=True)
class Cell:
    """One setting of a system's parameters, and what to record of it."""

    name: str
    system: System
    params: Params
    num_rounds: int
    record_every: int = 1
    observe: Observe = observe_info
    start: Start | None = None  # initial states other than the system's own, say on shared pools
    keep: tuple[int, ...] | None = None  # which of the recorded rounds, by position, stay in memory; None: all
    keeps_state: bool = True  # whether final states stay in memory; otherwise they are None

    @property
    def rounds(self) -> Int[np.ndarray, " R"]:
        """The recorded rounds that are kept. Raises: InvalidRunError for rounds or a recording that cannot be run."""
        rounds = recorded_rounds(self.num_rounds, self.record_every)
        return rounds if self.keep is None else rounds[list(self.keep)]


class Run(NamedTuple):
    """A cell's replicates, on the host; every leaf of state and records ends in the replicate axis B."""

    params: Params
    rounds: Int[np.ndarray, " R"]  # the recorded rounds, 1-based
    replicates: Int[np.ndarray, " B"]
    state: PyTree  # final states (..., B); None for a cell that does not keep them
    records: PyTree  # what `observe` kept (R, ..., B)


class Chunk(NamedTuple):
    """Replicates of one cell that run together."""

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
    num_threads: int | None = None,
    progress: Progress = quiet,
    what: str | None = None,
    is_announced: bool = False,
) -> Mapping[str, Run]:
    """Run `num_replicates` replicates, from number `first` on, of every cell; the runs by the cells' names.

    Replicate i draws the same numbers in every cell, so cells are compared by common random numbers. Everything is
    checked before anything runs.

    Args:
        width: replicates of a chunk; suits the size of each cell's state unless given.
        num_threads: chunks computed at once; one a core unless given.
        what: what the progress calls it; the cells' names unless given.
        is_announced: whether the caller has added this work to the progress already.
    Raises: InvalidRunError, InvalidDimsError or InvalidParamsError for what cannot be run.

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
    if num_replicates < 1:
        raise InvalidRunError(f"replicates={num_replicates} must be at least 1. Raise replicates.")
    widths = {}
    for cell in cells:
        check_run(cell.num_rounds, cell.record_every)
        state = check_system(cell.system, cell.params)
        widths[cell.name] = width or width_for(state)
    by_name = {cell.name: cell for cell in cells}
    if len(by_name) < len(cells):
        raise InvalidRunError(f"cells must have different names, not {[cell.name for cell in cells]}.")
    if not is_announced:
        progress.add_work(replicate_rounds(cells, num_replicates))
    what = what or ", ".join(by_name)
    done: dict[Job, Outcome] = {}

    def compute(job: Job) -> Outcome:
        name, index = job
        return compute_chunk(chunk_of(by_name[name], index, num_replicates, widths[name], first), seed)

    def keep(job: Job, outcome: Outcome) -> None:
        name, index = job
        done[job] = outcome
        progress.advance(chunk_of(by_name[name], index, num_replicates, widths[name], first).replicate_rounds)

    # One chunk of each program first, alone: threads would compile the same program twice.
    first_of: dict[Hashable, str] = {}
    for cell in cells:
        program = (cell.system, cell.num_rounds, cell.record_every, cell.observe, cell.start is None, widths[cell.name])
        first_of.setdefault(program, cell.name)
    for program, name in first_of.items():
        if program in _COMPILED:
            progress.running(what)
        else:
            progress.compiling(what)
        _COMPILED.add(program)
        keep((name, 0), compute((name, 0)))
    counts = {name: -(-num_replicates // widths[name]) for name in by_name}
    _check_memory(done.values(), sum(counts.values()), num_replicates)
    waiting = [job for name in by_name for index in range(counts[name]) if (job := (name, index)) not in done]
    if waiting:
        progress.running(what)
        _run_parallel(waiting, compute, keep, num_threads or available_cores())
    return {
        name: _joined(cell, [done[name, index] for index in range(counts[name])], first)
        for name, cell in by_name.items()
    }


def replicate_rounds(cells: Sequence[Cell], num_replicates: int) -> int:
    """The work in so many replicates of each cell."""
    return num_replicates * sum(cell.num_rounds for cell in cells)


def chunk_of(cell: Cell, index: int, num_replicates: int, width: int = BLOCK_WIDTH, first: int = 0) -> Chunk:
    """Chunk `index` of `num_replicates` replicates from `first` on; the last is padded with further ones."""
    start = index * width
    return Chunk(cell, np.arange(first + start, first + start + width), min(width, num_replicates - start))


def compute_chunk(chunk: Chunk, seed: int) -> Outcome:
    """Final states and records of a chunk, on the host, without its padding."""
    cell, root = chunk.cell, root_key(seed)
    state = None if cell.start is None else cell.start(root, chunk.replicates, cell.params)
    keys = replicate_keys(root, jnp.asarray(chunk.replicates, jnp.uint32))
    # Not `simulate_batch`: the cell has been checked once, and a check costs as much as a short chunk.
    state, records = engine.run(
        cell.system, keys, state, cell.params, cell.num_rounds, cell.record_every, cell.observe, None, True
    )
    kept = slice(None) if cell.keep is None else list(cell.keep)
    state = state if cell.keeps_state else None
    return (
        jax.tree.map(lambda leaf: np.asarray(leaf)[..., : chunk.num_kept], state),
        jax.tree.map(lambda leaf: np.asarray(leaf)[kept][..., : chunk.num_kept], records),
    )


def _joined(cell: Cell, parts: list[Outcome], first: int) -> Run:
    state, records = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=-1), *parts)
    num_replicates = jnp.shape(jax.tree.leaves(records)[0])[-1]
    return Run(cell.params, cell.rounds, np.arange(first, first + num_replicates), state, records)


def _check_memory(outcomes: Iterable[Outcome], num_chunks: int, num_replicates: int) -> None:
    """Refuse what will not fit, judged by the first chunks, before much has been spent."""
    sizes = [sum(leaf.nbytes for leaf in jax.tree.leaves(outcome)) for outcome in outcomes]
    # Joining chunks holds them twice for a while.
    needed, available = 2 * max(sizes) * num_chunks, machine_memory()
    if needed > available:
        fitting = int(num_replicates * available / needed)
        raise InvalidRunError(
            f"replicates={num_replicates} would need {needed / 1e9:.0f} GB of this machine's {available / 1e9:.0f} GB. "
            f"Lower replicates to {fitting} or record less often."
        )


def _run_parallel(
    waiting: list[Job], compute: Callable[[Job], Outcome], keep: Callable[[Job, Outcome], None], num_threads: int
) -> None:
    with ThreadPoolExecutor(num_threads) as pool:
        running: dict[Future, Job] = {pool.submit(compute, job): job for job in waiting}
        try:
            while running:
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    keep(running.pop(future), future.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
