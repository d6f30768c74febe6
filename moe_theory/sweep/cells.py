"""Run cells chunk by chunk, on a thread for every core; the same numbers whatever the order."""

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import jax
from jaxtyping import PyTree

from moe_theory.core.engine import width_for
from moe_theory.core.errors import InvalidRunError
from moe_theory.core.system import check_run, check_system
from moe_theory.sweep import chunks
from moe_theory.sweep.chunks import Cell, Run
from moe_theory.sweep.memory import machine_memory
from moe_theory.sweep.progress import Progress, quiet

Job = tuple[str, int]  # a cell's name and a chunk's number
Outcome = tuple[PyTree, PyTree]  # final states and records of a chunk

_COMPILED: set[Hashable] = set()  # programs that this process has run: what tells compiling from running


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
    """Run `num_replicates` replicates, `first` and those after it, of every cell; the runs by the cells' names.

    Replicate i draws the same numbers in every cell, so cells are compared by common random numbers. Everything is
    checked before anything runs.

    Args:
        width: replicates of a chunk; what suits the size of each cell's state unless given.
        what: what the progress calls it; the cells' names unless given.
        is_announced: whether the caller has told the progress of this work already, say with more to come.
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
        raise InvalidRunError(f"cells must have names of their own, not {[cell.name for cell in cells]}.")
    if not is_announced:
        progress.add_work(replicate_rounds(cells, num_replicates))
    what = what or ", ".join(by_name)

    def part(job: Job) -> chunks.Chunk:
        name, index = job
        return chunks.chunk(by_name[name], index, num_replicates, widths[name], first)

    def compute(job: Job) -> Outcome:
        return chunks.compute(part(job), seed)

    def is_done(job: Job, outcome: Outcome) -> None:
        done[job] = outcome
        progress.advance(part(job).replicate_rounds)

    done: dict[Job, Outcome] = {}
    # One chunk of each program first, alone: threads would compile the same program twice.
    for name, program in _programs(cells, widths):
        if program in _COMPILED:
            progress.running(what)
        else:
            progress.compiling(what)
        _COMPILED.add(program)
        is_done((name, 0), compute((name, 0)))
    counts = {name: -(-num_replicates // widths[name]) for name in by_name}
    _check_memory(done.values(), sum(counts.values()), num_replicates)
    waiting = [job for name in by_name for index in range(counts[name]) if (job := (name, index)) not in done]
    if waiting:
        progress.running(what)
        _run_parallel(waiting, compute, is_done, num_threads or os.cpu_count() or 1)
    return {
        name: chunks.join(cell, [done[name, index] for index in range(counts[name])], first)
        for name, cell in by_name.items()
    }


def replicate_rounds(cells: Sequence[Cell], num_replicates: int) -> int:
    """The work in so many replicates of each cell."""
    return num_replicates * sum(cell.num_rounds for cell in cells)


def _programs(cells: Sequence[Cell], widths: Mapping[str, int]) -> list[tuple[str, Hashable]]:
    """For each program, a cell that it runs, and what tells it from others."""
    programs: dict[Hashable, str] = {}
    for cell in cells:
        program = (cell.system, cell.num_rounds, cell.record_every, cell.observe, cell.start is None, widths[cell.name])
        programs.setdefault(program, cell.name)
    return [(name, program) for program, name in programs.items()]


def _check_memory(outcomes: Iterable[Outcome], num_chunks: int, num_replicates: int) -> None:
    """Refuse what will not fit, judged by the chunks there are, while little has been spent."""
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
    waiting: list[Job], compute: Callable[[Job], Outcome], is_done: Callable[[Job, Outcome], None], num_threads: int
) -> None:
    with ThreadPoolExecutor(num_threads) as pool:
        running: dict[Future, Job] = {pool.submit(compute, job): job for job in waiting}
        try:
            while running:
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    is_done(running.pop(future), future.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
