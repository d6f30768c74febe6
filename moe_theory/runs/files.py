"""Files that are there whole or not at all, whoever else writes the same one and whenever the process ends.

A chunk's file is an npz without pickles that holds its task. The archive's comment is a digest of every byte before it,
so that no change of the file goes unseen.
"""

import contextlib
import hashlib
import io
import json
import os
import shutil
import struct
import tempfile
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from moe_theory.core.errors import OutputError

SUFFIX = ".part"  # of what is being written
WAY_OUT = "make room or name another place"
TASK = "task"  # the entry of a chunk's file that holds the task
DIGEST_SIZE = 64  # characters
_PREFIX = "observable."  # keeps observables apart from the task

Arrays = Mapping[str, Shaped[np.ndarray, "..."]]


@contextlib.contextmanager
def whole(path: Path, way_out: str = WAY_OUT, is_durable: bool = False) -> Iterator[Path]:
    """A temporary name in the same folder, of a file or a folder, which becomes `path` in the end.

    Args:
        way_out: what a user may do about a place that cannot be written.
        is_durable: whether its name must survive a crash of the machine from then on.
    Raises: OutputError where it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}{SUFFIX}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        if path.is_dir() and temporary.is_dir():
            _replace_folder(temporary, path)
        else:
            temporary.replace(path)
        if is_durable:
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as failure:
        raise OutputError(f"{path} cannot be written ({failure.strerror or failure}): {way_out}.") from None
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(temporary) if temporary.is_dir() else temporary.unlink(missing_ok=True)


def _replace_folder(new: Path, path: Path) -> None:
    """Put a folder in the place of another, which goes when the new one is there: they cannot be exchanged at once."""
    old = path.with_name(f"{new.name}.old")
    path.rename(old)
    try:
        new.rename(path)
    except OSError:
        old.rename(path)
        raise
    shutil.rmtree(old)


def write_whole(path: Path, data: bytes, way_out: str = WAY_OUT, is_durable: bool = False) -> None:
    """Write a file, as `whole` does. Raises: OutputError where it cannot be written."""
    with whole(path, way_out, is_durable) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        if is_durable:
            os.fsync(file.fileno())


def made_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder, created if need be. Raises: OutputError where it cannot be."""
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        raise OutputError(f"{path} cannot be created ({reason}): name another folder.") from None
    return path


def user_cache() -> Path:
    """This user's folder for what can be computed again (XDG); it may not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "moe_theory"


def digest(data: Mapping[str, Any]) -> str:
    """SHA-256 of plain data as text, the same for equal data."""
    return hashlib.sha256(_canonical(data)).hexdigest()


def pack(task: Mapping[str, Any], arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    entries: dict[str, Any] = {_PREFIX + name: array for name, array in sorted(arrays.items())}
    np.savez(buffer, **{TASK: np.frombuffer(_canonical(task), np.uint8)}, **entries)
    data = buffer.getvalue()[:-2] + struct.pack("<H", DIGEST_SIZE)  # the comment's length ends an archive without one
    return data + _checksum(data)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A chunk's task and arrays. Raises: ValueError that says what is wrong with the bytes."""
    if not data:
        raise ValueError("it is empty")
    if _checksum(data[:-DIGEST_SIZE]) != data[-DIGEST_SIZE:]:
        raise ValueError("its checksum does not match its contents: it is cut short or changed")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            task = json.loads(file[TASK].tobytes())
            return task, {name.removeprefix(_PREFIX): file[name] for name in file.files if name.startswith(_PREFIX)}
    except (KeyError, OSError, EOFError, zipfile.BadZipFile) as failure:
        raise ValueError(f"it is no chunk ({failure})") from None


def _canonical(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _checksum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def prepare_folder(path: str | os.PathLike[str], names: Iterable[str] = ()) -> Path:
    """The folder at `path`, made if need be and shown to be writable, with no folder where the files `names` will go.
    Raises: OutputError in one line that says what is in the way.
    """
    folder = Path(path)
    for name in names:
        if (folder / name).is_dir():
            raise OutputError(f"--out {folder}: {name} is a folder there, and is to be a file. Name another --out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as failure:
        reason = failure.strerror or failure
        raise OutputError(
            f"--out {folder} cannot be written ({reason}): name a folder that you may write to."
        ) from None
    return folder


def read_json(path: Path) -> Any:
    """What a JSON file holds. Raises: OSError; ValueError for what is no JSON, NaN and lone surrogates among it, or
    nested 200 deep.
    """
    from pydantic_core import from_json

    return from_json(path.read_bytes(), allow_inf_nan=False)


def write_text(path: Path, text: str) -> None:
    """Write a text file, as `whole` does, with escapes for lone surrogates, which names of files and messages may have.
    Raises: OutputError where it cannot be written.
    """
    write_whole(path, text.encode(errors="backslashreplace"))
