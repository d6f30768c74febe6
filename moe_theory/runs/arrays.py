"""NumPy's archives, `.npz`, of unknown origin: headers and sizes are checked before data are read."""

import functools
import io
import math
import warnings
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from jaxtyping import Shaped

from moe_theory.core.errors import shortened
from moe_theory.runs.reading import open_file

NUMBERS = "biuf"  # kinds of dtypes: truth values, whole numbers with and without a sign, floats
_ENDING = ".npy"
_HEADER = 1 << 14  # bytes that the header of an array may take; NumPy reads no more than 10,000
_FIRST = 128  # bytes that are read of it at once: most are no longer
_LENGTHS = {b"\x01": 2, b"\x02": 4}  # bytes of a header's length, by the version of the format
_PIECE = 1 << 20  # bytes that are read at once: an archive's list of some ten thousand arrays is as long
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # by `numpy.savez` and `numpy.savez_compressed`
_ENCRYPTED = 1  # the flag of a member
_LONGEST = 200  # characters of what another library says
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def most_bytes() -> int:
    """Largest number of bytes of arrays that are read at once: half of what this process may use."""
    from moe_theory.core.machine import machine_memory  # which imports JAX

    return machine_memory() // 2


def names_of(path: Path) -> list[str]:
    """Names of the arrays of an archive. Raises: OSError and ValueError as `read_arrays` does."""
    return [*_opened(path, lambda archive: dict.fromkeys(_members(archive)))]


def read_arrays(
    source: Path | bytes, names: Iterable[str] | None = None, kinds: str = NUMBERS
) -> dict[str, Shaped[np.ndarray, "..."]]:
    """The arrays of an archive by name: of these names those that there are, all unless given.

    Args:
        source: a file, or what it holds.
        kinds: of dtypes that are read; objects never are.
    Raises: OSError for what is no file or cannot be read; ValueError, with the reason in one line, for anything else:
        an archive that is damaged, encrypted or packed otherwise than NumPy does, an array of another kind or of
        another size than its header says, or more bytes than `most_bytes`.
    """
    return _opened(source, lambda archive: _read(archive, names, kinds))


def _opened(source: Path | bytes, read: Callable[[zipfile.ZipFile], dict[str, Any]]) -> dict[str, Any]:
    with open_file(source) if isinstance(source, Path) else io.BytesIO(source) as file:
        try:
            with zipfile.ZipFile(_Bounded(file)) as archive, warnings.catch_warnings():  # pyright: ignore
                warnings.simplefilter("ignore")  # NumPy's, of headers that Python 2 wrote
                return read(archive)
        except OSError:
            raise
        except Exception as failure:  # damaged archives make zipfile, zlib and NumPy raise what they do not document
            said = " ".join(str(failure).split()) or type(failure).__name__
            raise ValueError(said if len(said) <= _LONGEST else shortened(said)) from None


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        name = member.filename.removesuffix(_ENDING)
        if members.setdefault(name, member) is not member:
            raise ValueError(f"it has two arrays {shortened(name)}")
    return members


def _read(archive: zipfile.ZipFile, names: Iterable[str] | None, kinds: str) -> dict[str, np.ndarray]:
    members = _members(archive)
    wanted = [name for name in (members if names is None else names) if name in members]
    for name in wanted:
        if members[name].flag_bits & _ENCRYPTED:
            raise ValueError(f"{shortened(name)} is encrypted")
        if members[name].compress_type not in _PACKED:
            raise ValueError(f"{shortened(name)} is not packed as numpy.savez and numpy.savez_compressed do")
    # All headers before any data.
    most, total, headers = most_bytes(), 0, {}
    for name in wanted:
        headers[name] = _checked(archive, members[name], kinds)
        total += members[name].file_size - headers[name].size
        if total > most:
            raise ValueError(f"its arrays take {total:,} bytes; at most {most:,}, half of the memory here, are read")
    found = {}
    for name in wanted:
        header = headers[name]
        with archive.open(members[name]) as file:
            numbers = np.frombuffer(bytearray(file.read()), header.dtype, offset=header.size)
            found[name] = numbers.reshape(header.shape, order="F" if header.is_fortran else "C")
    return found


class _Header(NamedTuple):
    shape: tuple[int, ...]
    is_fortran: bool
    dtype: np.dtype
    size: int  # bytes of itself


def _checked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, kinds: str) -> _Header:
    """The header of an array, with which the archive agrees."""
    name = shortened(member.filename.removesuffix(_ENDING))
    with archive.open(member) as file:
        begin = file.read(_FIRST)
        length = np.lib.format.MAGIC_LEN + _LENGTHS.get(begin[6:7], 0)
        length += int.from_bytes(begin[np.lib.format.MAGIC_LEN : length], "little")
        begin += file.read(max(min(length, _HEADER) - _FIRST, 0))
    try:
        header = _header(begin[: min(length, _HEADER)])
    except ValueError as failure:
        raise ValueError(f"{name} {failure}") from None
    if header.dtype.kind not in kinds or header.dtype.hasobject:
        held = _KINDS.get(header.dtype.kind, "something else")
        raise ValueError(f"{name} holds {held} ({shortened(str(header.dtype))}), not real numbers")
    size = math.prod(header.shape) * header.dtype.itemsize
    if min(header.shape, default=0) < 0 or member.file_size != header.size + size:
        there = f"{member.file_size - header.size:,} bytes are there"
        raise ValueError(
            f"{name} has {shortened(header.shape)} as shape and {header.dtype} as type by its header, but {there}"
        )
    return header


@functools.lru_cache(1024)  # arrays of a kind begin with the same bytes, and Python's parser takes its time for them
def _header(begin: bytes) -> _Header:
    file = io.BytesIO(begin)
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"is written in version {version} of the format, which plain arrays do not need")
    try:
        return _Header(*_HEADERS[version](file), file.tell())
    except Exception as failure:  # of a text that Python's parser has read
        raise ValueError(f"has no header of an array ({type(failure).__name__})") from None


_KINDS = {
    "c": "complex numbers",
    "S": "bytes of text",
    "U": "text",
    "M": "dates",
    "m": "lengths of time",
    "V": "records",
    "O": "objects of Python",
    "T": "text",
}


class _Bounded:
    """A file of which no large piece is read at once: an archive's list of members is one piece, of any size."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(_PIECE + 1 if size < 0 else min(size, _PIECE + 1))
        if len(data) > _PIECE:
            raise ValueError("it lists more arrays than are read, some ten thousand")
        return data
