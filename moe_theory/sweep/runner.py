"""Run a sweep in a folder: the missing chunks are computed wherever there are workers. Running again resumes."""

import contextlib
import dataclasses
import functools
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from moe_theory.core.errors import ExecutorLostError, InvalidRunError, OutputError
from moe_theory.core.machine import available_cores
from moe_theory.runs import provenance
from moe_theory.runs.files import made_folder, remove_leftovers
from moe_theory.runs.locks import held_by
from moe_theory.runs.packs import Packs
from moe_theory.runs.progress import Progress, quiet
from moe_theory.runs.workers import DevicePool, ExecutorPool, WorkerPool
from moe_theory.sweep import plan as planning
from moe_theory.sweep.dask import dask_pool
from moe_theory.sweep.dispatcher import MOST_LOSSES, ChunkCounts, Dispatcher
from moe_theory.sweep.manifest import failed_in, kept_fingerprint, recorded, require_version
from moe_theory.sweep.plan import PlannedChunk, SweepPlan
from moe_theory.sweep.specification import Specification
from moe_theory.sweep.versions import warn_of_others

POLL = 0.5  # seconds between looks at whether another process has read them
CHECK = "check"  # the claim of whoever reads all packs
WAY_OUT = "what was written before is kept. Make room there or make it writable, then run the same command again"


@dataclasses.dataclass(frozen=True)
class Outcome:
    plan: SweepPlan
    packs: Packs
    counts: ChunkCounts


def run(
    sweep: Specification,
    folder: str | os.PathLike[str],
    *,
    pool: WorkerPool | None = None,
    progress: Progress = quiet,
    arguments: Sequence[str] = (),
    is_stopped: Callable[[], bool] = lambda: False,
    log: Path | None = None,
    keeps_going: bool = False,
    only_failed: bool = False,
) -> Outcome:
    """Compute the missing chunks of a sweep in a folder; running again resumes.

    Args:
        pool: where to compute; this machine's devices unless given.
        arguments: of the command that asked for it, for the manifest.
        is_stopped: whether to stop, with a KeyboardInterrupt. An interrupt by itself may be lost: Python drops one that
            comes in the middle of a callback.
        log, keeps_going, only_failed: as of `Sweep.run`.
    Raises: OutputError, InvalidRunError, ExecutorLostError; whatever was finished before is kept.
    """
    pool = DevicePool() if pool is None else pool
    packs = Packs(made_folder(folder), WAY_OUT)
    require_version(packs.folder)
    failed = failed_in(packs.folder)
    if only_failed and not failed:
        raise InvalidRunError(f"{packs.folder} has no errors of earlier runs: leave out --only failed.")
    try:
        progress.running(f"a first task on {pool.description}")
        plan = SweepPlan(sweep, fingerprint_of(pool, sweep.system, kept_fingerprint(packs.folder)))
        plan.require_memory(pool.num_local)
        record = _record(pool, plan.fingerprint, arguments)
        with recorded(packs.folder, sweep.to_json(), plan.fingerprint, record, log) as report:
            remove_leftovers(packs.packs)
            damaged, missing = _damaged(packs, progress), find_missing(plan, packs)
            warn_of_others(plan, packs)
            counts = ChunkCounts(len(plan.chunks), len(plan.chunks) - len(missing), damaged)
            if only_failed:
                missing = [chunk for chunk in missing if chunk.name in failed]
            dispatcher = Dispatcher(plan, packs, pool, counts, missing, progress, report, keeps_going)
            try:
                dispatcher.run(is_stopped)
            finally:
                record |= {"finished": provenance.now(), "computed": counts.computed}
                record |= {"chunks": counts.done, "of": counts.num_chunks, "failed": counts.failed}
                with contextlib.suppress(OutputError):  # a full disk is reported by whatever met it first
                    report(dispatcher.facts())
        return Outcome(plan, packs, counts)
    finally:
        packs.close()
        pool.close()


def _damaged(packs: Packs, progress: Progress) -> dict[str, str]:
    """What is damaged, as the first of all processes that begin now finds: the others wait for it, and then take what
    there is, so that not everyone reads everything.
    """
    if packs.claim(CHECK):
        try:
            return packs.check()
        finally:
            packs.release(CHECK)
    while not packs.claim(CHECK):
        progress.running(f"nothing: {held_by(packs.holders([CHECK]), 'check of all packs', 'checks')}")
        time.sleep(POLL)
    packs.release(CHECK)
    packs.relist()
    return {}


def pool_of(executor: Executor | None = None, dask: str | None = None, devices: int | None = None) -> WorkerPool:
    """The workers asked for: an executor's, a Dask cluster's, or local devices. Raises: InvalidRunError for more than
    one of them, or for one that is invalid.
    """
    asked = {"executor": executor, "dask": dask, "devices": devices}
    given = [name for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise InvalidRunError(f"{' and '.join(given)} exclude one another: give one of them.")
    if executor is not None:
        return ExecutorPool(executor)
    return DevicePool(devices) if dask is None else dask_pool(dask)


def fingerprint_of(pool: WorkerPool, system: str, kept: Mapping[str, str] | None = None) -> dict[str, str]:
    """The fingerprint of the pool's workers. Raises: ExecutorLostError where none answers; InvalidRunError where they
    run other code than this process.
    """
    for _ in range(MOST_LOSSES):
        try:
            return pool.fingerprint(functools.partial(planning.fingerprint, system), kept)
        except Exception as failure:
            if not pool.is_loss(failure):
                raise
    raise ExecutorLostError(f"no worker of {pool.description} answers: look at the workers' logs, then run again.")


def find_missing(plan: SweepPlan, packs: Packs) -> list[PlannedChunk]:
    """The chunks to compute."""
    return [chunk for chunk in plan.chunks if chunk.name not in packs]


def _record(pool: WorkerPool, fingerprint: Mapping[str, str], arguments: Sequence[str]) -> dict[str, Any]:
    return {
        "started": provenance.now(),
        "finished": None,
        "argv": list(arguments),
        "executor": pool.description,
        "device": f"{fingerprint['backend']}: {fingerprint['processor']}",
        "machine": f"{platform.node()}, {platform.machine()}, {available_cores()} cores",
        "versions": provenance.versions(),
    }
