"""A run of the benchmarks: orders for worker processes, and the record of what they report."""

import contextlib
import dataclasses
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from moe_theory.bench import grid, history
from moe_theory.bench.history import COLD, FILLING, KEPT, Compilation, Record
from moe_theory.bench.setting import timed_systems
from moe_theory.core.errors import InvalidRunError, MoeTheoryError, unknown_name
from moe_theory.runs.compilation import THRESHOLDS, VARIABLE
from moe_theory.runs.machine import available_cores

CORES = ("one", "all", "both")
PRECISIONS = ("float32", "float64")
COMPILATION_WORK = 3  # in units of a contender's preparing and timing
_ERROR_LINES = 3  # of a worker, that are shown
_ON_CPU = {"JAX_PLATFORMS": "cpu"}


class WorkerFailedError(MoeTheoryError):
    """A measuring process that ended with an error."""


class Watch(Protocol):
    """What is told how far it is."""

    def planned(self, units: int) -> None:
        """There is so much work in all."""

    def under_way(self, what: str) -> None:
        """This has begun."""

    def done(self, units: int) -> None:
        """So much of the work is done."""


@dataclasses.dataclass(frozen=True)
class Order:
    """What one worker process is to do."""

    document: dict[str, Any]  # plain data, as the worker takes it
    units: int  # of work
    environment: dict[str, str]  # beside our own


@dataclasses.dataclass(frozen=True)
class Request:
    """What is to be measured. Raises: UnknownNameError or InvalidRunError for what cannot be."""

    systems: tuple[str, ...] = ()  # all that are registered unless given
    is_quick: bool = False
    cores: str = "both"
    precision: str = "float32"
    batches: tuple[int, ...] = ()
    compilation: bool = True
    accelerator: bool = False
    passes: int = 5
    seconds: float = 0.2

    def __post_init__(self) -> None:
        for system in self.systems:
            if system not in timed_systems():
                raise unknown_name("system of the benchmarks", system, timed_systems())
        for kind, name, known in (("cores", self.cores, CORES), ("precision", self.precision, PRECISIONS)):
            if name not in known:
                raise unknown_name(kind, name, known)
        for batch in self.batches:
            if batch < 1:
                raise InvalidRunError(f"batch={batch} must be at least 1. Raise batch.")

    @property
    def effort(self) -> dict[str, Any]:
        """How much is spent on a measurement."""
        return {"passes": self.passes, "seconds": self.seconds}


def orders(request: Request, programs: Path) -> list[Order]:
    """The worker processes of a run, in turn.

    Args:
        programs: an empty folder for JAX's persistent cache.
    """
    systems = request.systems or timed_systems()
    if request.accelerator:
        document = {"kind": "accelerator", "cores": "all", "systems": systems, "precision": request.precision}
        return [Order({**document, "effort": request.effort}, len(systems), {})]
    given = []
    for cores in ("one", "all") if request.cores == "both" else (request.cores,):
        if request.is_quick:
            groups = grid.quick_groups(systems, request.precision, request.batches)
        else:
            groups = grid.all_groups(systems, request.precision, request.batches)
            if cores == "one" or request.cores == "all":
                groups += grid.scaling_groups(systems, request.precision)
        given.append(_order_of(groups, cores, request.effort))
        if request.compilation and not request.is_quick:
            given += compilations(cores, programs / cores)
    return given


def carry_out(request: Request, record: Record, watch: Watch) -> None:
    """Measure everything; `record` grows with every measurement, and so holds what there is after an interrupt too.

    Raises: WorkerFailedError with what the worker said.
    """
    record.provenance |= {"cores": available_cores(), "commit": _commit()}
    with tempfile.TemporaryDirectory() as programs:
        given = orders(request, Path(programs))
        watch.planned(sum(order.units for order in given))
        for order in given:
            for event in events(order):
                _enter(record, event, watch)
    record.is_complete = True


def events(order: Order) -> Iterator[dict[str, Any]]:
    """What a worker reports, as it comes. Raises: WorkerFailedError."""
    environment = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "0"} | order.environment
    with tempfile.TemporaryFile() as said, _started(environment, said) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended already, and says why
            worker.stdin.write(json.dumps(order.document).encode())
            worker.stdin.close()
        for line in worker.stdout:
            yield json.loads(line)
        code = worker.wait()
        said.seek(0)
        lines = [line.strip() for line in said.read().decode(errors="replace").splitlines() if line.strip()]
        if code:
            told = " | ".join(lines[-_ERROR_LINES:]) or "it said nothing"
            raise WorkerFailedError(f"a measuring process ended with code {code}: {told}")


def _commit() -> str:
    """The commit of a git checkout that the package lies in, with a plus where files differ; else nothing."""
    folder = Path(__file__).parents[2]
    if not (folder / ".git").exists() or shutil.which("git") is None:
        return ""
    ask = ["git", "-C", str(folder)]
    commit = subprocess.run([*ask, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*ask, "diff", "--quiet", "HEAD"], capture_output=True, check=False).returncode
    return commit.stdout.strip() + ("+" if changed else "")


@contextlib.contextmanager
def _started(environment: dict[str, str], said: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A worker in a session of its own, so that Ctrl-C is ours to handle; it ends with this block."""
    worker = subprocess.Popen(
        [sys.executable, "-m", "moe_theory.bench.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=said,
        env=environment,
        start_new_session=True,
    )
    try:
        yield worker
    finally:
        if worker.poll() is None:
            worker.kill()
        worker.wait()
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()


def _order_of(groups: Sequence[grid.Group], cores: str, effort: dict[str, Any]) -> Order:
    documents = [dataclasses.asdict(group) for group in groups]
    units = sum(len(group.members) for group in groups)
    return Order({"kind": "groups", "cores": cores, "groups": documents, "effort": effort}, units, _ON_CPU)


def compilations(cores: str, programs: Path) -> list[Order]:
    """Compile without the persistent cache, then fill it, then with it: each in a new process."""
    kept = {"JAX_ENABLE_COMPILATION_CACHE": "1", VARIABLE: str(programs), **THRESHOLDS}
    ways = ((COLD, {}), (FILLING, kept), (KEPT, kept))
    return [
        Order(
            {"kind": "compilation", "cores": cores, "cache": cache, "units": COMPILATION_WORK},
            COMPILATION_WORK,
            _ON_CPU | environment,
        )
        for cache, environment in ways
    ]


def _enter(record: Record, event: dict[str, Any], watch: Watch) -> None:
    (name, content) = next(iter(event.items()))
    if name == "facts":
        record.provenance.update(content)
    elif name == "measurement":
        record.measurements.append(history.measurement(content))
    elif name == "compilation":
        if content["cache"] != FILLING:
            record.compilations.append(Compilation(**content))
    elif name == "accelerator":
        record.accelerator.append(history.on_accelerator(content))
    elif name == "under_way":
        watch.under_way(content)
    elif name == "done":
        watch.done(content)
