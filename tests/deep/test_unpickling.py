"""Hostile pickles in a data set's place: catches anything that is run, or that takes memory beyond the file's size."""

import contextlib
import os
import pickle
import random
import struct

import numpy as np
import pytest

from moe_theory.core.errors import DamagedDataError
from moe_theory.deep.datasets import cifar
from moe_theory.deep.datasets.cifar import read_pickle

from . import dataset_files as files

LIMIT = 1 << 20
ROWS = np.arange(2 * 3072, dtype=np.uint8).reshape(2, 3072)


class Calls:
    """Pickles as a call of anything."""

    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


class Stated:
    """Pickles as an array that is built by NumPy's function with a state of our choice."""

    def __init__(self, state):
        self.state = state

    def __reduce__(self):
        function, arguments, _ = ROWS.__reduce__()
        return function, arguments, self.state


def refused(tmp_path, data):
    path = tmp_path / "batch"
    path.write_bytes(data)
    with pytest.raises(DamagedDataError) as caught:
        read_pickle(path, LIMIT)
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{path} is damaged: ")
    return line


def named(module, name, *arguments):
    """A call by name, without this process having such a function."""
    text = b"".join(b"X" + struct.pack("<I", len(word)) + word for word in (each.encode() for each in arguments))
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + b"(" + text + b"tR."


def payloads(sentinel):
    write = f"open({str(sentinel)!r}, 'w')"
    return {
        "posix.system": pickle.dumps(Calls(os.system, f"touch {sentinel}")),
        "builtins.eval": pickle.dumps(Calls(eval, write), 4),
        "__builtin__.eval": pickle.dumps(Calls(eval, write), 2),
        "builtins.open": pickle.dumps(Calls(open, str(sentinel), "w")),
        "numpy.loads": named("numpy", "loads", write),
        "numpy.f2py.compile": named("numpy.f2py", "compile", write),
        "numpy.load": named("numpy", "load", str(sentinel)),
        "numpy.testing.runstring": named("numpy.testing._private.utils", "runstring", write),
        "numpy.memmap": named("numpy", "memmap", str(sentinel), "u1", "w+"),
        "builtins.getattr": pickle.dumps(Calls(getattr, "", "format"), 4),
        "operator.attrgetter": named("operator", "attrgetter", "__class__"),
        "numpy.core.multiarray.fromfile": named("numpy.core.multiarray", "fromfile", str(sentinel)),
        "numpy.ndarray.tofile": b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",
    }


@pytest.mark.parametrize("which", payloads("x"))
def test_nothing_that_a_pickle_names_is_run(tmp_path, which):
    sentinel = tmp_path / "sentinel"
    line = refused(tmp_path, payloads(sentinel)[which])
    assert which.split(".")[-1] in line
    assert not sentinel.exists()
    assert "Nothing in it was run." in line


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_nothing_within_a_data_set_is_run(tmp_path, protocol):
    """In a list, as a label, in an array of objects, as its type, as its subtype, and as an array's bytes."""
    sentinel = tmp_path / "sentinel"
    call = Calls(os.system, f"touch {sentinel}")
    hidden = [
        {b"data": ROWS, b"labels": [0, call]},
        {b"data": ROWS, b"labels": call},
        {b"data": ROWS, call: [0]},
        {b"data": np.array([call, 1], object)},
        {b"data": Stated((1, (1,), np.dtype(object), False, [call]))},
        {b"data": Stated((1, (2,), call, False, b"ab"))},
        {b"data": Stated((1, (2,), np.dtype("u1"), False, call))},
        {b"data": Stated(call)},
        {b"data": Calls(ROWS.__reduce__()[0], call, (0,), b"b")},
        call,
    ]
    for content in hidden:
        refused(tmp_path, pickle.dumps(content, protocol))
        assert not sentinel.exists()
    pickle.loads(pickle.dumps(hidden[0], protocol))
    assert sentinel.exists()  # else the payload would prove nothing


@pytest.mark.parametrize(
    "state",
    [
        (1, (1,), np.dtype(object), False, [1]),
        (1, (1,), np.dtype(object), False, b"\1\2\3\4\5\6\7\x08"),
        (1, (1,), np.dtype([("a", object)]), False, b"\1\2\3\4\5\6\7\x08"),
        (1, (3,), np.dtype("u1"), False, b"ab"),
        (1, (1 << 40,), np.dtype("u1"), False, b"ab"),
        (1, (-1, -2), np.dtype("u1"), False, b"ab"),
        (1, (1,) * 70 + (2,), np.dtype("u1"), False, b"ab"),
        (1, [2], np.dtype("u1"), False, b"ab"),
        (1, 2, np.dtype("u1"), False, b"ab"),
        (1, (2,), "u1", False, b"ab"),
        (1, (2,), np.dtype("u1"), False, "ab"),
        ((2,), np.dtype("u1"), b"ab"),
        {},
    ],
)
def test_arrays_of_other_types_and_shapes_are_refused(tmp_path, state):
    """Would catch pointers that a file makes up, and memory for a shape without its bytes."""
    assert "unpickled (" in refused(tmp_path, pickle.dumps({b"data": Stated(state)}, 2))


RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\n"


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (b"Pname\n.", "PERSID"),
        (b"K\x00Q.", "BINPERSID"),
        (b"\x82\x01.", "EXT1"),
        (b"(ios\nsystem\n.", "INST"),
        (b"(cnumpy\nndarray\no.", "OBJ"),
        (b"cnumpy\nndarray\n)\x81.", "NEWOBJ"),
        (b"cnumpy\nndarray\n)}\x92.", "NEWOBJ_EX"),
        (b"\x97.", "NEXT_BUFFER"),
        (b"\x96" + struct.pack("<Q", 1 << 40) + b".", "not a complete pickle"),
        (b"B" + struct.pack("<I", 1 << 31) + b".", "not a complete pickle"),
        (b"Nr" + struct.pack("<I", 1 << 31) + b".", "more memory"),
        (RECONSTRUCT + b"}X\x01\0\0\0aX\x01\0\0\0bsb.", "unpickled"),
        (RECONSTRUCT + b"NX\x08\0\0\0__code__Ns\x86b.", "unpickled"),
        (b"cnumpy\nndarray\n}X\x01\0\0\0aX\x01\0\0\0bsb.", "unpickled"),
        (b"cnumpy\nndarray\n)R.", "unpickled"),
        (b"c_codecs\nencode\nX\x02\0\0\0abX\x03\0\0\0hex\x86R.", "unpickled"),
        (b"N0.", "POP"),
        (b"K\x01.", "it holds a int"),
        (b"}.}.", "has 2 bytes after its end"),
        (b"}", "not a complete pickle"),
        (b"", "not a complete pickle"),
        (b"\xff", "not a complete pickle"),
    ],
)
def test_programs_that_arrays_do_not_need_are_refused(tmp_path, program, said):
    assert said in refused(tmp_path, b"\x80\x02" * bool(program) + program)


def test_many_small_objects_are_refused(tmp_path, monkeypatch):
    """An empty list takes 56 bytes of memory for one of the file."""
    monkeypatch.setattr(cifar, "_MAX_INSTRUCTIONS", 1000)
    assert "more memory" in refused(tmp_path, b"\x80\x02" + b"]" * 1000 + b".")


def test_one_string_cannot_be_encoded_into_more_bytes_than_the_file_has(tmp_path):
    text = b"X" + struct.pack("<I", 100_000) + b"a" * 100_000
    start = b"\x80\x02c_codecs\nencode\nq\x00" + text + b"X\x06\0\0\0latin1\x86q\x01R"
    again = b"h\x00h\x01R"
    assert "strings are encoded" in refused(tmp_path, start + again * 50 + b"t.")


def test_files_of_which_a_part_is_lost_or_changed_are_read_or_refused(tmp_path):
    """Would catch an error of another kind, whatever the damage; most bytes are pixels, so that some files are read."""
    whole = files.published_pickle({b"labels": [1, 2], b"data": ROWS[:, :8], b"filenames": [b"a", b"b"]})
    path, draw, num_read = tmp_path / "batch", random.Random(0), 0
    path.write_bytes(whole)
    np.testing.assert_array_equal(read_pickle(path, LIMIT)["data"], ROWS[:, :8])
    for length in range(0, len(whole), 3):
        refused(tmp_path, whole[:length])
    for _ in range(300):
        changed = bytearray(whole)
        for _ in range(draw.randint(1, 3)):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        path.write_bytes(changed)
        with contextlib.suppress(DamagedDataError):
            read_pickle(path, LIMIT)
            num_read += 1
    assert 0 < num_read < 300


def test_a_file_of_another_size_is_refused_unread(tmp_path):
    assert "at most 1,048,576 are read" in refused(tmp_path, b"\x80" * (LIMIT + 1))
