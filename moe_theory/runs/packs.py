"""Many small entries in few files: a sweep's chunks and the statistics of its cells.

A pack is an uncompressed zip archive of entries as `runs.files.pack` makes them, each with a digest and its task, and
is called after the digest of its bytes. What is in a pack that is there and whole is kept, whoever wrote it.
"""

import contextlib
import enum
import hashlib
import io
import os
import re
import struct
import threading
import time
import zipfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import BinaryIO, NamedTuple

import numpy as np

from moe_theory.core.errors import DamagedChunkError, MissingChunkError, OtherChunkError, OutputError, shortened
from moe_theory.runs.arrays import most_bytes
from moe_theory.runs.files import WAY_OUT, digest, unpack, write_whole
from moe_theory.runs.reading import open_file
from moe_theory.runs.store import Claims

FOLDER = "packs"
LENGTH = 40  # characters of names of entries and of packs, which are digests
MOST_ENTRIES = 8192  # of a pack
MOST_BYTES = 1 << 26  # of a pack, unless one entry has more
LEAST_WAIT, MOST_WAIT = 1.0, 300.0  # seconds that an entry which has come in waits for others to share its pack
WAITING = 0.01  # share of the time since the beginning that this is, within these limits: what a power cut costs
BACKLOG = 1 << 29  # bytes that wait to be written before more is computed
_ENDING = ".npz"
_ENTRY, _PACK = (re.compile(rf"[0-9a-f]{{{LENGTH}}}\{ending}") for ending in (_ENDING, ".zip"))
_LOCAL = struct.Struct("<26xHH")  # an entry's header in a zip archive: the lengths of its name and of its extras

Entry = tuple[str, bytes]  # name and packed arrays
News = list[str] | OutputError  # names that are kept now, or what went wrong


class _Place(NamedTuple):
    """Where an entry is."""

    path: Path
    offset: int  # of its header
    size: int  # bytes of its data


class Packs(Claims):
    """Entries in the packs of a folder, by names that are digests of their tasks.

    An entry that has been kept by another process is seen after `refresh`. Every read checks the entry's own digest and
    that it is of the task that it is named after; `check` reads all packs, and saves of a damaged one what is whole.
    """

    def __init__(self, folder: Path, way_out: str = WAY_OUT) -> None:
        super().__init__(folder, way_out)
        self._places: dict[str, _Place] = {}
        self._names: dict[Path, list[str]] = {}  # of the entries whose places are in a pack
        self._known: dict[str, str | None] = {}  # packs by their names, and why one cannot be read
        self._changed = -1  # when the folder was, as far as is known
        self.refresh()

    @property
    def packs(self) -> Path:
        return self.folder / FOLDER

    def __contains__(self, name: str) -> bool:
        return name in self._places

    @property
    def names(self) -> list[str]:
        """The names of all entries."""
        return [*self._places]

    def relist(self) -> None:
        """Look anew at all packs that are there now."""
        self._relist([*self._names])

    def refresh(self) -> None:
        """Look for packs that were written since."""
        with contextlib.suppress(OSError):
            changed = self.packs.stat().st_mtime_ns
            # A folder's time is as fine as its file system has it: one that changed just now may change again.
            if changed == self._changed and time.time_ns() - changed > 5e9:
                return
            for found in os.scandir(self.packs):
                if _PACK.fullmatch(found.name) and found.name not in self._known:
                    self._known[found.name] = self._listed(Path(found.path))
            self._changed = changed

    def read(self, name: str) -> dict[str, np.ndarray]:
        """An entry's arrays. Raises: MissingChunkError; DamagedChunkError; OtherChunkError where it is the result of
        another task than it is named after.
        """
        place = self._places.get(name)
        if place is None:
            raise MissingChunkError(f"{self.packs} has no {name}: run the same command again to compute it.")
        try:
            with open_file(place.path) as file:
                data = _entry(file, place)
        except FileNotFoundError:  # another process has saved what was whole of a damaged pack
            self._relist({place.path})
            return self.read(name)  # from another pack, or it is missing now
        except OSError as failure:
            raise DamagedChunkError(place.path, f"{name}: {failure.strerror or failure}") from None
        return unpacked(name, place.path, data)

    def write(self, entries: Sequence[Entry]) -> Path:
        """Keep entries, together or not at all, durably; their pack. Raises: OutputError where the folder cannot take
        them.
        """
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, data in entries:
                archive.writestr(zipfile.ZipInfo(name + _ENDING), data)  # of 1980: the same bytes at any time
        data = buffer.getvalue()
        path = self.packs / f"{hashlib.sha256(data).hexdigest()[:LENGTH]}.zip"
        write_whole(path, data, self.way_out)
        self._known[path.name] = self._listed(path)
        return path

    def check(self) -> dict[str, str]:
        """What is wrong with entries, by their names, or with packs of which nothing can be read. Reads everything.
        What is whole of a damaged pack is kept in another one, and the damaged one is removed. Raises: OutputError.
        """
        damaged: dict[str, str] = {}
        bad: set[Path] = set()
        left: set[Path] = set()
        for pack in [*self._known]:
            path = self.packs / pack
            # What could not be read may be readable by now: there may have been too many open files.
            reason = self._known[pack] = self._known[pack] and self._listed(path)
            if reason is None and _is_whole(path):
                continue
            bad.add(path)
            told, whole = len(damaged), []
            try:
                with open_file(path) as file:
                    whole = self._whole(path, file, damaged)
                if not whole or self.write(whole) != path:  # the damage may be outside of all entries
                    path.unlink()
            except FileNotFoundError:  # another process is at it too
                continue
            except OSError:  # it is no file, or another user's
                left.add(path)
            if not whole and len(damaged) == told:
                damaged[pack] = reason or "it is cut short or changed"
        if bad:
            self._relist(bad, left)
        return {name: reason for name, reason in damaged.items() if name not in self}

    def remove(self, names: Collection[str]) -> None:
        """Remove entries; what else is whole in their packs is kept in others. Raises: OutputError."""
        while packs := {self._places[name].path for name in names if name in self}:
            for path in packs:
                try:
                    with open_file(path) as file:
                        whole = self._whole(path, file, {})
                    if others := [entry for entry in whole if entry[0] not in names]:
                        self.write(others)
                    path.unlink()
                except FileNotFoundError:  # another process is at it too
                    pass
                except OSError as failure:
                    raise OutputError(f"{path} cannot be removed ({failure.strerror}): {self.way_out}.") from None
            self._relist(packs)

    def _listed(self, path: Path) -> str | None:
        """Take the entries of a pack into the list; what is wrong with it, if anything is."""
        try:
            with open_file(path) as file, zipfile.ZipFile(file) as archive:
                members = archive.infolist()
        except FileNotFoundError:
            return None
        except Exception as failure:  # of an archive that is damaged
            said = getattr(failure, "strerror", None) or f"{failure}" or type(failure).__name__
            return f"it cannot be read ({shortened(said)})"
        own = self._names.setdefault(path, [])
        for member in members:
            if _ENTRY.fullmatch(member.filename):
                name = member.filename.removesuffix(_ENDING)
                place = _Place(path, member.header_offset, member.file_size)
                if self._places.setdefault(name, place) is place:
                    own.append(name)
        return None

    def _relist(self, gone: Collection[Path], but: Collection[Path] = ()) -> None:
        """Forget these packs and look anew at all that are there, but not at some: the same entry may be in several."""
        for path in gone:
            for name in self._names.pop(path, ()):
                self._places.pop(name, None)
        self._known, self._changed = {}, -1
        self._known.update({path.name: "it is left alone" for path in but})
        self.refresh()

    def _whole(self, path: Path, file: BinaryIO, damaged: dict[str, str]) -> list[Entry]:
        """The whole entries of a pack; what is wrong with the others is added to `damaged`."""
        whole: list[Entry] = []
        for name in [*self._names.get(path, ())]:
            place = self._places.get(name)
            if place is None:  # another thread has found the pack gone
                continue
            try:
                data = _entry(file, place)
                unpacked(name, path, data)
                whole.append((name, data))
            except OSError as failure:
                damaged[name] = failure.strerror or f"{failure}"
            except DamagedChunkError as failure:
                damaged[name] = failure.reason.removeprefix(f"{name}: ")
        return whole


def _is_whole(path: Path) -> bool:
    try:
        with open_file(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:LENGTH] == path.stem  # pyright: ignore[reportArgumentType]
    except OSError:
        return False


def unpacked(name: str, path: Path, data: bytes) -> dict[str, np.ndarray]:
    try:
        task, arrays = unpack(data)
    except ValueError as failure:
        raise DamagedChunkError(path, f"{name}: {failure}") from None
    if digest(task)[:LENGTH] != name:
        raise OtherChunkError(path, task)
    return arrays


def _entry(file: BinaryIO, place: _Place) -> bytes:
    """The bytes of an entry, of which its own digest shows whether they are whole."""
    if not 0 <= place.offset <= place.offset + place.size <= os.fstat(file.fileno()).st_size:
        raise OSError("it is cut short")
    file.seek(place.offset)
    lengths = file.read(_LOCAL.size)
    if len(lengths) < _LOCAL.size:
        raise OSError("it is cut short")
    file.seek(sum(_LOCAL.unpack(lengths)), os.SEEK_CUR)
    if place.size > most_bytes():
        raise OSError(f"{place.size:,} bytes are more than fit in half of the memory here")
    return file.read(place.size)


class _Order(enum.Enum):
    NOW = "write what there is"
    END = "and nothing after that"


class Keeper:
    """Writes entries in a thread of its own, in one pack those of a while: of a second at first, of a hundredth of its
    age later.

    `notify` is called in that thread: with the names that are kept now, or with what went wrong; then nothing more is
    written.
    """

    def __init__(self, packs: Packs, notify: Callable[[News], None]) -> None:
        self._packs, self._notify = packs, notify
        self._coming: SimpleQueue[Entry | _Order] = SimpleQueue()
        self._guard = threading.Lock()
        self._began = time.monotonic()
        self.backlog = 0  # bytes that are not written yet
        self._thread = threading.Thread(target=self._work, name="moe-theory-keeper", daemon=True)
        self._thread.start()

    def keep(self, name: str, data: bytes) -> None:
        with self._guard:
            self.backlog += len(data)
        self._coming.put((name, data))

    def hurry(self) -> None:
        """Write what there is: nothing more is to be waited for."""
        self._coming.put(_Order.NOW)

    def close(self) -> None:
        """Write what there is, and end."""
        self._coming.put(_Order.END)
        self._thread.join()

    def _work(self) -> None:
        failed, is_over = False, False
        while not is_over:
            entries, is_over = self._gathered()
            news: News | None = None
            if entries and not failed:
                news = [name for name, _ in entries]
                try:
                    self._packs.write(entries)
                except Exception as failure:  # whatever it is: somebody waits for news
                    failed, news = True, self._output_error(failure)
            with self._guard:
                self.backlog -= sum(len(data) for _, data in entries)
            if news is not None:  # and not before: whoever gets it looks at the backlog
                self._notify(news)

    def _output_error(self, failure: Exception) -> OutputError:
        if isinstance(failure, OutputError):
            return failure
        error = OutputError(f"{self._packs.packs} cannot be written ({type(failure).__name__}): {self._packs.way_out}.")
        error.__cause__ = failure
        return error

    @property
    def _patience(self) -> float:
        return min(max(LEAST_WAIT, WAITING * (time.monotonic() - self._began)), MOST_WAIT)

    def _gathered(self) -> tuple[list[Entry], bool]:
        """What comes within a while, and whether that is the end."""
        entries: list[Entry] = []
        size, until = 0, float("inf")
        while size < MOST_BYTES and len(entries) < MOST_ENTRIES:
            try:
                each = self._coming.get(timeout=max(until - time.monotonic(), 0.0) if entries else None)
            except Empty:
                break
            if isinstance(each, _Order):
                return entries, each is _Order.END
            entries.append(each)
            size += len(each[1])
            until = min(until, time.monotonic() + self._patience)
        return entries, False
