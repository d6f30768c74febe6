"""Images in one folder for each class, as people have them: recognised by what the folders hold, and read whole."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int, Int32

from moe_theory.core.errors import DataError, MissingError, shortened
from moe_theory.deep.datasets.files import DataSet, Images, Inventory, folders, is_system, reading
from moe_theory.deep.datasets.images import ENDINGS, read_images

TITLE = "images in folders"
TESTED = 5  # every 5th image is held out if there is no test split
_DEPTH = 3  # folders in a folder that archives unpack to
_SPLITS = {  # names of folders, in any case
    split: re.compile(rf"({names})([-_ ]?(set|data|images|split))?", re.IGNORECASE)
    for split, names in {"train": "train|training", "test": "test|testing", "val": "val|valid|validation"}.items()
}
_UNREAD = frozenset(".avif .cr2 .dcm .dng .heic .heif .jp2 .jxl .nef .nii .psd .raw .svg".split())
_LAYOUTS = "train/CLASS and test/CLASS (or val/CLASS), or CLASS alone, of which every 5th image is then held out"
_NEAR = 2  # how near a layout is where a folder has one of its kind, in files of a published data set


class ClassFolders(NamedTuple):
    """A folder of classes, of two splits or of one that is to be divided."""

    root: Path
    train: Path
    test: Path | None
    why: str


class ListedImages(NamedTuple):
    """Files of images, class by class."""

    paths: list[Path]
    labels: Int32[np.ndarray, " n"]


def find_tree(folder: Path) -> ClassFolders:
    """Return the folders of classes in a folder, or in the only one in it.

    Raises: MissingError, with what is there and what it lacks.
    """
    place = folder.expanduser().absolute()
    if not place.is_dir():
        raise MissingError(f"no {TITLE} in {place}, which is not a folder. Name the folder that has {_LAYOUTS}.")
    for _ in range(_DEPTH):
        inside = folders(place)
        if len(inside) != 1 or images(place) or _split_of(inside[0]):
            break
        if images(inside[0]) and not folders(inside[0]):  # one class, and no folder of classes
            break
        place = inside[0]
    return _split_tree(place) or _flat_tree(place)


def load_folders(folder: Path) -> DataSet:
    """Return images of one size, (height, width, 3) bytes, and a count of the files that were not read.

    Raises:
        MissingError: With the nearest layout and what it lacks.
        DataError, InvalidValueError: As `list_images` and `read_images` do.
    """
    tree = find_tree(folder)
    names = [path.name for path in folders(tree.train)]
    paths, labels = _listed_split(tree.train, names)
    check_filled(tree.train, names, labels)
    notes = []
    if tree.test is None:
        is_test = every_fifth(labels)
        notes.append(f"every {TESTED}th image of a class is a test image, as there is no test split")
        if not is_test.any():
            raise MissingError(f"no class of {tree.root} has two images, one of them to test on. Add some.", _NEAR)
    else:
        test_paths, test_labels = _listed_split(tree.test, names)
        is_test = np.arange(len(paths) + len(test_paths)) >= len(paths)
        paths = paths + test_paths
        labels = np.concatenate([labels, test_labels])
    if lacking := [name for label, name in enumerate(names) if label not in labels[is_test]]:
        notes.append(f"classes without test images ({len(lacking)}): {', '.join(lacking[:5])}")
    pixels, modes = read_images(paths)
    inventory = Inventory(
        f"{TITLE}, by {tree.why}",
        kinds={"ending": Counter(path.suffix.lower() for path in paths), "mode": modes},
        left_out=_left_out(tree.root, {*paths}),
        converted=grey_converted(modes),
        notes=tuple(notes),
    )
    title = tree.root.resolve().name
    train, test = (Images(pixels[rows], labels[rows]) for rows in (~is_test, is_test))
    return DataSet(title, title, train, test, tuple(names), inventory)


def images(folder: Path) -> list[Path]:
    """Return the files in a folder that have an image's ending, by name."""
    if not folder.is_dir():
        return []
    with reading(folder):  # a stat of each of 110,000 files would take seconds
        names = sorted(os.listdir(folder))
    return [folder / name for name in names if os.path.splitext(name)[1].lower() in ENDINGS and not is_system(name)]


def list_images(classes: Sequence[Path]) -> ListedImages:
    """Return the images in the folders of classes 0, 1, ..., of which some may not be there.

    Raises: DataError for formats that are never read, and for folders in the folder of a class.
    """
    listed = []
    for label, folder in enumerate(classes):
        if not folder.is_dir():
            continue
        if inside := folders(folder):
            named = ", ".join(path.name for path in inside[:5])
            reason = f"it is the folder of a class and has folders inside: {named}"
            raise DataError(folder, reason, "Move their images up, or name another folder as the data set.")
        with reading(folder):
            endings = Counter(path.suffix.lower() for path in folder.iterdir() if path.suffix.lower() in _UNREAD)
        if endings:
            counted = ", ".join(f"{count:,} {ending}" for ending, count in endings.most_common())
            reason = f"{endings.total():,} images are in formats that are not read: {counted}"
            raise DataError(folder, reason, "Save them as JPEG or PNG, or move them elsewhere.")
        listed += [(path, label) for path in images(folder)]
    return ListedImages([path for path, _ in listed], np.array([label for _, label in listed], np.int32))


def check_classes(split: Path, names: Sequence[str]) -> None:
    """Raise DataError for a folder of another class."""
    for path in folders(split):
        if path.name not in names:
            reason = f"{shortened(path.name)} is not one of the {len(names)} classes"
            raise DataError(path, reason, "Name the folders of both splits alike.")


def check_filled(split: Path, names: Sequence[str], labels: Int[np.ndarray, " n"]) -> None:
    """Raise DataError for classes without an image."""
    if empty := [name for label, name in enumerate(names) if label not in labels]:
        few = ", ".join(map(shortened, empty[:5]))
        reason = f"there are no images of {len(empty)} of its {len(names)} classes: {few}"
        raise DataError(split, reason, "Put images there, or remove the folders.")


def every_fifth(labels: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Return the mask of held-out rows: every fifth of each class, and none of a class with a single row."""
    is_test = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        is_test[rows[::TESTED]] = len(rows) > 1
    return is_test


def grey_converted(modes: Counter[str]) -> dict[str, int]:
    """Return how many images are grey, which get three equal channels."""
    return {"grey to three equal channels": modes["L"]} if modes["L"] else {}


def _listed_split(split: Path, names: Sequence[str]) -> ListedImages:
    check_classes(split, names)
    return list_images([split / name for name in names])


def _split_tree(place: Path) -> ClassFolders | None:
    """Return class folders below folders named like splits; None if there are none."""
    named: dict[str, Path] = {}
    for path in folders(place):
        if split := _split_of(path):
            if split in named:
                both = f"{named[split].name} and {path.name}"
                raise MissingError(f"{place} has {both}, which are one split. Keep one of them.", _NEAR)
            named[split] = path
    others = [path for path in folders(place) if not _split_of(path) and images(path)]
    is_class = len(named) == 1 < len(others) and not any(map(folders, named.values()))  # such as trains beside cars
    if not named or is_class:
        return None
    if "train" not in named:
        present = ", ".join(f"{path.name}/" for path in named.values())
        raise MissingError(f"{place} has {present} and no train/. Add it: the layouts are {_LAYOUTS}.", _NEAR)
    train = named["train"]
    classes = {path.name.lower() for path in folders(train)}
    if not classes:
        raise MissingError(
            f"{train} has {len(images(train)):,} images and no folders of classes. Sort them into train/CLASS, one "
            "folder for each class; a table of labels is not read.",
            _NEAR,
        )
    tests = [named[split] for split in ("test", "val") if split in named]
    tests = [path for path in tests if classes & {inner.name.lower() for inner in folders(path)}]
    test = tests[0] if tests else None
    why = f"{train.name}/CLASS" + (f" and {test.name}/CLASS" if test else "") + f" in {place}"
    return ClassFolders(place, train, test, why)


def _flat_tree(place: Path) -> ClassFolders:
    """Return class folders without splits."""
    inside = folders(place)
    for path in inside:
        if splits := sorted(f"{inner.name}/" for inner in folders(path) if _split_of(inner)):
            raise MissingError(
                f"{path} is divided into {', '.join(splits)}. Name it alone, if it is the data set; if it is a class, "
                "put the splits first: train/CLASS and test/CLASS.",
                _NEAR,
            )
    holding = [path for path in inside if images(path)]
    if len(holding) == 1:
        name = shortened(holding[0].name)
        raise MissingError(f"{place} has one class, {name}. Two are needed. The layouts are {_LAYOUTS}.", _NEAR)
    if not holding:
        beside = len(images(place))
        near = _NEAR if beside else 0
        raise MissingError(
            f"{place} has {beside:,} images and no folders with images. Sort images into folders: {_LAYOUTS}.", near
        )
    if idle := [shortened(path.name) for path in inside if path not in holding]:
        raise MissingError(
            f"{place} has {len(holding)} folders with images, as of classes, and {len(idle)} without any in them: "
            f"{', '.join(idle[:5])}. Remove these, or put images there.",
            _NEAR,
        )
    return ClassFolders(place, place, None, f"{len(holding)} folders with images in {place}")


def _left_out(root: Path, read: set[Path]) -> Counter[str]:
    """Return counts of the files below the root that are not read, by ending and outermost folder."""
    counts = Counter[str]()
    for path in root.rglob("*"):
        if path not in read and path.is_file():
            parts = path.relative_to(root).parts
            place = f"in {parts[0]}/" if len(parts) > 1 else "beside the folders"
            counts[f"{path.suffix.lower() or 'without ending'} {place}"] += 1
    return counts


def _split_of(path: Path) -> str | None:
    return next((split for split, names in _SPLITS.items() if names.fullmatch(path.name)), None)
