"""A store of results by key, in SQLite files of a folder. Every read checks a digest.

A folder has one file, or one for each part of a batch job, and readers read all files. Keys are digests of everything
that decides a result (`runs.key`), so a result is either right or missing.
"""

import contextlib
import hashlib
import io
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from moe_theory.core.errors import OutputError
from moe_theory.runs.files import WAY_OUT, local

Arrays = Mapping[str, Shaped[np.ndarray, "..."]]

PATTERN = "results*.sqlite"
PATIENCE = 60.0  # seconds that a writer waits for another writer
_TABLE = """results
    (key TEXT PRIMARY KEY, label TEXT, extent INTEGER, digest BLOB, data BLOB) WITHOUT ROWID"""
_INSERT = """INSERT INTO results VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO UPDATE
    SET label = excluded.label, extent = excluded.extent, digest = excluded.digest, data = excluded.data
    WHERE excluded.extent >= extent"""
_REPLACE = "INSERT OR REPLACE INTO results VALUES (?, ?, ?, ?, ?)"  # replaces a damaged row, whatever its extent


class Store:
    """Results in a folder, stored as bytes by key.

    Several processes or threads may share a store. A result is saved completely or not at all.
    """

    def __init__(self, folder: str | os.PathLike[str], part: str = "") -> None:
        """Set up the store without opening a file. This process's file has the suffix `part`, such as "-3-of-8"."""
        self.folder: Path = local(folder)
        self.file: Path = self.folder / f"results{part}.sqlite"
        self.damaged: dict[str, str] = {}  # reasons why results could not be read, by key
        self._lock = threading.RLock()
        self._databases: dict[Path, sqlite3.Connection] = {}
        self._is_checked = False  # whether this process's file was found intact

    def keys(self) -> set[str]:
        return {key for _, (key,) in self._rows("SELECT key FROM results")}

    def get(self, key: str) -> bytes | None:
        """Return a result, or None if it is missing or `damaged`."""
        for file, (digest, data) in self._rows("SELECT digest, data FROM results WHERE key = ?", key):
            if digest == _digest(key, data):
                self.damaged.pop(key, None)
                return data
            self.damaged[key] = f"{file} was changed after it was written"
        return None

    def intact(self, keys: Iterable[str]) -> set[str]:
        saved = self.keys()
        return {key for key in keys if key in saved and self.get(key) is not None}

    def put(self, results: Mapping[str, bytes], *, label: str | None = None, extent: int = 0) -> None:
        """Save results together and durably.

        Args:
            label: subject of the results. Results with this label under other keys are deleted.
            extent: length of the results. A longer saved result is not replaced, unless it is damaged.
        """
        with self._using(self.file, "written") as database:
            self._prepare(database)
            database.execute("BEGIN IMMEDIATE")
            try:
                if label is not None:
                    places = ", ".join("?" * len(results))
                    delete = f"DELETE FROM results WHERE label = ? AND key NOT IN ({places})"
                    database.execute(delete, (label, *results))
                for key, data in results.items():
                    statement = _REPLACE if key in self.damaged else _INSERT
                    database.execute(statement, (key, label, extent, _digest(key, data), data))
                database.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    database.execute("ROLLBACK")
                raise

    def close(self) -> None:
        with self._lock:
            for database in self._databases.values():
                database.close()
            self._databases = {}

    def _prepare(self, database: sqlite3.Connection) -> None:
        """Create the table if needed. Raises: sqlite3.Error for a damaged file, in which new results could get lost."""
        if not self._is_checked:
            database.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE}")
            tables = database.execute("SELECT sql FROM sqlite_master").fetchall()
            integrity = database.execute("PRAGMA integrity_check(1)").fetchone()
            # SQLite saves the statement without "IF NOT EXISTS".
            if tables != [(f"CREATE TABLE {_TABLE}",)] or integrity != ("ok",):
                raise sqlite3.DatabaseError("it is damaged")
            self._is_checked = True

    def _rows(self, query: str, *values: str) -> Iterator[tuple[Path, tuple[Any, ...]]]:
        """Yield rows of all files, except those that another process is just creating."""
        for file in sorted(self.folder.glob(PATTERN)):
            with self._using(file, "read") as database:
                rows: list[tuple[Any, ...]] = []
                if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'results'").fetchone():
                    rows = database.execute(query, values).fetchall()
            for row in rows:
                yield file, row

    @contextlib.contextmanager
    def _using(self, file: Path, verb: str) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if file not in self._databases:
                    self.folder.mkdir(parents=True, exist_ok=True)
                    mode = "rwc" if file == self.file else "rw"  # only this process's own file may be created
                    uri = f"{file.absolute().as_uri()}?mode={mode}"
                    # Without an isolation level, transactions are ours. Threads take turns by the lock.
                    database = sqlite3.connect(uri, PATIENCE, isolation_level=None, check_same_thread=False, uri=True)
                    database.execute("PRAGMA synchronous=FULL")
                    self._databases[file] = database
                yield self._databases[file]
            except (OSError, sqlite3.Error, UnicodeDecodeError) as failure:  # damaged files can raise the last one
                reason = getattr(failure, "strerror", None) or failure
                advice = WAY_OUT
                if not isinstance(failure, (OSError, sqlite3.OperationalError)):
                    advice = "move it away, and rerun to compute its results again"
                raise OutputError(f"{file} cannot be {verb} ({reason}): {advice}.") from None


def _digest(key: str, data: Any) -> bytes:
    if not isinstance(data, bytes):  # in a damaged row
        data = repr(data).encode()
    return hashlib.sha256(key.encode() + data).digest()


def pack(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # pyright: ignore[reportArgumentType]
    return buffer.getvalue()


def unpack(data: bytes) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        return dict(archive)
