"""Evidence: runs of an experiment, the samples that claims take from them, and samples kept on disk."""

import ast
import functools
import hashlib
import io
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import jax
import numpy as np
from jaxtyping import Float

import moe_theory
from moe_theory.core.errors import InvalidClaimError
from moe_theory.runs import Cell, Progress, replicate_rounds
from moe_theory.runs.cells import RunningCells
from moe_theory.runs.files import write_whole
from moe_theory.runs.provenance import fingerprint, is_x64, versions
from moe_theory.verify.claim import Claim, Experiment, ReadingLike, Runs, require_replicates_last

SHOWN_BY = {"cli", "report", "tour"}  # folders of the package that decide no numbers


def runs_of(
    experiment: Experiment, cells: Sequence[Cell], first: int, last: int, seed: int, progress: Progress, what: str
) -> "RunningCells | RunsAtOnce":
    """Runs of the cells, of replicates `first` to `last` - 1: to be simulated, measured, or read from a stored sweep.

    Raises, here or when they are made: MissingChunkError for a chunk of a stored sweep that is damaged.
    """
    count = last - first
    if experiment.measure is None and experiment.stored is None:
        return RunningCells(cells, count, first, seed, experiment.width, progress, what)

    def make() -> Runs:
        progress.add_work(replicate_rounds(cells, count))
        progress.running(what)
        if experiment.measure is not None:
            runs = experiment.measure(cells, first, count, seed)
        else:
            stored: Any = experiment.stored
            found = stored.runs(first, count)
            runs = {cell.name: found[cell.name] for cell in cells}
        progress.advance(replicate_rounds(cells, count))
        return runs

    return RunsAtOnce(make)


class RunsAtOnce:
    """Runs that the waiting thread makes by itself, in the manner of `RunningCells`."""

    num_bytes = 0  # that are known of

    def __init__(self, make: Callable[[], Runs]) -> None:
        self._make, self._runs, self.seconds = make, None, 0.0

    @property
    def is_finished(self) -> bool:
        return self._runs is not None

    def begin(self, tell: Callable[[Callable[[], None]], None], rank: tuple[int, ...] = ()) -> None:
        del rank
        tell(self._take)

    def cancel(self) -> None:
        """Nothing: it is made or not."""

    def runs(self) -> Runs:
        assert self._runs is not None  # the caller has looked
        return self._runs

    def _take(self) -> None:
        began = time.monotonic()
        self._runs = self._make()
        self.seconds = time.monotonic() - began


class Samples(NamedTuple):
    """What a verdict is made from, in float64: one row a replicate, one column a component."""

    observed: Float[np.ndarray, "B V"]
    predicted: Float[np.ndarray, "B V"]  # of a rate (B, 1), its exponent
    allowed: Float[np.ndarray, "B V"]  # the margin in the difference's own unit
    trivial: Float[np.ndarray, "B V"] | None = None  # the bound that holds anyway

    @property
    def num_replicates(self) -> int:
        return len(self.observed)

    def first(self, count: int) -> "Samples":
        return self._rows(slice(count))

    def from_place(self, place: int) -> "Samples":
        return self._rows(slice(place, None))

    def _rows(self, rows: slice) -> "Samples":
        return Samples(*(None if part is None else part[rows] for part in self))  # pyright: ignore[reportArgumentType]

    def after(self, earlier: "Samples | None") -> "Samples":
        """These replicates behind earlier ones. Raises: InvalidClaimError where the two have different components."""
        if earlier is None:
            return self
        if earlier.observed.shape[1] != self.observed.shape[1]:
            raise InvalidClaimError(
                f"observe gave {self.observed.shape[1]} components, and {earlier.observed.shape[1]} for the "
                "replicates before"
            )
        trivial = None
        if earlier.trivial is not None and self.trivial is not None:
            trivial = np.concatenate([earlier.trivial, self.trivial])
        return Samples(
            np.concatenate([earlier.observed, self.observed]),
            np.concatenate([earlier.predicted, self.predicted]),
            np.concatenate([earlier.allowed, self.allowed]),
            trivial,
        )


def failed_hypotheses(claim: Claim, runs: Runs) -> list[str]:
    return [text for text, holds in _call(claim.hypotheses, [], claim.experiment.dims, runs) if not holds]


def collect(claim: Claim, runs: Runs, num_replicates: int) -> Samples:
    """The samples of a batch of replicates. Raises: InvalidClaimError for shapes or values that cannot be judged."""
    observed = _observed(claim, runs, num_replicates)
    if claim.kind == "identity":
        return Samples(observed, np.zeros_like(observed), np.full_like(observed, claim.margin))
    if claim.abscissa is not None and len(claim.abscissa) != observed.shape[1]:
        raise InvalidClaimError(f"{len(claim.abscissa)} grid points for {observed.shape[1]} components")
    if claim.kind in {"rate", "limit_rate"}:
        exponent = _broadcast(claim, "predict", _call(claim.predict, None, runs), observed[:, :1])
        return Samples(observed, exponent, np.full_like(exponent, claim.margin))
    is_limit = claim.kind == "limit_probability"
    limit = float(is_limit and claim.side == "at_least")
    predicted = _broadcast(claim, "predict", _call(claim.predict, limit, runs), observed)
    if claim.kind in {"probability", "counterexample", "limit_probability"}:
        if not np.all((observed == 0) | (observed == 1)):
            raise InvalidClaimError("observe gave values other than True and False, and an event happens or does not")
        if is_limit:
            return Samples(observed, predicted, np.full_like(observed, claim.margin))
        always = _broadcast(claim, "trivial", _call(claim.trivial, float(claim.side != "at_least"), runs), observed)
        return Samples(observed, predicted, np.full_like(observed, claim.margin), always)
    if claim.kind == "limit_ordering":
        return Samples(observed, predicted, np.full_like(observed, claim.margin))
    scale = _broadcast(claim, "scale", _call(claim.scale, np.abs(predicted), runs), observed)
    trivial = None if claim.trivial is None else _broadcast(claim, "trivial", claim.trivial(runs), observed)
    return Samples(observed, predicted, scale * claim.margin, trivial)


def find_overflows(runs: Runs) -> dict[str, str]:
    """What is wrong with the runs, by name, in which the final state of a replicate is NaN somewhere."""
    found = {}
    for name, run in runs.items():
        leaves = [leaf for leaf in map(np.asarray, jax.tree.leaves(run.state)) if leaf.dtype.kind == "f"]
        lost = [np.isnan(leaf).any(axis=tuple(range(leaf.ndim - 1))) for leaf in leaves]
        if count := int(np.sum(np.any(lost, axis=0))) if lost else 0:
            found[name] = (
                f"{count} of {len(run.replicates)} replicates of {name!r} are NaN after {run.rounds[-1]} rounds: they "
                "have overflowed. Change the parameters."
            )
    return found


def labels_of(claim: Claim, runs: Runs, rounds: np.ndarray, num_components: int) -> list[str]:
    """Names of the components, or of the recorded `rounds`. Raises: InvalidClaimError where there are not as many."""
    labels = ["mean"] if num_components == 1 else [f"component {index + 1}" for index in range(num_components)]
    if claim.abscissa is not None and len(claim.abscissa) == num_components:
        labels = [f"x = {place:.3g}" for place in claim.abscissa]
    elif len(rounds) == num_components:
        labels = [f"t = {time}" for time in rounds]
    labels = list(_call(claim.labels, labels, runs))
    if len(labels) != num_components:
        raise InvalidClaimError(f"{len(labels)} labels for {num_components} components")
    return labels


class Archive:
    """Samples in a folder, one file a claim and reading, so that a verification resumes where it stopped. A file counts
    only if everything that its numbers depend on is the same; any other one, or a damaged one, is ignored and replaced.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(
        self, claim: Claim, reading: ReadingLike, seed: int, also: Sequence[str] = ()
    ) -> tuple[Samples, list[str]] | None:
        """The samples of replicates 0, 1, ... and the components' names; None where there are none that count, for the
        readings `also` too.
        """
        try:
            with self._path(claim, reading).open("rb") as file, np.load(file) as kept:
                if str(kept["key"]) != key_of(claim, reading, seed) or not {*also} <= {*kept["also"].tolist()}:
                    return None
                count = int(kept["count"])
                parts = {
                    name: np.ascontiguousarray(np.broadcast_to(kept[name], (count, kept[name].shape[1])))
                    for name in Samples._fields
                    if name in kept
                }
                return Samples(**parts), [str(label) for label in kept["labels"]]
        except (OSError, KeyError, ValueError, TypeError, EOFError, zipfile.BadZipFile):
            return None

    def save(
        self,
        claim: Claim,
        reading: ReadingLike,
        seed: int,
        samples: Samples,
        labels: list[str],
        also: Sequence[str] = (),
    ) -> None:
        """Write samples over those there are, with the other readings that they were seen not to depend on. Raises:
        OutputError where the folder cannot be written.
        """
        path = self._path(claim, reading)
        known = {name: part for name, part in samples._asdict().items() if part is not None}
        # One row for all, where all replicates have the same.
        contents = {name: part[:1] if np.all(part == part[:1]) else part for name, part in known.items()}
        contents |= {"key": key_of(claim, reading, seed), "count": samples.num_replicates, "labels": labels}
        contents["also"] = np.array(also, str)
        buffer = io.BytesIO()
        np.savez(buffer, **contents)
        write_whole(path, buffer.getvalue(), "make room or name another --out")

    def clear(self) -> None:
        for path in self.folder.glob("*.npz"):
            path.unlink()

    def _path(self, claim: Claim, reading: ReadingLike) -> Path:
        return self.folder / f"{claim.id}@{quote(reading.name, safe=' ,=')}.npz"


def key_of(claim: Claim, reading: ReadingLike, seed: int) -> str:
    """A digest of everything that decides a claim's samples: source, parameters, seed, precision, versions."""
    experiment = claim.experiment
    own = hashlib.sha256()
    for path in sources_of(claim):
        own.update(str(path).encode())
        own.update(path.read_bytes())
    cells = {name: reading.params(**overrides) for name, overrides in experiment.cells.items()}
    stored = "" if experiment.stored is None else experiment.stored.digest
    parts = (
        repr(fingerprint(*_shared_sources())),
        own.hexdigest(),
        claim.id,
        repr((claim.kind, claim.margin, claim.side, claim.abscissa)),
        repr((experiment.name, experiment.dims, experiment.num_rounds, experiment.record_every)),
        repr(cells),
        stored,
        repr((seed, is_x64(), versions())),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def sources_of(claim: Claim) -> list[Path]:
    """The files beside those that all claims share that a claim's numbers may depend on. Of a claim of this package the
    file of its statement, and what that imports from its folder; of another one, where any function may decide a
    sample, the file or the package that declares it, and everything imported from its folder.
    """
    home = sys.modules.get(claim.module.partition(".")[0])
    if home is None or not getattr(home, "__file__", None):
        return []
    if claim.module.startswith("moe_theory."):
        return sorted(_with_neighbours(claim.module, set()))
    own = Path(str(home.__file__)).resolve()
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    imported = {Path(file).resolve() for file in files if file}
    return sorted({own} | {file for file in imported if file.suffix == ".py" and own.parent in file.parents})


def _with_neighbours(module: str, known: set[Path]) -> set[Path]:
    """A module's file, and those of the modules of its folder that it imports."""
    path = Path(str(sys.modules[module].__file__)).resolve()
    if path not in known:
        known.add(path)
        folder = module.rpartition(".")[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(folder):
                for name in (node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)):
                    if name != folder and name in sys.modules:
                        _with_neighbours(name, known)
    return known


@functools.cache
def _shared_sources() -> tuple[str, ...]:
    """The package's files that may decide any claim's numbers: all but statements, and what only shows results."""
    root = Path(moe_theory.__file__).parent
    files = (path.relative_to(root) for path in root.rglob("*.py"))
    return tuple(sorted(str(path) for path in files if not {"statements", *SHOWN_BY} & set(path.parts[:-1])))


def _call(function: Callable | None, default: Any, *arguments: Any) -> Any:
    return default if function is None else function(*arguments)


def _observed(claim: Claim, runs: Runs, num_replicates: int) -> np.ndarray:
    values = claim.observe(runs)
    if claim.function is not None:  # whose replicates are last, as its selection of runs has checked for a run
        require_replicates_last(claim.function, np.shape(values)[::-1], num_replicates)
    array = np.asarray(values, np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != num_replicates:
        raise InvalidClaimError(
            f"observe gave shape {np.shape(values)}, not ({num_replicates},) or ({num_replicates}, components): "
            "one row a replicate"
        )
    return _finite("observe", array)


def _broadcast(claim: Claim, name: str, values: Any, observed: np.ndarray) -> np.ndarray:
    array = np.asarray(values, np.float64)
    if array.ndim == 1 and observed.shape[1] == 1 and len(array) == len(observed):
        array = array[:, None]
    try:
        array = np.broadcast_to(array, observed.shape)
    except ValueError:
        given, wanted, last = np.shape(values), observed.shape, ""
        if claim.function is not None:
            given, wanted, last = given[::-1], wanted[::-1], ": replicates last, (B,) or (V, B)"
        raise InvalidClaimError(f"{name} gave shape {given}, which does not broadcast to {wanted}{last}") from None
    return _finite(name, array)


def _finite(name: str, array: np.ndarray) -> np.ndarray:
    if not np.all(np.isfinite(array)):
        rows = int(np.sum(~np.isfinite(array).all(axis=1)))
        raise InvalidClaimError(f"{name} gave values that are not finite in {rows} of {len(array)} replicates")
    return np.ascontiguousarray(array)  # so that sums over replicates run in one order, however samples came about
