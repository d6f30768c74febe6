"""A chunk as the bytes of a file: an npz without pickles that knows its task and proves that it is whole.

The archive's comment is a digest of every byte before it, so that no change of the file goes unseen; the task inside
tells one chunk from another.
"""

import hashlib
import io
import json
import struct
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Shaped

Arrays = Mapping[str, Shaped[np.ndarray, "..."]]
TASK = "task"  # the entry that holds the task
DIGEST_SIZE = 64  # characters
_PREFIX = "observable."  # keeps observables apart from the task


def canonical(task: Mapping[str, Any]) -> bytes:
    """A task as text that is the same for equal tasks."""
    return json.dumps(task, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def pack(task: Mapping[str, Any], arrays: Arrays) -> bytes:
    """The bytes of a chunk's file, the same for equal contents."""
    buffer = io.BytesIO()
    entries: dict[str, Any] = {_PREFIX + name: array for name, array in sorted(arrays.items())}
    np.savez(buffer, **{TASK: np.frombuffer(canonical(task), np.uint8)}, **entries)
    data = buffer.getvalue()[:-2] + struct.pack("<H", DIGEST_SIZE)  # the comment's length ends an archive without one
    return data + _digest(data)


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A chunk's task and arrays. Raises: ValueError that says what is wrong with the bytes."""
    if not data:
        raise ValueError("it is empty")
    if _digest(data[:-DIGEST_SIZE]) != data[-DIGEST_SIZE:]:
        raise ValueError("its checksum is not that of its contents: it is cut short or changed")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            task = json.loads(file[TASK].tobytes())
            return task, {name.removeprefix(_PREFIX): file[name] for name in file.files if name.startswith(_PREFIX)}
    except (KeyError, OSError, EOFError, zipfile.BadZipFile) as failure:
        raise ValueError(f"it is no chunk ({failure})") from None


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()
