"""Claims of names among threads and processes that share a folder, and who holds them."""

import contextlib
import datetime
import errno
import hashlib
import json
import logging
import os
import platform
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

from moe_theory.core.errors import shortened
from moe_theory.core.forks import after_fork
from moe_theory.runs.reading import read_text

try:
    import fcntl
except ImportError:  # without record locks processes still never harm each other, but may compute something twice
    fcntl = None

PATIENCE = 0.1  # seconds between tries
PUBLISHED_AT_ONCE = 32  # claims that a process may hold whose every change is written down at once
BETWEEN_RECORDS = 1.0  # seconds from one record of more claims to the next
HEARTBEAT = 10.0  # seconds after which a record is written anew, as a sign of life
ABANDONED = 600.0  # seconds after which a record without one counts for nothing
FORGOTTEN = 7 * 86_400.0  # seconds after which such a record goes
_LAST = 2.5e11  # seconds since 1970, in the year 9892: no date is much later
_LOCK = ".lock"
_OF_NO_RECORD = (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
_HOLDERS = ".claims"  # a folder with a file for each process, which says what it holds

_LOG = logging.getLogger(__name__)


class Holder(NamedTuple):
    """The process that holds a claim."""

    pid: int
    host: str
    since: float  # when it took it, in seconds since 1970

    def __str__(self) -> str:
        doing = f", which is stopped in {self.command}," if self.is_stopped else ""
        return f"process {self.pid} on {self.host}{doing}"

    @property
    def is_stopped(self) -> bool:
        """Whether it is known to be stopped, as by Ctrl-Z: it then keeps its claims until it continues or ends."""
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text()
        except OSError:
            return False
        return self.host == platform.node() and status.rpartition(")")[2].split()[0] in "tT"

    @property
    def command(self) -> str:
        """The command of a process on this machine, if it can be read."""
        try:
            words = Path(f"/proc/{self.pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
        except OSError:
            return "a command"
        return shortened(" ".join(words))


class Locks:
    """Claims, as record locks on bytes of a file, which end with the process that holds them. A process that closes any
    descriptor of a file loses all its record locks on it, and never blocks itself. So there is one descriptor a file,
    for as long as it is in use, and a list of what is held. A forked child holds nothing.

    What a process holds it also writes down, for those who wait. Where a file system has no locks that is all there is
    of a claim: two processes that claim a name in the same second both have it, and compute the same twice.
    """

    _by_file: ClassVar[dict[Path, "Locks"]] = {}
    _guard: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        self._users = 0
        self._held: dict[str, float] = {}  # since when, in seconds since 1970
        self._record = path.with_name(_HOLDERS) / f"{platform.node()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.json"
        self._published = 0.0
        self._is_behind = False  # whether the record is
        self._has_locks = fcntl is not None

    @property
    def _draft(self) -> Path:
        return self._record.with_suffix(".part")

    @classmethod
    def of(cls, folder: Path) -> "Locks":
        """The claims in a folder; `close` them when done. Raises: OSError where they cannot be opened."""
        path = folder.resolve() / _LOCK
        with cls._guard:
            if path not in cls._by_file:
                cls._by_file[path] = cls(path)
                _remove_records(path.with_name(_HOLDERS))
            locks = cls._by_file[path]
            locks._users += 1
            return locks

    def close(self) -> None:
        with self._guard:
            self._users -= 1
            if not self._users:
                os.close(self._file)
                del self._by_file[self._path]
                for path in (self._record, self._draft):
                    with contextlib.suppress(OSError):
                        path.unlink(missing_ok=True)

    def acquire(self, name: str) -> bool:
        """Claim a name; False where another thread or process has it."""
        with self._guard:
            if name in self._held or not self._lock(name):
                return False
            self._held[name] = time.time()
            self._changed()
            return True

    def release(self, name: str) -> None:
        with self._guard:
            if self._held.pop(name, None) is None:
                return
            self._changed()
            if fcntl is not None and self._has_locks:
                with contextlib.suppress(OSError):
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _byte_of(name))

    def publish(self) -> None:
        """Write down what is held, where that is due. Whoever holds many claims for long calls it once a second."""
        with self._guard:
            late = time.time() - self._published
            if self._held and (late > HEARTBEAT or (self._is_behind and late > BETWEEN_RECORDS)):
                self._publish()

    def holders(self, names: Iterable[str]) -> list[Holder | None]:
        """Who holds each of these names; None where that is not known."""
        found: dict[str, Holder | None] = dict.fromkeys(names)
        own = (os.getpid(), platform.node())
        for (pid, host), since in [(own, {**self._held}), *self._records()]:  # other threads release theirs meanwhile
            for name in found.keys() & since.keys():
                last = found[name]
                if last is None or last.since < since[name]:  # of processes that were killed records are left
                    found[name] = Holder(pid, host, since[name])
        return [*found.values()]

    def _lock(self, name: str) -> bool:
        if fcntl is not None and self._has_locks:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte_of(name))
                return True
            except OSError as failure:
                if failure.errno in (errno.EAGAIN, errno.EACCES):
                    return False
                self._has_locks = False
                about = "%s is on a file system without locks (%s): processes may compute some of the same twice"
                _LOG.warning(about, self._path.parent, failure.strerror)
        return all(name not in since for _, since in self._records())

    def _changed(self) -> None:
        self._is_behind = True
        if len(self._held) <= PUBLISHED_AT_ONCE or time.time() - self._published > BETWEEN_RECORDS:
            self._publish()

    def _publish(self) -> None:
        own = {"pid": os.getpid(), "host": platform.node(), "since": self._held}
        with contextlib.suppress(OSError):  # who does not find it does not learn who holds what, and no more
            self._record.parent.mkdir(exist_ok=True)
            self._draft.write_text(json.dumps(own))
            self._draft.replace(self._record)
        self._published, self._is_behind = time.time(), False

    def _records(self) -> Iterator[tuple[tuple[int, str], Mapping[str, float]]]:
        """(pid, host) and what it holds since when, of each other process that wrote it down lately."""
        for path in self._record.parent.glob("*.json"):
            with contextlib.suppress(*_OF_NO_RECORD):
                if path != self._record and time.time() - path.stat().st_mtime < ABANDONED:
                    known = json.loads(read_text(path))
                    since = {str(name): float(when) for name, when in known["since"].items()}
                    if all(0 <= when < _LAST for when in since.values()):
                        yield (int(known["pid"]), str(known["host"])), since

    @classmethod
    def _after_fork(cls) -> None:
        """A thread that the child does not have may have held the guard; record locks are the parent's."""
        cls._guard = threading.Lock()
        for locks in cls._by_file.values():
            locks._held = {}
            locks._record = locks._record.with_name(f"{platform.node()}-{os.getpid()}-{uuid.uuid4().hex[:8]}.json")


after_fork(Locks._after_fork)


def _remove_records(folder: Path) -> None:
    """Remove what processes that were killed long ago have left."""
    for path in folder.glob("*.*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > FORGOTTEN:
                path.unlink()


def held_by(holders: list[Holder | None], what: str, whats: str) -> str:
    """Who holds how many of what: "process 12 on node-1 holds 3 chunks since 12:04"."""
    known: dict[tuple[int, str] | None, list[Holder | None]] = {}
    for holder in holders:
        known.setdefault(holder and holder[:2], []).append(holder)
    told = []
    for own in known.values():
        since = min((holder.since for holder in own if holder is not None), default=None)
        counted = f"{len(own):,} {what if len(own) == 1 else whats}"
        told.append(f"{own[0] or 'another process'} holds {counted}{'' if since is None else f' since {_time(since)}'}")
    return "; ".join(told)


def _time(seconds: float) -> str:
    """The local time, with the day unless it is today's."""
    then = datetime.datetime.fromtimestamp(seconds)
    return f"{then:%H:%M}" if then.date() == datetime.datetime.now().date() else f"{then:%Y-%m-%d %H:%M}"


def _byte_of(name: str) -> int:
    """The byte of the lock file that stands for a name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")
