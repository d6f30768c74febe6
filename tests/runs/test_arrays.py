"""The reader of NumPy's archives, on those that NumPy writes and on those that nobody wrote honestly."""

import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from commands import npy

from moe_theory.runs import arrays
from moe_theory.runs.arrays import read_arrays

RNG = np.random.default_rng(0)
WRITTEN = {
    "truths": RNG.random(7) < 0.5,
    "bytes": RNG.integers(0, 256, (3, 4, 5), np.uint8),
    "wide": RNG.integers(-(2**62), 2**62, (2, 3)),
    "floats": RNG.normal(size=(5, 2)),
    "half": RNG.normal(size=4).astype(np.float16),
    "columns": np.asfortranarray(RNG.normal(size=(3, 4))),
    "swapped": RNG.normal(size=3).astype(">f8"),
    "one": np.array(3),
    "none": np.zeros((0, 5), np.float32),
}


def packed(save=np.savez, **given):
    buffer = io.BytesIO()
    save(buffer, **given)
    return buffer.getvalue()


def zipped(members, compression=zipfile.ZIP_STORED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name), data, compression)
    return buffer.getvalue()


def with_flags(data, flags=0, method=0):
    """An archive whose members declare these flags and this method of compression."""
    found = bytearray(data)
    for mark, place in ((b"PK\1\2", 8), (b"PK\3\4", 6)):
        at = found.find(mark)
        while at >= 0:
            struct.pack_into("<HH", found, at + place, flags, method)
            at = found.find(mark, at + 4)
    return bytes(found)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_writes_is_read_as_numpy_reads_it(save, tmp_path):
    path = tmp_path / "mine.npz"
    save(path, **WRITTEN)
    with np.load(path) as file:
        known = {name: file[name] for name in file.files}
    for source in (path, path.read_bytes()):
        found = read_arrays(source)
        assert list(found) == list(known)
        for name, array in known.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype
    assert list(read_arrays(path, ("one", "nothing", "bytes"))) == ["one", "bytes"]


FEATURES = npy("'<f8'", "(10,)", bytes(80))
SHAPES = (
    "(9,)", "(11,)", "(-1,)", "(-1, -10)", "(10**15,)", "(4294967296, 4294967296)", "(0,)", "()", "(1,) * 40", "'x'",
    "(1.0,)", "[10]", "(10", "(" * 9000,
)  # fmt: skip
TYPES = (
    "'<c16'", "'|S1000000000'", "'|S8'", "'<U2'", "'<M8[s]'", "'<m8[s]'", "'|V8'", "'|O'", "[('a', '<f8')]",
    "('<f8', (10,))", "('<f8', (1000000000,))", "'nope'", "1", "None", "'<f8' * 9", "('<f8', {})", "'|T8'", "'<i4,<f4'",
)  # fmt: skip
HOSTILE = {
    **{f"shape {shape[:30]}": zipped([("a.npy", npy("'<f8'", shape, bytes(80)))]) for shape in SHAPES},
    **{f"type {kind}": zipped([("a.npy", npy(kind, "(10,)", bytes(80)))]) for kind in TYPES},
    "a trailing byte": zipped([("a.npy", FEATURES + b"x")]),
    "a missing byte": zipped([("a.npy", FEATURES[:-1])]),
    "no header": zipped([("a.npy", b"")]),
    "no magic": zipped([("a.npy", b"x" * 200)]),
    "another version": zipped([("a.npy", FEATURES[:6] + b"\x09" + FEATURES[7:])]),
    "a header of 4 GB": zipped([("a.npy", b"\x93NUMPY\2\0\xff\xff\xff\xff" + bytes(1000))]),
    "two of a name": zipped([("a.npy", FEATURES), ("a", FEATURES)]),
    "encrypted": with_flags(zipped([("a.npy", FEATURES)]), flags=1),
    "strongly encrypted": with_flags(zipped([("a.npy", FEATURES)]), flags=0x41),
    **{f"method {each}": with_flags(zipped([("a.npy", FEATURES)]), method=each) for each in (1, 8, 9, 12, 14, 93, 99)},
    "lzma": zipped([("a.npy", FEATURES)], zipfile.ZIP_LZMA),
    "bzip2": zipped([("a.npy", FEATURES)], zipfile.ZIP_BZIP2),
    "one array": FEATURES,
    "nothing": b"",
    "text": b"1, 2, 3\n",
    "a pickle": b"\x80\x04cos\nsystem\n(S'exit 1'\ntR.",
}  # fmt: skip


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_what_nobody_wrote_honestly_is_refused_in_a_line(data):
    """Would catch a header that is believed, a kind that is cast, and whatever zipfile, zlib and NumPy raise."""
    with pytest.raises(ValueError) as refused:
        read_arrays(data)
    assert type(refused.value) is ValueError
    assert str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damage_is_refused_or_harmless(save):
    """Would catch a flipped bit or a cut that changes an array, and an error that is not of the reader's."""
    given = {"a": RNG.integers(0, 9, (6, 3)), "b": RNG.normal(size=4)}
    data = packed(save, **given)
    bits = RNG.integers(0, 8 * len(data), 400).tolist()
    changed = [data[:cut] for cut in RNG.integers(0, len(data), 100).tolist()]
    changed += [data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :] for bit in bits]
    said = []
    for each in changed:
        found = {}
        try:
            found = read_arrays(each)
        except ValueError as failure:
            said.append(str(failure))
        for name in found.keys() & given.keys():  # a name may have changed
            np.testing.assert_array_equal(found[name], given[name])
            assert found[name].dtype == given[name].dtype
    assert len(said) > 300
    assert "\n" not in "".join(said)


def test_what_is_declared_takes_no_memory(monkeypatch):
    """Would catch room that is made for what a header promises, a list of members of any length, and a bomb."""
    zeros = zipped([("a.npy", npy("'<f8'", "(8388608,)", bytes(1 << 26)))], zipfile.ZIP_DEFLATED)
    many = zipped([(f"{number:04}{'x' * 1000}.npy", b"") for number in range(2000)])
    monkeypatch.setattr(arrays, "most_bytes", lambda: 1 << 20)
    monkeypatch.setattr(arrays, "_PIECE", 1 << 20)
    tracemalloc.start()
    try:
        for data, said in ((zeros, "take 67,108,864 bytes; at most 1,048,576"), (many, "lists more arrays")):
            with pytest.raises(ValueError, match=said):
                read_arrays(data)
            assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_text_is_read_where_it_is_asked_for():
    data = packed(labels=np.array(["a", "bc"]))
    assert read_arrays(data, kinds="U")["labels"].tolist() == ["a", "bc"]
    with pytest.raises(ValueError, match="'labels' holds text"):
        read_arrays(data)


def test_a_place_that_is_no_file_is_an_error_of_the_system(tmp_path):
    for place in (tmp_path, tmp_path / "nothing", tmp_path / "\0"):
        with pytest.raises(OSError):
            read_arrays(place)
