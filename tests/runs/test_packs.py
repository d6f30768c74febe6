"""Packs: catches entries that are lost, changed or told too early, and archives that make a reader crash or believe."""

import hashlib
import os
import struct
import threading
import time
import zlib

import numpy as np
import pytest
from packed import entries, harm, keep, packs, place_of

from moe_theory.core.errors import DamagedChunkError, MissingChunkError, OtherChunkError, OutputError
from moe_theory.runs import packs as runs_packs
from moe_theory.runs.files import digest, pack
from moe_theory.runs.packs import Keeper, Packs

LIMIT = 60.0  # seconds that anything may take on a busy machine


def entry(first):
    task = {"first": first}
    return digest(task)[:40], pack(task, {"a": np.arange(4.0) + first, "b": np.array([True, False])})


ENTRIES = dict(map(entry, range(4)))
ONE, TWO, *_ = ENTRIES


@pytest.fixture
def folder(tmp_path):
    Packs(tmp_path).write([*ENTRIES.items()])
    return tmp_path


def is_whole(read, first=0):
    np.testing.assert_array_equal(read["a"], np.arange(4.0) + first)
    np.testing.assert_array_equal(read["b"], [True, False])
    return read["a"].dtype == np.float64


def test_entries_come_back_as_they_were(folder):
    found = Packs(folder)
    assert len(found.names) == 4
    assert all(is_whole(found.read(name), first) for first, name in enumerate(ENTRIES))
    assert entries(folder) == ENTRIES
    assert "0" * 40 not in found
    with pytest.raises(MissingChunkError, match="run the same command again"):
        found.read("0" * 40)


def test_a_pack_is_called_after_its_bytes_whenever_it_is_written(folder, tmp_path):
    (path,) = packs(folder)
    assert path.stem == hashlib.sha256(path.read_bytes()).hexdigest()[:40]
    time.sleep(0.01)
    assert Packs(tmp_path / "other").write([*ENTRIES.items()]).name == path.name
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_what_another_has_written_is_seen_after_a_refresh(folder):
    found, (name, data) = Packs(folder), entry(9)
    Packs(folder).write([(name, data)])
    assert name not in found
    found.refresh()
    assert is_whole(found.read(name), 9)


def test_a_refresh_that_failed_is_made_up_for(folder, monkeypatch):
    """Would catch packs that are never seen, as the folder could not be listed when it had just changed."""
    found, (name, data) = Packs(folder), entry(9)
    Packs(folder).write([(name, data)])
    os.utime(found.packs, (1, 1))  # long ago, so that the folder counts as unchanged since
    with monkeypatch.context() as patched:
        patched.setattr(
            runs_packs.os, "scandir", lambda path: (_ for _ in ()).throw(OSError(24, "Too many open files"))
        )
        found.refresh()
    assert name not in found
    found.refresh()
    assert name in found


@pytest.mark.parametrize("part", range(40))
def test_no_changed_byte_of_a_pack_makes_a_wrong_array_or_loses_another_entry(folder, part):
    """Would catch a pack that goes, with all that is in it, as its directory has a flipped bit."""
    (path,) = packs(folder)
    data = bytearray(path.read_bytes())
    _, *ends = (place_of(folder, name)[2] for name in ENTRIES)
    directory = ends[-1]
    place = directory + part * (len(data) - directory) // 20 if part < 20 else (part - 20) * directory // 20
    data[place] ^= 1 << part % 8
    path.write_bytes(data)
    damaged = Packs(folder).check()
    assert all("\n" not in told for told in damaged.values())
    left = entries(folder)
    assert left.items() <= ENTRIES.items()
    if path.name not in damaged:  # else its directory cannot be read at all
        assert len(left) >= 3
        assert {*ENTRIES} - {*left} <= {*damaged} | {name for name in ENTRIES if name not in Packs(folder)}
    found = Packs(folder)
    assert all(is_whole(found.read(name), first) for first, name in enumerate(ENTRIES) if name in left)
    assert found.check() == {}


def test_what_is_whole_of_a_damaged_pack_is_saved(folder):
    path = harm(folder, TWO)
    found = Packs(folder)
    with pytest.raises(DamagedChunkError, match=f"{TWO}: its checksum"):
        found.read(TWO)
    assert found.check() == {TWO: "its checksum does not match its contents: it is cut short or changed"}
    assert not path.exists()
    assert TWO not in found
    assert is_whole(found.read(ONE))
    assert entries(folder) == {name: data for name, data in ENTRIES.items() if name != TWO}


def test_an_entry_that_is_whole_in_another_pack_is_not_damaged(folder):
    keep(folder, {TWO: ENTRIES[TWO], ONE: ENTRIES[ONE]})
    harmed = harm(folder, TWO)
    found = Packs(folder)
    found.check()
    assert not harmed.exists()
    assert is_whole(found.read(TWO), 1)
    assert is_whole(found.read(ONE), 0)


def test_a_reader_finds_what_another_process_has_moved(folder):
    """Would catch results that are missing in a process that had listed the packs before another one saved them."""
    found, other = Packs(folder), Packs(folder)
    harm(folder, TWO)
    assert {*other.check()} == {TWO}
    assert is_whole(found.read(ONE))
    with pytest.raises(MissingChunkError):
        found.read(TWO)


def test_two_that_check_at_once_lose_nothing(folder, monkeypatch):
    harm(folder, TWO)
    one, other = Packs(folder), Packs(folder)
    real, met = runs_packs._is_whole, []

    def meanwhile(path):
        if not met:
            met.append(path)
            other.check()
        return real(path)

    monkeypatch.setattr(runs_packs, "_is_whole", meanwhile)
    one.check()
    for found in (one, other, Packs(folder)):
        assert len(found.names) == 3
        assert is_whole(found.read(ONE))


def test_a_full_disk_keeps_a_damaged_pack(folder, monkeypatch):
    """Would catch whole entries that go with a damaged one, as there is no room to save them."""
    path = harm(folder, TWO)

    def full(*_):
        raise OutputError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(runs_packs, "write_whole", full)
        with pytest.raises(OutputError, match="no room"):
            Packs(folder).check()
    assert path.exists()
    assert {*Packs(folder).check()} == {TWO}


def test_a_pack_that_may_not_be_read_is_told_and_stays(folder, monkeypatch):
    """Would catch another user's pack, or one for which too many files were open, that is removed as damaged."""

    def refused(path):
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patched:
        patched.setattr(runs_packs, "open_file", refused)
        found = Packs(folder)
        ((name, told),) = found.check().items()
        assert name == packs(folder)[0].name
        assert "Permission denied" in told
    assert found.check() == {}, "it can be read by now"
    assert len(found.names) == len(Packs(folder).names) == 4


def zipped(members, offsets=0, sizes=None, compression=0, flags=0, count=None, at=None):
    """An archive of stored members whose directory may lie."""
    body = directory = b""
    for name, data in members:
        size = len(data) if sizes is None else sizes
        common = struct.pack("<HHHHHIIIHH", 20, flags, compression, 0, 33, zlib.crc32(data), size, size, len(name), 0)
        place = struct.pack("<I", (len(body) + offsets) & 0xFFFFFFFF)
        directory += b"PK\x01\x02\x14\x00" + common + struct.pack("<HHHI", 0, 0, 0, 0) + place + name
        body += b"PK\x03\x04" + common + name + data
    number = len(members) if count is None else count
    end = struct.pack("<HHHHIIH", 0, 0, number, number, len(directory), len(body) if at is None else at, 0)
    return body + directory + b"PK\x05\x06" + end


def huge(name, data, size, offset):
    """An archive with sizes and a place of 64 bits."""
    more = struct.pack("<HHQQQ", 1, 24, size, size, offset)
    common = struct.pack("<HHHHHIIIHH", 45, 0, 0, 0, 33, zlib.crc32(data), 2**32 - 1, 2**32 - 1, len(name), 28)
    directory = b"PK\x01\x02\x2d\x00" + common + struct.pack("<HHHII", 0, 0, 0, 0, 2**32 - 1) + name + more
    body = b"PK\x03\x04" + common + name + more + data
    return body + directory + b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 1, 1, len(directory), len(body), 0)


NAME, DATA = f"{ONE}.npz".encode(), ENTRIES[ONE]
LIES = {
    "no zip": b"PK" * 1000,
    "nothing": b"",
    "only an end": b"PK\x05\x06" + bytes(18),
    "sizes beyond the file": zipped([(NAME, DATA)], sizes=2**31),
    "sizes of nothing": zipped([(NAME, DATA)], sizes=0),
    "places beyond the file": zipped([(NAME, DATA)], offsets=2**31 - 1),
    "places elsewhere": zipped([(NAME, DATA), (f"{TWO}.npz".encode(), ENTRIES[TWO])], offsets=7),
    "places before the file": zipped([(NAME, DATA)], at=2**31),
    "huge sizes": huge(NAME, DATA, 2**62, 0),
    "huge places": huge(NAME, DATA, len(DATA), 2**64 - 1),
    "more members than there are": zipped([(NAME, DATA[:-1])], count=65535),
    "2**31 members": zipped([], count=65534) + b"PK\x06\x06" + bytes(40),
    "slashes": zipped([(f"../{ONE}.npz".encode(), DATA), (b"/etc/passwd.npz", DATA), (b"a/b.npz", DATA)]),
    "other names": zipped([(each, DATA) for each in (b"x", NAME[:40], NAME.upper(), b"\x1b]0;x\x07.npz")]),
    "another's name": zipped([(NAME, ENTRIES[TWO])]),
    "twice, of which the first is another's": zipped([(NAME, ENTRIES[TWO]), (NAME, DATA)]),
    "compressed": zipped([(NAME, zlib.compress(DATA)[2:-4])], compression=8),
    "said to be compressed": zipped([(NAME, DATA[:-1])], compression=99),
    "encrypted": zipped([(NAME, bytes(byte ^ 0x5A for byte in DATA))], flags=1),
    "an archive in an archive": zipped([(NAME, zipped([(NAME, DATA)]))]),
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("is_named", [True, False], ids=["named after its bytes", "named otherwise"])
def test_a_directory_that_lies_is_told_or_ignored(tmp_path, name, is_named):
    """Would catch a reader that crashes, hangs, takes gigabytes, or gives one entry's numbers under another's name."""
    path = tmp_path / "packs" / f"{hashlib.sha256(LIES[name]).hexdigest()[:40] if is_named else '0' * 40}.zip"
    path.parent.mkdir()
    path.write_bytes(LIES[name])
    for _ in range(2):
        found = Packs(tmp_path)
        assert {*found._places} <= {ONE, TWO}
        for each in (ONE, TWO):
            with pytest.raises((DamagedChunkError, MissingChunkError)) as told:
                found.read(each)
            assert "\n" not in str(told.value)
            assert (type(told.value) is OtherChunkError) <= ("another's" in name)
        damaged = found.check()
        assert all(told.isprintable() and len(told) < 500 for each in damaged.items() for told in each)
    found.write([*ENTRIES.items()])
    if not is_named:
        assert is_whole(found.read(ONE))
        assert entries(tmp_path) == ENTRIES


@pytest.mark.parametrize("name", [f"{'0' * 40}.zip", "x.zip", "\x1b[2J.zip", ".zip", f"{'0' * 40}.zip.zip"])
@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: os.symlink("nowhere", path), lambda path: os.symlink(path, path)]
)
def test_what_is_no_file_is_told_or_ignored(folder, name, make):
    """Would catch a named pipe that is read for ever."""
    make(folder / "packs" / name)
    found = Packs(folder)
    for _ in range(2):
        assert {*found.check()} <= {f"{'0' * 40}.zip"}
        assert all(is_whole(found.read(each), first) for first, each in enumerate(ENTRIES))
    assert os.path.lexists(folder / "packs" / name)


def test_a_file_in_the_place_of_the_packs_is_one_line(tmp_path):
    (tmp_path / "packs").write_text("")
    found = Packs(tmp_path)
    assert found.check() == {}
    with pytest.raises(OutputError, match="cannot be written") as told:
        found.write([*ENTRIES.items()])
    assert "\n" not in str(told.value)


class Told(list):
    """What a keeper tells, and whether it was true by then."""

    def __init__(self, folder):
        self.folder, self.came = folder, threading.Semaphore(0)

    def __call__(self, news):
        self.append(news)
        if not isinstance(news, OutputError):
            assert {*news} <= entries(self.folder).keys()
        self.came.release()

    def wait(self):
        assert self.came.acquire(timeout=LIMIT)


@pytest.fixture
def told(tmp_path):
    return Told(tmp_path)


def test_what_comes_within_a_second_is_one_pack(tmp_path, told, monkeypatch):
    monkeypatch.setattr(runs_packs, "LEAST_WAIT", LIMIT)
    keeper = Keeper(Packs(tmp_path), told)
    for name, data in ENTRIES.items():
        keeper.keep(name, data)
    assert not told
    assert keeper.backlog == sum(map(len, ENTRIES.values()))
    keeper.hurry()
    told.wait()
    assert told == [[*ENTRIES]]
    assert keeper.backlog == 0
    assert len(packs(tmp_path)) == 1
    keeper.hurry()
    keeper.close()
    assert told == [[*ENTRIES]]


def test_nothing_waits_for_long_or_makes_a_pack_too_large(tmp_path, told, monkeypatch):
    monkeypatch.setattr(runs_packs, "LEAST_WAIT", 0.01)
    keeper = Keeper(Packs(tmp_path), told)
    for name, data in ENTRIES.items():
        keeper.keep(name, data)
        told.wait()
    assert told == [[name] for name in ENTRIES]
    monkeypatch.setattr(runs_packs, "LEAST_WAIT", LIMIT)
    monkeypatch.setattr(runs_packs, "MOST_BYTES", 2 * len(ENTRIES[ONE]) - 1)
    more = dict(map(entry, range(10, 14)))
    for name, data in more.items():
        keeper.keep(name, data)
    for _ in range(2):
        told.wait()
    assert told[4:] == [[*more][:2], [*more][2:]]
    monkeypatch.setattr(runs_packs, "MOST_ENTRIES", 1)
    keeper.close()


def test_closing_writes_the_rest(tmp_path, told, monkeypatch):
    monkeypatch.setattr(runs_packs, "LEAST_WAIT", LIMIT)
    keeper = Keeper(Packs(tmp_path), told)
    for name, data in ENTRIES.items():
        keeper.keep(name, data)
    keeper.close()
    assert entries(tmp_path) == ENTRIES
    assert told == [[*ENTRIES]]
    keeper.close()  # again, as where an interrupt came in between


@pytest.mark.parametrize("failure", [OutputError("no room: make some"), MemoryError(), ValueError("a\nb")])
def test_after_a_failure_nothing_more_is_written_and_nobody_waits(tmp_path, told, monkeypatch, failure):
    """Would catch a sweep that waits for ever for a thread that has ended, or is told something kept that is not."""
    found, real = Packs(tmp_path), Packs.write

    def fails(self, given):
        if [name for name, _ in given] == [TWO]:
            raise failure
        return real(self, given)

    monkeypatch.setattr(Packs, "write", fails)
    monkeypatch.setattr(runs_packs, "MOST_ENTRIES", 1)
    keeper = Keeper(found, told)
    for name, data in ENTRIES.items():
        keeper.keep(name, data)
    keeper.close()
    first, second = told
    assert first == [ONE]
    assert isinstance(second, OutputError)
    assert "\n" not in str(second)
    assert keeper.backlog == 0
    assert entries(tmp_path) == {ONE: ENTRIES[ONE]}
