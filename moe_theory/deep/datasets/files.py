"""A data set in memory, and its files."""

import contextlib
import dataclasses
import gzip
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Int32, Num

from moe_theory.core.errors import DataError, MissingError, described


class Images(NamedTuple):
    """One split of a data set."""

    pixels: Num[np.ndarray, "n h w c"]  # bytes as stored, with 0 for dark, or float32 with features on the last axis
    labels: Int32[np.ndarray, " n"]  # 0 .. num_classes - 1


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DataSet:
    """Labelled images in the publisher's splits. Data sets are compared by identity."""

    name: str  # name in `DATASETS`
    title: str  # name in the papers
    train: Images
    test: Images
    class_names: tuple[str, ...]
    source: str = "arrays in memory"  # origin of the data
    notes: tuple[str, ...] = ()  # notes on converted, held-out or unread data

    def __repr__(self) -> str:
        sizes = f"{len(self.train.labels):,} training and {len(self.test.labels):,} test"
        shape = " x ".join(map(str, self.train.pixels.shape[1:]))
        return f"<DataSet {self.name}: {sizes} images of {shape}, {len(self.class_names)} classes>"

    @property
    def lines(self) -> list[str]:
        """Lines with the source of the data and every note."""
        shape = " x ".join(map(str, self.train.pixels.shape[1:]))
        return [
            f"data: {self.title}: {self.source}",
            f"  {len(self.train.labels):,} training and {len(self.test.labels):,} test images of "
            f"{len(self.class_names)} classes, {shape} (height, width, channels), {self.train.pixels.dtype}",
            f"  classes: {', '.join(f'{number} {name}' for number, name in enumerate(self.class_names[:20]))}",
            *(f"  note: {note}" for note in self.notes),
        ]


_SYSTEM = {"__macosx", "thumbs.db", "desktop.ini", "@eadir"}  # names that operating systems add, in lower case


def locate(title: str, folder: Path, patterns: Sequence[str]) -> list[Path]:
    """Return a folder's first file for each glob pattern, or its first folder if the pattern ends in "/"."""
    folder = folder.expanduser().absolute()
    paths = {pattern: matching(folder, pattern) for pattern in patterns}
    lacking = [pattern for pattern in patterns if not paths[pattern]]
    if lacking:
        fault = f"has no {', '.join(lacking)}" if folder.is_dir() else "is not a folder"
        raise MissingError(f"{folder} {fault}: {title} cannot be read. Name the folder that has {', '.join(patterns)}.")
    return [paths[pattern][0] for pattern in patterns]


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return the files of a folder that match a pattern, or its folders if the pattern ends in "/"."""
    has_kind = Path.is_dir if pattern.endswith("/") else Path.is_file
    with reading(folder):
        return sorted(path for path in folder.glob(pattern) if has_kind(path) and not is_system(path))


def is_system(path: Path) -> bool:
    return path.name.startswith(".") or path.name.lower() in _SYSTEM


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn errors of reading a file or folder into DataError."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as failure:
        raise DataError(path, f"it cannot be decompressed ({failure})") from None
    except (OSError, MemoryError) as failure:
        reason = f"it cannot be read ({described(failure)})"
        raise DataError(path, reason, "Check permissions, disk and memory, or download it again.") from None


def read_whole(path: Path) -> bytes:
    with reading(path):
        if path.suffix == ".gz":
            return gzip.decompress(path.read_bytes())
        return path.read_bytes()


def check_labels(path: Path, labels: Int[np.ndarray, " n"], num_classes: int) -> None:
    wrong = np.flatnonzero(labels >= num_classes)
    if len(wrong):
        raise DataError(path, f"label {labels[wrong[0]]} of image {wrong[0]} is not in 0..{num_classes - 1}")
