"""Runs of a sweep in a folder, on any workers."""

import contextlib
import dataclasses
import functools
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from pydantic import JsonValue

from moe_theory.core.errors import InvalidValueError
from moe_theory.runs.files import prepare_folder, write_whole
from moe_theory.runs.progress import Progress, quiet
from moe_theory.runs.provenance import difference
from moe_theory.runs.runner import Result, Runner, Task, programs_first
from moe_theory.runs.store import Store
from moe_theory.runs.workers import WorkerPool, device_pool
from moe_theory.sweep import plan as planning
from moe_theory.sweep.plan import SweepPlan
from moe_theory.sweep.specification import Specification

SCHEMA = "moe-theory/sweep/3"
MANIFEST = "sweep.json"
CHECK_SECONDS = 1.0  # seconds between checks whether the run is stopped


class Part(NamedTuple):
    """A fixed share of a sweep's chunks, which is every n-th chunk from the i-th on."""

    number: int  # counted from 1
    num_parts: int

    @classmethod
    def parsed(cls, text: str) -> Self:
        """Return the part that a text such as "3/8" names. Raises: InvalidValueError."""
        number, _, count = text.partition("/")
        if number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
            return cls(int(number), int(count))
        raise InvalidValueError(
            f"part={text} must be two numbers, such as 3/8 for the third of eight parts. Change part.", argument="part"
        )


@dataclasses.dataclass
class ChunkCounts:
    num_chunks: int  # in the sweep, or in the part that this run computes
    present: int  # chunks that existed before the run
    damaged: dict[str, str] = dataclasses.field(default_factory=dict)  # faults by chunk or file
    computed: int = 0

    @property
    def line(self) -> str:
        return f"{self.present + self.computed:,} of {self.num_chunks:,} chunks"


class Outcome(NamedTuple):
    plan: SweepPlan
    store: Store
    counts: ChunkCounts


def run(
    sweep: Specification,
    folder: str | os.PathLike[str],
    *,
    pool: WorkerPool | None = None,
    progress: Progress = quiet,
    is_stopped: Callable[[], bool] = lambda: False,
    part: Part | None = None,
) -> Outcome:
    """Compute a sweep's missing chunks in a folder. To resume, run it again.

    Args:
        pool: workers, which are closed at the end. The default is this machine's devices.
        is_stopped: returns whether to stop with a KeyboardInterrupt.
        part: the share of the chunks, which goes to a separate file.
    """
    pool = pool or device_pool()
    with contextlib.closing(pool):
        path = prepare_folder(folder)
        progress.running(f"a first task on {pool.description}")
        fingerprint_of_worker = functools.partial(planning.fingerprint, sweep.system, sweep.observables or ())
        plan = SweepPlan(sweep, pool.fingerprint(fingerprint_of_worker))
        write_manifest(path, Manifest(sweep.to_json(), plan.fingerprint), is_part=part is not None)
        chunks = plan.chunks
        suffix = ""
        if part is not None:
            chunks = chunks[part.number - 1 :: part.num_parts]
            suffix = f"-{part.number}-of-{part.num_parts}"
        store = Store(path, suffix)
        saved = store.intact(chunk.name for chunk in chunks)
        unsaved = [chunk for chunk in chunks if chunk.name not in saved]
        missing = programs_first(unsaved, program_of=lambda chunk: chunk.task.program)
        counts = ChunkCounts(len(chunks), present=len(saved), damaged=dict(store.damaged))
        runner = Runner(pool, progress)
        work = sum(chunk.replicate_rounds for chunk in missing)
        tasks = (Task(functools.partial(planning.compute, chunk), chunk.replicate_rounds, chunk) for chunk in missing)
        runner.add(store, tasks, work, f"on {pool.description}")
        progress.at(counts.line)
        try:
            while runner.is_busy:
                if is_stopped():
                    raise KeyboardInterrupt
                _save(runner.wait(CHECK_SECONDS), store, counts)
                progress.at(counts.line)
        except BaseException:
            with contextlib.suppress(Exception):  # the first error, such as a full disk, is reported
                _save(runner.stop(), store, counts)
            raise
    return Outcome(plan, store, counts)


def _save(results: Sequence[Result], store: Store, counts: ChunkCounts) -> None:
    """Save the computed chunks together. Raises: OutputError, or the first error of a chunk after saving the others."""
    computed: dict[str, bytes] = {}
    failure: BaseException | None = None
    for result in results:
        try:
            computed[result.task.place.name] = result.future.result()  # a task's place is its chunk
        except Exception as error:
            failure = failure or error
    if computed:
        store.put(computed)
        counts.computed += len(computed)
    if failure is not None:
        raise failure


class Manifest(NamedTuple):
    specification: Mapping[str, JsonValue]  # of `Specification.to_json`
    fingerprint: Mapping[str, str]


def read_manifest(folder: Path) -> Manifest:
    """Return a folder's manifest. Raises: InvalidValueError if it is missing or damaged."""
    path = folder / MANIFEST
    if not path.exists():
        raise InvalidValueError(f"{folder} has no sweep, because {MANIFEST} is missing. Name another folder.")
    try:
        document = json.loads(path.read_bytes())
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        return Manifest(document["specification"], document["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        raise InvalidValueError(f"{path} cannot be read ({reason}). Rerun the sweep, which reuses chunks.") from None


def write_manifest(folder: Path, manifest: Manifest, is_part: bool) -> None:
    """Write the manifest of a run that begins. Raises: OutputError. InvalidValueError if fingerprints differ."""
    if is_part and (folder / MANIFEST).exists():
        existing = read_manifest(folder)
        if existing.specification == manifest.specification and existing.fingerprint != manifest.fingerprint:
            raise InvalidValueError(
                f"{folder} has parts from another machine or other code: here the sweep has "
                f"{difference(manifest.fingerprint, existing.fingerprint)}. Run all parts on machines of the same kind."
            )
    document = {"schema": SCHEMA, **manifest._asdict()}
    write_whole(folder / MANIFEST, json.dumps(document, indent=1) + "\n")
