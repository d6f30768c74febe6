"""Images in one folder for each class, as people have them: recognised by what the folders hold, and read whole."""

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from moe_theory.core.errors import DamagedDataError, MissingDataError, shortened
from moe_theory.deep.datasets import decoder
from moe_theory.deep.datasets.decoder import ENDINGS, UNREAD, Frame, ImageHeader
from moe_theory.deep.datasets.files import DataSet, Images, Inventory, folders, is_system, reading

TITLE = "images in folders"
TESTED = 5  # every 5th image is held out if there is no test split
_DEPTH = 3  # folders in a folder that archives unpack to
_SPLITS = {  # names of folders, in any case
    split: re.compile(rf"({names})([-_ ]?(set|data|images|split))?", re.IGNORECASE)
    for split, names in {"train": "train|training", "test": "test|testing", "val": "val|valid|validation"}.items()
}
_LAYOUTS = "train/CLASS and test/CLASS (or val/CLASS), or CLASS alone, of which every 5th image is then held out"
_NEAR = 2  # how near a layout is where a folder has one of its kind, in files of a published data set


class ClassFolders(NamedTuple):
    """A folder of classes, of two splits or of one that is to be divided."""

    root: Path
    train: Path
    test: Path | None
    why: str
    unused: Mapping[str, str]  # folders of splits that are left out, and why


def images(folder: Path) -> list[Path]:
    """Files in it with an image's ending, by name."""
    if not folder.is_dir():
        return []
    with reading(folder):  # a stat of each of 110,000 files would take seconds
        names = sorted(os.listdir(folder))
    return [folder / name for name in names if os.path.splitext(name)[1].lower() in ENDINGS and not is_system(name)]


def find_tree(folder: Path) -> ClassFolders:
    """The folders of classes in a folder, or in the only one in it.

    Raises: MissingDataError, with what is there and what it lacks.
    """
    place = folder.expanduser().absolute()
    if not place.is_dir():
        raise MissingDataError(f"no {TITLE} in {place}, which is not a folder. Name the folder that has {_LAYOUTS}.")
    for _ in range(_DEPTH):
        inside = folders(place)
        if len(inside) != 1 or images(place) or _split_of(inside[0]):
            break
        place = inside[0]
    return _split_tree(place) or _flat_tree(place)


def load_folders(folder: Path, frame: Frame | None = None) -> DataSet:
    """Images of one size, (height, width, 3) bytes, and what was done to them.

    Args:
        frame: the size, and how images of other proportions get it: whole, with black beside them, unless given.
    Raises: MissingDataError, with the nearest layout and what it lacks; DamagedDataError for an image that cannot be
        read; InvalidParamsError for a frame that there is none of.
    """
    frame, tree = (frame or Frame()).checked(), find_tree(folder)
    names, converted, notes = [path.name for path in folders(tree.train)], Counter[str](), list[str]()
    train, labels = gathered(tree.train, names)
    if tree.test is None:
        is_test = every_fifth(labels)
        if len(train) and not is_test.any():
            raise MissingDataError(f"no class of {tree.root} has two images, one of them to test on. Add some.", _NEAR)
        notes.append(f"every {TESTED}th image of a class is a test image, as there is no test split")
        found = [[train[row] for row in np.flatnonzero(rows)] for rows in (~is_test, is_test)]
        parts = labels[~is_test], labels[is_test]
    else:
        test, test_labels = gathered(tree.test, names)
        found, parts = [train, test], (labels, test_labels)
    check_filled(tree.train, names, labels)
    if lacking := [name for label, name in enumerate(names) if label not in parts[1]]:
        notes.append(f"classes without test images ({len(lacking)}): {', '.join(lacking[:5])}")
    both = [*found[0], *found[1]]
    tops = {tree.train / name for name in names} | {(tree.test or tree.train) / name for name in names}
    if inner := Counter(each.path.parent.name for each in both if each.path.parent not in tops):
        notes.append(f"images in folders inside those of classes ({inner.total():,}): {', '.join(list(inner)[:5])}")
    size, shift = decoder.size_of(found[0], frame), decoder.shift_of(both)
    splits = [
        Images(decoder.decode(headers, frame.resize, size, shift, converted), part)
        for headers, part in zip(found, parts, strict=True)
    ]
    left_out = _left_out(tree, {each.path for each in both}, tops)
    why = f"{TITLE}, by {tree.why}"
    inventory = Inventory(why, (), decoder.kinds_of(both), left_out, converted, tuple(notes))
    title = tree.root.resolve().name
    return DataSet(title, title, splits[0], splits[1], tuple(names), inventory)


def every_fifth(labels: Int[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
    """Mask of held-out rows: every fifth of each class, and none of a class with a single row."""
    is_test = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        is_test[rows[::TESTED]] = len(rows) > 1
    return is_test


def gathered(split: Path, names: Sequence[str]) -> tuple[list[ImageHeader], Int[np.ndarray, " n"]]:
    """All images in the folders of these classes and in those inside, and their labels.

    Raises: DamagedDataError for a folder of another class, an image that cannot be read, or formats that never are.
    """
    for path in folders(split):
        if path.name not in names:
            reason = f"{shortened(path.name)} is not one of the {len(names)} classes"
            raise DamagedDataError(path, reason, "Name the folders of both splits alike.")
    listed = [(path, label) for label, name in enumerate(names) for path in _files(split / name)]
    if unread := Counter(path.suffix.lower() for path, _ in listed if path.suffix.lower() in UNREAD):
        raise DamagedDataError(
            split,
            f"{unread.total():,} images are in formats that are not read: "
            f"{', '.join(f'{count:,} {ending}' for ending, count in unread.most_common())}",
            "Save them as JPEG or PNG, or move them elsewhere.",
        )
    headers = decoder.headers([path for path, _ in listed])
    kept = [(header, label) for header, (_, label) in zip(headers, listed, strict=True) if header]
    return [header for header, _ in kept], np.array([label for _, label in kept], np.int32)


def check_filled(split: Path, names: Sequence[str], labels: Int[np.ndarray, " n"]) -> None:
    """Raise DamagedDataError for classes without an image."""
    if empty := [name for label, name in enumerate(names) if label not in labels]:
        few = ", ".join(map(shortened, empty[:5]))
        reason = f"there are no images of {len(empty)} of its {len(names)} classes: {few}"
        raise DamagedDataError(split, reason, "Put images there, or remove the folders.")


def _split_tree(place: Path) -> ClassFolders | None:
    """Class folders below folders named like splits; None if there are none."""
    named: dict[str, Path] = {}
    for path in folders(place):
        if split := _split_of(path):
            if split in named:
                both = f"{named[split].name} and {path.name}"
                raise MissingDataError(f"{place} has {both}, which are one split. Keep one of them.", _NEAR)
            named[split] = path
    others = [path for path in folders(place) if not _split_of(path) and images(path)]
    is_class = len(named) == 1 < len(others) and not any(map(folders, named.values()))  # such as trains beside cars
    if not named or is_class:
        return None
    if "train" not in named:
        there = ", ".join(f"{path.name}/" for path in named.values())
        raise MissingDataError(f"{place} has {there} and no train/. Add it: the layouts are {_LAYOUTS}.", _NEAR)
    train, test, unused = named["train"], None, {}
    classes = {path.name.lower() for path in folders(train)}
    if not classes:
        raise MissingDataError(
            f"{train} has {len(images(train)):,} images and no folders of classes. Sort them into train/CLASS, one "
            "folder for each class; a table of labels is not read.",
            _NEAR,
        )
    for path in (named[split] for split in ("test", "val") if split in named):
        if not classes & {each.name.lower() for each in folders(path)}:
            unused[path.name] = "without folders of these classes"
        elif test is not None:
            unused[path.name] = "not needed beside the test split"
        else:
            test = path
    why = f"{train.name}/CLASS" + (f" and {test.name}/CLASS" if test else "") + f" in {place}"
    return ClassFolders(place, train, test, why, unused)


def _flat_tree(place: Path) -> ClassFolders:
    """Class folders without splits."""
    inside = folders(place)
    for path in inside:
        _check_undivided(path, [each.name for each in folders(path)])
    holding, beside = [path for path in inside if images(path)], len(images(place))
    if len(holding) < 2:
        there = f"{beside:,} images and {len(holding)} folders with images"
        near = _NEAR if holding or beside else 0
        raise MissingDataError(f"{place} has {there}. Sort images into folders: {_LAYOUTS}.", near)
    if idle := [shortened(path.name) for path in inside if path not in holding]:
        raise MissingDataError(
            f"{place} has {len(holding)} folders with images, as of classes, and {len(idle)} without any in them: "
            f"{', '.join(idle[:5])}. Remove these, or put images there.",
            _NEAR,
        )
    return ClassFolders(place, place, None, f"{len(holding)} folders with images in {place}", {})


def _files(folder: Path) -> list[Path]:
    """Files in a class's folder and below, but not behind links, which may lead anywhere."""
    found = []
    with reading(folder):
        for place, inside, names in os.walk(folder):
            _check_undivided(Path(place), inside)
            inside[:] = sorted(name for name in inside if not is_system(name))
            found += [Path(place, name) for name in sorted(names) if not is_system(name)]
    return found


def _check_undivided(folder: Path, inside: Sequence[str]) -> None:
    if splits := sorted(f"{name}/" for name in inside if _split_of(Path(name))):
        raise MissingDataError(
            f"{folder} is divided into {', '.join(splits)}. Name it alone, if it is the data set; if it is a class, "
            "put the splits first: train/CLASS and test/CLASS.",
            _NEAR,
        )


def _left_out(tree: ClassFolders, read: set[Path], tops: set[Path]) -> Counter[str]:
    """Every file below the root that is not read, by the reason."""
    counts = Counter[str]()
    for top in (tree.root, *(path for path in tops if path.is_symlink())):
        for place, inside, names in os.walk(top):
            counts["linked folders"] += sum(
                path.is_symlink() and path not in tops for path in (Path(place, name) for name in inside)
            )
            counts.update(
                _reason(tree, path, tops) for path in (Path(place, name) for name in names) if path not in read
            )
    return +counts


def _reason(tree: ClassFolders, path: Path, tops: set[Path]) -> str:
    parts, ending = path.relative_to(tree.root).parts, path.suffix.lower() or "no ending"
    if any(map(is_system, parts)):
        return "of the system, or hidden"
    if not tops.isdisjoint(path.parents):
        return f"no image: {ending}"
    if len(parts) > 1 and parts[0] in tree.unused:
        return f"in {parts[0]}/, {tree.unused[parts[0]]}"
    if len(parts) > 1 and _split_of(Path(parts[0])) is None:
        return f"in {parts[0]}/, which is no split"
    return "images beside the folders of classes" if ending in ENDINGS else f"beside the folders: {ending}"


def _split_of(path: Path) -> str | None:
    return next((split for split, names in _SPLITS.items() if names.fullmatch(path.name)), None)
