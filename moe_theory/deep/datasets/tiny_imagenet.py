"""Tiny ImageNet as published, with classes in sorted order and validation images for tests."""

from pathlib import Path

import numpy as np
from jaxtyping import Int32

from moe_theory.core.errors import DataError
from moe_theory.deep.datasets.files import DataSet, matching, read_lines
from moe_theory.deep.datasets.folders import class_images, list_images
from moe_theory.deep.datasets.images import read_split

TITLE = "Tiny ImageNet"
FILES = ("train/", "val/", "wnids.txt")
_SIDE = 64  # pixels
_WAY_OUT = "Unpack the archive again."


def load_tiny_imagenet(paths: list[Path]) -> DataSet:
    """Return all images, decoded, 64 x 64 pixels in colour."""
    train, validation, listed = paths
    names = sorted(read_lines(listed))
    if not names or [path.name for path in matching(train, "*/")] != names:
        raise DataError(train, f"its folders are not the {len(names)} classes of {listed.name}", _WAY_OUT)
    training = class_images([train / name / "images" for name in names])
    test = list_images(validation / "images")
    split = read_split(*training, test, _validation_labels(validation / "val_annotations.txt", test, names))
    _, height, width, _ = split.train.pixels.shape
    if (height, width) != (_SIDE, _SIDE):
        raise DataError(train, f"its images have {height} x {width} pixels, not {_SIDE} x {_SIDE}", _WAY_OUT)
    return DataSet(
        name="tiny-imagenet",
        title=TITLE,
        train=split.train,
        test=split.test,
        class_names=tuple(names),
        source=f"images that {listed} lists",
        notes=("val/ is the test split, as labels of the test images are withheld", *split.notes),
    )


def _validation_labels(listed: Path, paths: list[Path], names: list[str]) -> Int32[np.ndarray, " n"]:
    classes = dict(line.split("\t")[:2] for line in read_lines(listed) if "\t" in line)
    differing = sorted({path.name for path in paths} ^ classes.keys())
    if differing:
        raise DataError(listed, f"{differing[0]!r} is not in both it and images", _WAY_OUT)
    if set(classes.values()) != set(names):
        raise DataError(listed, f"its classes are not the {len(names)} of train", _WAY_OUT)
    return np.array([names.index(classes[path.name]) for path in paths], np.int32)
