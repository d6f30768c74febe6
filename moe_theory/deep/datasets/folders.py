"""Images in one folder for each class, as for torchvision's ImageFolder: found, and decoded in threads."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moe_theory.core.errors import DamagedDataError, InvalidRunError, shortened
from moe_theory.deep.datasets.files import Images, reading
from moe_theory.runs.machine import available_cores

WAY_OUT = "Unpack the archive again."
_ENDINGS = {".jpeg", ".jpg", ".png"}  # of images, in any case
_FORMATS = ("JPEG", "PNG")


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
    pillow = _pillow()
    pixels = np.empty((len(labelled), size[1], size[0], 3), np.uint8)

    def decode(index: int) -> None:
        pixels[index] = _decode(pillow, labelled[index].path, size, title)

    with ThreadPoolExecutor(available_cores()) as threads:
        for _ in threads.map(decode, range(len(labelled))):  # the first error cancels the rest
            pass
    return Images(pixels, np.array([label for _, label in labelled], np.int32))


def size_of(path: Path) -> tuple[int, int]:
    """Width and height of an image."""
    try:
        with _pillow().open(path, formats=_FORMATS) as image:
            return image.size
    except OSError as failure:
        raise DamagedDataError(path, f"it cannot be decoded as JPEG or PNG ({failure})", WAY_OUT) from None


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise InvalidRunError("Pillow is not installed: pip install 'moe-theory[images]'") from None
    return Image


def _decode(pillow: Any, path: Path, size: tuple[int, int], title: str | None) -> np.ndarray:
    try:
        with pillow.open(path, formats=_FORMATS) as image:
            if image.size != size and title is not None:  # known before its pixels are decoded
                width, height = image.size
                raise DamagedDataError(path, f"it has {width} x {height} pixels, not {size[0]} x {size[1]} as {title}")
            colours = image.convert("RGB")
            return np.asarray(colours if image.size == size else colours.resize(size))
    except DamagedDataError:
        raise
    except Exception as failure:  # decoders do not document what they raise
        raise DamagedDataError(path, f"it cannot be decoded as JPEG or PNG ({failure})", WAY_OUT) from None
