"""A sweep's results as one labelled dataset or as files."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from moe_theory.core.errors import InvalidValueError
from moe_theory.core.fields import fields_beside
from moe_theory.core.system import recorded_rounds
from moe_theory.runs.files import whole_set
from moe_theory.runs.store import Arrays
from moe_theory.sweep.specification import Specification
from moe_theory.sweep.systems import sweepable

ROUND = "round"
STATISTIC = "statistic"
REPLICATE = "replicate"
MAX_NETCDF_BYTES = 2**31 - 4  # the format's limit for a variable


def dataset(sweep: Specification, cells: Sequence[tuple[Any, Arrays]], last: xr.Variable, is_full: bool) -> xr.Dataset:
    """Return a sweep's cells like `Results.to_xarray`. Missing values are nan, with a count of 0.

    Args:
        cells: for each cell, a slice or the numbers that place its data on the last axis, and arrays by observable.
        last: the last axis, which counts statistics or replicates.
        is_full: whether no chunk is missing.
    """
    quantities = sweep.quantities
    rounds = recorded_rounds(sweep.rounds, sweep.stride)
    coordinates = {ROUND: xr.Variable(ROUND, rounds, {"long_name": "recorded round t, counted from 1"})}
    arrays: dict[str, np.ndarray] = {}
    for name, quantity in quantities.items():
        cell_arrays = [arrays_by_name[name] for _, arrays_by_name in cells if name in arrays_by_name]
        shapes = {array.shape[1:-1] for array in cell_arrays} or {(0,) * len(quantity.axes)}  # without round and last
        sizes = tuple(map(max, zip(*shapes, strict=True)))  # the largest of all cells, axis by axis
        dtype = cell_arrays[0].dtype if cell_arrays else np.dtype(np.float64)
        has_gaps = not is_full or len(shapes) > 1
        if last.dims == (STATISTIC,) or (has_gaps and dtype.kind != "f"):  # integers have no nan
            dtype = np.dtype(np.float64)
        filler = np.nan if dtype.kind == "f" else 0
        arrays[name] = np.full((len(sweep.grid), len(rounds), *sizes, last.size), filler, dtype)
        if last.dims == (STATISTIC,):
            arrays[name][..., 0] = 0  # the statistic 0 is the count
        for dim, size in zip(quantity.axes, sizes, strict=True):
            coordinates[dim] = xr.Variable(dim, np.arange(size))
    for index, (places, arrays_by_name) in enumerate(cells):
        for name, array in arrays_by_name.items():
            own_axes = [slice(size) for size in array.shape[:-1]]  # other cells may have longer axes
            arrays[name][index][(*own_axes, places)] = array
    variables = {}
    for name, array in arrays.items():
        dims = [*(axis.name for axis in sweep.grid.axes), ROUND, *quantities[name].axes, *last.dims]
        values = array.reshape(*sweep.grid.shape, *array.shape[1:])
        variables[name] = xr.Variable(dims, values, {"long_name": quantities[name].about})
    params = sweepable(sweep.system).params
    for axis in sweep.grid.axes:
        coordinates[axis.name] = xr.Variable(axis.name, np.arange(axis.num_values))  # replaced below if not a zip's
        for name, column in axis.columns.items():
            coordinates[name] = xr.Variable(axis.name, np.array(column), {"long_name": long_name(name, params)})
    return xr.Dataset(variables, {**coordinates, last.dims[0]: last})


def to_netcdf(data: xr.Dataset, path: Path) -> None:
    """Write a netCDF 3 file with 64-bit offsets. Raises: OutputError. InvalidValueError if a variable is too large."""
    for name, variable in data.items():
        if variable.nbytes > MAX_NETCDF_BYTES:
            raise InvalidValueError(
                f"{name} has {variable.nbytes / 1e9:.1f} GB, but netCDF 3 allows 2 GiB. Keep statistics, or write "
                "to_xarray() as Zarr."
            )
    with whole_set(path.parent, [path.name]) as temporaries:
        data.to_netcdf(temporaries[path.name], engine="scipy", format="NETCDF3_64BIT")


def long_name(name: str, params_type: type) -> str:
    """Return a field's name in words, and the comment on the field."""
    comment = next((field.comment for field in fields_beside(params_type) if field.name == name), "")
    words = name.replace("num_", "number of ").replace("_", " ")
    return ", ".join(filter(None, (words, comment)))
