"""Writing results: nothing half written, and refusals before any work is done."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from moe_theory.core.errors import OutputError
from moe_theory.runs.files import write_whole


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


def write_text(path: Path, text: str) -> None:
    """Write a file whole: under a temporary name first, then renamed.

    Raises: OutputError if the folder cannot take it.
    """
    write_whole(path, text.encode())
