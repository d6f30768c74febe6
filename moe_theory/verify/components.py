"""What claims of every paper say of their components: names, and numbers that no draw decides."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from moe_theory.runs import Run
from moe_theory.verify.claim import Runs

Values = Callable[[Runs], np.ndarray]  # one number a replicate (B,), or a row of components (B, V)


def named(*labels: str) -> Callable[[Runs], list[str]]:
    return lambda runs: list(labels)


def alike(run: Run, numbers: Any) -> np.ndarray:
    """The same number, or components (V,), for every replicate of a run: what is known without its draws."""
    numbers = np.asarray(numbers, np.float64)
    return np.broadcast_to(numbers, (len(run.replicates), *numbers.shape))


def computed(cell: str, value: Callable[[], Any]) -> Values:
    """Numbers (V,) that are computed and not drawn: the same for every replicate of a cell."""
    return lambda runs: alike(runs[cell], np.atleast_1d(value()))


def excess(observed: np.ndarray, bound: Any) -> np.ndarray:
    """How far beyond its bound a number is; 0 for one that is not."""
    return np.maximum(observed - bound, 0)


def over(cells: Sequence[str], value: Callable[[Run], np.ndarray]) -> Values:
    """`value` of each cell's run (B,), one component a cell."""
    return lambda runs: np.stack([value(runs[cell]) for cell in cells], axis=1)
