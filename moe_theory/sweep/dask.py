"""Workers of a Dask cluster: connecting, recognising a loss, reconnecting.

Dask reruns the task of a lost worker by itself. A lost scheduler loses all its tasks, and its workers end with it:
whoever restarts the scheduler restarts the workers.
"""

import asyncio
import contextlib
import functools
import importlib.util
import logging
import pkgutil
import re
import signal
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from moe_theory.core.errors import ExecutorLostError, InvalidRunError, MoeTheoryError, shortened
from moe_theory.runs.files import read_json

FIRST_PATIENCE = 6.0  # seconds in which a scheduler must answer at first: its address may be mistyped
PATIENCE = 120.0  # seconds in which a lost scheduler must answer again
ATTEMPT = 5.0  # seconds of one attempt to connect
EMPTY = 10.0  # seconds without workers before a warning
CLOSING = 3.0  # seconds that closing anything may take

_LOG = logging.getLogger(__name__)


def dask_pool(address: str, patience: float = PATIENCE) -> "DaskPool":
    """The workers of a Dask cluster.

    Args:
        address: `tcp://HOST:PORT` or `tls://HOST:PORT` of a scheduler, `file:PATH` of its scheduler file
            (`dask scheduler --scheduler-file PATH`), or `local:N` for N processes on this machine.
        patience: seconds in which a lost scheduler must answer again.
    Raises: InvalidRunError for an address that is none of these, or without Dask.
    """
    if importlib.util.find_spec("distributed") is None:
        raise InvalidRunError(f"dask={address!r} needs Dask, which is not installed: pip install 'moe-theory[dask]'")
    if re.fullmatch(r"local:0*[1-9]\d*", address):
        return _LocalPool(int(address.removeprefix("local:")))
    if re.fullmatch(r"(tcp|tls)://(\[[^\]\s/]+\]|[^:\s/]+):\d{1,5}|file:.+", address):
        return DaskPool(address, patience)
    raise InvalidRunError(
        f"dask={address!r} is no address of a cluster: give tcp://HOST:PORT or tls://HOST:PORT of a Dask scheduler, "
        "file:PATH of its scheduler file, or local:N for N worker processes on this machine."
    )


class DaskPool:
    """The workers of an external scheduler."""

    grace, task_seconds = 30.0, 10.0

    def __init__(self, address: str, patience: float = PATIENCE) -> None:
        self.description = f"Dask {address}"
        self._address = address
        self._patience = patience
        self._client: Any = None
        self._executor: Executor | None = None
        self._is_lost = False
        self._empty_since: float | None = None
        self._is_told = False
        self._silence = contextlib.ExitStack()

    @property
    def num_workers(self) -> int:
        """Threads of all workers there are now, at least 1: a task may make the cluster start one."""
        return max(1, self._count())

    @property
    def num_local(self) -> int:
        return 1

    def open(self) -> Executor:
        """An executor of the workers, a new one after a loss. Raises: ExecutorLostError where no scheduler answers."""
        if self._executor is None or self._is_lost:
            patience = self._patience if self._is_lost else min(self._patience, FIRST_PATIENCE)
            self._leave()
            for name in ("distributed", "distributed.client", "tornado.application"):  # losses are handled here
                logger = logging.getLogger(name)
                self._silence.callback(logger.setLevel, logger.level)
                logger.setLevel(logging.CRITICAL + 1)
            self._client = self._connect(patience)
            self._is_lost = False
            self._empty_since = None
            while not self._count() and not self._is_told:
                time.sleep(0.1)
            self._await_memory()
            self._executor = _TaskExecutor(self._client, self.description, self._able())
        return self._executor

    def _await_memory(self) -> None:
        """Wait until Dask has not paused all workers that there are, or log a warning after a while."""
        began = time.monotonic()
        while (hosts := self._paused()) and time.monotonic() - began < EMPTY:
            time.sleep(0.2)
        if hosts:
            message = (
                "all workers of %s are at their memory limit and paused (%s): it waits for them. Start them with a "
                "larger --memory-limit, or fewer on a host"
            )
            _LOG.warning(message, self.description, ", ".join(sorted(hosts)))

    def _paused(self) -> set[str]:
        """Hosts of the workers, if all that there are have been paused."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        is_paused = all(worker.get("status") == "paused" for worker in workers)
        return {worker["host"] for worker in workers} if is_paused else set()

    def _able(self) -> list[str] | None:
        """The workers that have this version of the package, where some have not: these are named, and left out. None
        where all have it. Raises: InvalidRunError where none has.
        """
        version, get = "moe_theory:__version__", pkgutil.resolve_name  # which a worker without the package has
        ours, found = get(version), self._client.run(get, version, on_error="return")
        other = {worker: _words(each) for worker, each in found.items() if each != ours}
        if not other:
            return None
        hosts = Counter(f"{worker.rpartition('://')[2].rpartition(':')[0]}: {why}" for worker, why in other.items())
        listed = "; ".join(f"{host} ({count} workers)" if count > 1 else host for host, count in hosts.most_common(4))
        said = f"run moe-theory {ours} ({listed}{'; ...' if len(hosts) > 4 else ''})"
        way_out = "install the same version where they run"
        if len(other) == len(found):
            raise InvalidRunError(f"no worker of {self.description} can {said}: {way_out}.")
        about = len(other), len(found), self.description, said, way_out
        _LOG.warning("%d of %d workers of %s cannot %s: they get no tasks; to use them, %s", *about)
        return [worker for worker in found if worker not in other]

    def is_loss(self, failure: BaseException) -> bool:
        """Whether the scheduler was lost, and its tasks with it; Dask reruns the tasks of a lost worker by itself."""
        is_loss = isinstance(failure, (BrokenExecutor, CancelledError))
        self._is_lost = self._is_lost or is_loss
        return is_loss

    def close(self) -> None:
        self._leave()

    def _connect(self, patience: float) -> Any:
        from distributed import Client, Security

        if self._address.startswith("tls:") and not Security().get_connection_args("client").get("ssl_context"):
            raise InvalidRunError(
                f"{self._address} needs certificates: name them in Dask's configuration, under distributed.comm.tls."
            )
        deadline = time.monotonic() + patience
        while True:
            timeout = max(1.0, min(deadline - time.monotonic(), ATTEMPT))
            try:
                address = self._scheduler()
                with ThreadPoolExecutor(1) as aside:  # as a notebook has a loop that runs in this thread
                    aside.submit(_greet, address, timeout).result()
                return Client(address, timeout=timeout, set_as_default=False)
            except (OSError, ValueError) as failure:
                if time.monotonic() >= deadline:
                    raise ExecutorLostError(
                        f"no Dask scheduler answers at {self._address} ({failure}): start one (dask scheduler), or "
                        "correct the address, then run the same command again. Finished chunks are kept."
                    ) from None
            except ImportError as failure:  # incompatible versions
                raise InvalidRunError(f"the Dask scheduler at {self._address} cannot be used: {failure}") from None
            time.sleep(0.2)

    def _scheduler(self) -> str:
        """The scheduler's address; one in a file may have changed."""
        if not self._address.startswith("file:"):
            return self._address
        found = read_json(Path(self._address.removeprefix("file:")))
        if not isinstance(found, dict) or not isinstance(found.get("address"), str):
            raise ValueError("the file names no address")
        return found["address"]

    def _count(self) -> int:
        """Threads of all workers; logs a warning once there have been none for a while."""
        # The client keeps this up to date; a request would wait for a scheduler that may be gone.
        identity = getattr(self._client, "_scheduler_identity", {})
        listed = sum(worker["nthreads"] for worker in identity.get("workers", {}).values())
        threads = identity.get("total_threads", listed)
        if threads:
            self._empty_since, self._is_told = None, False
        elif self._empty_since is None:
            self._empty_since = time.monotonic()
        elif not self._is_told and time.monotonic() - self._empty_since > EMPTY:
            self._is_told = True
            message = "%s has no workers: it waits for one. To start some: dask worker %s"
            _LOG.warning(message, self.description, self._scheduler())
        return threads

    def _leave(self) -> None:
        client, self._client, self._executor = self._client, None, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close(timeout=CLOSING)
        self._silence.close()


def _greet(address: str, timeout: float) -> None:
    """Raise OSError unless a Dask process answers in time: a client would wait for one that says nothing for ever."""
    asyncio.run(_connected(address, timeout))


async def _connected(address: str, timeout: float) -> None:
    from distributed import Security
    from distributed.comm.core import connect

    arguments = Security().get_connection_args("client")
    try:
        comm = await asyncio.wait_for(connect(address, timeout, **arguments), timeout)
    except TimeoutError:
        raise OSError(f"no answer within {timeout:.0f} s") from None
    await comm.close()


class _LocalPool(DaskPool):
    """Worker processes on this machine, and their scheduler in this process."""

    def __init__(self, num_processes: int) -> None:
        super().__init__(f"local:{num_processes}")
        self._num_processes = num_processes
        self._cluster: Any = None

    @property
    def num_local(self) -> int:
        return self._num_processes

    def _connect(self, patience: float) -> Any:
        from distributed import Client, LocalCluster

        try:
            with _ignoring_interrupts():
                self._cluster = LocalCluster(
                    n_workers=self._num_processes,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": False},
                    silence_logs=logging.CRITICAL,
                    memory_limit=0,
                )
            return Client(self._cluster, timeout=patience, set_as_default=False)
        except (OSError, RuntimeError) as failure:
            self._leave()
            raise ExecutorLostError(
                f"{self._num_processes} Dask workers cannot be started here ({failure}). In a script, what runs the "
                'sweep must stand below `if __name__ == "__main__":`.'
            ) from None

    def _scheduler(self) -> str:
        return self._cluster.scheduler_address

    def _leave(self) -> None:
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            # A worker in the middle of a task would be waited for.
            with contextlib.suppress(Exception):
                cluster.sync(_end, list(cluster.workers.values()), callback_timeout=CLOSING)
        super()._leave()
        if cluster is not None:
            with contextlib.suppress(Exception):
                cluster.close(timeout=CLOSING)


@contextlib.contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Processes started here ignore Ctrl-C, which is for the process that ends them."""
    resource_tracker.ensure_running()  # which would undo this if the first process started it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


async def _end(nannies: list[Any]) -> None:
    await asyncio.gather(*(nanny.close(timeout=1.0) for nanny in nannies), return_exceptions=True)


class _TaskExecutor(Executor):
    """Dask's executor, with errors that say what to do."""

    def __init__(self, client: Any, about: str, workers: Sequence[str] | None) -> None:
        """`workers`: addresses of those that get tasks; all, and those that come later, unless given."""
        self._client, self._about = client, about
        self._executor = client.get_executor(pure=False, **({} if workers is None else {"workers": list(workers)}))

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future:
        """Submit a task. Raises: BrokenExecutor where the scheduler is lost."""
        try:
            inner = self._executor.submit(function, *arguments, **options)
        except Exception:
            if self._client.status == "running":
                raise
            raise self._loss() from None
        outer: Future = Future()
        # Weakly: if the futures held each other, Dask would keep the result until a garbage collection.
        outer.add_done_callback(functools.partial(_pass_on_cancelling, weakref.ref(inner)))
        inner.add_done_callback(functools.partial(self._pass_on_outcome, outer))
        return outer

    def _pass_on_outcome(self, outer: Future, inner: Future) -> None:
        if not outer.set_running_or_notify_cancel():
            return
        if inner.cancelled():
            outer.set_exception(self._loss())
        elif (failure := inner.exception()) is not None:
            outer.set_exception(_explained(failure, self._about))
        else:
            outer.set_result(inner.result())

    def _loss(self) -> BrokenExecutor:
        return BrokenExecutor(f"the scheduler of {self._about} was lost")


def _words(found: Any) -> str:
    """Why a worker cannot, or its version."""
    return shortened(str(found)) if isinstance(found, BaseException) else f"moe-theory {shortened(str(found))}"


def _pass_on_cancelling(inner: Callable[[], Future | None], outer: Future) -> None:
    if outer.cancelled() and (future := inner()) is not None:
        future.cancel()


def _explained(failure: BaseException, about: str) -> BaseException:
    """A task's error, with the way out where Dask says too little."""
    from distributed import KilledWorker

    if isinstance(failure, MoeTheoryError):
        return failure
    if isinstance(failure, KilledWorker):
        return ExecutorLostError(
            f"{failure.allowed_failures + 1} workers of {about} died over the same task, the last of them at "
            f"{failure.last_worker.address}; finished chunks are kept. Its log says why. Where it ran out of memory, "
            "lower chunk_width; then run the same command again."
        )
    if isinstance(failure, ImportError) or "deserialization of the task graph" in str(failure):
        return InvalidRunError(
            f"the scheduler or a worker of {about} cannot load the task ({str(failure).splitlines()[0]}): install the "
            "same version of moe-theory where the scheduler and the workers run."
        )
    return failure
