"""The results of a sweep, read from its chunks."""

import itertools
import json
import os
from collections.abc import Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float, Int

from moe_theory.core.errors import MissingError, OutputError, enclosed
from moe_theory.core.machine import available_cores
from moe_theory.core.system import recorded_rounds
from moe_theory.runs.files import digest, local
from moe_theory.runs.pools import pool_of
from moe_theory.runs.progress import Progress, automatic
from moe_theory.runs.progress import shown as shown_progress
from moe_theory.runs.store import Arrays, Store, unpack
from moe_theory.sweep import moments, runner
from moe_theory.sweep.plan import Coverage, PlannedChunk, SweepPlan
from moe_theory.sweep.specification import Specification
from moe_theory.sweep.systems import Sweepable, sweepable

if TYPE_CHECKING:
    import xarray as xr

MOMENTS = ("count", "mean", "standard_error", "min", "max")  # statistics before the quantiles


class Sweep(Specification):
    """A sweep that can be run. Its arguments are the fields of `Specification`.

    Raises: DeclarationError, UnknownNameError or InvalidValueError for an impossible sweep.

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
        part: str | None = None,
    ) -> "Results":
        """Compute the missing chunks in the folder `path`, and return the results. To resume, run it again.

        Args:
            executor: a `concurrent.futures.Executor` whose workers can import this package. It stays open.
            dask: the address of a Dask scheduler, or "local:N" for N processes. Anyone who controls the scheduler can
                run any code here and on its workers. Certificates come from Dask's configuration.
            devices: the number of local devices, by default all. Give only one of these three.
            progress: a listener. By default progress goes to standard error.
            part: in a batch job, a fixed share of the chunks, such as "3/8".
        Raises: OutputError, InvalidValueError, UnknownNameError or WorkersError. Finished chunks are saved first.
        """
        share = None if part is None else runner.Part.parsed(part)
        with shown_progress(progress) as listener:
            pool = pool_of(executor, dask, devices)
            outcome = runner.run(self, path, pool=pool, progress=listener, part=share)
        return results_of(outcome)


def results_of(outcome: runner.Outcome) -> "Results":
    results = Results(outcome.plan, outcome.store, partial=True)  # so that missing chunks raise nothing here
    results.partial = not results.coverage.is_complete
    return results


class Results:
    """A sweep's results. Chunks are read when they are needed."""

    def __init__(self, plan: SweepPlan, store: Store, partial: bool = False) -> None:
        """Raises: MissingError for missing chunks, unless partial results are accepted."""
        self.plan: SweepPlan = plan
        self.store: Store = store
        self.partial: bool = partial
        self.sweep: Specification = plan.sweep
        saved = store.keys()
        self._present: list[list[PlannedChunk]] = []  # saved chunks of each cell
        for chunks in plan.by_cell:
            self._present.append([chunk for chunk in chunks if chunk.name in saved])
        if not (partial or self.coverage.is_complete):
            raise self._incomplete()

    @classmethod
    def open(cls, path: str | os.PathLike[str], partial: bool = False) -> "Results":
        """Return the results in a sweep's folder.

        Args:
            partial: whether to accept missing chunks. Statistics are then nan, or of only `count` replicates.
        Raises: InvalidValueError for a folder without a sweep. MissingError for missing chunks. OutputError for a URL.
        """
        folder = local(path)
        manifest = runner.read_manifest(folder)
        plan = SweepPlan(Sweep.from_json(manifest.specification), manifest.fingerprint)
        return cls(plan, Store(folder), partial)

    @property
    def damaged(self) -> dict[str, str]:
        """The faults of chunks or files that were read, by key."""
        return self.store.damaged

    @property
    def coverage(self) -> Coverage:
        """The completed part of the sweep. Damaged chunks no longer count after they have been read."""
        present = list(itertools.chain.from_iterable(self._present))
        replicates = sum(chunk.num_kept for chunk in present)
        of_replicates = self.sweep.replicates * len(self.sweep.grid)
        return Coverage(len(present), len(self.plan.chunks), replicates=replicates, of_replicates=of_replicates)

    @property
    def kind(self) -> Sweepable:
        """The system's description."""
        return sweepable(self.sweep.system)

    @property
    def rounds(self) -> Int[np.ndarray, " R"]:
        """The recorded rounds, counted from 1."""
        return recorded_rounds(self.sweep.rounds, self.sweep.stride)

    @property
    def digest(self) -> str:
        """The SHA-256 of everything that decides the numbers."""
        return digest({"specification": self.sweep.to_json(), "fingerprint": {**self.plan.fingerprint}})

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of the statistics, such as "mean", or "q2.5" for the quantile 0.025."""
        quantiles = [f"q{100 * quantile:g}" for quantile in self.sweep.quantiles]
        if len(set(quantiles)) < len(quantiles):  # six digits do not tell them apart
            quantiles = [f"q{100 * quantile!r}" for quantile in self.sweep.quantiles]
        return (*MOMENTS, *quantiles)

    def to_xarray(self) -> "xr.Dataset":
        """Return everything as a labelled dataset in memory.

        Dimensions are the grid's axes, `round`, an observable's own axes such as `expert_index`, and `statistic`
        (float64) or, if replicates are saved, `replicate`. Replicates have the run's precision. Integers with missing
        values become float64 with nan. A zip's axis counts from 0, and has a coordinate for each name.
        """
        import xarray as xr

        from moe_theory.sweep.dataset import REPLICATE, STATISTIC, dataset

        places = range(len(self.sweep.grid))
        if self.sweep.keep == "replicates":
            last = xr.Variable(REPLICATE, np.arange(self.sweep.replicates))
            cells = [self.replicates_of(place) for place in places]
        else:
            last = xr.Variable(STATISTIC, np.array(self.statistics))
            with ThreadPoolExecutor(available_cores()) as threads:
                cells = [(slice(None), arrays or {}) for arrays in threads.map(self.statistics_of, places)]
        coverage = self.coverage  # by now damaged chunks are known
        data = dataset(self.sweep, cells, last, coverage.is_complete)
        return data.assign_attrs(
            title=f"{self.sweep.system}: {self.kind.about}",
            specification=json.dumps(self.sweep.to_json(), sort_keys=True),
            digest=self.digest,
            chunks=f"{coverage.chunks} of {coverage.of_chunks}",
            moe_theory=self.plan.fingerprint["moe-theory"],
            fingerprint=json.dumps(self.plan.fingerprint, sort_keys=True),
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything as netCDF 3 (.nc). Integers have 32 bits, and texts are characters.

        Raises: OutputError if the file cannot be written. InvalidValueError if a variable has more than 2 GiB.
        """
        from moe_theory.sweep import dataset

        if Path(path).suffix != ".nc":
            raise OutputError(f"{path} must end in .nc, for netCDF. For other formats use to_xarray().")
        dataset.to_netcdf(self.to_xarray(), Path(path))
        return Path(path)

    def statistics_of(self, place: int) -> dict[str, Float[np.ndarray, "..."]] | None:
        """Return the statistics of the cell at this place, by observable, in shape (R, *own axes, statistics)."""
        chunks = [arrays for _, arrays in self._read(place)]
        if not chunks:
            return None
        statistics = {}
        for name in self.sweep.quantities:
            statistics[name] = _statistics([arrays[name] for arrays in chunks], self.sweep.quantiles)
        return statistics

    def replicates_of(self, place: int) -> tuple[Int[np.ndarray, " B"], Arrays]:
        """Return the replicates' numbers in the cell at this place, and arrays (R, *own axes, B) by observable."""
        chunks = self._read(place)
        if not chunks:
            return np.arange(0), {}
        numbers = np.concatenate([chunk.first + np.arange(chunk.num_kept) for chunk, _ in chunks])
        joined = {}
        for name in self.sweep.quantities:
            joined[name] = np.concatenate([arrays[name] for _, arrays in chunks], axis=-1)
        return numbers, joined

    def _read(self, place: int) -> list[tuple[PlannedChunk, Arrays]]:
        """Return a cell's intact chunks and their arrays. Raises: MissingError for missing chunks, unless partial."""
        chunks = []
        for chunk in self.plan.by_cell[place]:
            data = self.store.get(chunk.name)
            if data is None:  # missing or damaged
                self._present[chunk.cell] = [saved for saved in self._present[chunk.cell] if saved is not chunk]
                if not self.partial:
                    raise self._incomplete(self.damaged.get(chunk.name, ""))
            else:
                arrays = {name: array[..., : chunk.num_kept] for name, array in unpack(data).items()}
                chunks.append((chunk, arrays))
        return chunks

    def _incomplete(self, fault: str = "") -> MissingError:
        coverage = self.coverage
        return MissingError(
            f"{self.store.folder}: {coverage.chunks} of {coverage.of_chunks} chunks exist{enclosed(' (', fault, ')')}. "
            "Rerun the same `moe-theory sweep` command to compute the others, or pass partial=True to do without them."
        )


def _statistics(pieces: Sequence[np.ndarray], quantiles: Sequence[float]) -> Float[np.ndarray, "R ... S"]:
    """Return the statistics of pieces (R, ..., B) over all their replicates."""
    doubles: list[Any] = [piece.astype(np.float64, order="C") for piece in pieces]
    with np.errstate(invalid="ignore", over="ignore"):  # values or their squares may not be finite
        merged = moments.merge([moments.over_replicates(piece) for piece in doubles])
        rows = np.quantile(np.concatenate(doubles, axis=-1), quantiles, axis=-1)
    columns = [merged.count, merged.mean, merged.standard_error, merged.minimum, merged.maximum]
    return np.stack([*columns, *rows], axis=-1)
