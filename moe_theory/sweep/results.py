"""Results of a sweep, read from its chunks: as one dataset with labels, as runs of single cells, and as files."""

import collections
import functools
import json
import math
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from jaxtyping import Float, Int

from moe_theory.core.constraints import shown
from moe_theory.core.errors import (
    DamagedChunkError,
    InvalidParamsError,
    InvalidRunError,
    MissingChunkError,
    OutputError,
    unknown_name,
)
from moe_theory.core.fields import long_name
from moe_theory.core.forks import after_fork
from moe_theory.core.machine import available_cores
from moe_theory.core.notebook import Shown
from moe_theory.core.papers import Reading
from moe_theory.core.system import recorded_rounds
from moe_theory.runs.cells import Run
from moe_theory.runs.files import digest, local
from moe_theory.runs.locks import held_by
from moe_theory.runs.packs import Keeper, Packs
from moe_theory.runs.progress import Progress, automatic, quiet
from moe_theory.runs.progress import shown as shown_progress
from moe_theory.sweep import runner
from moe_theory.sweep.blocks import CellBlocks
from moe_theory.sweep.manifest import read_manifest, runs_in
from moe_theory.sweep.plan import PlannedChunk, SweepPlan, chunk_shapes
from moe_theory.sweep.specification import Specification
from moe_theory.sweep.statistics import ONLY, Arrays, over_replicates
from moe_theory.sweep.systems import Sweepable, sweepable

if TYPE_CHECKING:
    import xarray as xr

POLL = 0.2  # seconds between looks at what other processes are at
CACHED_BYTES = 256_000_000  # of cells that have been read, so that several variables read a chunk once
ROUND, STATISTIC, REPLICATE = "round", "statistic", "replicate"
MOMENTS = ("count", "mean", "standard_error", "min", "max")  # statistics before the quantiles


class Sweep(Specification):
    """The specification of a sweep, which can be run.

    Its arguments are the fields of `Specification`, with the same defaults.

    Raises: InvalidSpecError, UnknownNameError, InvalidParamsError or InvalidDimsError for what cannot be run.

    Examples:
        >>> import moe_theory as mt
        >>> axes = {"num_experts": [1, 2]}
        >>> sweep = mt.Sweep(system="continual", rounds=4, axes=axes, replicates=64, record_every=2)
        >>> results = sweep.run("runs/example")
        >>> results.rounds.tolist(), results.coverage.is_complete, results.to_xarray()["forgetting"].dims
        ([2, 4], True, ('num_experts', 'round', 'statistic'))
    """

    def run(
        self,
        path: str | os.PathLike[str],
        *,
        executor: Executor | None = None,
        dask: str | None = None,
        devices: int | None = None,
        progress: Progress = automatic,
        log: str | os.PathLike[str] | None = None,
        keep_going: bool = False,
        only_failed: bool = False,
    ) -> "Results":
        """Compute what is missing of this sweep in the folder `path`; the results. Running again resumes.

        Args:
            executor: any `concurrent.futures.Executor` whose workers can import this package; it is left open.
            dask: or a Dask cluster: the address of its scheduler, or "local:N" for N processes. Whoever controls the
                scheduler can run any code here and on its workers. Certificates are those of Dask's configuration.
            devices: or the number of local devices; all of them unless given.
            progress: where it is reported; by default a line in a notebook, else standard error.
            log: file that gets a line of JSON every ten seconds: rate, time left, what each host has done, failures.
            keep_going: whether to go on where a cell raises an error: `Results.failed` has it, by the cell's name, and
                the results lack what it had.
            only_failed: whether to compute only what raised errors in earlier runs.
        Raises: OutputError, InvalidRunError, UnknownNameError or ExecutorLostError; what was finished before is kept.
        """
        with shown_progress(progress) as listener:
            outcome = runner.run(
                self,
                path,
                pool=runner.pool_of(executor, dask, devices),
                progress=listener,
                log=None if log is None else Path(log),
                keeps_going=keep_going,
                only_failed=only_failed,
            )
            return results_of(outcome, listener)


def results_of(outcome: runner.Outcome, progress: Progress = quiet) -> "Results":
    """The results of a run, with their statistics kept where all is there."""
    is_partial = outcome.counts.done < outcome.counts.num_chunks
    results = Results(outcome.plan, outcome.packs, is_partial)
    results.failed = results.errors_of(outcome.counts.failed)
    if not is_partial:
        results.keep_statistics(progress)
    return results


class Coverage(NamedTuple):
    """Completed part of a sweep."""

    chunks: int
    of_chunks: int
    replicates: int  # of all cells together
    of_replicates: int

    @property
    def is_complete(self) -> bool:
        return self.chunks == self.of_chunks


class Results(Shown):
    """A sweep's results. Chunks are read lazily, a cell at a time."""

    def __init__(self, plan: SweepPlan, packs: Packs, partial: bool = False) -> None:
        self.plan: SweepPlan = plan
        self.packs: Packs = packs
        self.partial: bool = partial
        self.sweep: Specification = plan.sweep
        self._present = [[chunk for chunk in each if chunk.name in packs] for each in plan.by_cell]
        self.damaged: dict[str, str] = {}  # what is wrong with chunks that were read, by name
        self.failed: dict[str, str] = {}  # errors of cells in the run that these are of, by the cells' names
        self._cache = _Cache(CACHED_BYTES)
        self._blocks = CellBlocks(plan, self.kept)
        if not (partial or self.coverage.is_complete):
            raise self._incomplete()

    @classmethod
    def open(cls, path: str | os.PathLike[str], partial: bool = False, version: str | None = None) -> "Results":
        """The results in a run folder; no chunk is read yet.

        Args:
            partial: whether to accept missing chunks: statistics are then of fewer replicates, see `count`, and nan for
                cells without any.
            version: the beginning of the ID of one that was run there, by other code or of another specification, as
                `moe-theory sweep show` lists them; the last one that was run to its end unless given.
        Raises: InvalidRunError where there is no sweep; MissingChunkError where chunks are missing; OutputError for an
            address in place of a folder.
        """
        folder = local(path)
        manifest = read_manifest(folder, version)
        plan = SweepPlan(Sweep.from_json(manifest["specification"]), manifest["fingerprint"])
        return cls(plan, Packs(folder), partial)

    def row(self) -> dict[str, Any]:
        """Its facts by name, as a table of many has them."""
        there = f"{self.coverage.chunks} of {self.coverage.of_chunks}"
        return {**self.sweep.row(), "observables": ", ".join(self.kept), "keeps": self.sweep.keep, "chunks": there}

    def __repr__(self) -> str:
        sweep, coverage, axes = self.sweep, self.coverage, self.sweep.row()["axes"] or "none"
        observables = f"{', '.join(self.kept)}; {sweep.keep}"
        return "\n".join(
            [
                f"<moe_theory.Results: {sweep.system} under {self.reading.name}, {self.packs.folder}",
                f"  axes: {axes} ({len(sweep.grid)} {'cell' if len(sweep.grid) == 1 else 'cells'})",
                f"  recorded: {len(self.rounds)} of {sweep.rounds} rounds of {observables}",
                f"  replicates: {sweep.replicates} a cell; {coverage.chunks} of {coverage.of_chunks} chunks there>",
            ]
        )

    @property
    def coverage(self) -> Coverage:
        """The completed part. A damaged chunk counts as missing once it has been read."""
        kept = sum(chunk.num_kept for chunks in self._present for chunk in chunks)
        of_replicates = self.sweep.replicates * len(self.sweep.grid)
        return Coverage(sum(map(len, self._present)), len(self.plan.chunks), kept, of_replicates)

    @property
    def history(self) -> list[dict[str, Any]]:
        """Records of the folder's runs, the first one first."""
        return runs_in(self.packs.folder)

    @property
    def kind(self) -> Sweepable:
        """The system's description."""
        return sweepable(self.sweep.system)

    @property
    def reading(self) -> Reading:
        """The reading; cells of an axis `reading` have their own."""
        return self.kind.readings[self.sweep.reading or self.kind.default_reading]

    @property
    def rounds(self) -> Int[np.ndarray, " R"]:
        """The recorded rounds, 1-based."""
        return recorded_rounds(self.sweep.rounds, self.stride)

    @property
    def stride(self) -> int:
        """Rounds from one record to the next."""
        return cast(int, self.sweep.record_every)  # set when a specification is made

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of everything that decides the numbers."""
        return digest({"specification": self.sweep.to_json(), "fingerprint": self.plan.fingerprint})

    @functools.cached_property
    def kept(self) -> tuple[str, ...]:
        """Names of the observables."""
        return tuple(self.sweep.observables or self.kind.default_observables)

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of the statistics, such as "mean" or, of the quantile 0.025, "q2.5"."""
        short = [f"q{100 * quantile:g}" for quantile in self.sweep.quantiles]
        exact = [f"q{100 * quantile!r}" for quantile in self.sweep.quantiles]
        return (*MOMENTS, *(short if len(set(short)) == len(short) else exact))

    def to_xarray(self) -> "xr.Dataset":
        """Everything as a labelled dataset; numbers are read lazily, of the selected cells alone.

        Dimensions are the grid's axes, `round`, an observable's own axes such as `expert_index`, and `statistic`
        (float64) or, of a sweep that keeps replicates, `replicate` (in the run's precision; whole numbers of which
        some are missing are float64 with nan). Of a zip, whose axis counts from 0, each name is a coordinate.
        """
        return _dataset(self)

    def to_netcdf(self, path: str | os.PathLike[str]) -> Path:
        """Write a netCDF 3 file, the same bytes for the same results.

        Integers are of 32 bits there and text is of characters; `xarray.open_dataset` gives equal values and labels.
        All that is written is in memory at once: little of statistics, everything where replicates are kept.

        Raises: OutputError where it cannot be written; InvalidRunError for a variable of more than 2 GiB.
        """
        from moe_theory.sweep import dataset

        return dataset.to_netcdf(self.to_xarray(), Path(path))

    def to_zarr(self, path: str | os.PathLike[str]) -> Path:
        """Write a Zarr folder (format 2), some cells at a time, the same bytes for the same results.

        Raises: OutputError where it cannot be written or would replace anything but results of a sweep;
            InvalidRunError without the extra `zarr`.
        """
        from moe_theory.sweep import dataset

        return dataset.to_zarr(self.to_xarray(), self.sweep.grid.shape, Path(path))

    def to_parquet(self, path: str | os.PathLike[str]) -> Path:
        """Write a Parquet table, some cells at a time: a row for each cell, round and statistic (or replicate).

        Observables are columns; where one has an axis of its own, rows are of that axis too, and the others repeat.
        The same results and the same pyarrow give the same bytes.

        Raises: OutputError where it cannot be written; InvalidRunError without the extra `parquet`.
        """
        from moe_theory.sweep import dataset

        return dataset.to_parquet(self.to_xarray(), self.sweep.grid.shape, Path(path))

    def cell(self, index: int | None = None, /, **settings: Any) -> Run:
        """All replicates of one cell: the `index`-th of the grid, or the one with these settings.

        Raises: UnknownNameError, InvalidParamsError or InvalidRunError where that names no cell, or several;
            MissingChunkError if some of its replicates are missing.
        """
        place = self._place_of(settings) if index is None else range(len(self.sweep.grid))[index]
        return self.run_of(place)

    def runs(self, first: int = 0, count: int | None = None) -> Mapping[str, Run]:
        """The cells' runs by their names, such as "num_experts = 5, truth_scale = 0.4"; each is read when asked for.

        The only cell of a sweep without axes has the name of the system.

        Args:
            count: of the replicates from `first` on; None takes all there are.
        Raises: InvalidRunError for replicates that the sweep does not have.
        """
        last = self.sweep.replicates if count is None else first + count
        if not 0 <= first < last <= self.sweep.replicates:
            raise InvalidRunError(
                f"replicates {first} to {last - 1} are asked for, and the sweep has {self.sweep.replicates}: raise "
                "`replicates` in its specification and run it again, which computes only what is new."
            )
        return _Runs(self.names, lambda place: self.run_of(place, first, last))

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the cells, in the grid's order."""
        texts = {name: _texts(values) for axis in self.sweep.grid.axes for name, values in axis.columns.items()}
        return tuple(
            ", ".join(f"{name} = {texts[name][value]}" for name, value in cell.settings.items()) or self.sweep.system
            for cell in self.sweep.grid.cells
        )

    def run_of(self, place: int, first: int = 0, last: int | None = None) -> Run:
        """Replicates `first` to `last` - 1 of the cell at this place. Raises: MissingChunkError; InvalidRunError where
        they were not kept.
        """
        self._require_replicates()
        last = self.sweep.replicates if last is None else last
        chunks = [
            chunk for chunk in self.plan.by_cell[place] if chunk.first < last and chunk.first + chunk.num_kept > first
        ]
        pieces = [self._read(chunk) for chunk in chunks]
        if None in pieces:
            raise self._incomplete(f"replicates {first} to {last - 1} of {self.names[place]}")
        start = first - chunks[0].first
        joined = {name: _joined(pieces, name)[..., start : start + last - first] for name in self.kept}
        records = _records(self.kept)(**joined)
        return Run(self.sweep.grid.cells[place].params, self.rounds, np.arange(first, last), None, records)

    def statistics_of(self, place: int) -> dict[str, Float[np.ndarray, "..."]] | None:
        """Statistics (R, *own axes, statistics) of the cell at this place, by observable; None without replicates.

        Moments merge in the order of chunks; quantiles are exact.
        """
        block = place // self._blocks.size
        kept = self._cache.get(("block", block), lambda: self._kept(block)) if self._is_kept(block) else None
        return kept[place] if kept else self._cache.get(("statistics", place), lambda: self._statistics(place))

    def keep_statistics(self, progress: Progress = quiet) -> None:
        """Keep the statistics of all cells in the run folder, so that whoever opens it need not read the replicates.
        Processes that share the folder share the work. Raises: MissingChunkError where chunks are missing; OutputError
        where it cannot be written.
        """
        if self.partial:  # what is kept is of all replicates
            Results(self.plan, self.packs).keep_statistics(progress)
            return
        left = [block for block in range(len(self._blocks)) if not self._is_kept(block)]
        if not left:
            return
        failures: list[OutputError] = []
        progress.running("statistics")

        def note(news: Sequence[str] | OutputError) -> None:
            if isinstance(news, OutputError):
                failures.append(news)
            else:
                for name in news:
                    self.packs.release(name)

        keeper = Keeper(self.packs, note)
        threads = ThreadPoolExecutor(available_cores())
        try:
            while left and not failures:
                busy = []  # other processes
                for number, is_done in enumerate(threads.map(lambda block: self._keep(block, keeper), left), 1):
                    progress.at(f"statistics, {number:,} of {len(left):,} blocks of cells")
                    if not is_done:
                        busy.append(left[number - 1])
                left = busy
                if left:
                    holders = self.packs.holders(map(self._blocks.name, left))
                    progress.running(f"nothing: {held_by(holders, 'block of statistics', 'blocks of statistics')}")
                    time.sleep(POLL)
        finally:
            threads.shutdown(cancel_futures=True)
            keeper.close()
            self.packs.close()
        if failures:
            raise failures[0]

    def replicates_of(self, place: int) -> tuple[Int[np.ndarray, " B"], Arrays] | None:
        """Numbers of the replicates of the cell at this place, and (R, *own axes, B) by observable; or None. Raises:
        InvalidRunError where they were not kept.
        """
        self._require_replicates()
        return self._cache.get(("replicates", place), lambda: self._replicates(place))

    def errors_of(self, failed: Mapping[str, str]) -> dict[str, str]:
        """What went wrong with chunks that are not there, by the names of their cells."""
        chunks = self.plan.chunks if failed else ()
        gone = (chunk for chunk in chunks if chunk.name in failed and chunk.name not in self.packs)
        return {self.names[chunk.cell]: failed[chunk.name] for chunk in gone}

    def _statistics(self, place: int) -> Arrays | None:
        pieces = [arrays for _, arrays in self._readable(place)]
        if self.sweep.keep == ONLY:
            return {name: pieces[0][name] for name in self.kept} if pieces else None
        return over_replicates(pieces, self.kept, self.sweep.quantiles) if pieces else None

    def _require_replicates(self) -> None:
        if self.sweep.keep == ONLY:
            raise InvalidRunError(
                f"{self.packs.folder} has statistics only, and no replicates: set keep = 'statistics' in its "
                "specification and run it again."
            )

    def _is_kept(self, block: int) -> bool:
        return self._blocks.name(block) in self.packs

    def _kept(self, block: int) -> dict[int, Arrays] | None:
        """Statistics of a block's cells; None where they are damaged, and are to be taken again."""
        try:
            return self._blocks.unpacked(block, self.packs.read(self._blocks.name(block)))
        except (MissingChunkError, DamagedChunkError):
            return None

    def _keep(self, block: int, keeper: Keeper) -> bool:
        """Take the statistics of a block's cells; False where another process is at it."""
        name = self._blocks.name(block)
        if not self.packs.claim(name):
            return False
        self.packs.refresh()
        if name in self.packs:
            self.packs.release(name)
        else:
            found = [self._statistics(place) for place in self._blocks.cells(block)]
            keeper.keep(name, self._blocks.packed(block, cast(list[Arrays], found)))
        return True

    def _replicates(self, place: int) -> tuple[np.ndarray, Arrays] | None:
        read = self._readable(place)
        if not read:
            return None
        numbers = np.concatenate([chunk.first + np.arange(chunk.num_kept) for chunk, _ in read])
        return numbers, {name: _joined([arrays for _, arrays in read], name) for name in self.kept}

    def _readable(self, place: int) -> list[tuple[PlannedChunk, Arrays]]:
        """The chunks of a cell that are there and whole, in the order of replicates."""
        chunks = list(self._present[place]) if self.partial else self.plan.by_cell[place]
        read = [(chunk, self._read(chunk)) for chunk in chunks]
        return [(chunk, arrays) for chunk, arrays in read if arrays is not None]

    def _read(self, chunk: PlannedChunk) -> Arrays | None:
        """A chunk's replicates that count; None if it is missing or damaged, where that is allowed."""
        try:
            arrays = self.packs.read(chunk.name)
        except (MissingChunkError, DamagedChunkError) as failure:
            self._present[chunk.cell] = [other for other in self._present[chunk.cell] if other.name != chunk.name]
            self.damaged[chunk.name] = str(failure)
            if self.partial:
                return None
            raise self._incomplete(str(failure)) from failure
        whole = self.sweep.keep == ONLY
        return {name: array if whole else array[..., : chunk.num_kept] for name, array in arrays.items()}

    def _incomplete(self, what: str = "") -> MissingChunkError:
        coverage = self.coverage
        return MissingChunkError(
            f"{self.packs.folder}: {coverage.chunks} of {coverage.of_chunks} chunks are there"
            f"{f' ({what})' if what else ''}. The same `moe-theory sweep` command computes the others; "
            "partial=True takes the statistics of what is there."
        )

    def _place_of(self, settings: Mapping[str, Any]) -> int:
        cells = self.sweep.grid.cells
        for name, value in settings.items():
            if name not in cells[0].settings:
                raise unknown_name("axis", name, cells[0].settings, self.kind.params)
            known = list(dict.fromkeys(cell.settings[name] for cell in cells))
            if not any(_is_same(value, each) for each in known):
                raise InvalidParamsError(
                    f"{name}={value} is not in the sweep. Known: {', '.join(_texts(known).values())}."
                )
        matching = [
            place
            for place, cell in enumerate(cells)
            if all(_is_same(value, cell.settings[name]) for name, value in settings.items())
        ]
        if len(matching) == 1:
            return matching[0]
        rest = ", ".join(name for name in cells[0].settings if name not in settings)
        raise InvalidRunError(f"{len(matching)} cells have these settings. Name one of them: give also {rest}.")


def _dataset(results: Results) -> "xr.Dataset":
    import xarray as xr

    from moe_theory.sweep.dataset import LazyCells

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
        dims = (*(axis.name for axis in sweep.grid.axes), ROUND, *own, last[0])
        reader = functools.partial(read, results, name, inner, dtype)
        variables[name] = LazyCells.variable(dims, about, sweep.grid.shape, inner, dtype, reader)
    coordinates: dict[str, xr.Variable] = {}
    for axis in sweep.grid.axes:
        columns = {name: np.array(values) for name, values in axis.columns.items()}
        columns = columns if axis.name in columns else {axis.name: np.arange(axis.num_values), **columns}
        for name, values in columns.items():
            about = {"long_name": long_name(name, results.kind.params)} if name in axis.columns else {}
            coordinates[name] = xr.Variable(axis.name, values, about)
    coordinates[ROUND] = xr.Variable(ROUND, results.rounds, {"long_name": "recorded round t, from 1 on"})
    coordinates |= {axis: xr.Variable(axis, np.arange(size)) for axis, size in sizes.items()}
    labels = np.arange(sweep.replicates) if is_replicates else np.array(results.statistics)
    coordinates[last[0]] = xr.Variable(last[0], labels)
    return xr.Dataset(variables, coordinates, _attributes(results))


def _read_statistics(results: Results, name: str, inner: tuple[int, ...], dtype: np.dtype, place: int) -> np.ndarray:
    found = results.statistics_of(place)
    if found is not None and found[name].shape == inner:
        return found[name]
    whole = np.full(inner, np.nan, dtype)
    whole[..., 0] = 0  # the count
    if found is not None:
        whole[tuple(map(slice, found[name].shape))] = found[name]
    return whole


def _read_replicates(results: Results, name: str, inner: tuple[int, ...], dtype: np.dtype, place: int) -> np.ndarray:
    found = results.replicates_of(place)
    if found is not None and found[1][name].shape == inner:
        return found[1][name].astype(dtype, copy=False)
    if dtype.kind != "f":
        raise MissingChunkError(
            f"{results.packs.folder}: a chunk has turned out to be damaged, and {name} has no number for what is "
            "missing. Make the dataset again, or run the sweep again."
        )
    whole = np.full(inner, np.nan, dtype)
    if found is not None:
        numbers, arrays = found
        whole[(*map(slice, arrays[name].shape[:-1]), numbers)] = arrays[name]
    return whole


def _shapes(results: Results) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """The shape of each observable's own axes, largest over the cells, and the type of its numbers."""
    kept, is_statistics = results.kept, results.sweep.keep != "replicates"
    if is_statistics and not any(results.kind.observables[name].axes for name in kept):
        return {name: ((), np.dtype(np.float64)) for name in kept}
    records = [chunk_shapes(task)[1] for task in results.plan.programs.values()]
    found = {}
    for name in kept:
        shapes = {record[name].shape for record in records}
        is_whole = len(shapes) == 1 and results.coverage.is_complete
        own = np.dtype(records[0][name].dtype)
        dtype = own if not is_statistics and (is_whole or own.kind == "f") else np.dtype(np.float64)
        found[name] = tuple(map(max, zip(*shapes, strict=True))), dtype
    return found


def _attributes(results: Results) -> dict[str, str]:
    """Attributes that decide the numbers, without how, where or when they were computed."""
    fingerprint, there = results.plan.fingerprint, results.coverage
    return {
        "title": f"{results.sweep.system}: {results.kind.about}",
        "specification": json.dumps(results.sweep.to_json(), sort_keys=True),
        "digest": results.digest,
        "chunks": f"{there.chunks} of {there.of_chunks}",
        "moe_theory": fingerprint["moe-theory"],
        "fingerprint": json.dumps(fingerprint, sort_keys=True),
    }


class _Runs(Mapping[str, Run]):
    """Runs by name, each read once and when it is asked for."""

    def __init__(self, names: Sequence[str], read: Callable[[int], Run]) -> None:
        self._places = {name: place for place, name in enumerate(names)}
        self._read = functools.cache(read)

    def __getitem__(self, name: str) -> Run:
        if name not in self._places:
            raise KeyError(str(unknown_name("cell", name, self._places)))
        return self._read(self._places[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


class _Cache:
    """A least-recently-used cache, limited by bytes."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._kept: collections.OrderedDict[Any, tuple[Any, int]] = collections.OrderedDict()  # value, bytes
        self._bytes = 0
        self._lock = threading.Lock()
        _CACHES.add(self)

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
            value = make()
            self._kept[key] = value, _size(value)
            self._bytes += _size(value)
            while len(self._kept) > 1 and self._bytes > self.most_bytes:
                self._bytes -= self._kept.popitem(last=False)[1][1]
            return value

    def __reduce__(self) -> tuple[Any, ...]:
        return _Cache, (self.most_bytes,)  # what it holds is read again


_CACHES: weakref.WeakSet[_Cache] = weakref.WeakSet()


def _unlock() -> None:
    """Renew locks in a forked child, which lacks the threads that may have held them."""
    for cache in _CACHES:
        cache._lock = threading.Lock()


after_fork(_unlock)


def _size(value: Any) -> int:
    """Bytes of the arrays in nested dictionaries and tuples."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else ()
    return sum(map(_size, parts))


@functools.cache
def _records(names: tuple[str, ...]) -> Any:
    return collections.namedtuple("Records", names)


def _joined(pieces: Sequence[Arrays | None], name: str) -> np.ndarray:
    return np.concatenate([piece[name] for piece in pieces if piece is not None], axis=-1)


def _is_same(asked: Any, value: Any) -> bool:
    """Whether two values are equal up to the last digits of a computed axis."""
    if isinstance(asked, str) or isinstance(value, str):
        return asked == value
    return math.isclose(asked, value, rel_tol=1e-9)


def _texts(values: Sequence[Any]) -> dict[Any, str]:
    """A column's values as text: six digits, or all of them if values differ only beyond six."""
    exact = {value: value if isinstance(value, str) else shown(value) for value in values}
    short = {value: f"{value:.6g}" if isinstance(value, float) else text for value, text in exact.items()}
    return short if len(set(short.values())) == len(short) else exact
