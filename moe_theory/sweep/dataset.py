"""A sweep's dataset: variables that read cells when they are asked for, and files for other programs.

A file is there whole or not at all, and has the same bytes for the same results.
"""

import importlib
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from moe_theory.core.errors import InvalidRunError, OutputError
from moe_theory.runs.files import read_json, whole

LARGEST_NETCDF = 2**31 - 4  # bytes of a variable, by the format
CHUNK_BYTES = 1 << 22  # of a chunk of Zarr, unless a cell has more
GROUP_ROWS = 100_000  # of a group of rows of Parquet, unless a cell has more
ZARR_ATTRIBUTES = ".zattrs"  # the file of a Zarr group of format 2 that holds its attributes
MARK = "moe_theory"  # an attribute of every dataset of this package: its version
_INTEGERS = (int, np.integer)


class LazyCells(BackendArray):
    """A variable (*grid, *inner) that reads the cells which an index touches, and no others."""

    def __init__(
        self, grid: tuple[int, ...], inner: tuple[int, ...], dtype: np.dtype, read: Callable[[int], np.ndarray]
    ) -> None:
        # `read` gives a cell's numbers (*inner), by its position in the grid.
        self.grid, self.inner, self.read = grid, inner, read
        self.shape, self.dtype = (*grid, *inner), dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._outer)

    @classmethod
    def variable(cls, dims: Sequence[str], about: str, *arguments: Any) -> xr.Variable:
        """A variable with these dimensions, of `LazyCells(*arguments)`."""
        return xr.Variable(dims, indexing.LazilyIndexedArray(cls(*arguments)), {"long_name": about})

    def __deepcopy__(self, memo: Any) -> "LazyCells":
        return self  # what it reads cannot be changed through it

    def _outer(self, key: tuple[Any, ...]) -> np.ndarray:
        grid_key, inner_key = key[: len(self.grid)], key[len(self.grid) :]
        places = [np.atleast_1d(np.arange(size)[part]) for size, part in zip(self.grid, grid_key, strict=True)]
        outer = [len(chosen) for chosen, part in zip(places, grid_key, strict=True) if not isinstance(part, _INTEGERS)]
        like = _indexed(np.broadcast_to(np.empty((), self.dtype), self.inner), inner_key)
        found = np.empty((math.prod(map(len, places)), *like.shape), self.dtype)
        for row, index in enumerate(itertools.product(*places)):
            place = int(np.ravel_multi_index(index, self.grid)) if index else 0
            found[row] = _indexed(self.read(place), inner_key)
        return found.reshape((*outer, *like.shape))


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
    """Write a Zarr folder, whose chunks are slabs of cells. Raises: OutputError; InvalidRunError without zarr."""
    zarr = _extra("zarr", "zarr")
    if path.is_symlink() or (path.exists() and not _is_ours(path)):
        raise OutputError(f"{path} is something else than results of a sweep, and is kept. Name another place.")
    slab = _slab(grid, CHUNK_BYTES // max(_cell_bytes(data, grid), 1))
    with whole(path) as temporary:
        # Format 2: that of text is not settled in format 3, and every reader knows it.
        data.drop_vars(list(data)).to_zarr(temporary, mode="w", zarr_format=2, consolidated=False)
        group = zarr.open_group(temporary, mode="r+", zarr_format=2)
        for name, variable in data.items():
            fitting = (str(name) for name, each in data.coords.items() if set(each.dims) <= set(variable.dims))
            others = " ".join(name for name in fitting if name not in data.dims)  # as xarray has them
            group.create_array(
                name,
                shape=variable.shape,
                dtype=variable.dtype,
                chunks=(*slab, *variable.shape[len(grid) :]),
                fill_value=None,
                attributes={"_ARRAY_DIMENSIONS": list(variable.dims), **variable.attrs}
                | ({"coordinates": others} if others else {}),
            )
        for index in _slabs(grid, slab):
            for name, variable in data.items():
                group[name][(*index, ...)] = variable.variable[index].values
        zarr.consolidate_metadata(str(temporary), zarr_format=2)
    return path


def _is_ours(folder: Path) -> bool:
    try:
        attributes = read_json(folder / ZARR_ATTRIBUTES)
    except (OSError, ValueError):
        return False
    return isinstance(attributes, dict) and MARK in attributes


def to_parquet(data: xr.Dataset, grid: tuple[int, ...], path: Path) -> Path:
    """Write a long table, in groups of 100,000 rows. Raises: OutputError; InvalidRunError without pyarrow."""
    pyarrow, parquet = _extra("pyarrow", "parquet"), _extra("pyarrow.parquet", "parquet")
    axes = [str(dim) for dim in next(iter(data.values())).dims[: len(grid)]]
    last = next(iter(data.values())).dims[-1]
    dims = [*axes, *(dim for dim in data.dims if dim not in axes and dim != last), last]
    columns = [*dims, *(name for name in data.coords if name not in dims), *data]

    rows_each = math.prod(data.sizes[dim] for dim in dims[len(axes) :])
    slabs = [*_slabs(grid, _slab(grid, GROUP_ROWS // max(rows_each, 1)))]

    def table_of(slab: tuple[slice, ...]) -> Any:
        cells = data.isel(dict(zip(axes, slab, strict=True)))
        return cells.to_dataframe(dim_order=dims).reset_index()[columns]

    with whole(path) as temporary:
        schema = pyarrow.Schema.from_pandas(table_of((slice(0, 1),) * len(grid)), preserve_index=False)
        schema = schema.with_metadata(data.attrs)
        with parquet.ParquetWriter(temporary, schema) as writer:
            for slab in slabs:
                writer.write_table(pyarrow.Table.from_pandas(table_of(slab), schema, preserve_index=False))
    return path


def _slab(grid: tuple[int, ...], most_cells: int) -> tuple[int, ...]:
    """Lengths, along the axes of a grid, of slabs of about so many cells that follow one another: whole along the last
    axes, a part of one, and one cell along those before."""
    lengths = []
    for length in reversed(grid):
        lengths.append(max(1, min(length, most_cells)))
        most_cells //= length
    return tuple(reversed(lengths))


def _slabs(grid: tuple[int, ...], slab: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Such slabs, in the order of the cells."""
    parts = (
        [slice(first, min(first + length, whole)) for first in range(0, whole, length)]
        for whole, length in zip(grid, slab, strict=True)
    )
    return itertools.product(*parts)


def _cell_bytes(data: xr.Dataset, grid: tuple[int, ...]) -> int:
    """Of the largest variable."""
    return max(math.prod(each.shape[len(grid) :]) * each.dtype.itemsize for each in data.values())


def _indexed(array: np.ndarray, key: Sequence[Any]) -> np.ndarray:
    """One axis after another, from the last on, so that those before keep their numbers."""
    for axis in reversed(range(len(key))):
        array = array[(slice(None),) * axis + (key[axis],)]
    return array


def _extra(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InvalidRunError(
            f"{module.partition('.')[0]} is not installed: pip install 'moe-theory[{extra}]'"
        ) from None
