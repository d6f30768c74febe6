"""Chunks on disk. Their files are the only truth: what is there and whole is done, whoever computed it.

| path | what it is |
| --- | --- |
| `chunks/ab/ab....npz` | one chunk, under its name |
| `manifest.json` | the specification, and who ran it when with what: to be read, never relied on for numbers |
| `.lock` | where processes that share the folder say what they are working on |
"""

import contextlib
import hashlib
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from moe_theory.core.errors import DamagedChunkError, InvalidRunError, MissingChunkError, OutputError
from moe_theory.sweep import packing, tasks

try:
    import fcntl
except ImportError:  # a system without record locks: processes still never harm each other, but may both do a chunk
    fcntl = None

SCHEMA = "moe-theory/sweep/1"
MANIFEST = "manifest.json"
_LOCK = ".lock"
ABANDONED = 600.0  # seconds after which nobody is still writing a file
_MANIFEST_BYTE = 0  # of the lock file; the others stand for chunks


class Store:
    """A run folder. One process should have one: its locks end when any of its stores is closed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock_file: int | None = None

    def path(self, name: str) -> Path:
        """Where a chunk's file is."""
        return self.folder / "chunks" / name[:2] / f"{name}.npz"

    def has(self, name: str) -> bool:
        """Whether there is a file of this name; only reading it shows whether it is whole."""
        return self.path(name).is_file()

    def damage(self, name: str) -> str | None:
        """What is wrong with a chunk that is there, in words; None if it is whole."""
        try:
            self.read(name)
        except DamagedChunkError as failure:
            return failure.reason
        return None

    def read(self, name: str) -> dict[str, np.ndarray]:
        """A chunk's arrays by observable, (R, ..., width).

        Raises: MissingChunkError, or DamagedChunkError for a file that is not whole or holds another chunk.
        """
        path = self.path(name)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise MissingChunkError(f"{path} is not there: run the sweep again to compute it.") from None
        except OSError as failure:
            raise DamagedChunkError(path, f"it cannot be read ({failure.strerror or failure})") from None
        try:
            task, arrays = packing.unpack(data)
        except ValueError as failure:
            raise DamagedChunkError(path, str(failure)) from None
        if tasks.name_of(task) != name:
            raise DamagedChunkError(path, "it holds another chunk")
        return arrays

    def write(self, name: str, data: bytes) -> None:
        """Keep a chunk: whole under its name, or not at all. Raises: OutputError where the folder cannot take it."""
        path = self.path(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            _write_whole(path, data)
        except OSError as failure:
            raise OutputError(
                f"{self.folder} cannot take another chunk ({failure.strerror or failure}); what is finished is kept. "
                "Make room there or make it writable, then run the same command again."
            ) from None

    def num_chunks(self) -> int:
        """How many chunks are in the folder, of this specification or another."""
        return sum(1 for _ in self.folder.glob("chunks/*/*.npz"))

    def sweep_up(self) -> None:
        """Remove what killed processes left half written; not what a living one is writing."""
        for path in self.folder.glob("chunks/*/.*.part"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > ABANDONED:
                    path.unlink()

    def claim(self, name: str) -> bool:
        """Take a chunk to compute; False where another process has it. A process that ends leaves its claims."""
        return self._lock(_byte_of(name), wait=False)

    def release(self, name: str) -> None:
        """Give up a claim."""
        self._unlock(_byte_of(name))

    def close(self) -> None:
        """Give up all claims."""
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None

    def manifest(self) -> dict[str, Any]:
        """The manifest. Raises: InvalidRunError where there is none, or one that cannot be read."""
        path = self.folder / MANIFEST
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InvalidRunError(
                f"{self.folder} holds no sweep: there is no {MANIFEST} in it. Mend the path."
            ) from None
        except (OSError, ValueError) as failure:
            raise InvalidRunError(
                f"{path} cannot be read ({failure}): run the sweep again, which writes it anew and computes "
                "nothing twice."
            ) from None
        if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
            raise InvalidRunError(f"{path} is no manifest of a sweep ({SCHEMA}). Mend the path.")
        return manifest

    @contextlib.contextmanager
    def recorded(self, specification: Mapping[str, Any], fingerprint: Mapping[str, str], run: dict) -> Iterator[None]:
        """Keep in the manifest that a run goes on, and when it is over what `run` has become."""
        run["id"] = f"{socket.gethostname()}-{os.getpid()}-{run['started']}"
        self._record(run, {"specification": specification, "fingerprint": dict(fingerprint)})
        try:
            yield
        finally:
            with contextlib.suppress(OutputError):  # a full disk is told by whatever met it first
                self._record(run, {})

    def _record(self, run: dict, facts: Mapping[str, Any]) -> None:
        """Put a run, and facts that have changed, into the manifest; what others have put there stays."""
        self._lock(_MANIFEST_BYTE, wait=True)
        try:
            manifest: dict[str, Any] = {"schema": SCHEMA}
            with contextlib.suppress(InvalidRunError):  # none yet, or a damaged one
                manifest = self.manifest()
            runs = [*(other for other in manifest.get("runs", []) if other.get("id") != run["id"]), run]
            text = json.dumps({**manifest, **facts, "runs": runs}, indent=2) + "\n"
            try:
                _write_whole(self.folder / MANIFEST, text.encode())
            except OSError as failure:
                raise OutputError(
                    f"{self.folder / MANIFEST} cannot be written ({failure.strerror or failure}): name a folder that "
                    "you may write to, with room in it."
                ) from None
        finally:
            self._unlock(_MANIFEST_BYTE)

    def _lock(self, byte: int, wait: bool) -> bool:
        if fcntl is None:
            return True
        if self._lock_file is None:
            try:
                self._lock_file = os.open(self.folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as failure:
                raise OutputError(
                    f"{self.folder} cannot be written ({failure.strerror or failure}): name a folder that you may "
                    "write to."
                ) from None
        try:
            fcntl.lockf(self._lock_file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, byte)
        except (BlockingIOError, PermissionError):
            return False
        except OSError:  # a file system without locks: as on a system without them
            return True
        return True

    def _unlock(self, byte: int) -> None:
        if fcntl is not None and self._lock_file is not None:
            with contextlib.suppress(OSError):
                fcntl.lockf(self._lock_file, fcntl.LOCK_UN, 1, byte)


def _byte_of(name: str) -> int:
    """The byte of the lock file that stands for a chunk."""
    return 1 + int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file that is there whole after a crash of the machine, or is not there."""
    temporary = path.with_name(f".{path.stem}.{socket.gethostname()}-{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
