"""Statistics of a sweep's cells over their replicates, kept for blocks of cells beside the chunks that they are of."""

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from moe_theory.core import moments
from moe_theory.core.moments import Moments
from moe_theory.runs.files import digest, pack
from moe_theory.runs.packs import LENGTH
from moe_theory.sweep.plan import SweepPlan

VERSION = 1  # of what is kept of a block
MOST_BLOCKS = 1024  # of a sweep
SUMMED = 1_000_000  # numbers that statistics are taken of at once, unless a round has more

Arrays = dict[str, Shaped[np.ndarray, "..."]]  # by observable


def over_replicates(cell: Sequence[Arrays], names: Sequence[str], quantiles: Sequence[float]) -> Arrays:
    """Statistics (R, *own axes, S) of a cell's chunks (R, *own axes, B), in float64. Moments merge in the order of
    chunks; quantiles are exact.
    """
    alike: dict[Any, list[str]] = {}  # observables of one shape, whose statistics are taken at once
    for name in names:
        alike.setdefault((cell[0][name].shape[:-1], cell[0][name].dtype), []).append(name)
    found = {}
    for own in alike.values():
        stacked = [np.stack([chunk[name] for name in own], axis=1) for chunk in cell]
        found |= dict(zip(own, np.moveaxis(_statistics(stacked, quantiles), 1, 0), strict=True))
    return {name: found[name] for name in names}


def _statistics(pieces: Sequence[np.ndarray], quantiles: Sequence[float]) -> Float[np.ndarray, "R ... S"]:
    """Some rounds at a time, to save memory."""
    num_rounds = len(pieces[0])
    step = max(1, SUMMED // max(sum(piece[0].size for piece in pieces), 1))
    with np.errstate(invalid="ignore", over="ignore"):  # of values that are not finite, or their squares
        parts = [
            _rows([piece[first : first + step] for piece in pieces], quantiles) for first in range(0, num_rounds, step)
        ]
    return np.concatenate(parts)


def _rows(pieces: Sequence[np.ndarray], quantiles: Sequence[float]) -> Float[np.ndarray, "... S"]:
    wide: list[Any] = [piece.astype(np.float64) for piece in pieces]
    merged: Moments = moments.merge([moments.over_replicates(piece) for piece in wide])
    columns = [merged.count, merged.mean, merged.standard_error, merged.minimum, merged.maximum]
    return np.stack([*columns, *np.quantile(np.concatenate(wide, axis=-1), quantiles, axis=-1)], axis=-1)


class Blocks:
    """Runs of cells, in the grid's order, whose statistics are one entry of the sweep's packs. Its name is a digest of
    the chunks that it is of, so that it counts for these alone.
    """

    def __init__(self, plan: SweepPlan, observables: Sequence[str]) -> None:
        self._plan, self._observables = plan, observables
        self.size: int = math.ceil(len(plan.by_cell) / MOST_BLOCKS)
        self._names: dict[int, str] = {}

    def __len__(self) -> int:
        return math.ceil(len(self._plan.by_cell) / self.size)

    def cells(self, block: int) -> range:
        return range(block * self.size, min((block + 1) * self.size, len(self._plan.by_cell)))

    def name(self, block: int) -> str:
        if block not in self._names:
            self._names[block] = digest(self._task(block))[:LENGTH]
        return self._names[block]

    def _task(self, block: int) -> dict[str, Any]:
        chunks = itertools.chain.from_iterable(self._plan.by_cell[place] for place in self.cells(block))
        return {
            "statistics": VERSION,
            "chunks": hashlib.sha256(
                " ".join(f"{chunk.name}:{chunk.num_kept}" for chunk in chunks).encode()
            ).hexdigest(),
            "cells": len(self.cells(block)),
            "observables": list(self._observables),
            "quantiles": list(self._plan.sweep.quantiles),
            "numpy": np.__version__,
        }

    def packed(self, block: int, found: Sequence[Arrays]) -> bytes:
        """What is kept of the statistics of a block's cells: those of one shape are together."""
        alike: dict[Any, list[int]] = {}
        for place, each in enumerate(found):
            alike.setdefault(tuple(array.shape for array in each.values()), []).append(place)
        arrays: dict[str, np.ndarray] = {}
        for number, places in enumerate(alike.values()):
            arrays[f"{number}"] = np.array(places)
            arrays |= {f"{number}.{name}": np.stack([found[place][name] for place in places]) for name in found[0]}
        return pack(self._task(block), arrays)

    def unpacked(self, block: int, arrays: Mapping[str, np.ndarray]) -> dict[int, Arrays]:
        """The statistics of each cell, by its place in the grid, of what was kept."""
        first, found = self.cells(block)[0], {}
        for number in itertools.takewhile(lambda number: f"{number}" in arrays, itertools.count()):
            for row, place in enumerate(arrays[f"{number}"].tolist()):
                found[first + place] = {name: arrays[f"{number}.{name}"][row] for name in self._observables}
        return found
