"""What claims on the deep experiments measure."""

from collections.abc import Callable, Sequence

import numpy as np

from moe_theory.deep.presets import expert_cell
from moe_theory.deep.tables import incremental_accuracy
from moe_theory.runs import Run
from moe_theory.verify.components import Values
from moe_theory.verify.components import named as named

Measured = Callable[[Run], np.ndarray]  # one number a replicate (B,)


def final(name: str) -> Measured:
    """A metric after the last round."""
    return lambda run: np.asarray(getattr(run.records, name)[-1], np.float64)


def average_accuracy(run: Run) -> np.ndarray:
    """The average incremental accuracy."""
    return incremental_accuracy(run.records.accuracy)


def of_cells(cells: Sequence[str], measure: Measured) -> Values:
    """A component a cell."""
    return lambda runs: np.stack([measure(runs[cell]) for cell in cells], axis=1)


def of_experts(measure: Measured, sizes: Sequence[int], terminate: bool = True) -> Values:
    """A component a number M of experts."""
    return of_cells([expert_cell(size, terminate) for size in sizes], measure)


def by_size(sizes: Sequence[int]) -> Callable:
    """Names of such components."""
    return named(*(f"M = {size}" for size in sizes))
