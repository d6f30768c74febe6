"""A sweep's dataset as a file that other programs read: whole or not at all, the same bytes for the same results."""

import importlib
import itertools
from pathlib import Path
from typing import Any

import xarray as xr

from moe_theory.core.errors import InvalidRunError, OutputError
from moe_theory.runs.files import whole

LARGEST_NETCDF = 2**31 - 4  # bytes of a variable, by the format
ZARR_MARK = ".zgroup"  # a file in every Zarr folder of format 2


def to_netcdf(data: xr.Dataset, path: Path) -> Path:
    """Write a netCDF 3 file (64-bit offsets). Raises: OutputError; InvalidRunError for a variable too large for it."""
    for name, variable in data.items():
        if variable.nbytes > LARGEST_NETCDF:
            raise InvalidRunError(
                f"{name} has {variable.nbytes / 1e9:.1f} GB, and a netCDF 3 file holds 2 GiB a variable. "
                "Write Zarr or Parquet, or keep statistics."
            )
    with whole(path) as temporary:
        data.to_netcdf(temporary, engine="scipy", format="NETCDF3_64BIT")
    return path


def to_zarr(data: xr.Dataset, grid: tuple[int, ...], path: Path) -> Path:
    """Write a Zarr folder with a chunk a cell, in place of a Zarr folder there.

    Raises: OutputError; InvalidRunError without the package zarr.
    """
    zarr = _extra("zarr", "zarr")
    if path.is_dir() and not (path / ZARR_MARK).is_file():
        raise OutputError(f"{path} is a folder of something else than Zarr, and is kept. Name another place.")
    with whole(path) as temporary:
        # Format 2: that of text is not settled in format 3, and every reader knows it.
        data.drop_vars(list(data)).to_zarr(temporary, mode="w", zarr_format=2, consolidated=False)
        group = zarr.open_group(temporary, mode="r+", zarr_format=2)
        for name, variable in data.items():
            group.create_array(
                name,
                shape=variable.shape,
                dtype=variable.dtype,
                chunks=(*(1 for _ in grid), *variable.shape[len(grid) :]),
                fill_value=None,
                attributes={"_ARRAY_DIMENSIONS": list(variable.dims), **_with_coordinates(data, variable)},
            )
        for index in itertools.product(*map(range, grid)):
            for name, variable in data.items():
                group[name][(*index, ...)] = variable.variable[index].values
        zarr.consolidate_metadata(str(temporary), zarr_format=2)
    return path


def to_parquet(data: xr.Dataset, grid: tuple[int, ...], path: Path) -> Path:
    """Write a long table, a row group a cell. Raises: OutputError; InvalidRunError without the package pyarrow."""
    pyarrow, parquet = _extra("pyarrow", "parquet"), _extra("pyarrow.parquet", "parquet")
    axes = [str(dim) for dim in next(iter(data.values())).dims[: len(grid)]]
    last = next(iter(data.values())).dims[-1]
    dims = [*axes, *(dim for dim in data.dims if dim not in axes and dim != last), last]
    columns = [*dims, *(name for name in data.coords if name not in dims), *data]

    def table_of(index: tuple[int, ...]) -> Any:
        cell = data.isel({axis: slice(place, place + 1) for axis, place in zip(axes, index, strict=True)})
        return cell.to_dataframe(dim_order=dims).reset_index()[columns]

    with whole(path) as temporary:
        schema = pyarrow.Schema.from_pandas(table_of((0,) * len(grid)), preserve_index=False)
        schema = schema.with_metadata(data.attrs)
        with parquet.ParquetWriter(temporary, schema) as writer:
            for index in itertools.product(*map(range, grid)):
                writer.write_table(pyarrow.Table.from_pandas(table_of(index), schema, preserve_index=False))
    return path


def _with_coordinates(data: xr.Dataset, variable: xr.DataArray) -> dict[str, Any]:
    """A variable's attributes, and which coordinates go with it besides those of its dimensions."""
    others = [
        str(name)
        for name, each in data.coords.items()
        if name not in data.dims and set(each.dims) <= set(variable.dims)
    ]
    return {**variable.attrs, **({"coordinates": " ".join(others)} if others else {})}


def _extra(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidRunError(
            f"{module.partition('.')[0]} is not installed: pip install 'moe-theory[{extra}]'"
        ) from None
