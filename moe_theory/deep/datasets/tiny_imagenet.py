"""Tiny ImageNet as published. Labels of the test images are withheld: validation images are the test split.

Classes are numbered in sorted order.
"""

from pathlib import Path

import numpy as np

from moe_theory.core.errors import DataError
from moe_theory.deep.datasets.files import DataSet, Images, locate, matching, read_lines
from moe_theory.deep.datasets.folders import class_images, grey_notes, list_images
from moe_theory.deep.datasets.images import read_images

TITLE = "Tiny ImageNet"
FILES = ("train/", "val/", "wnids.txt")
_SIDE = 64  # pixels
_WAY_OUT = "Unpack the archive again."


def load_tiny_imagenet(folder: Path) -> DataSet:
    """Return all images, decoded, 64 x 64 pixels in colour."""
    train, val, listed = locate(TITLE, folder, FILES)
    names = sorted(set(read_lines(listed)))
    if not names:
        raise DataError(listed, "it names no classes", _WAY_OUT)
    if [path.name for path in matching(train, "*/")] != names:
        raise DataError(train, f"its folders are not the {len(names)} classes of {listed.name}", _WAY_OUT)
    train_paths, train_labels = class_images([train / name / "images" for name in names])
    test_paths, test_labels = _validation_images(val, names)
    pixels, modes = read_images([*train_paths, *test_paths])
    if pixels.shape[1:3] != (_SIDE, _SIDE):
        reason = f"its images have {pixels.shape[1]} x {pixels.shape[2]} pixels, not {_SIDE} x {_SIDE} as {TITLE}"
        raise DataError(train, reason, _WAY_OUT)
    return DataSet(
        name="tiny-imagenet",
        title=TITLE,
        train=Images(pixels[: len(train_paths)], train_labels),
        test=Images(pixels[len(train_paths) :], test_labels),
        class_names=_class_names(listed.with_name("words.txt"), names),
        source=f"images that {listed} lists",
        notes=("val/ is the test split, as labels of the test images are withheld", *grey_notes(modes)),
    )


def _validation_images(val: Path, names: list[str]) -> tuple[list[Path], np.ndarray]:
    """Return images with the list of their classes beside them: a line has the file's name, the class and a box."""
    listed = val / "val_annotations.txt"
    labels: dict[str, int] = {}
    for line in read_lines(listed):
        name, _, rest = line.partition("\t")
        wnid = rest.partition("\t")[0]
        if wnid not in names:
            raise DataError(listed, f"{wnid!r} of {name!r} is not one of the {len(names)} classes", _WAY_OUT)
        labels[name] = names.index(wnid)
    if len(set(labels.values())) < len(names):
        raise DataError(listed, f"it has no images of some of the {len(names)} classes", _WAY_OUT)
    paths = list_images(val / "images")
    for name in sorted({path.name for path in paths} ^ labels.keys()):
        place = val / "images" if name in labels else "its lines"
        raise DataError(listed, f"{name!r} is not in {place}", _WAY_OUT)
    return paths, np.array([labels[path.name] for path in paths], np.int32)


def _class_names(path: Path, names: list[str]) -> tuple[str, ...]:
    lines = read_lines(path) if path.is_file() else []
    words = dict(line.split("\t", 1) for line in lines if "\t" in line)
    return tuple(words.get(name, name) for name in names)
