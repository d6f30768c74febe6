"""A sweep in a folder, from its specification to its last chunk."""

import dataclasses
import os
import platform
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from moe_theory.core import provenance
from moe_theory.core.errors import ExecutorLostError, InvalidRunError, OutputError
from moe_theory.core.system import recorded_rounds
from moe_theory.sweep import dispatch, memory, tasks
from moe_theory.sweep.clusters import dask_crew
from moe_theory.sweep.dispatch import Tally
from moe_theory.sweep.executors import Crew, DeviceCrew, ExecutorCrew
from moe_theory.sweep.progress import Progress, quiet
from moe_theory.sweep.spec import Sweep
from moe_theory.sweep.store import Store
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
    crew: Crew | None = None,
    progress: Progress = quiet,
    arguments: Sequence[str] = (),
    is_stopped: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Compute what is missing of a sweep in a folder; everything that is there and whole stays as it is.

    Args:
        crew: where to compute; this machine's devices unless given.
        arguments: of the command that asked for it, for the manifest.
        is_stopped: whether somebody has asked for the end, which then comes as a KeyboardInterrupt.
    Raises: OutputError, InvalidRunError, ExecutorLostError; whatever was finished before is kept.
    """
    crew = DeviceCrew() if crew is None else crew
    store = Store(prepared(folder))
    try:
        progress.running(f"a first task on {crew.about}")
        plan = Plan(sweep, fingerprint_of(crew, sweep.system))
        require_memory(plan, crew.num_here)
        record = _record(crew, plan.fingerprint, arguments)
        with store.recorded(sweep.to_json(), plan.fingerprint, record):
            store.sweep_up()
            tally, missing = dispatch.survey(plan, store)
            try:
                dispatch.carry_out(plan, store, crew, tally, missing, progress, is_stopped)
            finally:
                counts = {"computed": tally.computed, "chunks": tally.done, "of": tally.num_chunks}
                record |= {"finished": provenance.now(), **counts}
        return Outcome(plan, store, tally)
    finally:
        crew.close()
        store.close()


def crew_of(executor: Executor | None = None, dask: str | None = None, devices: int | None = None) -> Crew:
    """The workers asked for: an executor's, a Dask cluster's, or so many devices of this machine.

    Raises: InvalidRunError for more than one of them, or what there cannot be.
    """
    asked = {"executor": executor, "dask": dask, "devices": devices}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise InvalidRunError(f"{' and '.join(given)} exclude one another: say one of them.")
    if executor is not None:
        return ExecutorCrew(executor)
    return DeviceCrew(devices) if dask is None else dask_crew(dask)


def prepared(folder: str | os.PathLike[str]) -> Path:
    """The folder, made if need be. Raises: OutputError where it cannot be."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as failure:
        raise OutputError(
            f"{path} cannot be made ({getattr(failure, 'strerror', None) or failure}): name another folder."
        ) from None
    return path


def fingerprint_of(crew: Crew, system: str) -> dict[str, str]:
    """What decides numbers where the crew computes them: asked of one of its workers.

    Raises: ExecutorLostError where no worker answers.
    """
    for _ in range(dispatch.MOST_LOSSES):
        try:
            return crew.open().submit(tasks.fingerprint, system).result()
        except Exception as failure:
            if not crew.is_loss(failure):
                raise
    raise ExecutorLostError(f"no worker of {crew.about} answers: look at the workers' logs, then run again.")


def require_memory(plan: Plan, num_workers: int) -> None:
    """Refuse chunks that would not fit in memory, before anything is computed, and say which would.

    Raises: InvalidRunError with the widest chunk that fits.
    """
    available, seen = memory.machine_memory(), set()
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


def chunk_need(task: tasks.Task) -> memory.Need:
    """Bytes of memory that computing chunks like this one takes."""
    state, records = tasks.chunk_shapes(task)
    return memory.need_of(state, records, len(recorded_rounds(task["rounds"], task["record_every"])), task["batch"])


def _record(crew: Crew, fingerprint: Mapping[str, str], arguments: Sequence[str]) -> dict[str, Any]:
    """What the manifest says of a run."""
    return {
        "started": provenance.now(),
        "finished": None,
        "argv": list(arguments),
        "executor": crew.about,
        "device": f"{fingerprint['backend']}: {fingerprint['processor']}",
        "machine": f"{platform.node()}, {platform.machine()}, {os.cpu_count()} cores",
        "versions": provenance.versions(),
    }
