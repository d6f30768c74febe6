"""Files that are there whole or not at all, whoever else writes the same one, and whenever the process ends."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from moe_theory.core.errors import OutputError

SUFFIX = ".part"  # of what is being written
WAY_OUT = "make room or name another place"


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
            shutil.rmtree(path)  # a folder cannot be replaced at once
        temporary.replace(path)
        if is_durable:
            _flush_folder(path.parent)
    except OSError as failure:
        raise OutputError(f"{path} cannot be written ({failure.strerror or failure}): {way_out}.") from None
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(temporary) if temporary.is_dir() else temporary.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes, way_out: str = WAY_OUT, is_durable: bool = False) -> None:
    """Write a file, as `whole` does. Raises: OutputError where it cannot be written."""
    with whole(path, way_out, is_durable) as temporary, temporary.open("wb") as file:
        file.write(data)
        file.flush()
        if is_durable:
            os.fsync(file.fileno())


def user_cache() -> Path:
    """Where what can be made again is kept for this user (XDG); it may not be there."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "moe_theory"


def _flush_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
