"""Locks among threads and processes that share a folder."""

import contextlib
import errno
import os
import threading
import time
from pathlib import Path
from typing import ClassVar

try:
    import fcntl
except ImportError:  # without record locks processes still never harm each other, but may compute a chunk twice
    fcntl = None

PATIENCE = 0.02  # seconds between tries


class Locks:
    """Numbered locks, as record locks on a file: they end with the process that holds them. A process that closes any
    descriptor of a file loses all its record locks on it, and never blocks itself. So there is one descriptor a file,
    for as long as anybody uses it, and a list of what is held.
    """

    _by_file: ClassVar[dict[Path, "Locks"]] = {}
    _guard: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        self._users = 0
        self._held: set[int] = set()

    @classmethod
    def of(cls, path: Path) -> "Locks":
        """The locks of a file; `close` them when done. Raises: OSError where the file cannot be opened."""
        path = path.resolve()
        with cls._guard:
            if path not in cls._by_file:
                cls._by_file[path] = cls(path)
            locks = cls._by_file[path]
            locks._users += 1
            return locks

    def close(self) -> None:
        with self._guard:
            self._users -= 1
            if not self._users:
                os.close(self._file)
                del self._by_file[self._path]

    def acquire(self, number: int) -> bool:
        """Acquire a lock; False where another thread or process has it."""
        with self._guard:
            if number in self._held:
                return False
            try:
                if fcntl is not None:
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, number)
            except OSError as failure:
                if failure.errno in (errno.EAGAIN, errno.EACCES):
                    return False
                # A file system without locks: as above.
            self._held.add(number)
            return True

    def wait_for(self, number: int) -> None:
        while not self.acquire(number):
            time.sleep(PATIENCE)

    def release(self, number: int) -> None:
        with self._guard:
            self._held.discard(number)
            if fcntl is not None:
                with contextlib.suppress(OSError):
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, number)
