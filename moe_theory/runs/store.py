"""Store of results by key, in SQLite files of a folder, with digests that every read checks.

A folder has one file, or one for each part of a batch job, and readers read all. Keys are digests of everything that
decides a result (`runs.key`), so a result is right or missing.
"""

import contextlib
import hashlib
import io
import logging
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from moe_theory.core.errors import InvalidValueError, OutputError
from moe_theory.runs.files import WAY_OUT, local

Arrays = Mapping[str, Shaped[np.ndarray, "..."]]

PATTERN = "results*.sqlite"
PATIENCE = 60.0  # seconds that a writer waits for another one
_TABLE = """results
    (key TEXT PRIMARY KEY, label TEXT, extent INTEGER, digest BLOB, data BLOB) WITHOUT ROWID"""
_INSERT = """INSERT INTO results VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE
    SET label = excluded.label, extent = excluded.extent, digest = excluded.digest, data = excluded.data
    WHERE excluded.extent >= extent"""
_REPLACE = "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?)"  # of a damaged row, whatever its extent
_LOG = logging.getLogger(__name__)


class Store:
    """Results in a folder, as bytes by key.

    Several processes or threads may share a store, where results are saved as a whole or not at all.

    Raises: OutputError for another machine's address.
    """

    def __init__(self, folder: str | os.PathLike[str], part: str = "", way_out: str = WAY_OUT) -> None:
        """Open nothing yet.

        Args:
            part: suffix of the file that this process writes, such as "-3-of-8".
            way_out: advice in messages about an unwritable folder.
        """
        self.folder: Path = local(folder)
        self.file: Path = self.folder / f"results{part}.sqlite"
        self.damaged: dict[str, str] = {}  # why a result could not be read, by its key
        self._way_out = way_out
        self._lock = threading.RLock()
        self._databases: dict[Path, sqlite3.Connection] = {}
        self._checked: set[Path] = set()  # files that may be written

    def keys(self) -> set[str]:
        """Return the keys of all saved results, also damaged ones."""
        keys: set[str] = set()
        with self._lock:
            for file, database in self._opened().items():
                with self._reporting(file.name, file):
                    keys.update(key for (key,) in database.execute("SELECT key FROM results"))
        return keys

    def get(self, key: str) -> bytes | None:
        """Return a result, or None if missing or `damaged`."""
        with self._lock:
            for file, database in self._opened().items():
                with self._reporting(key, file):
                    row = database.execute("SELECT digest, data FROM results WHERE key = ?", (key,)).fetchone()
                    if row is None:
                        continue
                    if row[0] == _digest(key, row[1]):
                        self.damaged.pop(key, None)
                        return row[1]
                    self.damaged[key] = f"{file} has other bytes than were written"
        return None

    def intact(self, keys: Iterable[str]) -> set[str]:
        """Return the keys of undamaged results, after reading each."""
        saved = self.keys()
        return {key for key in keys if key in saved and self.get(key) is not None}

    def put(self, results: Mapping[str, bytes], *, label: str | None = None, extent: int = 0) -> None:
        """Save results together and durably.

        Args:
            label: subject of the results, replacing other keys' results with this label.
            extent: length of the results, where another process's longer one stays.
        Raises: OutputError if the folder cannot be written, leaving earlier results.
        """
        rows = [(key, label, extent, _digest(key, data), data) for key, data in results.items()]
        with self._lock:
            try:
                self._write(rows, label)
            except (OSError, sqlite3.Error) as failure:
                if _is_of_the_place(failure):
                    reason = getattr(failure, "strerror", None) or failure
                    raise OutputError(f"{self.file} cannot be written ({reason}): {self._way_out}.") from None
                # The file stays, as most of it can be read. What follows goes into another one.
                name = f"{self.file.stem}+.sqlite"
                _LOG.warning("%s is damaged and takes no more results. New ones go into %s.", self.file, name)
                self.file = self.file.with_name(name)
                self.put(results, label=label, extent=extent)

    def close(self) -> None:
        with self._lock:
            for database in self._databases.values():
                database.close()
            self._databases = {}

    def _write(self, rows: list[tuple[str, str | None, int, bytes, bytes]], label: str | None) -> None:
        database = self._writable()
        database.execute("BEGIN IMMEDIATE")
        try:
            for row in rows:
                if label is not None:
                    database.execute("DELETE FROM results WHERE label = ? AND key != ?", (label, row[0]))
                statement = _REPLACE if row[0] in self.damaged else _INSERT
                database.execute(statement, row)
            database.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            raise

    def _writable(self) -> sqlite3.Connection:
        """Return this process's database, created if needed. Raises: sqlite3.Error if damaged."""
        if self.file not in self._opened():
            self.folder.mkdir(parents=True, exist_ok=True)
            database = _connect(self.file, "rwc")
            database.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE}")
            self._databases[self.file] = database
        database = self._databases[self.file]
        if self.file not in self._checked:  # what is written into a damaged file may be lost, and hide other results
            tables = database.execute("SELECT sql FROM sqlite_master").fetchall()
            integrity = database.execute("PRAGMA integrity_check(1)").fetchone()
            if tables != [(f"CREATE TABLE {_TABLE}",)] or integrity != ("ok",):
                raise sqlite3.DatabaseError("it is damaged")
            self._checked.add(self.file)
        return database

    def _opened(self) -> dict[Path, sqlite3.Connection]:
        for file in sorted(self.folder.glob(PATTERN)):
            if file in self._databases:
                continue
            database = self._open(file)
            if database is not None:
                self._databases[file] = database
        return self._databases

    def _open(self, file: Path) -> sqlite3.Connection | None:
        """Return a file's database, or None if it is empty or cannot be opened."""
        failure: Exception = OSError()
        for mode in ("rw", "ro"):
            try:
                database = _connect(file, mode)
                tables = database.execute("SELECT name FROM sqlite_master").fetchall()
                if ("results",) in tables:
                    return database
                return None
            except (sqlite3.Error, UnicodeDecodeError) as error:  # of a name in it
                failure = error
            if not _is_of_the_place(failure):
                self._set_aside(file)
                return None
        raise OutputError(f"{file} cannot be opened ({failure}). Make it readable, or name another folder.")

    def _set_aside(self, file: Path) -> None:
        aside = file.with_name(f"{file.name}.damaged-{time.time_ns()}")
        try:
            file.rename(aside)
        except FileNotFoundError:  # another process was faster
            return
        except OSError as failure:
            raise OutputError(f"{file} is damaged and cannot be renamed ({failure.strerror}). Remove it.") from None
        self.damaged[file.name] = f"SQLite cannot open it, and it is now {aside.name}"
        _LOG.warning("%s is damaged and is now %s. Its results are computed again.", file, aside.name)

    @contextlib.contextmanager
    def _reporting(self, key: str, file: Path) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as failure:
            if _is_of_the_place(failure):
                raise OutputError(f"{file} cannot be read ({failure}). Make it readable.") from None
            self.damaged[key] = f"{file} is damaged there ({failure})"


def _connect(file: Path, mode: str) -> sqlite3.Connection:
    address = f"{file.absolute().as_uri()}?mode={mode}"
    database = sqlite3.connect(address, PATIENCE, isolation_level=None, check_same_thread=False, uri=True)
    database.execute("PRAGMA synchronous=FULL")
    return database


def _is_of_the_place(failure: Exception) -> bool:
    """Return whether an error is of the disk, rights or another process, and not of a damaged file."""
    if isinstance(failure, OSError):
        return True
    # An error of the file has the general code (a table that is not the store's) or none (a text that is not UTF-8).
    code = getattr(failure, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return isinstance(failure, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR


def _digest(key: str, data: Any) -> bytes:
    if not isinstance(data, bytes):
        data = repr(data).encode()
    return hashlib.sha256(key.encode() + data).digest()


def require_no_0_1(folder: Path, *patterns: str) -> None:
    """Raise InvalidValueError for a folder with such files, from version 0.1."""
    if any(next(folder.glob(pattern), None) is not None for pattern in patterns):
        raise InvalidValueError(
            f"{folder} was written by version 0.1, which this one does not read. The same command with another --out "
            "computes it again."
        )


def pack(arrays: Arrays) -> bytes:
    """Return arrays by name as an npz archive without pickles."""
    buffer = io.BytesIO()
    named: dict[str, Any] = dict(arrays)
    np.savez(buffer, **named)
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return dict(archive)
