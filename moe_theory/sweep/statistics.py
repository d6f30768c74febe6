"""Statistics of a sweep's cells over their replicates."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from moe_theory.sweep import moments
from moe_theory.sweep.moments import Moments

SUMMED = 1_000_000  # numbers that statistics are taken of at once, unless a round has more

Arrays = dict[str, Shaped[np.ndarray, "..."]]  # by observable


def over_replicates(cell: Sequence[Arrays], names: Sequence[str], quantiles: Sequence[float]) -> Arrays:
    """Return statistics (R, *own axes, S), with exact quantiles, of a cell's chunks (R, *own axes, B), in float64."""
    return {name: _statistics([chunk[name] for chunk in cell], quantiles) for name in names}


def _statistics(pieces: Sequence[np.ndarray], quantiles: Sequence[float]) -> Float[np.ndarray, "R ... S"]:
    num_rounds = len(pieces[0])
    step = max(1, SUMMED // max(sum(piece[0].size for piece in pieces), 1))
    with np.errstate(invalid="ignore", over="ignore"):  # of values that are not finite, or their squares
        parts = []
        for first in range(0, num_rounds, step):
            wide: list[Any] = [piece[first : first + step].astype(np.float64, order="C") for piece in pieces]
            merged: Moments = moments.merge([moments.over_replicates(piece) for piece in wide])
            columns = [merged.count, merged.mean, merged.standard_error, merged.minimum, merged.maximum]
            rows = np.quantile(np.concatenate(wide, axis=-1), quantiles, axis=-1)
            parts.append(np.stack([*columns, *rows], axis=-1))
    return np.concatenate(parts)
