"""Timing several runs in turn, so that a slow spell of the machine meets all of them."""

import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Clock = Callable[[], float]  # seconds


class Ratio(NamedTuple):
    """How many times one cost is another, over the passes."""

    median: float
    low: float
    high: float


def interleave(
    runs: Sequence[Callable[[], object]],
    calls: Sequence[int],
    passes: int,
    clock: Clock = time.perf_counter,
) -> Float[np.ndarray, "passes runs"]:
    """Seconds of one call of each run in each pass, which makes `calls` of it; every other pass goes backwards."""
    seconds = np.zeros((passes, len(runs)))
    for number in range(passes):
        for place in range(len(runs))[:: -1 if number % 2 else 1]:
            began = clock()
            for _ in range(calls[place]):
                runs[place]()
            seconds[number, place] = (clock() - began) / calls[place]
    return seconds


def timed(run: Callable[[], object], clock: Clock = time.perf_counter) -> float:
    """Seconds of one call."""
    return float(interleave([run], [1], 1, clock)[0, 0])


def calls_to_fill(seconds: float, of_one: float) -> int:
    """How many calls take at least so many seconds, where one takes `of_one`."""
    return max(1, math.ceil(seconds / of_one))


def ratio(costs: Sequence[float], others: Sequence[float]) -> Ratio:
    """Each pass's cost over the other's cost in the same pass: median, least and largest."""
    quotients = np.asarray(costs, np.float64) / np.asarray(others, np.float64)
    return Ratio(float(np.median(quotients)), float(quotients.min()), float(quotients.max()))
