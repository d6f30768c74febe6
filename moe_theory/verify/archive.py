"""Samples kept on disk, named after what decides them, so that a verification resumes where it stopped."""

import glob
import hashlib
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from moe_theory.core.errors import DamagedChunkError, InvalidRunError, MissingChunkError
from moe_theory.runs.cells import chunk_of, compute_chunk
from moe_theory.runs.files import pack
from moe_theory.runs.key import Digests
from moe_theory.runs.provenance import fingerprint, is_x64, versions
from moe_theory.runs.store import Store
from moe_theory.verify.claim import Claim, Experiment, ReadingLike
from moe_theory.verify.evidence import (
    EVENTS,
    EXPONENTS,
    Samples,
    asked,
    collect,
    failed_hypotheses,
    find_overflows,
    labels_of,
)
from moe_theory.verify.interim import SequentialTest, take


class Archive:
    """Samples in a folder, one file a claim and setting, so that a verification resumes where it stopped. The file's
    name has a digest of everything that its numbers depend on; one that is damaged is ignored and replaced.

    `store` has the claims: `name_of` says which name stands for a claim's samples.
    """

    def __init__(self, folder: Path) -> None:
        """Raises: InvalidRunError for a folder of an earlier version."""
        self.store, self.keys = Store(folder, "make room or name another --out"), Keys()
        self.found: set[str] = set()  # entries that were there when they were asked for
        self.written: set[str] = set()  # entries computed since, or added to
        self.damaged: dict[str, str] = {}  # why entries that were there count for nothing
        self.store.remove_leftovers()
        if any(not _CURRENT.search(path.name) for path in folder.glob(_SAMPLES)):
            raise InvalidRunError(
                f"{folder} holds samples of an earlier version, which this one cannot use. Name another --out, or give "
                "--fresh to discard them."
            )

    def load(self, claim: Claim, reading: ReadingLike, seed: int) -> tuple[Samples, list[str]] | None:
        """The samples of replicates 0, 1, ... and the components' names; None where there are none that count."""
        key = self.keys.of(claim, reading, seed)
        name = _name(claim, reading, key)
        try:
            kept = self.store.read(name, {"key": key})
        except MissingChunkError:
            return None
        except DamagedChunkError as failure:
            self.damaged[name] = failure.reason
            return None
        self.found.add(name)
        count = int(kept["count"])
        parts = {
            name: np.ascontiguousarray(np.broadcast_to(kept[name], (count, kept[name].shape[1])))
            for name in Samples._fields
            if name in kept
        }
        return Samples(**parts), [str(label) for label in kept["labels"]]

    def save(self, claim: Claim, reading: ReadingLike, seed: int, samples: Samples, labels: list[str]) -> None:
        """Write samples over those there are; others of the same claim and setting go. Raises: OutputError where the
        folder cannot be written.
        """
        key, label = self.keys.of(claim, reading, seed), _label(claim, reading)
        name = _name(claim, reading, key)
        known = {name: part for name, part in samples._asdict().items() if part is not None}
        # One row for all, where all replicates have the same.
        contents = {name: part[:1] if np.all(part == part[:1]) else part for name, part in known.items()}
        contents |= {"count": np.int64(samples.num_replicates), "labels": np.array(labels, str)}
        self.store.write(name, pack({"key": key}, contents))
        self.written.add(name)
        for path in self.store.folder.glob(f"{glob.escape(label)}-*.npz"):
            if _CURRENT.sub("", path.name) == label and path != self.store.path(name):
                path.unlink(missing_ok=True)

    def name_of(self, claim: Claim, reading: ReadingLike, seed: int) -> str:
        """The name of a claim's samples in the store."""
        return _name(claim, reading, self.keys.of(claim, reading, seed))


def clear_samples(folder: Path) -> None:
    """Remove samples, those of earlier versions too, and no other files."""
    for path in folder.glob(_SAMPLES):
        path.unlink(missing_ok=True)


_SAMPLES = "*@*.npz"  # whoever wrote them
_CURRENT = re.compile(r"-[0-9a-f]{16}\.npz$")


def _name(claim: Claim, reading: ReadingLike, key: str) -> str:
    return f"{_label(claim, reading)}-{key[:16]}"


def _label(claim: Claim, reading: ReadingLike) -> str:
    return f"{claim.id}@{quote(reading.name, safe=' ,=')}"


class Keys:
    """Keys of claims' samples: digests of everything that decides them, which is code, parameters, seed, precision,
    versions and machine. What they share is read once, so that they are of one verification. Where a function names a
    value that cannot be hashed, such as an open file's, no later verification has the same key.
    """

    def __init__(self) -> None:
        self._digests = Digests()
        self._known: dict[tuple[int, ...], str] = {}  # by the ids of what they are keys of
        self._kept: list[Any] = []  # these, so that nothing else has their ids

    def of(self, claim: Claim, reading: ReadingLike, seed: int) -> str:
        parts = (
            self._digest(_functions, claim),
            self._digest(_code, claim.experiment),
            self._digest(_params, claim.experiment, reading),
            fingerprint(),
            versions(),
            is_x64(),
            seed,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def _digest(self, parts: Callable[..., Any], *of: Any) -> str:
        place = tuple(map(id, of))
        if place not in self._known:
            self._kept.append(of)
            try:
                self._known[place] = self._digests.of(parts(*of))
            except InvalidRunError:
                self._known[place] = uuid.uuid4().hex
        return self._known[place]


def _functions(claim: Claim) -> Any:
    functions = [claim.observe, *(function for *_, function in asked(claim)), claim.labels, claim.hypotheses]
    return functions, claim.abscissa, claim.kind in EXPONENTS, claim.kind in EVENTS, claim.function is None


def _code(experiment: Experiment) -> Any:
    """Code that makes an experiment's runs and takes samples of them, without the parameters."""
    takes = (SequentialTest.add, take, collect, failed_hypotheses, labels_of, find_overflows, compute_chunk, chunk_of)
    run = (experiment.num_rounds, experiment.record_every, experiment.keeps_state, experiment.width)
    run = (*run, experiment.lengths, experiment.is_double)
    functions = (experiment.observe, experiment.start, experiment.measured and experiment.measured.make)
    systems = {name: experiment.system_of(name) for name in experiment.cells}
    return takes, run, functions, systems, experiment.dims, experiment.stored and experiment.stored.digest


def _params(experiment: Experiment, reading: ReadingLike) -> Any:
    return {name: reading.params(**overrides) for name, overrides in experiment.cells.items()}
