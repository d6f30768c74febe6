"""Tiny ImageNet as published, or in one folder for each class as for torchvision's ImageFolder.

Labels of the test images are withheld: validation images are the test split. Classes are numbered in sorted order.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moe_theory.core.errors import DamagedDataError, InvalidRunError, MissingDataError, shortened
from moe_theory.deep.datasets.files import DataSet, Images, Layout, locate, read_lines, reading
from moe_theory.runs.machine import available_cores

TITLE = "Tiny ImageNet"
LAYOUTS = (Layout(("train/", "val/"), ("tiny-imagenet-200",)),)
_SIDE = 64  # pixels
_ENDINGS = {".jpeg", ".jpg", ".png"}  # of images, in any case
_FORMATS = ("JPEG", "PNG")
_MAX_LIST_BYTES = 1 << 24  # words.txt, the longest list, has 2.7 MB
_WAY_OUT = "Unpack the archive again."


class _Labelled(NamedTuple):
    path: Path
    label: int


def load_tiny_imagenet(folder: Path) -> DataSet:
    """All images, decoded, 64 x 64 pixels in colour."""
    found = locate(TITLE, folder, LAYOUTS)
    train, val = found.files
    classes = _classes(found.folder, train)
    return DataSet(
        name="tiny-imagenet",
        title=TITLE,
        train=_decoded(_by_folder(train, classes)),
        test=_decoded(_annotated(val, classes) if (val / "images").is_dir() else _by_folder(val, classes)),
        class_names=_class_names(found.folder, classes),
    )


def _classes(folder: Path, train: Path) -> dict[str, int]:
    listed = folder / "wnids.txt"
    names = read_lines(listed, _MAX_LIST_BYTES) if listed.is_file() else [path.name for path in _folders(train)]
    if not names:
        raise DamagedDataError(listed if listed.is_file() else train, "it names no classes", _WAY_OUT)
    return {name: number for number, name in enumerate(sorted(set(names)))}


def _class_names(folder: Path, classes: dict[str, int]) -> tuple[str, ...]:
    path = folder / "words.txt"
    lines = read_lines(path, _MAX_LIST_BYTES) if path.is_file() else []
    words = dict(line.split("\t", 1) for line in lines if "\t" in line)
    return tuple(words.get(name, name) for name in classes)


def _by_folder(split: Path, classes: dict[str, int]) -> list[_Labelled]:
    folders = {path.name: path for path in _folders(split)}
    for name in sorted(folders.keys() - classes.keys()):
        raise DamagedDataError(folders[name], f"{shortened(name)} is not one of the {len(classes)} classes", _WAY_OUT)
    found = []
    for name, label in classes.items():
        images = split / name / "images"
        paths = _images(images if images.is_dir() else split / name)
        if not paths:
            raise DamagedDataError(split / name, "there are no images of this class", _WAY_OUT)
        found += [_Labelled(path, label) for path in paths]
    return found


def _annotated(val: Path, classes: dict[str, int]) -> list[_Labelled]:
    """Images with a list of their classes beside them: a line has the file's name, the class and a box."""
    listed = val / "val_annotations.txt"
    if not listed.is_file():
        raise MissingDataError(f"{listed} is missing, which lists the classes of the images. {_WAY_OUT}")
    labels: dict[str, int] = {}
    for number, line in enumerate(read_lines(listed, _MAX_LIST_BYTES), 1):
        name, _, rest = line.partition("\t")
        wnid = rest.partition("\t")[0]
        if wnid not in classes:
            reason = f"{shortened(wnid)} of annotation {number} is not one of the {len(classes)} classes"
            raise DamagedDataError(listed, reason, _WAY_OUT)
        labels[name] = classes[wnid]
    images = {path.name: path for path in _images(val / "images")}
    for name in sorted(images.keys() ^ labels.keys()):
        reason = f"{shortened(name)} is " + ("not among its lines" if name in images else f"not in {val / 'images'}")
        raise DamagedDataError(listed, reason, _WAY_OUT)
    for label in set(classes.values()) - set(labels.values()):
        raise DamagedDataError(listed, f"class {list(classes)[label]} has no images", _WAY_OUT)
    return [_Labelled(path, labels[name]) for name, path in images.items()]


def _folders(folder: Path) -> list[Path]:
    with reading(folder):
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))


def _images(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    with reading(folder):  # a stat of each of 110,000 files would take seconds
        names = sorted(os.listdir(folder))
    return [folder / name for name in names if os.path.splitext(name)[1].lower() in _ENDINGS and name[0] != "."]


def _decoded(labelled: list[_Labelled]) -> Images:
    """Decode in threads: Pillow releases the interpreter's lock."""
    try:
        from PIL import Image
    except ImportError:
        raise InvalidRunError("Pillow is not installed: pip install 'moe-theory[images]'") from None
    pixels = np.empty((len(labelled), _SIDE, _SIDE, 3), np.uint8)

    def decode(index: int) -> None:
        pixels[index] = _decode(Image, labelled[index].path)

    with ThreadPoolExecutor(available_cores()) as threads:
        for _ in threads.map(decode, range(len(labelled))):  # the first error cancels the rest
            pass
    return Images(pixels, np.array([label for _, label in labelled], np.int32))


def _decode(pillow: Any, path: Path) -> np.ndarray:
    try:
        with pillow.open(path, formats=_FORMATS) as image:
            if image.size != (_SIDE, _SIDE):  # known before its pixels are decoded
                width, height = image.size
                raise DamagedDataError(path, f"it has {width} x {height} pixels, not {_SIDE} x {_SIDE} as {TITLE}")
            return np.asarray(image.convert("RGB"))
    except DamagedDataError:
        raise
    except Exception as failure:  # decoders do not document what they raise
        raise DamagedDataError(path, f"it cannot be decoded as JPEG or PNG ({failure})", _WAY_OUT) from None
