"""Numbers that claims are made of: metrics of cells at recorded rounds, one a replicate, and the components' names."""

from collections.abc import Callable, Sequence

import numpy as np

from moe_theory.continual.experiments import cell_name
from moe_theory.sweep import Run
from moe_theory.verify.claim import Runs

Values = Callable[[Runs], np.ndarray]

SINGLE, FEW, MANY = cell_name(1, True), cell_name(5, True), cell_name(20, True)


def named(*labels: str) -> Callable[[Runs], list[str]]:
    """Fixed names of components."""
    return lambda runs: list(labels)


def at_rounds(*rounds: int) -> Callable[[Runs], list[str]]:
    """Components named after rounds."""
    return named(*(f"t = {time}" for time in rounds))


def at(run: Run, values: np.ndarray, rounds: tuple[int, ...] | None) -> np.ndarray:
    """Values (R, B) at some of the recorded rounds (None: all), as components (B, V)."""
    rows = slice(None) if rounds is None else np.searchsorted(run.rounds, rounds)
    return values[rows].T.astype(np.float64)


def metric(name: str, cell: str, rounds: tuple[int, ...] | None = None) -> Values:
    """A metric of one cell at some of its recorded rounds."""
    return lambda runs: at(runs[cell], getattr(runs[cell].records, name), rounds)


def over(cells: Sequence[str], value: Callable[[Run], np.ndarray]) -> Values:
    """What `value` says of each cell's run (B,), one component a cell."""
    return lambda runs: np.stack([value(runs[cell]) for cell in cells], axis=1)
