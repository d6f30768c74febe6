"""Pool of workers that arguments select."""

from concurrent.futures import Executor

from moe_theory.core.errors import InvalidValueError
from moe_theory.runs.dask import dask_pool
from moe_theory.runs.workers import WorkerPool, device_pool, executor_pool


def pool_of(executor: Executor | None = None, dask: str | None = None, devices: int | None = None) -> WorkerPool:
    """Return the workers of an executor or a Dask cluster, or local devices.

    Raises: InvalidValueError for several or invalid selections. WorkersError for a silent cluster.
    """
    engines = {"executor": executor, "dask": dask, "devices": devices}
    names = [name for name, value in engines.items() if value is not None]
    if len(names) > 1:
        raise InvalidValueError(f"{' and '.join(names)} exclude one another: give one of them.")
    if executor is not None:
        return executor_pool(executor)
    if dask is not None:
        return dask_pool(dask)
    return device_pool(devices)
