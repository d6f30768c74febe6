"""Files that are there whole or not at all, whoever else writes the same one and whenever the process or the machine
stops. What has been written once is durable.

An entry's file is an npz without pickles that holds its task. The archive's comment is a digest of every byte before
it, so that no change of the file goes unseen. A JSON document has the digest of its content in it.
"""

import codecs
import contextlib
import ctypes
import errno
import hashlib
import io
import json
import math
import os
import re
import shutil
import struct
import sys
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Shaped

from moe_theory.core.errors import OutputError, shortened
from moe_theory.runs.arrays import NUMBERS, read_arrays
from moe_theory.runs.reading import open_file, read_bytes

SUFFIX = ".part"  # of what is being written
ABANDONED = 600.0  # seconds after which no process is still writing a file
WAY_OUT = "make room or name another place"
TASK = "task"  # the part of an entry's file that holds the task
SEAL = "sha256"  # the key of a document that holds its digest
DIGEST_SIZE = 64  # characters
_PREFIX = "observable."  # keeps arrays apart from the task
_HERE, _EXCHANGE = -100, 2  # of Linux: AT_FDCWD, RENAME_EXCHANGE
_MARK = re.compile("[0-9a-f]{12}")  # of a temporary name
JOURNAL = ".replacing"  # the file that lists what is to be put in its place
_LARGEST_JOURNAL = 1 << 20  # bytes
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS)  # of file systems without hard links
_NOT_OURS = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL)  # of folders that another user made

Arrays = Mapping[str, Shaped[np.ndarray, "..."]]

_DURABLE: set[tuple[int, int]] = set()  # folders, by device and inode, whose names survive a power cut


@contextlib.contextmanager
def whole(path: Path, way_out: str = WAY_OUT) -> Iterator[Path]:
    """A temporary name in the same folder, of a file or a folder, which becomes `path` in the end, durably.

    Args:
        way_out: what a user may do about a place that cannot be written.
    Raises: OutputError where it cannot be written.
    """
    with whole_set(path.parent, [path.name], way_out) as temporaries:
        yield temporaries[path.name]


@contextlib.contextmanager
def whole_set(folder: Path, names: Iterable[str], way_out: str = WAY_OUT) -> Iterator[dict[str, Path]]:
    """As `whole`, of files that become those of these names together: a process that stops in between leaves a journal,
    by which `finish_replacing` puts the others in their places.

    Raises: OutputError where one cannot be written; all are then as before.
    """
    mark = uuid.uuid4().hex[:12]
    temporaries = {name: folder / f".{name}.{mark}{SUFFIX}" for name in names}
    unfinished = list(temporaries.values())
    local(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield temporaries
        for name, temporary in temporaries.items():
            _sync_tree(temporary)
            if (folder / name).is_dir() and not temporary.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        _keep_names_of(folder)
        finish_replacing(folder)
        targets = [folder / name for name in temporaries]
        if len(targets) == 1 and _exchange(*temporaries.values(), *targets):
            _sync(folder)  # and what was there goes, as it now has the temporary name
        elif len(targets) > 1 or targets[0].is_dir():
            _record(folder, temporaries, unfinished)
            finish_replacing(folder)
        else:
            os.replace(*temporaries.values(), *targets)
            _sync(folder)
    except OSError as failure:
        place = folder / next(iter(temporaries)) if len(temporaries) == 1 else folder
        raise OutputError(f"{place} cannot be written ({failure.strerror or failure}): {way_out}.") from None
    finally:
        for temporary in unfinished:
            with contextlib.suppress(OSError):
                shutil.rmtree(temporary) if temporary.is_dir() else temporary.unlink(missing_ok=True)


def finish_replacing(folder: Path) -> None:
    """Finish a replacement that another process has begun here, stopped or not; any process may, repeatedly.
    Raises: OutputError where the folder cannot be written.
    """
    journal = folder / JOURNAL
    try:
        file = open_file(journal)
    except OSError as failure:
        if not (os.path.islink(journal) if isinstance(failure, FileNotFoundError) else os.path.lexists(journal)):
            return
        raise OutputError(
            f"{journal} is in the place of a list of files, and cannot be read ({failure.strerror}): remove it."
        ) from None
    try:
        with file, contextlib.suppress(FileNotFoundError):  # another process was faster
            for temporary, name in _journaled(journal, file.read(_LARGEST_JOURNAL)).items():
                with contextlib.suppress(FileNotFoundError):  # it is in its place already
                    _put(folder / temporary, folder / name)
            _sync(folder)
            if os.path.samestat(os.fstat(file.fileno()), os.stat(journal)):  # not another process's, by now
                os.unlink(journal)
    except OSError as failure:
        raise OutputError(
            f"{folder} has files that are to be replaced together, and cannot be written "
            f"({failure.strerror or failure}): make it writable."
        ) from None


def _record(folder: Path, temporaries: Mapping[str, Path], unfinished: list[Path]) -> None:
    """Write the journal; from then on the temporary files are needed."""
    draft = folder / f"{JOURNAL}.{uuid.uuid4().hex[:12]}{SUFFIX}"
    unfinished.append(draft)
    draft.write_text(sealed({temporary.name: name for name, temporary in temporaries.items()}))
    _sync(draft)
    _sync(folder)
    unfinished[:] = [draft]  # before the journal is there: an interrupt may come at any time
    try:
        while True:
            try:
                os.link(draft, folder / JOURNAL)
                break
            except FileExistsError:  # what another process has begun comes first
                finish_replacing(folder)
    except OSError as failure:
        unfinished.extend(temporaries.values())
        if failure.errno not in _NO_LINKS:
            raise
        unfinished[:] = []
        os.replace(draft, folder / JOURNAL)
    _sync(folder)


def _journaled(journal: Path, data: bytes) -> dict[str, str]:
    try:
        names = unsealed(data)
        for temporary, name in names.items():
            mark = temporary.removeprefix(f".{name}.").removesuffix(SUFFIX)
            if temporary != f".{name}.{mark}{SUFFIX}" or not _MARK.fullmatch(mark) or not _is_name(name):
                raise ValueError("it names what was not being written here")
    except ValueError as failure:
        raise OutputError(
            f"{journal} is damaged ({failure}): delete it, then run the command that writes there again."
        ) from None
    return names


def _is_name(name: Any) -> bool:
    """Whether a file may have this name, in its own folder."""
    return (
        isinstance(name, str)
        and name not in (".", "..", JOURNAL)
        and os.path.basename(name) == name
        and "\0" not in name
    )


def _exchange(temporary: Path, path: Path) -> bool:
    """Exchange two folders at once, so that there is no moment without one; False where the system cannot."""
    if sys.platform != "linux" or not path.is_dir():
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and rename(_HERE, os.fsencode(temporary), _HERE, os.fsencode(path), _EXCHANGE) == 0


def _put(temporary: Path, path: Path) -> None:
    """Put a file or a folder in its place; a folder that is there goes."""
    if not temporary.is_dir() or not path.is_dir():
        os.replace(temporary, path)
        return
    old = path.with_name(f"{temporary.name}.old{SUFFIX}")
    os.replace(path, old)
    try:
        os.replace(temporary, path)
    except OSError:
        os.replace(old, path)
        raise
    shutil.rmtree(old)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _sync_tree(path: Path) -> None:
    if path.is_dir():
        for below in path.iterdir():
            _sync_tree(below)
    _sync(path)


def _keep_names_of(folder: Path) -> None:
    """Make the names of a folder, and of those that it is in, survive a power cut. Another process may have made some
    of them, and not be done with this."""
    folder, new = folder.resolve(), []
    for each in (folder, *folder.parents[:-1]):
        known = each.stat()
        if (known.st_dev, known.st_ino) in _DURABLE:
            break
        new.append((known.st_dev, known.st_ino))
        try:
            _sync(each.parent)
        except OSError as failure:
            if failure.errno not in _NOT_OURS:
                raise
    _DURABLE.update(new)


def write_whole(path: Path, content: str | bytes, way_out: str = WAY_OUT) -> None:
    """Write a file, as `write_together` does. Raises: OutputError where it cannot be written."""
    write_together(path.parent, {path.name: content}, way_out)


def write_together(folder: Path, contents: Mapping[str, str | bytes], way_out: str = WAY_OUT) -> list[Path]:
    """Write files by their names, as `whole_set` does; their paths. Lone surrogates of texts, which names of files and
    messages may have, are escaped. Raises: OutputError where one cannot be written; none is then.
    """
    with whole_set(folder, contents, way_out) as temporaries:
        for name, content in contents.items():
            data = content if isinstance(content, bytes) else content.encode(errors="backslashreplace")
            temporaries[name].write_bytes(data)
    return [folder / name for name in contents]


def remove_leftovers(folder: Path, pattern: str = "") -> None:
    """Remove half-written files of killed processes, but none that a living one may be writing."""
    finish_replacing(folder)
    for path in folder.glob(f"{pattern}.*{SUFFIX}"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > ABANDONED:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def local(path: str | os.PathLike[str]) -> Path:
    """The path, which is one of this machine's file systems. Raises: OutputError for the address of another store, such
    as s3://bucket/x, which would become a folder called `s3:`.
    """
    if re.match(r"[A-Za-z][\w+.-]+:/", os.fspath(path)):
        raise OutputError(
            f"{shortened(os.fspath(path))} is an address, and no folder: results are kept in files, by renaming "
            "and locking them. Name a folder, and copy it there when it is complete."
        )
    return Path(path)


def made_folder(folder: str | os.PathLike[str]) -> Path:
    """The folder, created if need be. Raises: OutputError where it cannot be."""
    path = local(folder)
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
    return hashlib.sha256(canonical(data)).hexdigest()


def plain(value: Any) -> Any:
    """What JSON can say: null for NaN and infinity, lists for arrays, escapes for lone surrogates."""
    if isinstance(value, str):
        return str(value).encode(errors="backslashreplace").decode()
    if isinstance(value, Mapping):
        return {plain(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def sealed(document: Mapping[str, Any]) -> str:
    """A JSON document with a digest of its content."""
    plain = json.loads(json.dumps(document, allow_nan=False))
    return json.dumps({**plain, SEAL: digest(plain)}, indent=2) + "\n"


def unsealed(data: bytes, is_sealed: bool = True) -> dict[str, Any]:
    """A sealed document, without its digest; or one without a digest, unless `is_sealed`. Raises: ValueError for what
    is none, or another one than was written.
    """
    document = _parsed(data)
    if not isinstance(document, dict):
        raise ValueError("it is no JSON object")
    seal = document.pop(SEAL, None)
    if (is_sealed or seal is not None) and seal != digest(document):
        raise ValueError("its digest does not match its content: it is changed")
    return document


def pack(task: Mapping[str, Any], arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    entries: dict[str, Any] = {_PREFIX + name: array for name, array in sorted(arrays.items())}
    np.savez(buffer, **{TASK: np.frombuffer(canonical(task), np.uint8)}, **entries)
    data = buffer.getvalue()[:-2] + struct.pack("<H", DIGEST_SIZE)  # the comment's length ends an archive without one
    return data + _checksum(data)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """An entry's task and arrays. Raises: ValueError that says what is wrong with the bytes."""
    if not data:
        raise ValueError("it is empty")
    if _checksum(data[:-DIGEST_SIZE]) != data[-DIGEST_SIZE:]:
        raise ValueError("its checksum does not match its contents: it is cut short or changed")
    try:
        found = read_arrays(data, kinds=f"{NUMBERS}U")
        task = _parsed(found.pop(TASK).tobytes())
    except (KeyError, OSError, ValueError) as failure:
        raise ValueError(f"it is no entry ({failure})") from None
    return task, {name.removeprefix(_PREFIX): array for name, array in found.items() if name.startswith(_PREFIX)}


def canonical(data: Mapping[str, Any]) -> bytes:
    """Plain data as text, the same for equal data."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _checksum(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()


def prepare_folder(path: str | os.PathLike[str], names: Iterable[str] = ()) -> Path:
    """The folder at `path`, made if need be and shown to be writable, with no folder where the files `names` will go.
    Raises: OutputError in one line that says what is in the way.
    """
    folder = local(path)
    for name in names:
        if (folder / name).is_dir():
            raise OutputError(f"--out {folder}: {name} is a folder there, and is to be a file. Name another --out.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        remove_leftovers(folder)
    except OSError as failure:
        reason = failure.strerror or failure
        raise OutputError(
            f"--out {folder} cannot be written ({reason}): name a folder that you may write to."
        ) from None
    return folder


def read_json(path: Path) -> Any:
    """Read a JSON file, with or without a byte order mark. Raises: OSError; ValueError for what is no JSON, such as NaN
    or lone surrogates, or is nested 200 deep.
    """
    return _parsed(read_bytes(path).removeprefix(codecs.BOM_UTF8))


def _parsed(data: bytes) -> Any:
    from pydantic_core import from_json

    return from_json(data, allow_inf_nan=False)
