"""The files of a data set: where they are looked for, and how they are read without trusting them."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from moe_theory.core.errors import DamagedDataError, MissingDataError, shortened

_WAY_OUT = "Name the folder that has them."


class Layout(NamedTuple):
    """One of the forms in which a data set is distributed."""

    files: tuple[str, ...]  # patterns of the files that it needs, as shells write them; a folder's ends in "/"
    subfolders: tuple[str, ...]  # where archives unpack them
    endings: tuple[str, ...] = ("",)  # that may follow a name


class Found(NamedTuple):
    """A data set's files in one folder."""

    layout: Layout
    folder: Path
    files: list[Path]  # in the layout's order


def locate(title: str, folder: Path, layouts: tuple[Layout, ...]) -> Found:
    """The first of the layouts that is whole, in `folder` itself or where archives unpack it.

    Raises: MissingDataError, in one line with the names and places that were tried.
    """
    folder = folder.expanduser().absolute()
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "does not exist"
        raise MissingDataError(f"no {title} in {folder}, which {what}. Looked for {_wanted(layouts)}. {_WAY_OUT}")
    most: list[Path] = []
    lacking = ""
    for layout in layouts:
        for place in (folder, *(folder / name for name in layout.subfolders)):
            files = {pattern: _found(place, pattern, layout.endings) for pattern in layout.files}
            present = [path for path in files.values() if path]
            if len(present) == len(files):
                return Found(layout, place, present)
            if len(present) > len(most):
                most = present
                absent = tuple(pattern for pattern, path in files.items() if not path)
                lacking = _described(layout._replace(files=absent))
    if most:
        raise MissingDataError(
            f"{title} is not whole in {most[0].parent}: besides {', '.join(path.name for path in most)} it needs "
            f"{lacking}. Put all of it there."
        )
    raise MissingDataError(f"no {title} in {folder}. Looked for {_wanted(layouts)}. {_WAY_OUT}")


def nothing_named(name: str, title: str, layouts: tuple[Layout, ...]) -> MissingDataError:
    """The error for a data set that is not embedded, where no folder was given to look in."""
    return MissingDataError(
        f"{name} needs a folder (--data DIR): {title} is neither embedded nor downloaded. Looked for would be "
        f"{_wanted(layouts)}. {_WAY_OUT}"
    )


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """The system's failures inside are about `path`. Raises: DamagedDataError."""
    try:
        yield
    except OSError as failure:
        reason = f"it cannot be read ({failure.strerror or failure})"
        raise DamagedDataError(path, reason, "Change its permissions or the disk, or get it again.") from None


def read_bounded(path: Path, max_bytes: int) -> bytes:
    """A file's bytes. Raises: DamagedDataError, before reading, for one far larger than the published ones."""
    with reading(path):
        size = path.stat().st_size
        if size > max_bytes:
            raise DamagedDataError(
                path, f"it has {size:,} bytes, while published ones have far fewer and at most {max_bytes:,} are read"
            )
        return path.read_bytes()


def read_lines(path: Path, max_bytes: int) -> list[str]:
    """A text's lines that are not blank, stripped. Raises: DamagedDataError."""
    try:
        text = read_bounded(path, max_bytes).decode("utf-8")
    except UnicodeDecodeError as failure:
        raise DamagedDataError(path, f"its byte {failure.start} is no UTF-8 text") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def checked_labels(path: Path, labels: np.ndarray, num_classes: int) -> np.ndarray:
    """Labels as int32. Raises: DamagedDataError for one outside 0 .. num_classes - 1."""
    wrong = np.flatnonzero((labels < 0) | (labels >= num_classes))
    if len(wrong):
        label = shortened(int(labels[wrong[0]]))
        raise DamagedDataError(path, f"label {label} of image {wrong[0]} is not in 0..{num_classes - 1}")
    return labels.astype(np.int32)


def _found(folder: Path, pattern: str, endings: tuple[str, ...]) -> Path | None:
    for ending in endings:
        for path in sorted(folder.glob(pattern.rstrip("/") + ending)):
            if path.is_dir() if pattern.endswith("/") else path.is_file():
                return path
    return None


def _described(layout: Layout) -> str:
    return ", ".join(layout.files) + "".join(f" (plain or {ending})" for ending in layout.endings if ending)


def _wanted(layouts: tuple[Layout, ...]) -> str:
    return "; or for ".join(
        f"{_described(layout)} in it or in its {', '.join(layout.subfolders)}" for layout in layouts
    )
