"""Chunks on disk. Their files are the only truth: what is there and whole is done, whoever computed it.

| path | what it is |
| --- | --- |
| `chunks/ab/ab....npz` | one chunk, under its name, a digest of its task |
| `manifest.json` | the specification, and who ran it when with what; for readers, no number depends on it |
| `.lock` | which chunks are being computed, by processes that share the folder |
"""

import contextlib
import hashlib
import json
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from moe_theory.core.errors import DamagedChunkError, InvalidRunError, MissingChunkError, OutputError
from moe_theory.runs.files import SUFFIX, digest, read_json, unpack, write_whole
from moe_theory.runs.locks import Locks

SCHEMA = "moe-theory/sweep/1"
MANIFEST = "manifest.json"
CHUNK_WAY_OUT = "finished chunks are kept. Make room there or make it writable, then run the same command again"
MANIFEST_WAY_OUT = "name a folder that you may write to, with room in it"
_LOCK = ".lock"
ABANDONED = 600.0  # seconds after which nobody is still writing a file
_MANIFEST_BYTE = 0  # of the lock file; the others stand for chunks


def chunk_name(task: Mapping[str, Any]) -> str:
    return digest(task)[:40]


class Store:
    """A run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._opened: Locks | None = None

    def path(self, name: str) -> Path:
        return self.folder / "chunks" / name[:2] / f"{name}.npz"

    def __contains__(self, name: str) -> bool:
        """Whether there is a file of this name; only reading it shows whether it is whole."""
        return self.path(name).is_file()

    def damage(self, name: str) -> str | None:
        """What is wrong with a chunk that is there; None if it is whole."""
        try:
            self.read(name)
        except DamagedChunkError as failure:
            return failure.reason
        return None

    def read(self, name: str) -> dict[str, np.ndarray]:
        """A chunk's arrays by observable, (R, ..., width). Raises: MissingChunkError, or DamagedChunkError."""
        path = self.path(name)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise MissingChunkError(f"{path} is not there: run the sweep again to compute it.") from None
        except OSError as failure:
            raise DamagedChunkError(path, f"it cannot be read ({failure.strerror or failure})") from None
        try:
            task, arrays = unpack(data)
        except ValueError as failure:
            raise DamagedChunkError(path, str(failure)) from None
        if chunk_name(task) != name:
            raise DamagedChunkError(path, "it holds another chunk")
        return arrays

    def write(self, name: str, data: bytes) -> None:
        """Keep a chunk: whole under its name, or not at all. Raises: OutputError where the folder cannot take it."""
        write_whole(self.path(name), data, CHUNK_WAY_OUT, is_durable=True)

    def remove_leftovers(self) -> None:
        """Remove half-written files of killed processes, but none that a living one may be writing."""
        for pattern in (f"chunks/*/.*{SUFFIX}", f".*{SUFFIX}"):
            for path in self.folder.glob(pattern):
                with contextlib.suppress(OSError):
                    if time.time() - path.stat().st_mtime > ABANDONED:
                        path.unlink()

    def claim(self, name: str) -> bool:
        """Claim a chunk to compute; False where somebody else has it. Claims end with their process."""
        return self._locks.acquire(_byte_of(name))

    def release(self, name: str) -> None:
        self._locks.release(_byte_of(name))

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def manifest(self) -> dict[str, Any]:
        """The manifest. Raises: InvalidRunError where there is none, or one that cannot be read."""
        path = self.folder / MANIFEST
        again = "run the sweep again, which writes a new one and computes nothing twice"
        try:
            manifest = read_json(path)
        except FileNotFoundError:
            raise InvalidRunError(
                f"{self.folder} holds no sweep: there is no {MANIFEST} in it. Name another folder."
            ) from None
        except (OSError, ValueError) as failure:
            raise InvalidRunError(f"{path} cannot be read ({failure}): {again}.") from None
        if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
            raise InvalidRunError(f"{path} is no manifest of a sweep ({SCHEMA}). Name another folder.")
        kinds = {"specification": dict, "fingerprint": dict, "runs": list}
        if not all(isinstance(manifest.get(name), kind) for name, kind in kinds.items()):
            raise InvalidRunError(f"{path} is damaged: {again}.")
        return manifest

    @contextlib.contextmanager
    def recorded(self, specification: Mapping[str, Any], fingerprint: Mapping[str, str], run: dict) -> Iterator[None]:
        """Record a run in the manifest when it begins, and again when it ends with what `run` has become."""
        run["id"] = uuid.uuid4().hex
        facts = {"specification": specification, "fingerprint": dict(fingerprint)}
        self._record(run, facts, is_new=True)
        try:
            yield
        finally:
            with contextlib.suppress(OutputError):  # a full disk is told by whatever met it first
                self._record(run, facts, is_new=False)

    def _record(self, run: dict, facts: Mapping[str, Any], is_new: bool) -> None:
        """Put a run into the manifest; the facts replace others only when the run is new."""
        self._locks.wait_for(_MANIFEST_BYTE)
        try:
            manifest: dict[str, Any] = {"schema": SCHEMA, "runs": []}
            with contextlib.suppress(InvalidRunError):  # none yet, or a damaged one
                manifest = self.manifest()
            manifest = {**manifest, **facts} if is_new else {**facts, **manifest}
            manifest["runs"] = [*(other for other in manifest["runs"] if other.get("id") != run["id"]), run]
            text = json.dumps(manifest, indent=2) + "\n"
            write_whole(self.folder / MANIFEST, text.encode(), MANIFEST_WAY_OUT, is_durable=True)
        finally:
            self._locks.release(_MANIFEST_BYTE)

    @property
    def _locks(self) -> Locks:
        if self._opened is None:
            try:
                self._opened = Locks.of(self.folder / _LOCK)
            except OSError as failure:
                raise OutputError(
                    f"{self.folder} cannot be written ({failure.strerror or failure}): name a folder that you may "
                    "write to."
                ) from None
        return self._opened


def _byte_of(name: str) -> int:
    """The byte of the lock file that stands for a chunk."""
    return 1 + int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")
