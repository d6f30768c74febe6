"""Run cells chunk by chunk, on a thread for every core; the same numbers whatever the order."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from moe_theory.core.errors import InvalidRunError
from moe_theory.core.system import check_run, check_system
from moe_theory.sweep import chunks
from moe_theory.sweep.chunks import CHUNK_WIDTH, Cell, Chunk, Run
from moe_theory.sweep.progress import Progress, quiet


def run_cells(
    cells: Sequence[Cell],
    num_replicates: int,
    *,
    seed: int = 0,
    width: int = CHUNK_WIDTH,
    num_threads: int | None = None,
    progress: Progress = quiet,
    what: str | None = None,
    is_announced: bool = False,
) -> Mapping[str, Run]:
    """Run replicates 0, ..., num_replicates - 1 of every cell; the runs by the cells' names.

    Replicate i draws the same numbers in every cell, so cells are compared by common random numbers. Everything is
    checked before anything runs.

    Args:
        what: what the progress calls it; the cells' names unless given.
        is_announced: whether the caller has told the progress of this work already, say with more to come.
    Raises: InvalidRunError, InvalidDimsError or InvalidParamsError for what cannot be run.
    """
    if num_replicates < 1:
        raise InvalidRunError(f"replicates={num_replicates} must be at least 1. Raise replicates.")
    for cell in cells:
        check_run(cell.num_rounds, cell.record_every)
        check_system(cell.system, cell.params)
    work = {cell.name: chunks.split(cell, num_replicates, width) for cell in cells}
    if len(work) < len(cells):
        raise InvalidRunError(f"cells must have names of their own, not {[cell.name for cell in cells]}.")
    if not is_announced:
        progress.add_work(replicate_rounds(cells, num_replicates))
    what = what or ", ".join(cell.name for cell in cells)

    done: dict[tuple[str, int], tuple] = {}
    waiting = [(cell.name, index) for cell in cells for index in range(len(work[cell.name]))]

    # One chunk of each program first, alone: threads would compile the same program twice.
    for name, index in _first_of_each_program(cells):
        progress.compiling(what)
        done[name, index] = chunks.compute(work[name][index], seed)
        progress.advance(work[name][index].replicate_rounds)
    waiting = [job for job in waiting if job not in done]
    if waiting:
        progress.running(what)
        _run_parallel(waiting, work, done, seed, num_threads or os.cpu_count() or 1, progress)
    return {
        cell.name: chunks.join(cell, [done[cell.name, index] for index in range(len(work[cell.name]))])
        for cell in cells
    }


def replicate_rounds(cells: Sequence[Cell], num_replicates: int) -> int:
    """The work in so many replicates of each cell."""
    return num_replicates * sum(cell.num_rounds for cell in cells)


def _first_of_each_program(cells: Sequence[Cell]) -> list[tuple[str, int]]:
    programs = {}
    for cell in cells:
        program = (cell.system, cell.num_rounds, cell.record_every, cell.observe, cell.start is None)
        programs.setdefault(program, (cell.name, 0))
    return list(programs.values())


def _run_parallel(
    waiting: list[tuple[str, int]],
    work: Mapping[str, list[Chunk]],
    done: dict[tuple[str, int], tuple],
    seed: int,
    num_threads: int,
    progress: Progress,
) -> None:
    with ThreadPoolExecutor(num_threads) as pool:
        running: dict[Future, tuple[str, int]] = {
            pool.submit(chunks.compute, work[name][index], seed): (name, index) for name, index in waiting
        }
        try:
            while running:
                finished, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in finished:
                    name, index = running.pop(future)
                    done[name, index] = future.result()
                    progress.advance(work[name][index].replicate_rounds)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
