"""Store of data on disk: samples of claims, checkpoints of networks; `runs.packs` keeps many small ones.

Their files are the only truth: what is there and whole is done, whoever computed it.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from moe_theory.core.errors import DamagedChunkError, MissingChunkError, OtherChunkError, OutputError
from moe_theory.runs.arrays import most_bytes
from moe_theory.runs.files import WAY_OUT, digest, local, remove_leftovers, unpack, write_whole
from moe_theory.runs.locks import Holder, Locks
from moe_theory.runs.reading import read_bytes


class Claims:
    """Names in a folder that one thread or process at a time may have, so that none is computed twice.

        if not claims.claim(name):          # another thread or process is at it; never waits
            ...                             # do everything else, report its `holders`, and try again later
        else:
            try:
                ...                         # look again: it may have been computed meanwhile; compute; keep
            finally:
                claims.release(name)

    Claims end when it is closed, and with its process; threads of one process exclude one another too; a forked child
    holds none.
    """

    def __init__(self, folder: Path, way_out: str = WAY_OUT) -> None:
        """`way_out`: what a user may do about a folder that cannot be written, for messages."""
        self.folder: Path = local(folder)
        self.way_out: str = way_out
        self._opened: Locks | None = None
        self._claimed: set[str] = set()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": None, "_claimed": set()}  # another process holds nothing of it

    def claim(self, name: str) -> bool:
        """Claim a name to compute; False if it is taken. Raises: OutputError if the folder cannot be written."""
        if is_free := self._locks.acquire(name):
            self._claimed.add(name)
        return is_free

    def release(self, name: str) -> None:
        """Give a claim back; nothing for a name that was not claimed here."""
        if self._opened is not None and name in self._claimed:
            self._claimed.discard(name)
            self._opened.release(name)

    def holders(self, names: Iterable[str]) -> list[Holder | None]:
        """Who holds each of these names, which could not be claimed; None where that is not known."""
        return self._locks.holders(names)

    def publish(self) -> None:
        """Tell others what is held, where it is long since. Whoever holds many names calls it about once a second."""
        if self._opened is not None:
            self._opened.publish()

    def close(self) -> None:
        if self._opened is not None:
            for name in [*self._claimed]:
                self.release(name)
            self._opened.close()
            self._opened = None

    @property
    def _locks(self) -> Locks:
        if self._opened is None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                self._opened = Locks.of(self.folder)
            except OSError as failure:
                raise OutputError(
                    f"{self.folder} cannot be written ({failure.strerror or failure}): {self.way_out}."
                ) from None
        return self._opened


class Store(Claims):
    """Entries in a folder: arrays under a name, with the task that they are the result of.

    An entry is a file, `NAME.npz`, that `runs.files.pack` made; a name may have folders in it: "ab/abcd". The task is
    plain data (text, numbers, lists and dictionaries of them) and holds everything that decides the arrays. Every
    read checks a digest of the whole file and the task: an entry that is damaged, or of another task, is
    reported and never used. A write is durable when it returns, and replaces what was there only then. Whoever
    computes an entry that others may compute too claims its name first.
    """

    def path(self, name: str) -> Path:
        return self.folder / f"{name}.npz"

    def __contains__(self, name: str) -> bool:
        """Whether there is a file of this name; only reading it shows whether it is whole."""
        return self.path(name).is_file()

    def read(self, name: str, task: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """An entry's arrays. Raises: MissingChunkError; DamagedChunkError; OtherChunkError where it is the result of
        another task.
        """
        path = self.path(name)
        try:
            data = read_bytes(path, most_bytes())
        except FileNotFoundError:
            raise MissingChunkError(f"{path} is not there: run the same command again to compute it.") from None
        except OSError as failure:
            raise DamagedChunkError(path, f"it cannot be read ({failure.strerror or failure})") from None
        try:
            kept, arrays = unpack(data)
        except ValueError as failure:
            raise DamagedChunkError(path, str(failure)) from None
        if digest(kept) != digest(task):
            raise OtherChunkError(path, kept)
        return arrays

    def write(self, name: str, data: bytes) -> None:
        """Keep an entry, packed: whole under its name, or not at all; what was there stays until it is. Raises:
        OutputError where the folder cannot take it.
        """
        write_whole(self.path(name), data, self.way_out)

    def remove_leftovers(self) -> None:
        """Remove half-written files of killed processes, but none that a living one may be writing."""
        remove_leftovers(self.folder, "**/")
