"""Tiny ImageNet as published, or in one folder for each class as for torchvision's ImageFolder.

Labels of the test images are withheld: validation images are the test split. Classes are numbered in sorted order.
"""

from pathlib import Path

from moe_theory.core.errors import DamagedDataError, MissingDataError, shortened
from moe_theory.deep.datasets.files import DataSet, Layout, locate, read_lines
from moe_theory.deep.datasets.folders import WAY_OUT, Labelled, by_folder, decoded, folders, images

TITLE = "Tiny ImageNet"
LAYOUTS = (Layout(("train/", "val/"), ("tiny-imagenet-200",)),)
_SIDE = 64  # pixels
_MAX_LIST_BYTES = 1 << 24  # words.txt, the longest list, has 2.7 MB


def load_tiny_imagenet(folder: Path) -> DataSet:
    """All images, decoded, 64 x 64 pixels in colour."""
    found = locate(TITLE, folder, LAYOUTS)
    train, val = found.files
    classes = _classes(found.folder, train)
    return DataSet(
        name="tiny-imagenet",
        title=TITLE,
        train=decoded(by_folder(train, classes), (_SIDE, _SIDE), TITLE),
        test=decoded(
            _annotated(val, classes) if (val / "images").is_dir() else by_folder(val, classes), (_SIDE, _SIDE), TITLE
        ),
        class_names=_class_names(found.folder, classes),
    )


def _classes(folder: Path, train: Path) -> dict[str, int]:
    listed = folder / "wnids.txt"
    names = read_lines(listed, _MAX_LIST_BYTES) if listed.is_file() else [path.name for path in folders(train)]
    if not names:
        raise DamagedDataError(listed if listed.is_file() else train, "it names no classes", WAY_OUT)
    return {name: number for number, name in enumerate(sorted(set(names)))}


def _class_names(folder: Path, classes: dict[str, int]) -> tuple[str, ...]:
    path = folder / "words.txt"
    lines = read_lines(path, _MAX_LIST_BYTES) if path.is_file() else []
    words = dict(line.split("\t", 1) for line in lines if "\t" in line)
    return tuple(words.get(name, name) for name in classes)


def _annotated(val: Path, classes: dict[str, int]) -> list[Labelled]:
    """Images with a list of their classes beside them: a line has the file's name, the class and a box."""
    listed = val / "val_annotations.txt"
    if not listed.is_file():
        raise MissingDataError(f"{listed} is missing, which lists the classes of the images. {WAY_OUT}")
    labels: dict[str, int] = {}
    for number, line in enumerate(read_lines(listed, _MAX_LIST_BYTES), 1):
        name, _, rest = line.partition("\t")
        wnid = rest.partition("\t")[0]
        if wnid not in classes:
            reason = f"{shortened(wnid)} of annotation {number} is not one of the {len(classes)} classes"
            raise DamagedDataError(listed, reason, WAY_OUT)
        labels[name] = classes[wnid]
    files = {path.name: path for path in images(val / "images")}
    for name in sorted(files.keys() ^ labels.keys()):
        reason = f"{shortened(name)} is " + ("not among its lines" if name in files else f"not in {val / 'images'}")
        raise DamagedDataError(listed, reason, WAY_OUT)
    for label in set(classes.values()) - set(labels.values()):
        raise DamagedDataError(listed, f"class {list(classes)[label]} has no images", WAY_OUT)
    return [Labelled(path, labels[name]) for name, path in files.items()]
