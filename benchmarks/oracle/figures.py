"""Numbers behind figures: the variables that a figure's CSV file shows to six digits, here to the last one."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import xarray as xr

import moe_theory as mt
from benchmarks.oracle.records import Record, number_or_array

NUMERIC = "biufc"  # kinds of NumPy's types that are numbers
SEED = 7


class Drawing(NamedTuple):
    """A figure at small sizes."""

    name: str  # "PAPER.FIGURE"
    options: dict[str, Any]  # of `mt.figure`
    clocked: tuple[str, ...] = ()  # variables that a clock measures, which are left out


def figures(drawings: Sequence[Drawing]) -> Iterator[Record]:
    """Compute each figure and yield a record with its variables."""
    for drawing in drawings:
        data, picture = mt.figure(drawing.name, seed=SEED, **drawing.options)
        plt.close(picture)
        numbers = variables_of(data.drop_vars(drawing.clocked))
        yield Record(f"figures/{drawing.name}", numbers)


def variables_of(data: xr.Dataset) -> dict[str, Any]:
    """Return the numbers of a dataset's variables and coordinates by name. Texts are left out."""
    arrays = {str(name): data[name].values for name in data.variables}
    return {name: number_or_array(values) for name, values in arrays.items() if values.dtype.kind in NUMERIC}
