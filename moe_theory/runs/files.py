"""Files that are written completely or not at all."""

import contextlib
import errno
import hashlib
import json
import math
import os
import re
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moe_theory.core.errors import OutputError, shortened

if TYPE_CHECKING:
    from pydantic import JsonValue

SUFFIX = ".part"  # of unfinished files
WAY_OUT = "make room or name another place"
SEAL = "sha256"  # the key in a document for its digest


@contextlib.contextmanager
def whole_set(folder: Path, names: Iterable[str]) -> Iterator[dict[str, Path]]:
    """Yield a temporary file for each name. Once all are written, they take these names. Raises: OutputError."""
    mark = uuid.uuid4().hex[:12]
    temporaries = {name: folder / f".{name}.{mark}{SUFFIX}" for name in names}
    local(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield temporaries
        for name, temporary in temporaries.items():
            if (folder / name).is_dir():  # a replacement would fail after others
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            _sync(temporary)
        for name, temporary in temporaries.items():
            os.replace(temporary, folder / name)
        _sync(folder)
    except OSError as failure:
        place = folder
        if len(temporaries) == 1:
            place = folder / next(iter(temporaries))
        raise OutputError(f"{place} cannot be written ({failure.strerror or failure}): {WAY_OUT}.") from None
    finally:
        for temporary in temporaries.values():
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path, content: str | bytes) -> None:
    write_together(path.parent, {path.name: content})


def write_together(folder: Path, contents: Mapping[str, str | bytes]) -> list[Path]:
    """Write all files or none, with lone surrogates escaped. Raises: OutputError."""
    with whole_set(folder, contents) as temporaries:
        for name, content in contents.items():
            data = content if isinstance(content, bytes) else content.encode(errors="backslashreplace")
            temporaries[name].write_bytes(data)
    return [folder / name for name in contents]


def local(path: str | os.PathLike[str]) -> Path:
    """Return a path on this machine. Raises: OutputError for another store, such as s3://bucket/x."""
    if re.match(r"[A-Za-z][\w+.-]+:/", os.fspath(path)):
        raise OutputError(f"{shortened(os.fspath(path))} is an address, not a folder. Use a local folder, and copy it.")
    return Path(path)


def user_cache() -> Path:
    """Return this user's cache folder, which may not exist. A relative path in XDG_CACHE_HOME is ignored."""
    folder = os.environ.get("XDG_CACHE_HOME", "")
    base = folder if os.path.isabs(folder) else "~/.cache"
    return Path(base).expanduser() / "moe_theory"


def digest(data: "Mapping[str, JsonValue]") -> str:
    return hashlib.sha256(canonical(data)).hexdigest()


def plain(value: Any) -> Any:
    """Return data as JSON, with null for NaN and infinity, lists for arrays, and escapes for lone surrogates."""
    if isinstance(value, str):
        return str(value).encode(errors="backslashreplace").decode()
    if isinstance(value, Mapping):
        return {plain(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):  # NumPy's, whose import would take 0.1 s
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def sealed(document: Mapping[str, Any]) -> str:
    """Return a document as JSON text, with its digest as one more entry."""
    content = json.loads(json.dumps(document, allow_nan=False))  # as it will be read
    return json.dumps({**content, SEAL: digest(content)}, indent=2) + "\n"


def unsealed(data: bytes) -> "dict[str, JsonValue]":
    """Return a document without its digest. Raises: ValueError if it is not a document, or was changed."""
    from pydantic_core import from_json

    document = from_json(data, allow_inf_nan=False)
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    seal = document.pop(SEAL, None)
    if seal is not None and seal != digest(document):
        raise ValueError("its content was changed: the digest does not match")
    return document


def canonical(data: "Mapping[str, JsonValue]") -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def prepare_folder(path: str | os.PathLike[str], names: Iterable[str] = ()) -> Path:
    """Return the folder at `path` for files `names`, and create it if needed. Raises: OutputError."""
    folder = local(path)
    for name in names:
        if (folder / name).is_dir():
            raise OutputError(f"{folder}: {name} must be a file, but is a folder. Name another folder.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass  # the folder is writable
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        raise OutputError(f"{folder} cannot be written ({reason}). Name a folder that you may write to.") from None
    return folder
