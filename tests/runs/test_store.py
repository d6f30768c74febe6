"""The store: catches wrong bytes of a damaged file, saved results that are lost, and failures without a word."""

import contextlib
import random
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from refusals import refusal
from stored import files, harm, rows

from moe_theory.core.errors import OutputError
from moe_theory.runs.store import Store, pack, unpack

RESULTS = {f"{number:064x}": bytes([number]) * 600 for number in range(1, 6)}
FIRST = min(RESULTS)


@pytest.fixture
def folder(tmp_path):
    store = Store(tmp_path)
    store.put(RESULTS)
    store.close()
    return tmp_path


def test_a_result_comes_back(folder):
    store = Store(folder)
    assert store.keys() == RESULTS.keys()
    assert {key: store.get(key) for key in RESULTS} == RESULTS
    assert store.get("0" * 64) is None
    assert store.intact([FIRST, "0" * 64]) == {FIRST}
    assert store.damaged == {}


def test_a_folder_without_results_is_empty(tmp_path):
    assert Store(tmp_path / "none").keys() == set()
    assert not (tmp_path / "none").exists()


def test_arrays_come_back_with_their_types():
    arrays = {"b": np.arange(6.0).reshape(2, 3), "a": np.array([True, False]), "c": np.zeros(0, np.float32)}
    read = unpack(pack(arrays))
    assert read.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array, strict=True)


def test_put_with_a_label_keeps_its_own_results_only(folder):
    store = Store(folder)
    store.put({"old": b"1"}, label="one")
    store.put({"other": b"2"}, label="two")
    store.put({"a": b"3", "b": b"4"}, label="one")
    assert store.keys() == {*RESULTS, "other", "a", "b"}


def test_a_damaged_row_is_named_until_it_is_written_again(folder):
    harm(folder, FIRST)
    store = Store(folder)
    assert store.intact(RESULTS) == RESULTS.keys() - {FIRST}
    assert store.damaged.keys() == {FIRST}
    store.put({FIRST: RESULTS[FIRST]})
    assert store.get(FIRST) == RESULTS[FIRST]
    assert store.damaged == {}


@pytest.mark.parametrize(("seed", "number"), [(0, 60), pytest.param(1, 1500, marks=pytest.mark.thorough)])
def test_a_flipped_bit_of_a_file_gives_no_wrong_bytes(folder, tmp_path_factory, seed, number):
    """Would catch a reader that believes a changed page."""
    chance = random.Random(seed)
    (file,) = files(folder)
    whole = file.read_bytes()
    place = tmp_path_factory.mktemp("flipped")
    for _ in range(number):
        bit = chance.randrange(8 * len(whole))
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        shutil.rmtree(place)
        place.mkdir()
        (place / file.name).write_bytes(changed)
        store = Store(place)
        with contextlib.suppress(OutputError):
            read = {key: store.get(key) for key in RESULTS}
            assert all(data in (None, RESULTS[key]) for key, data in read.items()), bit
            store.put({key: RESULTS[key] for key, data in read.items() if data is None})
            assert {key: Store(place).get(key) for key in RESULTS} == RESULTS, bit
        store.close()


def test_a_file_that_sqlite_cannot_open_is_one_line(folder):
    (file,) = files(folder)
    file.write_bytes(b"not a database" * 1000)
    assert "move it away" in str(refusal(OutputError, Store(folder).get, FIRST))
    assert "move it away" in str(refusal(OutputError, Store(folder).put, RESULTS))


def test_files_of_parts_are_read_together(tmp_path):
    for number in (1, 2):
        Store(tmp_path, f"-{number}-of-2").put({f"key {number}": bytes([number])})
    assert [file.name for file in files(tmp_path)] == ["results-1-of-2.sqlite", "results-2-of-2.sqlite"]
    store = Store(tmp_path)
    assert (store.get("key 1"), store.get("key 2")) == (b"\x01", b"\x02")


def test_a_label_replaces_what_had_it(tmp_path):
    store = Store(tmp_path)
    store.put({"old": b"1"}, label="checkpoint")
    store.put({"other": b"2"}, label="another")
    store.put({"new": b"3"}, label="checkpoint")
    assert store.keys() == {"other", "new"}


def test_a_result_that_goes_further_stays(tmp_path):
    """Would catch a slow process that replaces the samples of a quick one by fewer."""
    Store(tmp_path).put({"samples": b"many"}, extent=4096)
    Store(tmp_path).put({"samples": b"few"}, extent=64)
    assert Store(tmp_path).get("samples") == b"many"


WRITING = """
import resource, sys, time
from moe_theory.core.errors import OutputError
from moe_theory.runs.store import Store
folder, name, number, limit = sys.argv[1:]
if limit != "none":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
store = Store(folder)
saved = store.keys()
for key in (f"{name} row {row}" for row in range(int(number))):
    if key not in saved:
        try:
            store.put({key: key.encode() * 100})
        except OutputError as failure:
            sys.exit(str(failure))
        print(key, flush=True)
        time.sleep(0.002)  # as if it computed the next one
"""


class Writer:
    """A process that writes rows, and the keys of those that it has reported as saved."""

    def __init__(self, folder, name, number, limit="none"):
        self.reported = folder / f"{name}.txt"
        command = [sys.executable, "-c", WRITING, str(folder), name, str(number), str(limit)]
        with self.reported.open("w") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.PIPE, text=True)

    def lines(self):
        return [line for line in self.reported.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def message(self):
        """What it says on standard error, once it has ended."""
        return self.process.communicate()[1]


def test_a_full_place_is_one_line_and_loses_nothing(tmp_path):
    full = Writer(tmp_path, "a", 100, limit=60_000)
    message = full.message()
    assert message.count("\n") == 1
    assert "results.sqlite cannot be written" in message
    saved = rows(tmp_path)
    assert 0 < len(full.lines()) == len(saved) < 100
    again = Writer(tmp_path, "a", 100, limit=10_000_000)  # the same call, with room
    assert again.message() == ""
    assert len(again.lines()) == 100 - len(saved)
    assert saved.items() <= rows(tmp_path).items()


@pytest.mark.parametrize(
    ("kills", "num_writers"), [(5, 2), *(pytest.param(50, number, marks=pytest.mark.thorough) for number in (1, 2))]
)
def test_no_saved_row_is_lost_by_a_kill(tmp_path, num_writers, kills):
    """Would catch a `put` that returns before its rows survive the process, and a writer that spoils another's."""
    chance = random.Random(kills)
    expected = {}
    for turn in range(kills):
        writers = [Writer(tmp_path, f"{turn}-{number}", 100_000) for number in range(num_writers)]
        while any(len(writer.lines()) < 20 for writer in writers):
            assert all(writer.process.poll() is None for writer in writers)
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.05))
        for writer in writers:
            writer.process.kill()
        for writer in writers:
            assert writer.message() == ""
            expected |= {line.strip(): line.strip().encode() * 100 for line in writer.lines()}
        store = Store(tmp_path)
        assert {key: store.get(key) for key in expected} == expected
        store.close()
    assert len(expected) >= 20 * kills * num_writers


def test_a_file_in_the_place_of_the_folder_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    refusal(OutputError, Store(tmp_path / "file").put, {"key": b"1"})
