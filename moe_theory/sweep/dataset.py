"""A sweep's results as one labelled dataset, and as files for other programs."""

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import xarray as xr
from jaxtyping import Int

from moe_theory.core.errors import InvalidValueError, OutputError
from moe_theory.core.fields import fields_beside
from moe_theory.runs.files import whole
from moe_theory.sweep.plan import Coverage, SweepPlan, chunk_shapes
from moe_theory.sweep.specification import Specification
from moe_theory.sweep.statistics import Arrays
from moe_theory.sweep.systems import Sweepable

ROUND, STATISTIC, REPLICATE = "round", "statistic", "replicate"
MAX_NETCDF_BYTES = 2**31 - 4  # of a variable, by the format


class SweptResults(Protocol):
    """What a dataset is made of: `moe_theory.sweep.Results`, which imports this module."""

    plan: SweepPlan
    sweep: Specification

    @property
    def kind(self) -> Sweepable: ...
    @property
    def kept(self) -> tuple[str, ...]: ...
    @property
    def rounds(self) -> Int[np.ndarray, " R"]: ...
    @property
    def statistics(self) -> tuple[str, ...]: ...
    @property
    def coverage(self) -> Coverage: ...
    @property
    def digest(self) -> str: ...
    def replicates_of(self, place: int) -> tuple[np.ndarray, Arrays] | None: ...
    def statistics_of(self, place: int) -> Arrays | None: ...


class _Shape(NamedTuple):
    """An observable's own axes, largest over the cells, and the type of its numbers."""

    sizes: tuple[int, ...]
    dtype: np.dtype


def dataset(results: SweptResults) -> xr.Dataset:
    """Return the results of a sweep, as `Results.to_xarray` describes them."""
    sweep = results.sweep
    observables = results.kind.observables
    grid_dims = [axis.name for axis in sweep.grid.axes]
    last_name, last_labels = STATISTIC, np.array(results.statistics)
    if sweep.keep == "replicates":
        last_name, last_labels = REPLICATE, np.arange(sweep.replicates)
    coordinates = dict(_grid_coordinates(results))
    coordinates[ROUND] = xr.Variable(ROUND, results.rounds, {"long_name": "recorded round t, from 1 on"})
    variables: dict[str, xr.Variable] = {}
    for name, shape in _shapes(results).items():
        own_dims = observables[name].axes
        for dim, size in zip(own_dims, shape.sizes, strict=True):
            coordinates[dim] = xr.Variable(dim, np.arange(size))
        values = _filled(results, name, shape, len(last_labels))
        dims = (*grid_dims, ROUND, *own_dims, last_name)
        variables[name] = xr.Variable(dims, values, {"long_name": observables[name].about})
    coordinates[last_name] = xr.Variable(last_name, last_labels)
    return xr.Dataset(variables, coordinates, _attributes(results))


def _grid_coordinates(results: SweptResults) -> Iterator[tuple[str, xr.Variable]]:
    for axis in results.sweep.grid.axes:
        if axis.name not in axis.columns:  # a zip
            yield axis.name, xr.Variable(axis.name, np.arange(axis.num_values))
        for name, values in axis.columns.items():
            about = {"long_name": long_name(name, results.kind.params)}
            yield name, xr.Variable(axis.name, np.array(values), about)


def _filled(results: SweptResults, name: str, shape: _Shape, num_last: int) -> np.ndarray:
    """An observable of all cells: nan, and a count of 0, where there is nothing."""
    num_cells = len(results.sweep.grid)
    inner = (len(results.rounds), *shape.sizes, num_last)
    filler = np.nan if shape.dtype.kind == "f" else 0
    values = np.full((num_cells, *inner), filler, shape.dtype)
    for place in range(num_cells):
        if results.sweep.keep == "replicates":
            read = results.replicates_of(place)
            if read is not None:
                numbers, arrays = read
                values[place][(*map(slice, arrays[name].shape[:-1]), numbers)] = arrays[name]
        else:
            values[place, ..., 0] = 0  # the count
            statistics = results.statistics_of(place)
            if statistics is not None:
                values[(place, *map(slice, statistics[name].shape))] = statistics[name]
    return values.reshape(*results.sweep.grid.shape, *inner)


def _shapes(results: SweptResults) -> dict[str, _Shape]:
    """The shape of each observable, by its name."""
    is_statistics = results.sweep.keep != "replicates"
    if is_statistics and not any(results.kind.observables[name].axes for name in results.kept):
        return {name: _Shape((), np.dtype(np.float64)) for name in results.kept}
    records = [chunk_shapes(task)[1] for task in results.plan.programs.values()]
    shapes = {}
    for name in results.kept:
        sizes = {record[name].shape for record in records}
        is_whole = len(sizes) == 1 and results.coverage.is_complete
        dtype = np.dtype(records[0][name].dtype)
        if is_statistics or not (is_whole or dtype.kind == "f"):  # whole numbers know no nan
            dtype = np.dtype(np.float64)
        shapes[name] = _Shape(tuple(map(max, zip(*sizes, strict=True))), dtype)
    return shapes


def _attributes(results: SweptResults) -> dict[str, str]:
    """What decides the numbers, without how, where or when they were computed."""
    fingerprint = results.plan.fingerprint
    coverage = results.coverage
    return {
        "title": f"{results.sweep.system}: {results.kind.about}",
        "specification": json.dumps(results.sweep.to_json(), sort_keys=True),
        "digest": results.digest,
        "chunks": f"{coverage.chunks} of {coverage.of_chunks}",
        "moe_theory": fingerprint["moe-theory"],
        "fingerprint": json.dumps(fingerprint, sort_keys=True),
    }


def save(data: xr.Dataset, path: Path) -> Path:
    """Write a dataset by the suffix of the path. Raises: as `Results.save`."""
    writers = {".nc": to_netcdf, ".zarr": _to_zarr, ".parquet": _to_parquet}
    if path.suffix not in writers:
        raise OutputError(f"{path} must end in {', '.join(writers)}: that says what is written. Change the name.")
    writers[path.suffix](data, path)
    return path


def to_netcdf(data: xr.Dataset, path: Path) -> None:
    """Write a netCDF 3 file (64-bit offsets). Raises: OutputError; InvalidValueError for a variable too large for
    it.
    """
    for name, variable in data.items():
        if variable.nbytes > MAX_NETCDF_BYTES:
            raise InvalidValueError(
                f"{name} has {variable.nbytes / 1e9:.1f} GB, and a netCDF 3 file holds 2 GiB a variable. "
                "Write Zarr or Parquet, or keep statistics."
            )
    with whole(path) as temporary:
        data.to_netcdf(temporary, engine="scipy", format="NETCDF3_64BIT")


def _to_zarr(data: xr.Dataset, path: Path) -> None:
    _require_extra("zarr", "zarr")
    if path.exists() or path.is_symlink():
        raise OutputError(f"{path} is there already, and stays. Name another place.")
    with whole(path) as temporary:
        data.to_zarr(temporary, mode="w", zarr_format=2)  # which every reader knows


def _to_parquet(data: xr.Dataset, path: Path) -> None:
    _require_extra("pyarrow", "parquet")
    last = next(iter(data.values())).dims[-1]
    dims = [dim for variable in data.values() for dim in variable.dims if dim != last]
    dims = [*dict.fromkeys(dims), last]
    columns = [*dims, *(name for name in data.coords if name not in dims), *data]
    table = data.to_dataframe(dim_order=dims).reset_index()[columns]
    table.attrs = dict(data.attrs)
    with whole(path) as temporary:
        table.to_parquet(temporary, index=False)


def _require_extra(module: str, extra: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError:
        raise InvalidValueError(f"{module} is not installed: pip install 'moe-theory[{extra}]'") from None


def long_name(name: str, cls: type) -> str:
    """Axis label of a parameter or size: its name in words, and the comment beside it.

    Examples:
        >>> from moe_theory import continual
        >>> from moe_theory.sweep.dataset import long_name
        >>> long_name("num_experts", continual.Params), long_name("truth_scale", continual.Params)
        ('number of experts, M', 'truth scale, sigma_0 of N(0, sigma_0)')
    """
    comment = next((field.comment for field in fields_beside(cls) if field.name == name), "")
    words = name.replace("num_", "number of ").replace("_", " ")
    return f"{words}, {comment}" if comment else words
