"""A data set in memory and its files: where they are looked for, and how they are read."""

import contextlib
import dataclasses
import functools
import gzip
import hashlib
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
from jaxtyping import Int32, Num

from moe_theory.core.errors import DataError, MissingError, shortened
from moe_theory.core.fields import documented


@documented
class Images(NamedTuple):
    """One split of a data set."""

    pixels: Num[np.ndarray, "n h w c"]  # bytes as stored, 0 is dark; or float32, features in the last axis
    labels: Int32[np.ndarray, " n"]  # 0 .. num_classes - 1


@documented
class Inventory(NamedTuple):
    """Files found in a folder, those that were read, and how images were converted.

    Examples:
        >>> from moe_theory.deep import datasets
        >>> datasets.Inventory(left_out={"no image: .txt": 3}).converted
        {}
    """

    recognised: str = "arrays in memory"  # as what, and by what
    files: tuple[Path, ...] = ()  # that were read, where they are few
    kinds: Mapping[str, Mapping[str, int]] = {}  # files that were read, by "ending" and "mode"
    left_out: Mapping[str, int] = {}  # files that were not, by reason
    converted: Mapping[str, int] = {}  # images, by what was done to them
    notes: tuple[str, ...] = ()  # how classes, splits and counts differ from what one may expect
    changed: tuple[str, ...] = ()  # files that are not as published, by their MD5 where that is known


@documented
@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class DataSet:
    """Labelled images, split as their publisher did. Compared by identity: programs are kept for each."""

    name: str  # as in `DATASETS`
    title: str  # as the papers write it
    train: Images
    test: Images
    class_names: tuple[str, ...]
    inventory: Inventory = dataclasses.field(default_factory=Inventory)

    def __repr__(self) -> str:
        sizes = f"{len(self.train.labels):,} training and {len(self.test.labels):,} test"
        shape = " x ".join(map(str, self.train.pixels.shape[1:]))
        return f"<DataSet {self.name}: {sizes} images of {shape}, {len(self.class_names)} classes>"


_SYSTEM = {"__macosx", "thumbs.db", "desktop.ini", "@eadir"}
_WAY_OUT = "Name the folder that has them."


class Layout(NamedTuple):
    """One of the forms in which a data set is distributed."""

    files: tuple[str, ...]  # glob patterns of its files; a folder's ends in "/"
    subfolders: tuple[str, ...]  # where archives unpack to
    endings: tuple[str, ...] = ("",)  # possible suffixes of the names
    md5: tuple[str, ...] = ()  # of what each file holds, decompressed, as published; none where it is not known
    packed_md5: tuple[str, ...] = ()  # of compressed files, where that alone is known


@dataclasses.dataclass(frozen=True)
class LocatedFiles:
    layout: Layout
    folder: Path
    files: list[Path]  # in the layout's order

    @functools.cached_property
    def changed(self) -> tuple[str, ...]:
        """Names of the files that do not hold what the published ones do, where any MD5 of these is known."""
        is_packed = not self.layout.md5
        known = self.layout.packed_md5 if is_packed else self.layout.md5
        return tuple(path.name for path, md5 in zip(self.files, known, strict=False) if md5_of(path, is_packed) != md5)

    @property
    def is_known(self) -> bool:
        """Whether the MD5 of files in this form, compressed or not, are known."""
        return bool(self.layout.md5 or (self.layout.packed_md5 and all(path.suffix == ".gz" for path in self.files)))

    def title(self, title: str) -> str:
        """The data set's title, with a remark if its files are not those that were published under it."""
        return f"{title} (not as published)" if self.changed and self.is_known else title

    def inventory(self, title: str, published: tuple[int, int], counts: tuple[int, int], *notes: str) -> Inventory:
        """Inventory of a published data set, from the images that its two splits have as published and as found."""
        changed, by = self.changed, f"the names of its files in {self.folder}"
        if not self.is_known:
            notes = (*notes, f"no MD5 of {title} in this form is known: what these files are, their names alone say")
        elif changed:
            verb = "is" if len(changed) == 1 else "are"
            notes = (*notes, f"{', '.join(changed)} {verb} not as {title} was published (by MD5)")
        else:
            by += " and their MD5"
        if counts != published:
            there, known = (" + ".join(f"{count:,}" for count in pair) for pair in (counts, published))
            notes = (*notes, f"{there} training and test images; {known} were published")
        endings = Counter(path.suffix or "none" for path in self.files)
        return Inventory(f"{title}, by {by}", tuple(self.files), {"ending": endings}, {}, {}, notes, changed)


def locate(title: str, folder: Path, layouts: tuple[Layout, ...]) -> LocatedFiles:
    """The first complete layout, in `folder` itself or in a subfolder that archives unpack to."""
    folder = folder.expanduser().absolute()
    if not folder.is_dir():
        what = "is not a folder" if folder.exists() else "does not exist"
        raise MissingError(f"no {title} in {folder}, which {what}. Looked for {_wanted(layouts)}. {_WAY_OUT}")
    inside = folders(folder)
    unpacked = inside if len(inside) == 1 else []  # archives unpack to such
    most: list[Path] = []
    lacking = ""
    for layout in layouts:
        for place in (base / name for base in (folder, *unpacked) for name in (".", *layout.subfolders)):
            files = {pattern: _found(place, pattern, layout.endings) for pattern in layout.files}
            present = [path for path in files.values() if path]
            if len(present) == len(files):
                return LocatedFiles(layout, place, present)
            if len(present) > len(most):
                most = present
                absent = tuple(pattern for pattern, path in files.items() if not path)
                lacking = _described(layout._replace(files=absent))
    if most:
        raise MissingError(
            f"{title} is incomplete in {most[0].parent}: besides {', '.join(path.name for path in most)} it needs "
            f"{lacking}. Put all of it there.",
            len(most),
        )
    raise MissingError(f"no {title} in {folder}. Looked for {_wanted(layouts)}. {_WAY_OUT}")


def is_system(name: str) -> bool:
    """Whether a file of this name is hidden, or one that file managers leave behind."""
    return name.startswith(".") or name.lower() in _SYSTEM


def folders(folder: Path) -> list[Path]:
    """Folders in it, by name, without system folders."""
    with reading(folder):
        return sorted(path for path in folder.iterdir() if path.is_dir() and not is_system(path.name))


def md5_of(path: Path, is_packed: bool = False) -> str:
    """Return the MD5 of a file's unpacked content, or of the file."""
    with opened(path, is_packed) as file:
        digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))  # pyright: ignore
    return digest.hexdigest()


def no_folder_error(name: str, title: str, layouts: tuple[Layout, ...]) -> MissingError:
    return MissingError(
        f"{name} needs a folder (--data DIR): {title} is neither embedded nor downloaded. It should have "
        f"{_wanted(layouts)}. {_WAY_OUT}"
    )


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as failure:
        reason = f"it cannot be read ({failure.strerror or failure})"
        raise DataError(path, reason, "Fix its permissions or the disk, or get it again.") from None
    except MemoryError:
        raise DataError(path, "it does not fit into memory", "Use a smaller one, or more memory.") from None


@contextlib.contextmanager
def opened(path: Path, is_packed: bool = False) -> Iterator[BinaryIO]:
    """A file, decompressed where its name ends in .gz, unless it is wanted as it is.

    Raises: DataError for one that cannot be read.
    """
    is_plain = is_packed or path.suffix != ".gz"
    with reading(path), path.open("rb") as file, file if is_plain else gzip.open(file) as content:
        try:
            yield content  # pyright: ignore[reportReturnType]
        except (gzip.BadGzipFile, EOFError, zlib.error) as failure:
            raise DataError(path, f"it cannot be decompressed ({failure})") from None


def read_whole(path: Path) -> bytes:
    """Return a file's bytes, decompressed where its name ends in .gz."""
    with opened(path) as file:
        return file.read()


def read_lines(path: Path) -> list[str]:
    """Return a file's lines without blanks around them, and without empty ones."""
    try:
        text = read_whole(path).decode("utf-8")
    except UnicodeDecodeError as failure:
        raise DataError(path, f"it is not UTF-8 text at byte {failure.start}") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def checked_labels(path: Path, labels: np.ndarray, num_classes: int) -> np.ndarray:
    """Labels as int32. Raises: DataError for one outside 0 .. num_classes - 1."""
    wrong = np.flatnonzero((labels < 0) | (labels >= num_classes))
    if len(wrong):
        label = shortened(int(labels[wrong[0]]))
        raise DataError(path, f"label {label} of image {wrong[0]} is not in 0..{num_classes - 1}")
    return labels.astype(np.int32)


def _found(folder: Path, pattern: str, endings: tuple[str, ...]) -> Path | None:
    for ending in endings:
        for path in sorted(folder.glob(pattern.rstrip("/") + ending)):
            if path.is_dir() if pattern.endswith("/") else path.is_file():
                return path
            if path.is_dir() and (inner := _found(path, pattern, endings)):  # Kaggle's archives have such folders
                return inner
    return None


def _described(layout: Layout) -> str:
    return ", ".join(layout.files) + "".join(f" (plain or {ending})" for ending in layout.endings if ending)


def _wanted(layouts: tuple[Layout, ...]) -> str:
    return "; or for ".join(
        f"{_described(layout)} in it or in its {', '.join(layout.subfolders)}" for layout in layouts
    )
