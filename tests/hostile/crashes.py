"""What disks, power cuts and kills do to what is kept: bits flip, writes are lost or reordered, processes end anywhere.

python tests/hostile/crashes.py --flips 10000 --cuts 100 --kills 50     (about half an hour; the tests do a few of each)

Prints counts. Exits 1 when a flipped bit changes a number, when something that was reported as kept is lost or half, or
when a killed and resumed command gives other bytes than an undisturbed one.
"""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from stored import rows

from moe_theory.core.errors import MoeTheoryError
from moe_theory.report import pages
from moe_theory.runs import files
from moe_theory.runs.files import finish_replacing, sealed, write_together
from moe_theory.sweep.manifest import Manifest, read_manifest, write_manifest
from moe_theory.verify.verdict import Report, Status, Verdict

CLAIM, PRESET, OLD, NEW = "continual.lemma-4", "continual-mnist-small", b"old", b"new"
TEMPORARY = ".a.0123456789ab.part"  # of a file called a
Read = Callable[[], Any]  # what is read, comparable; None where it is told to be missing or damaged


class Kept(NamedTuple):
    """A sealed file of some kind."""

    kind: str
    path: Path
    read: Read


class Writers:
    """Writers of all that is kept in files below one folder, each with made-up content of a version. (The store is
    SQLite's, which `tests/runs/test_store.py` damages.)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def manifest(self, version: int) -> None:
        folder = self.folder / "sweep"
        folder.mkdir(parents=True, exist_ok=True)
        write_manifest(folder, Manifest({"system": "continual"}, {"version": str(version)}), is_part=False)

    def read_manifest(self) -> Any:
        return read_manifest(self.folder / "sweep").fingerprint

    def report(self, version: int) -> None:
        found = [
            Verdict(CLAIM, "continual", "Lemma 4", "", "ordering", "mine", Status.SUPPORTED, "", 8 + version, "again")
        ]
        made = Report(found, f"moe-theory verify {CLAIM}", version, 0.01, {}, False, {}, finished="2026")
        texts = (f"page {version}", f"text {version}", pages.to_json(made))
        write_together(self.folder / "report", dict(zip((*pages.PAGE_NAMES, pages.NUMBERS), texts, strict=True)))

    def read_report(self) -> Any:
        return json.loads(pages.to_json(pages.read_reports([self.folder / "report" / pages.NUMBERS])))

    def read_pages(self) -> Any:
        """The whole folder, all of one version."""
        numbers = self.read_report()
        for name, word in zip(pages.PAGE_NAMES, ("page", "text"), strict=True):
            assert (self.folder / "report" / name).read_text() == f"{word} {numbers['seed']}", "reports are mixed"
        return numbers


def kept_files(folder: Path) -> list[Kept]:
    """One file of every kind that has a digest, written."""
    made = Writers(folder)
    made.report(1)
    journal = folder / "journal" / files.JOURNAL
    journal.parent.mkdir()

    def replaced() -> Any:
        (folder / "journal" / TEMPORARY).write_bytes(NEW)
        (folder / "journal" / "a").write_bytes(OLD)
        finish_replacing(folder / "journal")
        return (folder / "journal" / "a").read_bytes()

    journal.write_text(sealed({TEMPORARY: "a"}))
    return [
        Kept("report", folder / "report" / pages.NUMBERS, made.read_report),
        Kept("journal", journal, replaced),
    ]


def flip_bits(number: int, seed: int, folder: Path) -> Counter[tuple[str, str]]:
    """Flip single bits of files of every kind in turn; how often that was detected or harmless, by kind. Raises:
    AssertionError where it changed what is read; whatever a reader raises that is no line for its user.
    """
    chance, kept, found = random.Random(seed), kept_files(folder), Counter()
    contents = [(each.path.read_bytes(), _read(each.read)) for each in kept]
    for turn in range(number):
        each, (whole, expected) = kept[turn % len(kept)], contents[turn % len(kept)]
        bit = chance.randrange(8 * len(whole))
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        each.path.write_bytes(changed)
        got = _read(each.read)
        assert got in (None, expected), f"bit {bit % 8} of byte {bit // 8} of {each.path} changes what is read"
        found[each.kind, "harmless" if got else "detected"] += 1
        each.path.write_bytes(whole)
    return found


def _read(read: Read) -> Any:
    """What is read; None where an error says that it is damaged."""
    try:
        return read()
    except MoeTheoryError as told:
        if "\n" in str(told):
            raise AssertionError(f"more than a line: {told}") from told
        return None


class Cut(NamedTuple):
    """Something that a file system does, or that a writer has reported."""

    what: str  # make, write, sync, sync-folder, move, link, remove, kept
    path: Path
    other: Path | None = None  # of a move or a link, where to
    content: bytes = b""  # of a write
    version: int = 0  # of what is kept


@contextlib.contextmanager
def recorded() -> Iterator[list[Cut]]:
    """Everything that is asked of the file system, in order. A file's writing is seen when it is synced or renamed."""
    log: list[Cut] = []

    def fsync(opened: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{opened}"))
        own["fsync"](opened)
        log.extend([Cut("sync-folder", path)] if path.is_dir() else [_written(path), Cut("sync", path)])

    def move(one: Any, other: Any) -> None:
        written = [] if Path(one).is_dir() else [_written(Path(one))]
        own["replace"](one, other)
        log.extend([*written, Cut("move", Path(one), Path(other))])

    def link(one: Any, other: Any) -> None:
        own["link"](one, other)
        log.append(Cut("link", Path(one), Path(other)))

    def unlink(path: Any, **options: Any) -> None:
        own["unlink"](path, **options)
        log.append(Cut("remove", Path(path)))

    def mkdir(path: Any, *options: Any, **further: Any) -> None:
        own["mkdir"](path, *options, **further)
        log.append(Cut("make", Path(path)))

    new = {"fsync": fsync, "replace": move, "rename": move, "link": link, "unlink": unlink, "mkdir": mkdir}
    own = {name: getattr(os, name) for name in new}
    with mock.patch.multiple(os, **new):
        yield log


def _written(path: Path) -> Cut:
    return Cut("write", path, content=path.read_bytes())


class Disk:
    """What a disk may hold after a power cut: names are safe once their folder is synced, contents once their file is.
    Of all else any part may be there.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.now, self.count = root, {root: 0}, 0  # names, and the files or folders that they stand for
        self.folders, self.contents, self.synced = {0}, {}, {}
        self.pending: list[tuple[Path, list[tuple[Path, int | None]]]] = []  # by folder: names, and what they become
        self.durable: dict[Path, int] = {root: 0}

    def do(self, event: Cut) -> None:
        what, path, other = event.what, event.path, event.other
        if what == "make" or (what == "write" and path not in self.now):
            self.count += 1
            self.folders |= {self.count} if what == "make" else set()
            self._change(path.parent, [(path, self.count)])
        if what == "write" and self.contents.get(self.now[path]) != event.content:
            self.contents[self.now[path]] = event.content
            self.synced.pop(self.now[path], None)
        elif what == "sync":
            self.synced[self.now[path]] = self.contents[self.now[path]]
        elif what in ("move", "link") and other is not None:
            inode = self.now[path]
            self._change(other.parent, [(other, inode), *([(path, None)] if what == "move" else [])])
        elif what == "remove":
            self._change(path.parent, [(path, None)])
        elif what == "sync-folder":
            for folder, names in self.pending:
                if folder == path:
                    self._settle(self.durable, names)
            self.pending = [each for each in self.pending if each[0] != path]

    def _change(self, folder: Path, names: list[tuple[Path, int | None]]) -> None:
        self._settle(self.now, names)
        self.pending.append((folder, names))

    @staticmethod
    def _settle(held: dict[Path, int], names: list[tuple[Path, int | None]]) -> None:
        for name, inode in names:
            held.pop(name, None) if inode is None else held.update({name: inode})

    def cut(self, chance: random.Random, target: Path) -> None:
        """Write what is left of it into another folder."""
        left = dict(self.durable)
        for _, names in self.pending:
            if chance.random() < 0.5:
                self._settle(left, names)
        for path, inode in sorted(left.items()):
            place = target / path.relative_to(self.root)
            if not place.parent.is_dir():
                continue  # the name of a folder is lost, and all that is in it
            if inode in self.folders:
                place.mkdir(exist_ok=True)
            else:
                place.write_bytes(self.synced[inode] if inode in self.synced else self._half(chance, inode))

    def _half(self, chance: random.Random, inode: int) -> bytes:
        content = self.contents[inode]
        start = content[: chance.randrange(len(content) + 1)]
        return start + bytes(chance.choice((0, len(content) - len(start))))


def cut_power(number: int, seed: int, folder: Path) -> Counter[str]:
    """Cut the power at random moments of writing everything in three versions; what was there afterwards. Raises:
    AssertionError where something is half, or older than what was reported as kept.
    """
    chance, root = random.Random(seed), folder / "root"
    root.mkdir()
    files._DURABLE.clear()
    names = ("manifest", "report")
    with recorded() as log:
        made = Writers(root / "out" / "deeper")
        for version in range(3):
            for name in names:
                getattr(made, name)(version)
                log.append(Cut("kept", Path(name), version=version))
    log[:] = [event for event in log if event.what == "kept" or event.path.is_relative_to(root)]
    readers = {name: f"read_{'pages' if name == 'report' else name}" for name in names}
    versions: dict[str, list[Any]] = {name: [] for name in names}
    shutil.rmtree(root)
    for version in range(3):  # what each version reads as
        root.mkdir()
        again = Writers(root)
        for name in names:
            getattr(again, name)(version)
            versions[name].append(_read(getattr(again, readers[name])))
        shutil.rmtree(root)
    found: Counter[str] = Counter()
    for turn in range(number):
        disk, reported = Disk(root), dict.fromkeys(names, -1)
        for event in log[: chance.randrange(len(log) + 1)]:
            if event.what == "kept":
                reported[str(event.path)] = event.version
            else:
                disk.do(event)
        target = folder / f"cut-{turn}"
        target.mkdir()
        disk.cut(chance, target)
        after = Writers(target / "out" / "deeper")
        for name, last in reported.items():
            got = _read(getattr(after, readers[name]))
            assert got is None or got in versions[name], f"{name} is half after {turn} cuts"
            place = -1 if got is None else max(n for n, each in enumerate(versions[name]) if each == got)
            assert place >= last, f"{name} of version {last} was kept, and version {place} is there"
            found["newer" if place > last else "as kept" if place >= 0 else "nothing was kept"] += 1
        shutil.rmtree(target)
    return found


SPECIFICATION = """
system = "continual"
rounds = 400
record_every = 40
replicates = 384
chunk_width = 32
[axes]
truth_scale = [0.2, 0.4, 0.8]
num_experts = [2, 5, 8]
"""
COMMANDS = {
    "sweep": ("sweep", "{folder}/grid.toml"),
    "verify": ("verify", "continual.lemma-3*", "--reading", "unit-signal", "--replicates", "512"),
    "deep": ("deep", PRESET, "--replicates", "2"),
}


def kill(number: int, seed: int, folder: Path, command: str) -> str:
    """Run a command until it is done, killed at random moments so many times; exits unless all bytes are the same."""
    moments = random.Random(seed)
    (folder / "grid.toml").write_text(SPECIFICATION)
    out = folder / "out"  # always the same: the command is in what it writes
    for _ in range(2):  # the first compiles
        shutil.rmtree(out, ignore_errors=True)
        began = time.monotonic()
        _finish(_start(command, folder))
    length, expected = time.monotonic() - began, _contents(out)
    kills = runs = 0
    while kills < number:
        shutil.rmtree(out)
        runs += 1
        while True:
            process = _start(command, folder)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(moments.uniform(0, length) if kills < number else None)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
            if process.wait() != -signal.SIGKILL:
                break
        _finish(process)
        found = _contents(out)
        if found != expected:
            names = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
            sys.exit(f"{command}, run {runs}, differs from the undisturbed one after {kills} kills, in {names}")
    return f"{command}: {kills} kills, {runs} runs: every file identical to the last byte"


def _start(command: str, folder: Path) -> subprocess.Popen:
    """A run of the command line, in a process group of its own."""
    words = [word.format(folder=folder) for word in COMMANDS[command]]
    line = [sys.executable, "-m", "moe_theory", *words, "--out", str(folder / "out")]
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(line, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=said)


def _finish(process: subprocess.Popen) -> None:
    """Wait for a run that nobody kills, and end with what it says if it fails."""
    if process.wait() != 0:
        said = Path(str(process.args[-1])).parent / "said"  # pyright: ignore
        sys.exit(f"a resumed run failed with code {process.returncode}: {said.read_text()}")


def _contents(out: Path) -> dict[str, bytes]:
    """Everything whose bytes must not depend on what happened."""
    found = {path.name: path.read_bytes() for path in out.glob("results.nc")}
    found |= rows(out)
    if (out / pages.NUMBERS).is_file():
        document = json.loads((out / pages.NUMBERS).read_text())
        found["verdicts"] = json.dumps([each | {"command": ""} for each in document["verdicts"]]).encode()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("flips", "cuts", "kills"):
        parser.add_argument(f"--{name}", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()

    def tell(what: Callable[..., Any], number: int, *further: Any) -> None:
        if number:
            with tempfile.TemporaryDirectory() as folder:
                print(what.__name__, what(number, asked.seed, Path(folder), *further), flush=True)

    tell(flip_bits, asked.flips)
    tell(cut_power, asked.cuts)
    for place, command in enumerate(COMMANDS):
        tell(kill, (asked.kills + place) // len(COMMANDS), command)


if __name__ == "__main__":
    main()
