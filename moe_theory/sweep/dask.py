"""Workers of a Dask cluster: connecting, recognising a loss, reconnecting; `watched` has which of them get tasks.

Dask reruns the task of a lost worker by itself. A lost scheduler loses all its tasks, and its workers end with it:
whoever restarts the scheduler restarts the workers.
"""

import asyncio
import contextlib
import importlib.util
import logging
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError, Executor, ThreadPoolExecutor
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from moe_theory.core.errors import ExecutorLostError, InvalidRunError, shortened
from moe_theory.runs.files import read_json
from moe_theory.runs.workers import Fingerprint, WorkerPool
from moe_theory.sweep.watched import WatchedExecutor

FIRST_PATIENCE = 6.0  # seconds in which a scheduler must answer at first: its address may be mistyped
PATIENCE = 120.0  # seconds in which a lost scheduler must answer again
ATTEMPT = 5.0  # seconds of one attempt to connect
CLOSING = 3.0  # seconds that closing anything may take


def dask_pool(address: str, patience: float = PATIENCE) -> "DaskPool":
    """The workers of a Dask cluster. Whoever controls its scheduler can run any code in this process.

    Args:
        address: `tcp://HOST:PORT` or `tls://HOST:PORT` of a scheduler, `file:PATH` of its scheduler file
            (`dask scheduler --scheduler-file PATH`), or `local:N` for N processes on this machine.
        patience: seconds in which a lost scheduler must answer again.
    Certificates for TLS come from Dask's configuration, under `distributed.comm.tls`.
    Raises: InvalidRunError for an address that is none of these, or without Dask.
    """
    if importlib.util.find_spec("distributed") is None:
        raise InvalidRunError(f"dask={address!r} needs Dask, which is not installed: pip install 'moe-theory[dask]'")
    is_text = isinstance(address, str)
    if is_text and re.fullmatch(r"local:0*[1-9]\d*", address):
        return _LocalPool(int(address.removeprefix("local:")))
    if is_text and re.fullmatch(r"(tcp|tls)://(\[[^\]\s/]+\]|[^:\s/]+):\d{1,5}|file:.+", address):
        return DaskPool(address, patience)
    raise InvalidRunError(
        f"dask={shortened(address)} is no address of a cluster: give tcp://HOST:PORT or tls://HOST:PORT of a Dask "
        "scheduler, file:PATH of its scheduler file, or local:N for N worker processes on this machine."
    )


class DaskPool(WorkerPool):
    """The workers of an external scheduler."""

    def __init__(self, address: str, patience: float = PATIENCE) -> None:
        self.description = f"Dask {address}"
        self._address = address
        self._patience = patience
        self._client: Any = None
        self._executor: WatchedExecutor | None = None
        self._ask: Callable[[], Fingerprint] | None = None
        self._meant: Fingerprint | None = None
        self._is_lost = False
        self._silence = contextlib.ExitStack()
        self._place = contextlib.ExitStack()

    @property
    def num_workers(self) -> int:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Threads of all workers there are now, at least 1: a task may make the cluster start one."""
        return max(1, 0 if self._executor is None else self._executor.num_threads)

    def fingerprint(self, ask: Callable[[], Fingerprint], kept: Mapping[str, str] | None = None) -> Fingerprint:
        """That of the chunks in the folder, if a worker with this process's code has it, else of most such workers.

        All workers are asked, and those that join later; the ones with another fingerprint are named in a warning.

        Raises: InvalidRunError where all workers have other code than this process; ExecutorLostError; BrokenExecutor.
        """
        self.open()
        assert self._executor is not None  # it has been opened
        self._ask = ask
        self._meant = self._executor.agree(ask, kept)
        return self._meant

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
            self._executor = WatchedExecutor(self._client, self.description, self._scheduler(), self._ask, self._meant)
        return self._executor

    def is_loss(self, failure: BaseException) -> bool:
        """Whether the scheduler was lost, and its tasks with it; Dask reruns the tasks of a lost worker by itself."""
        is_loss = isinstance(failure, (BrokenExecutor, CancelledError))
        self._is_lost = self._is_lost or is_loss
        return is_loss

    def close(self) -> None:
        self._leave()
        self._place.close()

    def _connect(self, patience: float) -> Any:
        from distributed import Client, Security

        deadline, security = time.monotonic() + patience, Security()
        while True:
            timeout = max(1.0, min(deadline - time.monotonic(), ATTEMPT))
            try:
                address = self._scheduler()
                if address.startswith("tls:") and not security.get_connection_args("client").get("ssl_context"):
                    break
                with ThreadPoolExecutor(1) as aside:  # as a notebook has a loop that runs in this thread
                    aside.submit(asyncio.run, _greet(address, timeout, security)).result()
                client = Client(address, timeout=timeout, set_as_default=False, security=security)
                self._place.enter_context(_place_left())
                return client
            except (OSError, ValueError) as failure:
                if time.monotonic() >= deadline:
                    raise ExecutorLostError(
                        f"no Dask scheduler answers at {self._address} ({failure}): start one (dask scheduler), or "
                        "correct the address, then run the same command again. Finished chunks are kept."
                    ) from None
            except ImportError as failure:  # incompatible versions
                raise InvalidRunError(f"the Dask scheduler at {self._address} cannot be used: {failure}") from None
            time.sleep(0.2)
        raise InvalidRunError(
            f"{address} needs certificates: name them in Dask's configuration, under distributed.comm.tls."
        )

    def _scheduler(self) -> str:
        """The scheduler's address; one in a file may have changed."""
        if not self._address.startswith("file:"):
            return self._address
        found = read_json(Path(self._address.removeprefix("file:")))
        if not isinstance(found, dict) or not isinstance(found.get("address"), str):
            raise ValueError("the file names no address")
        return found["address"]

    def _leave(self) -> None:
        client, executor, self._client, self._executor = self._client, self._executor, None, None
        if executor is not None:
            executor.leave()
        if client is not None:
            with contextlib.suppress(Exception):
                client.close(timeout=CLOSING)
        self._silence.close()


@contextlib.contextmanager
def _place_left() -> Iterator[None]:
    """Where this process is a worker and this a task, let it compute another one meanwhile: it may be needed."""
    from distributed import rejoin, secede

    try:
        secede()
    except (AttributeError, KeyError, ValueError):  # it is none, or has done so
        yield
    else:
        try:
            yield
        finally:
            rejoin()


async def _greet(address: str, timeout: float, security: Any) -> None:
    """Raise OSError unless a Dask process answers in time: a client would wait for one that says nothing for ever."""
    from distributed.comm.core import connect

    arguments = security.get_connection_args("client")
    try:
        comm = await asyncio.wait_for(connect(address, timeout, **arguments), timeout)
    except TimeoutError:
        raise OSError(f"no answer within {timeout:.0f} s") from None
    await comm.close()


class _LocalPool(DaskPool):
    """Worker processes on this machine, and their scheduler in this process."""

    def __init__(self, num_processes: int) -> None:
        super().__init__(f"local:{num_processes}")
        self.num_local = num_processes
        self._cluster: Any = None

    def _connect(self, patience: float) -> Any:
        from distributed import Client, LocalCluster

        has_dashboard = importlib.util.find_spec("bokeh") is not None
        try:
            with _ignoring_interrupts():
                self._cluster = LocalCluster(
                    n_workers=self.num_local,
                    threads_per_worker=1,
                    host="127.0.0.1",
                    dashboard_address="127.0.0.1:0",
                    scheduler_kwargs={"dashboard": has_dashboard},
                    silence_logs=logging.CRITICAL,
                    memory_limit=0,
                )
            if has_dashboard:
                self.description = f"Dask local:{self.num_local} ({self._cluster.dashboard_link})"
            return Client(self._cluster, timeout=patience, set_as_default=False)
        except (AssertionError, OSError, RuntimeError) as failure:
            self._leave()
            raise ExecutorLostError(
                f"{self.num_local} Dask workers cannot be started here ({failure}). In a script, what runs the "
                'sweep must stand below `if __name__ == "__main__":`; in a task of Dask, name its scheduler.'
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
