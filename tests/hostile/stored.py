"""The rows of a store, read, left out and harmed by `sqlite3` alone: not by the reader that is tested."""

import contextlib
import sqlite3
from pathlib import Path


def files(folder: Path) -> list[Path]:
    return sorted(Path(folder).glob("results*.sqlite"))


def rows(folder: Path) -> dict[str, bytes]:
    """Bytes by their keys. Raises: AssertionError for a key in two files, as something was computed twice then."""
    found: dict[str, bytes] = {}
    for key, data in run_statement(folder, "SELECT key, data FROM results"):
        assert key not in found
        found[key] = data
    return found


def leave_out(folder: Path, *keys: str) -> None:
    for key in keys:
        run_statement(folder, "DELETE FROM results WHERE key = ?", key)


def harm(folder: Path, key: str) -> None:
    """Flip a bit in the middle of a row's bytes."""
    data = bytearray(rows(folder)[key])
    data[len(data) // 2] ^= 4
    run_statement(folder, "UPDATE results SET data = ? WHERE key = ?", bytes(data), key)


def run_statement(folder: Path, statement: str, *values: object) -> list[tuple]:
    found = []
    for file in files(folder):
        with contextlib.closing(sqlite3.connect(file)) as database, database:
            if ("results",) in database.execute(
                "SELECT name FROM sqlite_master"
            ).fetchall():  # else a process begins it
                found += database.execute(statement, values).fetchall()
    return found
