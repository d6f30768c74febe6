"""Pools of workers that arguments select: of an executor, a Dask cluster, or this machine's devices.

Dask reruns a lost worker's tasks, and a lost scheduler ends the run, which resumes when run again.
"""

import contextlib
import importlib.util
import logging
import re
from concurrent.futures import Executor
from typing import Any

from moe_theory.core.errors import InvalidValueError, WorkersError, shortened
from moe_theory.runs.workers import WorkerPool, device_pool, executor_pool

PATIENCE = 10.0  # seconds in which a scheduler must answer: its address may be mistyped
CLOSING = 3.0  # seconds that closing anything may take
_LOGGERS = ("distributed", "tornado.application")  # what they say of losses is said here


def pool_of(executor: Executor | None = None, dask: str | None = None, devices: int | None = None) -> WorkerPool:
    """Return the workers of an executor or a Dask cluster, or local devices."""
    engines = {"executor": executor, "dask": dask, "devices": devices}
    names = [name for name, value in engines.items() if value is not None]
    if len(names) > 1:
        raise InvalidValueError(f"{' and '.join(names)} exclude one another: give one of them.")
    if executor is not None:
        return executor_pool(executor)
    if dask is not None:
        return dask_pool(dask)
    return device_pool(devices)


def dask_pool(address: str) -> WorkerPool:
    """Return the workers of a Dask cluster. Anyone who controls its scheduler can run any code in this process.

    Args:
        address: `tcp://HOST:PORT` or `tls://HOST:PORT` of a scheduler, or `local:N` for N processes. Certificates come
            from Dask's `distributed.comm.tls`.
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
    except (AssertionError, ImportError, OSError, RuntimeError, TypeError, ValueError) as failure:  # also certificates
        resources.close()
        raise WorkersError(
            f"no Dask workers can be had at {address} ({failure}). Start a scheduler (dask scheduler), or correct the "
            "address or Dask's configuration, then run the same command again: finished chunks are saved. For local "
            'workers in a script, what runs the sweep must stand below `if __name__ == "__main__":`.'
        ) from None
    resources.callback(_close, client)
    executor = client.get_executor(pure=False)
    resources.callback(executor.shutdown, wait=False)
    threads: Any = client.nthreads()
    num_workers = max(1, sum(threads.values()))  # a task may make the cluster start one
    return WorkerPool(executor, f"Dask {address}", num_workers, close=resources.close)


def check_address(address: str) -> None:
    """Raise InvalidValueError for no address of a cluster, or without Dask."""
    if importlib.util.find_spec("distributed") is None:
        raise InvalidValueError(
            f"dask={address!r} needs Dask, which is not installed: pip install 'moe-theory[dask]'", argument="dask"
        )
    forms = (r"local:0*[1-9]\d*", r"(tcp|tls)://(\[[^\]\s/]+\]|[^:\s/]+):\d{1,5}")
    if not any(re.fullmatch(form, str(address)) for form in forms):
        raise InvalidValueError(
            f"dask={shortened(address)} is no address of a cluster: give tcp://HOST:PORT or tls://HOST:PORT of a Dask "
            "scheduler, or local:N for N worker processes on this machine.",
            argument="dask",
        )


def _close(client: Any) -> None:
    with contextlib.suppress(Exception):  # of a scheduler that is gone
        client.close(timeout=CLOSING)
