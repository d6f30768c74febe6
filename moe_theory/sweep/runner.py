"""A sweep in a folder, from its specification to its last chunk."""

import dataclasses
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

from moe_theory.core.errors import ExecutorLostError, InvalidRunError
from moe_theory.core.system import recorded_rounds
from moe_theory.runs import machine, provenance
from moe_theory.runs.files import made_folder
from moe_theory.runs.progress import Progress, quiet
from moe_theory.runs.store import Store
from moe_theory.runs.workers import DevicePool, ExecutorPool, WorkerPool
from moe_theory.sweep import dispatch, tasks
from moe_theory.sweep.clusters import dask_pool
from moe_theory.sweep.dispatch import Tally
from moe_theory.sweep.spec import Sweep
from moe_theory.sweep.tasks import Plan


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run of a sweep did."""

    plan: Plan
    store: Store
    tally: Tally


def run(
    sweep: Sweep,
    folder: str | os.PathLike[str],
    *,
    pool: WorkerPool | None = None,
    progress: Progress = quiet,
    arguments: Sequence[str] = (),
    is_stopped: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Compute what is missing of a sweep in a folder; everything that is there and whole stays as it is.

    Args:
        pool: where to compute; this machine's devices unless given.
        arguments: of the command that asked for it, for the manifest.
        is_stopped: whether somebody has asked for the end, which then comes as a KeyboardInterrupt.
    Raises: OutputError, InvalidRunError, ExecutorLostError; whatever was finished before is kept.
    """
    pool = DevicePool() if pool is None else pool
    store = Store(made_folder(folder))
    try:
        progress.running(f"a first task on {pool.description}")
        plan = Plan(sweep, fingerprint_of(pool, sweep.system))
        require_memory(plan, pool.num_local)
        record = _record(pool, plan.fingerprint, arguments)
        with store.recorded(sweep.to_json(), plan.fingerprint, record):
            store.remove_leftovers()
            tally, missing = dispatch.survey(plan, store)
            try:
                dispatch.carry_out(plan, store, pool, tally, missing, progress, is_stopped)
            finally:
                counts = {"computed": tally.computed, "chunks": tally.done, "of": tally.num_chunks}
                record |= {"finished": provenance.now(), **counts}
        return Outcome(plan, store, tally)
    finally:
        pool.close()
        store.close()


def pool_of(executor: Executor | None = None, dask: str | None = None, devices: int | None = None) -> WorkerPool:
    """The workers asked for: an executor's, a Dask cluster's, or so many devices of this machine.

    Raises: InvalidRunError for more than one of them, or what there cannot be.
    """
    asked = {"executor": executor, "dask": dask, "devices": devices}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise InvalidRunError(f"{' and '.join(given)} exclude one another: say one of them.")
    if executor is not None:
        return ExecutorPool(executor)
    return DevicePool(devices) if dask is None else dask_pool(dask)


def fingerprint_of(pool: WorkerPool, system: str) -> dict[str, str]:
    """What decides numbers where the pool computes them: asked of one of its workers.

    Raises: ExecutorLostError where no worker answers.
    """
    for _ in range(dispatch.MOST_LOSSES):
        try:
            return pool.open().submit(tasks.fingerprint, system).result()
        except Exception as failure:
            if not pool.is_loss(failure):
                raise
    raise ExecutorLostError(f"no worker of {pool.description} answers: look at the workers' logs, then run again.")


def require_memory(plan: Plan, num_workers: int) -> None:
    """Refuse chunks that would not fit in memory, before anything is computed, and say which would.

    Raises: InvalidRunError with the widest chunk that fits.
    """
    available, seen = machine.machine_memory(), set()
    for index in range(len(plan.sweep.grid)):
        task = plan.task_of(index)
        program = tasks.program_of(task)
        if program in seen:
            continue
        seen.add(program)
        need, share = chunk_need(task), available / num_workers
        if need.of(task["width"]) > share:
            fitting = need.widest(share)
            way_out = (
                f"Set chunk_width to {fitting} or less"
                if fitting
                else "Record less often, or let fewer workers compute at once"
            )
            raise InvalidRunError(
                f"a chunk of {task['width']} replicates takes {need.of(task['width']) / 1e9:.1f} GB, and {num_workers} "
                f"are computed at once, in {available / 1e9:.1f} GB of memory. {way_out}."
            )


def chunk_need(task: tasks.Task) -> machine.ChunkMemory:
    """Bytes of memory that computing chunks like this one takes."""
    state, records = tasks.chunk_shapes(task)
    num_records = len(recorded_rounds(task["rounds"], task["record_every"]))
    return machine.chunk_memory(state, records, num_records, task["batch"])


def _record(pool: WorkerPool, fingerprint: Mapping[str, str], arguments: Sequence[str]) -> dict[str, Any]:
    """What the manifest says of a run."""
    return {
        "started": provenance.now(),
        "finished": None,
        "argv": list(arguments),
        "executor": pool.description,
        "device": f"{fingerprint['backend']}: {fingerprint['processor']}",
        "machine": f"{platform.node()}, {platform.machine()}, {machine.available_cores()} cores",
        "versions": provenance.versions(),
    }
