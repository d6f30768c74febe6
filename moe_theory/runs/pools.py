"""Selection of a pool of workers: an executor's, a Dask cluster's, or this machine's devices.

If a Dask worker is lost, Dask reruns its tasks. If a scheduler is lost, the run ends. Run it again to resume.
"""

import contextlib
import importlib.util
import logging
import re
from concurrent.futures import Executor
from typing import Any

from moe_theory.core.errors import InvalidValueError, WorkersError, shortened
from moe_theory.runs.workers import WorkerPool, device_pool, executor_pool

PATIENCE = 10.0  # seconds for a scheduler's answer, because its address may be mistyped
CLOSING = 3.0  # most seconds for closing anything
_LOGGERS = ("distributed", "tornado.application")  # loggers that repeat errors which we report


def pool_of(executor: Executor | None = None, dask: str | None = None, devices: int | None = None) -> WorkerPool:
    """Return the only pool that is asked for, by default this machine's devices. Raises: InvalidValueError for more."""
    arguments = {"executor": executor, "dask": dask, "devices": devices}
    names = [name for name, value in arguments.items() if value is not None]
    if len(names) > 1:
        raise InvalidValueError(f"{' and '.join(names)} cannot be combined. Give only one of them.")
    if executor is not None:
        return executor_pool(executor)
    if dask is not None:
        return dask_pool(dask)
    return device_pool(devices)


def dask_pool(address: str) -> WorkerPool:
    """Return the workers of a Dask cluster. Anyone who controls its scheduler can run any code in this process.

    The address is `tcp://HOST:PORT`, `tls://HOST:PORT` or `local:N`. Dask's own configuration names certificates.
    """
    check_address(address)
    from distributed import Client

    resources = contextlib.ExitStack()
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        resources.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.CRITICAL + 1)
    try:
        if address.startswith("local:"):
            client = Client(
                n_workers=int(address.removeprefix("local:")),
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
                memory_limit=0,
                timeout=PATIENCE,
                set_as_default=False,
            )
        else:
            client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (AssertionError, ImportError, OSError, RuntimeError, TypeError, ValueError) as failure:  # or of certificates
        resources.close()
        raise WorkersError(
            f"Dask's workers at {address} cannot be reached ({failure}). Start a scheduler (dask scheduler), or "
            "correct the address or Dask's configuration, then rerun the same command, which resumes. For local "
            'workers in a script, run the sweep below `if __name__ == "__main__":`.'
        ) from None
    resources.callback(_close, client)
    executor = client.get_executor(pure=False)
    resources.callback(executor.shutdown, wait=False)
    threads: Any = client.nthreads()  # by worker
    num_workers = max(1, sum(threads.values()))  # without workers, the cluster may start some for tasks
    return WorkerPool(executor, f"Dask {address}", num_workers, close=resources.close)


def check_address(address: str) -> None:
    """Raise InvalidValueError if this is not an address of a cluster, or if Dask is not installed."""
    if importlib.util.find_spec("distributed") is None:
        raise InvalidValueError(f"dask={address!r} needs Dask: pip install 'moe-theory[dask]'", argument="dask")
    forms = (r"local:0*[1-9]\d*", r"(tcp|tls)://(\[[^\]\s/]+\]|[^:\s/]+):\d{1,5}")
    if not any(re.fullmatch(form, str(address)) for form in forms):
        raise InvalidValueError(
            f"dask={shortened(address)} is not an address of a cluster. Give a Dask scheduler's tcp://HOST:PORT or "
            "tls://HOST:PORT, or local:N for N worker processes on this machine.",
            argument="dask",
        )


def _close(client: Any) -> None:
    with contextlib.suppress(Exception):  # the scheduler may be gone
        client.close(timeout=CLOSING)
