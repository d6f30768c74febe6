"""Tiny ImageNet as published; its validation images may be sorted into folders as for torchvision's ImageFolder.

Labels of the test images are withheld: validation images are the test split. Classes are numbered in sorted order.
"""

from collections import Counter
from pathlib import Path

import numpy as np

from moe_theory.core.errors import DataError, MissingError, shortened
from moe_theory.deep.datasets.files import DataSet, Images, Inventory, Layout, LocatedFiles, locate, read_lines
from moe_theory.deep.datasets.folders import (
    ListedImages,
    check_classes,
    check_filled,
    grey_converted,
    images,
    list_images,
)
from moe_theory.deep.datasets.images import read_images

TITLE = "Tiny ImageNet"
WAY_OUT = "Unpack the archive again."
LAYOUTS = (Layout(("train/", "val/", "wnids.txt"), ("tiny-imagenet-200",)),)
_SIDE = 64  # pixels
_PUBLISHED = (100_000, 10_000)  # images of the two splits


def find_tiny_imagenet(folder: Path) -> LocatedFiles:
    """Return its two folders and its list of classes. Raises: MissingError for anything else."""
    return locate(TITLE, folder, LAYOUTS)


def load_tiny_imagenet(folder: Path) -> DataSet:
    """Return all images, decoded, 64 x 64 pixels in colour."""
    located = find_tiny_imagenet(folder)
    train, val, listed = located.files
    names = sorted(set(read_lines(listed)))
    if not names:
        raise DataError(listed, "it names no classes", WAY_OUT)
    has_list = (val / "images").is_dir()
    parts = [_sorted_images(train, names), _annotated(val, names) if has_list else _sorted_images(val, names)]
    for split, (_, labels) in zip((train, val), parts, strict=True):
        check_filled(split, names, labels)
    decoded = [read_images(paths) for paths, _ in parts]
    for split, (pixels, _) in zip((train, val), decoded, strict=True):
        if pixels.shape[1:3] != (_SIDE, _SIDE):
            reason = f"its images have {pixels.shape[1]} x {pixels.shape[2]} pixels, not {_SIDE} x {_SIDE} as {TITLE}"
            raise DataError(split, reason, WAY_OUT)
    train_images, test_images = (
        Images(pixels, labels) for (pixels, _), (_, labels) in zip(decoded, parts, strict=True)
    )
    counts = len(train_images.labels), len(test_images.labels)
    notes = ["val/ is the test split, as labels of the test images are withheld"]
    if counts != _PUBLISHED:
        notes.append(
            f"{counts[0]:,} + {counts[1]:,} images of {len(names)} classes; {_PUBLISHED[0]:,} + {_PUBLISHED[1]:,} of "
            "200 were published"
        )
    paths = [path for part in parts for path in part.paths]
    modes = decoded[0].modes + decoded[1].modes
    inventory = Inventory(
        f"{TITLE}, by its list of classes in {located.folder}",
        kinds={"ending": Counter(path.suffix.lower() for path in paths), "mode": modes},
        converted=grey_converted(modes),
        notes=tuple(notes),
    )
    return DataSet("tiny-imagenet", TITLE, train_images, test_images, _class_names(located.folder, names), inventory)


def _sorted_images(split: Path, names: list[str]) -> ListedImages:
    """Return images in folders of their classes, where the archive has them in `images/` of each."""
    check_classes(split, names)
    inner = [split / name / "images" for name in names]
    return list_images([path if path.is_dir() else path.parent for path in inner])


def _annotated(val: Path, names: list[str]) -> ListedImages:
    """Return images with a list of their classes beside them: a line has the file's name, the class and a box."""
    listed = val / "val_annotations.txt"
    if not listed.is_file():
        raise MissingError(f"{listed} is missing, which lists the classes of the images. {WAY_OUT}")
    labels: dict[str, int] = {}
    for number, line in enumerate(read_lines(listed), 1):
        name, _, rest = line.partition("\t")
        wnid = rest.partition("\t")[0]
        if wnid not in names:
            reason = f"{shortened(wnid)} of annotation {number} is not one of the {len(names)} classes"
            raise DataError(listed, reason, WAY_OUT)
        labels[name] = names.index(wnid)
    paths = images(val / "images")
    for name in sorted({path.name for path in paths} ^ labels.keys()):
        reason = f"{shortened(name)} is " + (f"not in {val / 'images'}" if name in labels else "not among its lines")
        raise DataError(listed, reason, WAY_OUT)
    return ListedImages(paths, np.array([labels[path.name] for path in paths], np.int32))


def _class_names(folder: Path, names: list[str]) -> tuple[str, ...]:
    path = folder / "words.txt"
    lines = read_lines(path) if path.is_file() else []
    words = dict(line.split("\t", 1) for line in lines if "\t" in line)
    return tuple(words.get(name, name) for name in names)
