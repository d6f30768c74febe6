"""Claims of names among threads and processes that share a folder, and who holds them."""

import contextlib
import datetime
import errno
import hashlib
import json
import os
import platform
import threading
import time
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
_LOCK = ".lock"
_HOLDERS = ".claims"  # a folder with a file for each claim


class Holder(NamedTuple):
    """The process that holds a claim."""

    pid: int
    host: str
    started: float  # when it took its first claim, in seconds since 1970
    since: float  # when it took this one

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
    """

    _by_file: ClassVar[dict[Path, "Locks"]] = {}
    _guard: ClassVar[threading.Lock] = threading.Lock()
    _started: ClassVar[float] = time.time()

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        self._users = 0
        self._held: set[str] = set()

    @classmethod
    def of(cls, folder: Path) -> "Locks":
        """The claims in a folder; `close` them when done. Raises: OSError where they cannot be opened."""
        path = folder.resolve() / _LOCK
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

    def acquire(self, name: str) -> bool:
        """Claim a name; False where another thread or process has it."""
        with self._guard:
            if name in self._held:
                return False
            try:
                if fcntl is not None:
                    fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte_of(name))
            except OSError as failure:
                if failure.errno in (errno.EAGAIN, errno.EACCES):
                    return False
                # A file system without locks: as above.
            self._held.add(name)
            own = Holder(os.getpid(), platform.node(), self._started, time.time())
            with contextlib.suppress(OSError):  # who does not find it does not learn who holds what, and no more
                self._record(name).parent.mkdir(exist_ok=True)
                self._record(name).unlink(missing_ok=True)  # a pipe would be written to for ever
                self._record(name).write_text(json.dumps(own._asdict() | {"name": name}))
            return True

    def release(self, name: str) -> None:
        with self._guard:
            if name not in self._held:
                return
            self._held.discard(name)
            with contextlib.suppress(OSError):
                self._record(name).unlink(missing_ok=True)
            if fcntl is not None:
                with contextlib.suppress(OSError):
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _byte_of(name))

    def holder(self, name: str) -> Holder | None:
        """Who holds a name that could not be claimed; None where that is not known."""
        try:
            known = json.loads(read_text(self._record(name)))
            return Holder(int(known["pid"]), str(known["host"]), float(known["started"]), float(known["since"]))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _record(self, name: str) -> Path:
        return self._path.with_name(_HOLDERS) / hashlib.sha256(name.encode()).hexdigest()[:32]

    @classmethod
    def _after_fork(cls) -> None:
        """A thread that the child does not have may have held the guard; record locks are the parent's."""
        cls._guard, cls._started = threading.Lock(), time.time()
        for locks in cls._by_file.values():
            locks._held.clear()


after_fork(Locks._after_fork)


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
