"""Numbers that claims are made of: metrics of cells at recorded rounds, one a replicate, and the components' names."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from moe_theory.continual.experiments import cell_name
from moe_theory.continual.grids import FEWER, NEAR, QUIET, SCALES, scale_name
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs
from moe_theory.verify.components import Values as Values
from moe_theory.verify.components import named as named

BLOCK = 64

EXPONENT_MARGIN = 0.1  # how far an exponent may be from the one claimed
FAILURE = 0.05  # what a chance that the paper leaves at delta, or at o(1), may be at most
SCALE_CELLS = tuple(scale_name(scale) for scale in SCALES)
FEWER_CELLS = tuple(scale_name(scale, FEWER) for scale in SCALES)
QUIET_CELLS = tuple(scale_name(scale, QUIET) for scale in SCALES)
NEAR_CELLS = tuple(scale_name(scale, NEAR) for scale in SCALES)
SINGLE, FEW, MANY = cell_name(1, True), cell_name(5, True), cell_name(20, True)


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


def in_blocks(function: Callable[..., Any], replicates: np.ndarray, *trees: PyTree) -> np.ndarray:
    """A compiled function of replicates and of trees that end in their axis, some at a time.

    Looks have all sizes, and a program is compiled for one.
    """
    blocks = [slice(start, start + BLOCK) for start in range(0, len(replicates), BLOCK)]
    parts = [
        np.asarray(function(replicates[block], *(jax.tree.map(lambda leaf: leaf[..., block], tree) for tree in trees)))  # noqa: B023
        for block in blocks
    ]
    return np.concatenate(parts)


def over(cells: Sequence[str], value: Callable[[Run], np.ndarray]) -> Values:
    """What `value` says of each cell's run (B,), one component a cell."""
    return lambda runs: np.stack([value(runs[cell]) for cell in cells], axis=1)


def recorded(run: Run, name: str, first: int, last: int) -> np.ndarray:
    """A recorded number in rounds `first` to `last` (R, B) of a run that records every round."""
    return getattr(run.records, name)[first - 1 : last].astype(np.float64)
