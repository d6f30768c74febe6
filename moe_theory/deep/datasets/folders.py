"""Images in one folder for each class, as for torchvision's ImageFolder: found, and decoded in threads."""

import contextlib
import io
import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moe_theory.core.errors import DamagedDataError, InvalidRunError, shortened
from moe_theory.core.machine import available_cores
from moe_theory.deep.datasets.files import Images, reading
from moe_theory.runs.reading import read_bytes

WAY_OUT = "Unpack the archive again."
_ENDINGS = {".jpeg", ".jpg", ".png"}  # of images, in any case
_FORMATS = ("JPEG", "PNG")
_MOST_BYTES = 1 << 26  # of a file
_MOST_PIXELS = 1 << 26  # a camera's largest images have 50 million
_MOST_SCANNED = 1 << 30  # pixels times scans: 16 of the largest image, some seconds
_SCAN = b"\xff\xda"  # begins a scan, and is nowhere in one


class Labelled(NamedTuple):
    path: Path
    label: int


def folders(folder: Path) -> list[Path]:
    with reading(folder):
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def images(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    with reading(folder):  # a stat of each of 110,000 files would take seconds
        names = sorted(os.listdir(folder))
    return [folder / name for name in names if os.path.splitext(name)[1].lower() in _ENDINGS and name[0] != "."]


def by_folder(split: Path, classes: dict[str, int]) -> list[Labelled]:
    """The images of a split, by the folders of these classes, or of their own `images`."""
    known = {path.name: path for path in folders(split)}
    for name in sorted(known.keys() - classes.keys()):
        raise DamagedDataError(known[name], f"{shortened(name)} is not one of the {len(classes)} classes", WAY_OUT)
    found = []
    for name, label in classes.items():
        inner = split / name / "images"
        paths = images(inner if inner.is_dir() else split / name)
        if not paths:
            raise DamagedDataError(split / name, "there are no images of this class", WAY_OUT)
        found += [Labelled(path, label) for path in paths]
    return found


def decoded(labelled: list[Labelled], size: tuple[int, int], title: str | None = None) -> Images:
    """All images in colour, (width, height) pixels each; others are scaled, or refused where they are to be as
    published under a title. Pillow releases the interpreter's lock.
    """
    pixels = np.empty((len(labelled), size[1], size[0], 3), np.uint8)

    def decode(index: int) -> None:
        path = labelled[index].path
        with _opened(path) as image:
            if image.size != size and title is not None:
                width, height = image.size
                raise DamagedDataError(path, f"it has {width} x {height} pixels, not {size[0]} x {size[1]} as {title}")
            colours = image.convert("RGB")
            pixels[index] = np.asarray(colours if image.size == size else colours.resize(size))

    with _quietly(), ThreadPoolExecutor(available_cores()) as threads:
        for _ in threads.map(decode, range(len(labelled))):  # the first error cancels the rest
            pass
    return Images(pixels, np.array([label for _, label in labelled], np.int32))


def size_of(path: Path) -> tuple[int, int]:
    """Width and height of an image. Raises: DamagedDataError, as `decoded` does."""
    with _quietly(), _opened(path) as image:
        return image.size


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """An image whose header has been read, and no pixel yet; whatever decoding it raises is a DamagedDataError.

    Raises: DamagedDataError for a file that is too large or no JPEG or PNG, for too many pixels, and for so many scans
        of a JPEG, each of which goes over all pixels, that decoding would take minutes.
    """
    pillow = _pillow()
    with reading(path):
        data = read_bytes(path, _MOST_BYTES)
    try:
        with pillow.open(io.BytesIO(data), formats=_FORMATS) as image:
            width, height = image.size
            if width * height > _MOST_PIXELS:
                reason = f"it has {width:,} x {height:,} pixels, and at most {_MOST_PIXELS:,} are decoded"
                raise DamagedDataError(path, reason, "Scale it down.")
            if image.format != "PNG" and data.count(_SCAN) * width * height > _MOST_SCANNED:
                reason = f"it has some {data.count(_SCAN):,} scans of {width:,} x {height:,} pixels"
                raise DamagedDataError(path, reason, "Scale it down, or save it again.")
            yield image
    except DamagedDataError:
        raise
    except Exception as failure:  # decoders do not document what they raise
        is_other = isinstance(failure, pillow.UnidentifiedImageError)  # says where the data are in memory
        said = "it is neither" if is_other else " ".join(str(failure).split())[:200] or type(failure).__name__
        raise DamagedDataError(path, f"it cannot be decoded as JPEG or PNG ({said})", WAY_OUT) from None


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without Pillow's warnings: what is wrong with an image is told in a line, or is none of its user's business."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise InvalidRunError("Pillow is not installed: pip install 'moe-theory[images]'") from None
    return Image
