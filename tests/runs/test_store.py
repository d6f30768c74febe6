"""Chunks on disk: catches a damaged one taken for whole, half-written files, and failures that lose or hide work."""

import errno
import os
import random
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from packed import entries, harm, packs

from moe_theory.core.errors import DamagedChunkError, InvalidRunError, MissingChunkError, OtherChunkError, OutputError
from moe_theory.runs import files
from moe_theory.runs import packs as runs_packs
from moe_theory.runs.files import pack, unpack
from moe_theory.runs.packs import Packs
from moe_theory.runs.store import Store
from moe_theory.sweep import plan as planning
from moe_theory.sweep import runner
from moe_theory.sweep.manifest import read_manifest, runs_in
from moe_theory.sweep.results import Results, Sweep

ARGUMENTS = {"system": "continual", "rounds": 20, "axes": {"num_experts": [2, 3]}, "replicates": 32, "chunk_width": 16}
SWEEP = Sweep(**ARGUMENTS)
PLAN = planning.SweepPlan(SWEEP, planning.fingerprint("continual"))
TASK = {"rounds": 3}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("finished")
    runner.run(SWEEP, folder)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "run")


def test_a_chunk_comes_back_as_it_was():
    arrays = {"b": np.arange(6.0).reshape(2, 3), "a": np.array([True, False])}
    task, read = unpack(pack(TASK, arrays))
    assert task == TASK
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype


def test_no_changed_bit_goes_unseen():
    data = pack(TASK, {"a": np.arange(40.0)})
    bits = {*random.Random(0).sample(range(8 * len(data)), 500), *range(8 * (len(data) - 100), 8 * len(data))}
    for bit in bits:
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match="checksum"):
            unpack(bytes(changed))


def test_no_cut_goes_unseen():
    data = pack(TASK, {"a": np.arange(4.0)})
    for length in range(len(data)):
        with pytest.raises(ValueError, match=r"checksum|empty"):
            unpack(data[:length])


FIRST, SECOND, *_ = (chunk.name for chunk in PLAN.chunks)


def cut(folder):
    (pack,) = packs(folder)
    pack.write_bytes(pack.read_bytes()[:-20])
    return {pack.name, *entries_of(PLAN)}


def empty(folder):
    (pack,) = packs(folder)
    pack.write_bytes(b"")
    return {pack.name, *entries_of(PLAN)}


def flip(folder):
    harm(folder, FIRST)
    return {FIRST}


def zero(folder):
    harm(folder, SECOND, lambda data: data[:-30] + bytes(30))
    return {SECOND}


def swap(folder):
    (pack,) = packs(folder)
    names = {FIRST.encode(): SECOND.encode(), SECOND.encode(): FIRST.encode()}
    pack.write_bytes(re.sub(b"|".join(names), lambda found: names[found[0]], pack.read_bytes()))
    return {FIRST, SECOND}


def outside(folder):
    """Another time of writing, in the directory."""
    (pack,) = packs(folder)
    data = bytearray(pack.read_bytes())
    data[data.rindex(b"PK\x01\x02") + 12] ^= 4
    pack.write_bytes(data)
    return set()


def entries_of(plan):
    return [chunk.name for chunk in plan.chunks]


@pytest.mark.parametrize(
    ("harmed", "failure", "said"),
    [
        (cut, MissingChunkError, "compute it"),
        (empty, MissingChunkError, "compute it"),
        (flip, DamagedChunkError, f"{FIRST}: its checksum .* changed"),
        (zero, DamagedChunkError, f"{SECOND}: its checksum .* cut short"),
        (swap, OtherChunkError, "something else"),
        (outside, None, None),
    ],
)
def test_a_damaged_chunk_is_found_named_and_computed_anew(folder, finished, harmed, failure, said):
    bad = harmed(folder)
    lost = bad & {*entries_of(PLAN)}
    for name in lost:
        with pytest.raises(failure, match=r"damaged|compute it"):
            Packs(folder).read(name)
    if lost:
        with pytest.raises(failure, match=said):
            Packs(folder).read(min(lost, key=entries_of(PLAN).index))
    counts = runner.run(SWEEP, folder).counts
    assert (counts.computed, counts.present) == (len(lost), 4 - len(lost))
    assert counts.damaged.keys() == ({each for each in bad if each.endswith(".zip")} or bad)
    assert entries(folder) == entries(finished)
    assert runner.run(SWEEP, folder).counts.damaged == {}


def test_a_chunk_that_is_not_there_says_so(tmp_path):
    with pytest.raises(MissingChunkError, match="run the same command again"):
        Packs(tmp_path).read("0" * 40)
    with pytest.raises(MissingChunkError, match="run the same command again"):
        Store(tmp_path).read("0" * 40, TASK)


@pytest.mark.parametrize(("owner", "failing"), [(files, "_sync"), (files.os, "replace")])
def test_a_full_disk_is_one_line_and_loses_nothing(tmp_path, finished, monkeypatch, owner, failing):
    """Would catch what was kept before that goes with what is not."""
    real, calls = getattr(owner, failing), []

    def full(*paths):
        if Path(paths[-1]).parent.name == "packs":
            calls.append(paths)
        if len(calls) > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*paths)

    monkeypatch.setattr(runs_packs, "MOST_ENTRIES", 1)  # else one pack has all
    monkeypatch.setattr(owner, failing, full)
    with pytest.raises(OutputError, match=r"No space left on device.*run the same command again") as told:
        runner.run(SWEEP, tmp_path)
    assert "\n" not in str(told.value)
    monkeypatch.undo()
    kept = {path: path.stat().st_mtime_ns for path in packs(tmp_path)}
    assert len(kept) == 2
    assert entries(tmp_path).items() < entries(finished).items()
    assert not list(tmp_path.glob("**/*.part"))
    assert runner.run(SWEEP, tmp_path).counts.present == len(kept)
    assert all(path.stat().st_mtime_ns == written for path, written in kept.items())
    assert entries(tmp_path) == entries(finished)


@pytest.mark.parametrize("address", ["s3://bucket/x", "gs://bucket", "abfs://x@y/z", "hdfs:/x"])
def test_an_address_is_no_folder(address, tmp_path, monkeypatch):
    """Would catch results in a local folder that is called `s3:`, which its user looks for in vain."""
    monkeypatch.chdir(tmp_path)
    for write in (
        lambda: SWEEP.run(address),
        lambda: Store(Path(address)),
        lambda: files.write_whole(Path(address) / "x.json", "{}"),
        lambda: files.made_folder(address),
        lambda: files.prepare_folder(address),
    ):
        with pytest.raises(OutputError, match="is an address, and no folder"):
            write()
    assert list(tmp_path.iterdir()) == []
    assert files.local("C:/x") == Path("C:/x")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 40 kB, where we may make one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=40k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("mounting needs rights that this user does not have")
    yield disk
    subprocess.run(["umount", disk], check=True)


def test_a_really_full_disk(small_disk, monkeypatch):
    monkeypatch.setattr(runs_packs, "MOST_ENTRIES", 2)  # else one pack, which does not fit, has all
    sweep = Sweep(**{**ARGUMENTS, "replicates": 256})
    with pytest.raises(OutputError, match="No space left on device"):
        runner.run(sweep, small_disk / "run")
    subprocess.run(["mount", "-o", "remount,size=4m", small_disk], check=True)
    counts = runner.run(sweep, small_disk / "run").counts
    assert counts.present > 0
    assert not counts.damaged
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    for name in ("run", "other"):
        with pytest.raises(OutputError, match="Read-only file system"):
            runner.run(sweep, small_disk / name)


def test_leftovers_of_a_killed_process_are_swept_up_but_not_what_is_being_written(folder):
    old, new = (packs(folder)[0].with_name(f".{'ab' * 20}.zip.host-{number}.part") for number in (1, 2))
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    runner.run(SWEEP, folder)
    assert not old.exists()
    assert new.exists()


def test_the_manifest_keeps_every_run(folder):
    runner.run(SWEEP, folder, arguments=["sweep", "grid.toml"])
    manifest = read_manifest(folder)
    assert manifest["specification"] == SWEEP.to_json()
    first, second = runs_in(folder)
    assert second["argv"] == ["sweep", "grid.toml"]
    assert (first["computed"], second["computed"]) == (4, 0)
    for run in (first, second):
        assert run["started"] <= run["finished"]
        assert {"jax", "numpy", "python"} <= run["versions"].keys()
        assert "cpu" in run["device"]


SEALED = [
    files.sealed({"schema": "moe-theory/sweep/2", **parts})
    for parts in ({}, {"specification": {}}, {"specification": [], "fingerprint": {"moe-theory": "", "backend": ""}})
]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema": "other"}', '{"schema": "moe-theory/sweep/2"}', *SEALED])
def test_a_damaged_manifest_is_written_anew_and_costs_nothing(folder, text):
    (folder / "manifest.json").write_text(text)
    with pytest.raises(InvalidRunError, match=r"manifest"):
        read_manifest(folder)
    assert runner.run(SWEEP, folder).counts.computed == 0
    assert read_manifest(folder)["specification"] == SWEEP.to_json()


def test_a_folder_of_an_earlier_version_is_refused_before_anything_is_computed(tmp_path):
    (tmp_path / "manifest.json").write_text('{"schema": "moe-theory/sweep/1"}')
    for use in (Results.open, lambda folder: runner.run(SWEEP, folder)):
        with pytest.raises(InvalidRunError, match=r"another version \(moe-theory/sweep/1, .* Name another folder"):
            use(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json"]


def test_a_folder_without_a_sweep(tmp_path):
    with pytest.raises(InvalidRunError, match="holds no sweep"):
        read_manifest(tmp_path)


OURS = ".a.0123456789ab.part"  # a temporary name of a file called a
FOREIGN = (
    *({OURS: name} for name in ("..", ".", "b", "../a", "", 1, None, {}, [], "a\0", ".replacing")),
    *({name: "a"} for name in (".a.part", "../a", "..", "", OURS.upper(), OURS[1:], f"x/{OURS}")),
    *({OURS.replace(".a.", f".{name}."): name} for name in ("..", "x/y", ".replacing")),
)


@pytest.mark.parametrize("names", FOREIGN)
def test_a_journal_that_nobody_wrote_here_moves_nothing(names, tmp_path):
    """Would catch a list of files, put into a shared folder, that makes whoever looks at it replace what it names."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a", "b", ".a.part", OURS, OURS.upper(), OURS[1:]):
        (folder / name).write_text(name)
    (tmp_path / "a").write_text("elsewhere")
    (folder / files.JOURNAL).write_text(files.sealed(names))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(OutputError, match="is damaged"):
        files.finish_replacing(folder)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
