"""Images in one folder for each class, as people have them: recognised by what the folders hold, and read whole."""

import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from moe_theory.core.errors import DamagedDataError, MissingDataError, shortened
from moe_theory.deep.datasets import decoder
from moe_theory.deep.datasets.decoder import ENDINGS, UNREAD, Frame, Header
from moe_theory.deep.datasets.files import DataSet, Images, Inventory, is_system, reading

TITLE = "images in folders"
TESTED = 5  # every so many are the test split of data that have none
_DEPTH = 3  # folders in a folder that archives unpack to
_SPLITS = {  # names of folders, in any case
    "train": re.compile(r"(train|training)([-_ ]?(set|data|images|split))?"),
    "val": re.compile(r"(val|valid|validation)([-_ ]?(set|data|images|split))?"),
    "test": re.compile(r"(test|testing)([-_ ]?(set|data|images|split))?"),
}
_NEAR = 2  # how near a layout is where a folder has one of its kind, in files of a published data set
_LAYOUTS = "train/CLASS and test/CLASS (or val/CLASS), or CLASS alone, of which every 5th image is then held out"


class Labelled(NamedTuple):
    path: Path
    label: int


class Tree(NamedTuple):
    """A folder of classes, of two splits or of one that is to be divided."""

    root: Path
    train: Path
    test: Path | None
    why: str
    left_out: dict[str, int]


def folders(folder: Path) -> list[Path]:
    """Those in it that somebody has put there, by name."""
    with reading(folder):
        return sorted(path for path in folder.iterdir() if path.is_dir() and not is_system(path.name))


def images(folder: Path) -> list[Path]:
    """Files in it with an image's ending, by name."""
    if not folder.is_dir():
        return []
    with reading(folder):  # a stat of each of 110,000 files would take seconds
        names = sorted(os.listdir(folder))
    return [folder / name for name in names if os.path.splitext(name)[1].lower() in ENDINGS and not is_system(name)]


def find_tree(folder: Path) -> Tree:
    """The folders of classes in a folder, or in the only one in it.

    Raises: MissingDataError, with what is there and what it lacks.
    """
    folder = folder.expanduser().absolute()
    if not folder.is_dir():
        raise MissingDataError(f"no {TITLE} in {folder}, which is not a folder. Name the folder that has {_LAYOUTS}.")
    place = folder
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
    left_out, counts, notes = Counter(tree.left_out), Counter[str](), list[str]()
    names = [path.name for path in folders(tree.train)]
    train, labels = _gathered(tree.train, names, left_out, notes)
    if tree.test is None:
        is_test = every_fifth(labels)
        if len(train) and not is_test.any():
            raise MissingDataError(f"no class of {tree.root} has two images, one of them to test on. Add some.", _NEAR)
        parts = [(train, labels, ~is_test), (train, labels, is_test)]
        found = train
        notes.append(f"every {TESTED}th image of a class is a test image, as there is no test split")
    else:
        test, test_labels = _gathered(tree.test, names, left_out, notes)
        parts = [(train, labels, np.ones(len(train), bool)), (test, test_labels, np.ones(len(test), bool))]
        found = train + test
    counted = [np.bincount(each[rows], minlength=len(names)) for _, each, rows in parts]
    if empty := [name for name, count in zip(names, counted[0], strict=True) if not count]:
        raise DamagedDataError(
            tree.train,
            f"{len(empty)} of its {len(names)} folders have no images: {', '.join(map(shortened, empty[:5]))}",
            "Put images of these classes there, or remove the folders.",
        )
    if lacking := [name for name, count in zip(names, counted[1], strict=True) if not count]:
        notes.append(f"{len(lacking)} classes have no test images: {', '.join(lacking[:5])}")
    chosen = [[headers[row] for row in np.flatnonzero(rows)] for headers, _, rows in parts]
    size, shift = decoder.size_of(chosen[0], frame), decoder.shift_of(found)
    splits = [
        Images(decoder.decode(headers, frame, size, shift, counts), each[rows])
        for headers, (_, each, rows) in zip(chosen, parts, strict=True)
    ]
    kinds = {
        "ending": Counter(each.path.suffix.lower() or "none" for each in found),
        "format": Counter(each.format for each in found),
        "mode": Counter(each.mode for each in found),
        "size": Counter(f"{each.size[0]} x {each.size[1]}" for each in found),
    }
    inventory = Inventory(f"{TITLE}, by {tree.why}", (), kinds, dict(left_out), dict(counts), tuple(notes))
    title = tree.root.resolve().name
    return DataSet(title, title, splits[0], splits[1], tuple(names), inventory)


def every_fifth(labels: np.ndarray) -> np.ndarray:
    """Which rows are held out: every fifth of each class, and none of a class that has one alone."""
    is_test = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        is_test[rows[::TESTED]] = len(rows) > 1
    return is_test


def by_folder(split: Path, classes: dict[str, int]) -> list[Labelled]:
    """The images of a split, by the folders of these classes, or of their own `images`."""
    _check_known(split, list(classes), decoder.WAY_OUT)
    found = []
    for name, label in classes.items():
        inner = split / name / "images"
        paths = images(inner if inner.is_dir() else split / name)
        if not paths:
            raise DamagedDataError(split / name, "there are no images of this class", decoder.WAY_OUT)
        found += [Labelled(path, label) for path in paths]
    return found


def _split_tree(place: Path) -> Tree | None:
    """Of folders that are called as splits are; None where there are none."""
    inside = folders(place)
    named: dict[str, list[Path]] = {}
    for path in inside:
        if split := _split_of(path):
            named.setdefault(split, []).append(path)
    if not named:
        return None
    if twice := [paths for paths in named.values() if len(paths) > 1]:
        raise MissingDataError(
            f"{place} has {' and '.join(path.name for path in twice[0])}, which are one split. Keep one of them.", _NEAR
        )
    splits = {split: paths[0] for split, paths in named.items()}
    if "train" not in splits:
        there = ", ".join(f"{path.name}/" for path in splits.values())
        raise MissingDataError(f"{place} has {there} and no train/. Add it: the layouts are {_LAYOUTS}.", _NEAR)
    train, left_out = splits["train"], Counter[str]()
    if not _has_classes(train):
        count = len(images(train))
        raise MissingDataError(
            f"{train} has {count:,} images and no folders of classes. Sort them into train/CLASS, one folder for each "
            "class; a table of labels is not read.",
            _NEAR,
        )
    test = None
    for split in ("test", "val"):
        if split in splits and test is None and _has_classes(splits[split]):
            test = splits[split]
        elif split in splits:
            files = sum(len(names) for _, _, names in os.walk(splits[split]))
            what = "not needed beside the test split" if _has_classes(splits[split]) else "without folders of classes"
            left_out[f"in {splits[split].name}/, {what}"] = files
    for path in inside:
        if path not in splits.values():
            left_out[f"in {path.name}/, which is no split"] = sum(len(names) for _, _, names in os.walk(path))
    _count_beside(place, left_out)
    why = f"{train.name}/CLASS" + (f" and {test.name}/CLASS" if test else "") + f" in {place}"
    return Tree(place, train, test, why, dict(left_out))


def _flat_tree(place: Path) -> Tree:
    """Of folders of classes alone."""
    inside = folders(place)
    holding = [path for path in inside if images(path)]
    if inner := [path for path in inside if any(_split_of(each) for each in folders(path))]:
        what = f"{inner[0]} is divided into {', '.join(each.name + '/' for each in folders(inner[0]))}"
        raise MissingDataError(
            f"{what}. Name it alone, if it is the data set; if it is a class, put the splits first: train/CLASS and "
            "test/CLASS.",
            _NEAR,
        )
    if len(holding) < 2:
        beside = len(images(place))
        what = f"{beside:,} images" if beside else "no images"
        if holding:
            what += f" and one folder with images, {holding[0].name}/, where classes are two or more"
        raise MissingDataError(
            f"{place} has {what}. Sort images into folders: {_LAYOUTS}.", _NEAR if holding or beside else 0
        )
    if idle := [path for path in inside if path not in holding]:
        raise MissingDataError(
            f"{place} has {len(holding)} folders with images, as of classes, and {len(idle)} without any in them: "
            f"{', '.join(shortened(path.name) for path in idle[:5])}. Remove these, or put images there.",
            _NEAR,
        )
    return Tree(place, place, None, f"{len(holding)} folders with images in {place}", {})


def _gathered(
    split: Path, names: Sequence[str], left_out: Counter[str], notes: list[str]
) -> tuple[list[Header], np.ndarray]:
    """All images of a split, of the folders in that of a class too, and their labels."""
    _check_known(split, names, "Name the folders of both splits alike.")
    paths, labels, nested = list[Path](), list[int](), Counter[str]()
    for label, name in enumerate(names):
        if (split / name).is_dir():
            for path in _files(split / name, left_out):
                paths.append(path)
                labels.append(label)
                nested[path.parent.relative_to(split / name).parts[0] if path.parent != split / name else ""] += 1
    _count_beside(split, left_out)
    if unread := Counter(path.suffix.lower() for path in paths if path.suffix.lower() in UNREAD):
        raise DamagedDataError(
            split,
            f"{sum(unread.values()):,} images are in formats that are not read: "
            f"{', '.join(f'{count:,} {ending}' for ending, count in unread.most_common())}",
            "Save them as JPEG or PNG, or move them elsewhere.",
        )
    found, kept = list[Header](), list[int]()
    for path, label, header in zip(paths, labels, decoder.headers(paths), strict=True):
        if header is None:
            left_out[f"no image: {path.suffix.lower() or 'no ending'}"] += 1
        else:
            found.append(header)
            kept.append(label)
    inner = sum(each.path.parent.parent != split for each in found)
    if inner:
        few = ", ".join(name for name in list(nested) if name)[:100]
        notes.append(f"{inner:,} images of {split.name}/ are in folders inside those of classes: {few}")
    return found, np.array(kept, np.int32)


def _files(folder: Path, left_out: Counter[str]) -> list[Path]:
    """In a class's folder and in those in it; a folder there that is a link is left out, as it may lead anywhere."""
    found = []
    with reading(folder):
        for place, inside, names in os.walk(folder, onerror=_raise):
            links = [name for name in inside if os.path.islink(os.path.join(place, name))]
            left_out["linked folders"] += len(links)
            hidden = [name for name in inside if is_system(name)]
            left_out["of the system, or hidden"] += len(hidden) + sum(map(is_system, names))
            inside[:] = sorted(name for name in inside if not is_system(name) and name not in links)
            if Path(place) == folder and (split := next((name for name in inside if _split_of(Path(name))), None)):
                raise MissingDataError(
                    f"{folder} is divided into splits, such as {split}/. Put the splits first: train/CLASS and "
                    "test/CLASS.",
                    _NEAR,
                )
            found += [Path(place, name) for name in sorted(names) if not is_system(name)]
    for reason in [reason for reason, count in left_out.items() if not count]:
        del left_out[reason]
    return found


def _raise(failure: OSError) -> None:
    raise failure


def _check_known(split: Path, names: Sequence[str], way_out: str) -> None:
    known = {path.name: path for path in folders(split)}
    for name in sorted(known.keys() - set(names)):
        reason = f"{shortened(name)} is not one of the {len(names)} classes of the training split"
        raise DamagedDataError(known[name], reason, way_out)


def _count_beside(place: Path, left_out: Counter[str]) -> None:
    """Files that are in no folder of a class."""
    with reading(place):
        names = [entry.name for entry in os.scandir(place) if not entry.is_dir() or is_system(entry.name)]
    for name in names:
        ending = os.path.splitext(name)[1].lower()
        if is_system(name):
            left_out["of the system, or hidden"] += 1
        elif ending in ENDINGS:
            left_out["images beside the folders of classes"] += 1
        else:
            left_out[f"beside the folders: {ending or 'no ending'}"] += 1


def _split_of(path: Path) -> str | None:
    return next((split for split, names in _SPLITS.items() if names.fullmatch(path.name.lower())), None)


def _has_classes(split: Path) -> bool:
    return bool(folders(split))
