"""Images in one folder for each class: train/CLASS and test/CLASS, or CLASS alone."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int, Int32

from moe_theory.core.errors import DataError, MissingError, shortened
from moe_theory.deep.datasets.files import DataSet, is_system, matching, reading
from moe_theory.deep.datasets.images import ENDINGS, read_split

TITLE = "images in folders"
FILES = ("*/",)
TESTED = 5  # every 5th image is held out if there is no test split
_LAYOUTS = f"train/CLASS and test/CLASS, or CLASS alone, of which every {TESTED}th image is then held out"


def load_folders(paths: list[Path]) -> DataSet:
    root = paths[0].parent.resolve()
    inside = [path.name for path in matching(root, "*/")]
    is_split = "train" in inside or "test" in inside
    train = root / "train" if is_split else root
    names = [path.name for path in matching(train, "*/")]
    if len(names) < 2:
        raise MissingError(f"{train} has {len(names)} folders of classes, and must have two: {_LAYOUTS}. Add some.")
    files, labels = class_images([train / name for name in names])
    if is_split:
        test_files, test_labels = _test_images(root / "test", names)
        strangers = sorted({*inside} - {"train", "test"})
        notes = [f"not read: {', '.join(strangers)}"] if strangers else []
    else:
        is_test = every_fifth(labels)
        test_files = list(itertools.compress(files, is_test))
        test_labels = labels[is_test]
        files = list(itertools.compress(files, ~is_test))
        labels = labels[~is_test]
        notes = [f"every {TESTED}th image of a class is a test image, as there is no test split"]
    if not test_files:
        raise MissingError(f"{root} has no images to test on. Add some: {_LAYOUTS}.")
    split = read_split(files, labels, test_files, test_labels)
    return DataSet(
        name=root.name,
        title=root.name,
        train=split.train,
        test=split.test,
        class_names=tuple(names),
        source=f"{TITLE} of {root}",
        notes=(*notes, *split.notes),
    )


def class_images(folders: Sequence[Path]) -> tuple[list[Path], Int32[np.ndarray, " n"]]:
    """Return the images of classes 0, 1, ..., and their labels. Raises: DataError for none."""
    listed = [list_images(folder) for folder in folders]
    for folder, paths in zip(folders, listed, strict=True):
        if not paths:
            raise DataError(folder, "there are no images in it", "Put images there, or remove the folder.")
    counts = np.array([len(paths) for paths in listed], int)
    labels = np.repeat(np.arange(len(folders), dtype=np.int32), counts)
    return list(itertools.chain.from_iterable(listed)), labels


def list_images(folder: Path) -> list[Path]:
    """Return the images of a class by name. Raises: DataError for anything else there."""
    with reading(folder):
        paths = sorted(path for path in folder.iterdir() if not is_system(path))
    for path in paths:
        if path.suffix.lower() not in ENDINGS:
            reason = f"it is no image by its ending ({', '.join(sorted(ENDINGS))}), in a folder of images"
            raise DataError(path, reason, "Save it as PNG, or move it elsewhere.")
    return paths


def every_fifth(labels: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Return the mask of held-out rows: every fifth of each class, none of a single row."""
    is_test = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        is_test[rows[::TESTED]] = len(rows) > 1
    return is_test


def _test_images(test: Path, names: Sequence[str]) -> tuple[list[Path], Int[np.ndarray, " n"]]:
    present = [path.name for path in matching(test, "*/")] if test.is_dir() else []
    for name in present:
        if name not in names:
            reason = f"{shortened(name)} is not one of the {len(names)} classes of train"
            raise DataError(test / name, reason, "Name the folders of both splits alike.")
    paths, places = class_images([test / name for name in present])
    labels = np.array([names.index(name) for name in present], np.int32)
    return paths, labels[places]
