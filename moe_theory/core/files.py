"""Files that are there whole or not at all, whoever else writes the same one, and whenever the process ends."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

SUFFIX = ".part"  # of what is being written


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A temporary name in the same folder, of a file or a folder, which becomes `path` in the end."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}{SUFFIX}")
    try:
        yield temporary
        if path.is_dir() and temporary.is_dir():
            shutil.rmtree(path)  # a folder cannot be replaced at once
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(temporary) if temporary.is_dir() else temporary.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes, is_durable: bool = False) -> None:
    """Write a file. Raises: OSError where it cannot be written.

    Args:
        is_durable: whether it must survive a crash of the machine from now on.
    """
    with whole(path) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        if is_durable:
            os.fsync(file.fileno())
    if is_durable:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
