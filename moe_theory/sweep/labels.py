"""A sweep as one dataset with labels, whose numbers stay on disk until they are asked for."""

import functools
import itertools
import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from moe_theory.core.errors import MissingChunkError
from moe_theory.sweep import tasks
from moe_theory.sweep.grid import GridAxis

if TYPE_CHECKING:
    from moe_theory.sweep.results import Results

ROUND, STATISTIC, REPLICATE = "round", "statistic", "replicate"


def dataset(results: "Results") -> xr.Dataset:
    """The dataset that `Results.to_xarray` describes."""
    sweep, observables = results.sweep, results.kind.observables
    shapes = _shapes(results)
    own_axes = {name: observables[name].axes for name in results.kept}
    sizes = {axis: size for name in shapes for axis, size in zip(own_axes[name], shapes[name][0], strict=True)}
    is_replicates = sweep.keep == "replicates"
    last = (REPLICATE, sweep.replicates) if is_replicates else (STATISTIC, len(results.statistics))
    read = _read_replicates if is_replicates else _read_statistics
    variables: dict[str, xr.Variable] = {}
    for name in results.kept:
        own, about = own_axes[name], observables[name].about
        inner, dtype = (len(results.rounds), *(sizes[axis] for axis in own), last[1]), shapes[name][1]
        lazy = _LazyCells(sweep.grid.shape, inner, dtype, functools.partial(read, results, name, inner, dtype))
        dims = (*(axis.name for axis in sweep.grid.axes), ROUND, *own, last[0])
        variables[name] = xr.Variable(dims, indexing.LazilyIndexedArray(lazy), {"long_name": about})
    coordinates = {name: value for axis in sweep.grid.axes for name, value in _coordinates(axis).items()}
    coordinates[ROUND] = xr.Variable(ROUND, results.rounds, {"long_name": "recorded round t, from 1 on"})
    coordinates |= {axis: xr.Variable(axis, np.arange(size)) for axis, size in sizes.items()}
    labels = np.arange(sweep.replicates) if is_replicates else np.array(results.statistics)
    coordinates[last[0]] = xr.Variable(last[0], labels)
    return xr.Dataset(variables, coordinates, _attributes(results))


class _LazyCells(BackendArray):
    """A variable (*grid, *inner) that reads the cells which an index touches, and no others."""

    def __init__(
        self, grid: tuple[int, ...], inner: tuple[int, ...], dtype: np.dtype, read: Callable[[int], np.ndarray]
    ) -> None:
        # `read` gives a cell's numbers (*inner), by its place in the grid.
        self.grid, self.inner, self.read = grid, inner, read
        self.shape, self.dtype = (*grid, *inner), dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._outer)

    def __deepcopy__(self, memo: Any) -> "_LazyCells":
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


_INTEGERS = (int, np.integer)


def _indexed(array: np.ndarray, key: Sequence[Any]) -> np.ndarray:
    """One axis after another, from the last on, so that those before keep their numbers."""
    for axis in reversed(range(len(key))):
        array = array[(slice(None),) * axis + (key[axis],)]
    return array


def _read_statistics(results: "Results", name: str, inner: tuple[int, ...], dtype: np.dtype, place: int) -> np.ndarray:
    found = results.statistics_of(place)
    if found is not None and found[name].shape == inner:
        return found[name]
    whole = np.full(inner, np.nan, dtype)
    whole[..., 0] = 0  # the count
    if found is not None:
        whole[tuple(map(slice, found[name].shape))] = found[name]
    return whole


def _read_replicates(results: "Results", name: str, inner: tuple[int, ...], dtype: np.dtype, place: int) -> np.ndarray:
    found = results.replicates_of(place)
    if found is not None and found[1][name].shape == inner:
        return found[1][name].astype(dtype, copy=False)
    if dtype.kind != "f":
        raise MissingChunkError(
            f"{results.store.folder}: a chunk has turned out to be damaged, and {name} has no number for what is "
            "missing. Make the dataset again, or run the sweep again."
        )
    whole = np.full(inner, np.nan, dtype)
    if found is not None:
        numbers, arrays = found
        whole[(*map(slice, arrays[name].shape[:-1]), numbers)] = arrays[name]
    return whole


def _shapes(results: "Results") -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Of each observable its own shape, the largest over the cells, and the type of its numbers."""
    kept, is_statistics = results.kept, results.sweep.keep == "statistics"
    if is_statistics and not any(results.kind.observables[name].axes for name in kept):
        return {name: ((), np.dtype(np.float64)) for name in kept}
    programs = {}
    for place in range(len(results.sweep.grid)):
        task = results.plan.task_of(place)
        programs.setdefault(tasks.program_of(task), task)
    records = [tasks.chunk_shapes(task)[1] for task in programs.values()]
    found = {}
    for name in kept:
        shapes = {record[name].shape for record in records}
        is_whole = len(shapes) == 1 and results.coverage.is_complete
        own = np.dtype(records[0][name].dtype)
        dtype = own if not is_statistics and (is_whole or own.kind == "f") else np.dtype(np.float64)
        found[name] = tuple(map(max, zip(*shapes, strict=True))), dtype
    return found


def _coordinates(axis: GridAxis) -> dict[str, xr.Variable]:
    columns = {name: xr.Variable(axis.name, np.array(values)) for name, values in axis.columns.items()}
    length = len(next(iter(axis.columns.values())))
    return columns if axis.name in columns else {axis.name: xr.Variable(axis.name, np.arange(length)), **columns}


def _attributes(results: "Results") -> dict[str, str]:
    """What decides the numbers, and nothing of how, where or when they were computed."""
    fingerprint = results.plan.fingerprint
    return {
        "title": f"{results.sweep.system}: {results.kind.about}",
        "specification": json.dumps(results.sweep.to_json(), sort_keys=True),
        "digest": results.digest,
        "moe_theory": fingerprint["moe-theory"],
        "fingerprint": json.dumps(fingerprint, sort_keys=True),
    }
