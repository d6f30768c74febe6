"""Statistics of many cells in one entry of a sweep's packs, so that who looks at them need not read the replicates."""

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from moe_theory.runs.files import digest, pack
from moe_theory.runs.packs import LENGTH
from moe_theory.sweep.plan import SweepPlan
from moe_theory.sweep.statistics import Arrays

VERSION = 1  # of what is kept of a block
MOST_BLOCKS = 1024  # of a sweep


class CellBlocks:
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
