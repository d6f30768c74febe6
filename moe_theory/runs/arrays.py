"""NumPy's archives, `.npz`, of unknown origin: headers and sizes are checked before data are read."""

import io
import math
import warnings
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from jaxtyping import Shaped

from moe_theory.core.errors import shortened
from moe_theory.runs.reading import open_file

NUMBERS = "biuf"  # kinds of dtypes: truth values, whole numbers with and without a sign, floats
_ENDING = ".npy"
_HEADER = 1 << 14  # bytes that the header of an array may take; NumPy reads no more than 10,000
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
    most, total = most_bytes(), 0
    for name in wanted:
        total += _checked_size(archive, members[name], kinds)
        if total > most:
            raise ValueError(f"its arrays take {total:,} bytes; at most {most:,}, half of the memory here, are read")
    found = {}
    for name in wanted:
        with archive.open(members[name]) as file:
            found[name] = np.lib.format.read_array(file, allow_pickle=False)
            file.read()  # nothing, as the size is checked; then its checksum is too
    return found


def _checked_size(archive: zipfile.ZipFile, member: zipfile.ZipInfo, kinds: str) -> int:
    """The bytes of an array's numbers, as its header says and the archive agrees."""
    name = shortened(member.filename.removesuffix(_ENDING))
    with archive.open(member) as file:
        begin = io.BytesIO(file.read(_HEADER))
    version = np.lib.format.read_magic(begin)
    if version not in _HEADERS:
        raise ValueError(f"{name} is written in version {version} of the format, which plain arrays do not need")
    try:
        shape, _, dtype = _HEADERS[version](begin)
    except Exception as failure:  # of a text that Python's parser has read
        raise ValueError(f"{name} has no header of an array ({type(failure).__name__})") from None
    if dtype.kind not in kinds or dtype.hasobject:
        held = _KINDS.get(dtype.kind, "something else")
        raise ValueError(f"{name} holds {held} ({shortened(str(dtype))}), not real numbers")
    size = math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or member.file_size != begin.tell() + size:
        there = f"{member.file_size - begin.tell():,} bytes are there"
        raise ValueError(f"{name} has {shortened(shape)} as shape and {dtype} as type by its header, but {there}")
    return size


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
