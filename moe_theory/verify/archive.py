"""Samples on disk, so that a verification goes on where it stopped.

One file a claim and reading. It counts only if everything is the same that its numbers depend on; anything else,
a damaged file included, is as if it were not there, and is taken anew.
"""

import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from moe_theory.runs.files import write_whole
from moe_theory.runs.provenance import backend, is_x64, source_digest, versions
from moe_theory.verify.claim import Claim, ReadingLike
from moe_theory.verify.evidence import Samples
from moe_theory.verify.modules import sources_of


class Archive:
    """A folder of samples."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load(self, claim: Claim, reading: ReadingLike, seed: int) -> tuple[Samples, list[str]] | None:
        """The samples of replicates 0, 1, ... and the components' names, if there are any."""
        try:
            with self._path(claim, reading).open("rb") as file, np.load(file) as kept:
                if str(kept["key"]) != key_of(claim, reading, seed):
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

    def save(self, claim: Claim, reading: ReadingLike, seed: int, samples: Samples, labels: list[str]) -> None:
        """Keep samples in place of those there are. Raises: OutputError where the folder cannot take them."""
        path = self._path(claim, reading)
        contents: dict[str, Any] = {
            name: _compact(part) for name, part in samples._asdict().items() if part is not None
        }
        contents |= {"key": key_of(claim, reading, seed), "count": samples.num_replicates, "labels": labels}
        buffer = io.BytesIO()
        np.savez(buffer, **contents)
        write_whole(path, buffer.getvalue(), "make room or name another --out")

    def clear(self) -> None:
        """Forget all samples."""
        for path in self.folder.glob("*.npz"):
            path.unlink()

    def _path(self, claim: Claim, reading: ReadingLike) -> Path:
        return self.folder / f"{claim.id}@{reading.name}.npz"


def key_of(claim: Claim, reading: ReadingLike, seed: int) -> str:
    """A digest of everything that decides a claim's samples: source, parameters, seed, precision, versions."""
    experiment = claim.experiment
    cells = {name: reading.params(**overrides) for name, overrides in experiment.cells.items()}
    stored = "" if experiment.stored is None else experiment.stored.digest
    parts = (
        source_digest(),
        _own_digest(claim),
        claim.id,
        repr((claim.kind, claim.margin, claim.side, claim.abscissa)),
        repr((experiment.name, experiment.dims, experiment.num_rounds, experiment.record_every)),
        repr(cells),
        stored,
        repr((seed, is_x64(), backend(), versions())),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _own_digest(claim: Claim) -> str:
    """Of a user's own files: any of their functions may decide a sample, and any file what a function does."""
    digest = hashlib.sha256()
    for path in sources_of(claim):
        digest.update(str(path).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _compact(part: np.ndarray) -> np.ndarray:
    """One row for all, where all replicates have the same."""
    return part[:1] if np.all(part == part[:1]) else part
