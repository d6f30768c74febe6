"""A fixed workload in plain NumPy: what a machine or an hour is compared by."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

ELEMENTS = 16_384  # 64 kB: stays in the cache of a core, as a chunk does
REPEATS = 1000


def prepare(num_threads: int = 1) -> Callable[[], object]:
    """The workload on each of `num_threads` threads at once; some ten milliseconds, never to be changed."""
    pool = ThreadPoolExecutor(num_threads)
    arrays = [np.linspace(0, 1, ELEMENTS, dtype=np.float32) for _ in range(num_threads)]
    return lambda: list(pool.map(_work, arrays))


def _work(array: np.ndarray) -> float:
    out = array.copy()
    for _ in range(REPEATS):  # NumPy lets other threads run while it computes
        np.multiply(out, 0.5, out=out)
        np.add(out, array, out=out)
        np.sqrt(out, out=out)
    return float(out[0])
