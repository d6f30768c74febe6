"""Samples of claims in the store, keyed by code and inputs, so that a verification resumes."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from moe_theory.core.errors import InvalidValueError
from moe_theory.runs.cells import chunk_of, compute_chunk
from moe_theory.runs.key import Digests
from moe_theory.runs.provenance import fingerprint, is_x64, versions
from moe_theory.runs.store import Store, pack, unpack
from moe_theory.verification.claim import Claim, ReadingLike
from moe_theory.verification.criteria import Samples
from moe_theory.verification.evidence import collect_sample
from moe_theory.verification.interim import SequentialTest


class Archive:
    def __init__(self, folder: Path) -> None:
        self.store = Store(folder)
        self.keys = Keys()
        self.read_keys: set[str] = set()  # keys of samples that were in the store
        self.written_keys: set[str] = set()  # keys of new or extended samples
        self.damaged: dict[str, str] = {}  # by key, why samples cannot be used

    def load(self, claim: Claim, reading: ReadingLike, seed: int) -> tuple[Samples, list[str]] | None:
        key = self.keys.of(claim, reading, seed)
        data = self.store.get(key)
        self.damaged |= self.store.damaged
        if data is None:
            return None
        self.read_keys.add(key)
        arrays = unpack(data)
        count = int(arrays["count"])  # equal replicates are saved as one row
        parts = {}
        for name in Samples._fields:
            if name in arrays:
                shape = (count, arrays[name].shape[1])
                parts[name] = np.ascontiguousarray(np.broadcast_to(arrays[name], shape))
        return Samples(**parts), [str(label) for label in arrays["labels"]]

    def save(self, claim: Claim, reading: ReadingLike, seed: int, samples: Samples, labels: list[str]) -> None:
        """Save samples in place of shorter ones. Raises: OutputError."""
        key = self.keys.of(claim, reading, seed)
        self.written_keys.add(key)
        parts = {name: part for name, part in samples._asdict().items() if part is not None}
        arrays = {}
        for name, part in parts.items():
            has_equal_rows = np.all(part == part[:1])
            arrays[name] = part[:1] if has_equal_rows else part
        arrays["count"] = np.int64(samples.num_replicates)
        arrays["labels"] = np.array(labels, str)
        label = f"{claim.id}@{reading.name}"
        self.store.put({key: pack(arrays)}, label=label, extent=samples.num_replicates)


class Keys:
    """Keys of claims' samples, which are digests of code, parameters, seed, precision, versions and machine."""

    def __init__(self) -> None:
        self._digests = Digests()
        # By the `id` of claim and reading. Values contain both objects, so that no other object gets the same `id`.
        self._codes: dict[tuple[int, int], tuple[str, Any]] = {}

    def of(self, claim: Claim, reading: ReadingLike, seed: int) -> str:
        """Return the key of a claim's samples. Raises: InvalidValueError if a value in the code has no key."""
        ids = (id(claim), id(reading))
        if ids not in self._codes:
            try:
                code = self._digests.of(_values_behind_samples(claim, reading))
            except InvalidValueError as failure:
                raise InvalidValueError(f"claim {claim.id}: {failure}") from None
            self._codes[ids] = (code, (claim, reading))
        code, _ = self._codes[ids]
        parts = (code, fingerprint(), versions(), is_x64(), seed)
        return hashlib.sha256(repr(parts).encode()).hexdigest()


def _values_behind_samples(claim: Claim, reading: ReadingLike) -> Any:
    criterion = claim.criterion
    criterion_functions = [function for _, _, function in criterion.further_samples()]
    functions = [claim.observe, *criterion_functions, claim.labels, claim.hypotheses]
    kind = (criterion.abscissa, criterion.is_of_slopes, criterion.is_of_events, claim.function is None)
    experiment = claim.experiment
    fields = "num_rounds record_every keeps_state width lengths is_double observe start dims".split()
    run = [getattr(experiment, field) for field in fields]
    systems = {name: experiment.system_of(name) for name in experiment.cells}
    params = {name: reading.params(**overrides) for name, overrides in experiment.cells.items()}
    sampling = (SequentialTest.extend, collect_sample, compute_chunk, chunk_of)
    measure = experiment.measured and experiment.measured.make
    return functions, kind, sampling, run, measure, systems, params
