"""Images with one folder per class, as in train/CLASS and test/CLASS, and Tiny ImageNet as published."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int32

from moe_theory.core.errors import DataError, MissingError, shortened
from moe_theory.deep.datasets.files import DataSet, Images, is_system, matching, read_whole, reading
from moe_theory.deep.datasets.images import ENDINGS, read_images

TITLE = "images in folders"
FILES = ("train/*/", "test/*/")
TINY_IMAGENET = "Tiny ImageNet"
TINY_IMAGENET_FILES = ("train/", "val/", "wnids.txt")
LabelledFiles = tuple[list[Path], Int32[np.ndarray, " n"]]


def load_folders(paths: list[Path]) -> DataSet:
    root = paths[0].parent.parent.resolve()
    names = [path.name for path in matching(root / "train", "*/")]
    test_names = [path.name for path in matching(root / "test", "*/")]
    if len(names) < 2:
        raise MissingError(f"{root / 'train'} has {len(names)} folders of classes, but needs at least 2. Add folders.")
    strangers = sorted(set(test_names) - set(names))
    if strangers:
        reason = f"{shortened(strangers[0])} is not one of the {len(names)} classes of train"
        raise DataError(root / "test" / strangers[0], reason, "Use the same folder names in train and test.")
    training = class_images([root / "train" / name for name in names])
    test_files, test_places = class_images([root / "test" / name for name in test_names])
    test_labels = np.array([names.index(name) for name in test_names], np.int32)[test_places]  # places in `names`
    return _read_splits(root.name, root.name, names, training, (test_files, test_labels), f"{TITLE} of {root}")


def load_tiny_imagenet(paths: list[Path]) -> DataSet:
    """Return the images of the classes in `wnids.txt`. Its validation images become the test set."""
    train, validation, names_file = paths
    names = sorted(read_whole(names_file).decode(errors="replace").split())
    training = class_images([train / name / "images" for name in names])
    test_files = list_images(validation / "images")
    annotations = validation / "val_annotations.txt"
    lines = read_whole(annotations).decode(errors="replace").splitlines()
    classes = dict(line.split("\t")[:2] for line in lines if "\t" in line)
    strangers = sorted({path.name for path in test_files} ^ classes.keys() | (set(classes.values()) - set(names)))
    if strangers:  # images without a class, classes without an image, or unlisted classes
        raise DataError(annotations, f"{strangers[0]!r} is missing here or in the folders", "Unpack the archive again.")
    labels = np.array([names.index(classes[path.name]) for path in test_files], np.int32)
    return _read_splits(
        "tiny-imagenet", TINY_IMAGENET, names, training, (test_files, labels), f"images of {names_file}"
    )


def _read_splits(
    name: str, title: str, class_names: Sequence[str], training: LabelledFiles, test: LabelledFiles, source: str
) -> DataSet:
    files, labels = training
    test_files, test_labels = test
    pixels, num_grey = read_images([*files, *test_files])
    return DataSet(
        name=name,
        title=title,
        train=Images(pixels[: len(files)], labels),
        test=Images(pixels[len(files) :], test_labels),
        class_names=tuple(class_names),
        source=source,
        notes=(f"{num_grey:,} grey images have three equal channels",) if num_grey else (),
    )


def class_images(folders: Sequence[Path]) -> LabelledFiles:
    """Return the images of classes 0, 1, ..., and their labels. Raises: DataError for a class without images."""
    paths_of_classes = [list_images(folder) for folder in folders]
    for folder, paths in zip(folders, paths_of_classes, strict=True):
        if not paths:
            raise DataError(folder, "it has no images", "Put images there, or remove the folder.")
    counts = np.array([len(paths) for paths in paths_of_classes], int)
    labels = np.repeat(np.arange(len(folders), dtype=np.int32), counts)
    return list(itertools.chain.from_iterable(paths_of_classes)), labels


def list_images(folder: Path) -> list[Path]:
    """Return the images of a class, sorted by name. Raises: DataError for other files."""
    with reading(folder):
        paths = sorted(path for path in folder.iterdir() if not is_system(path))
    for path in paths:
        if path.suffix.lower() not in ENDINGS:
            reason = f"it is in a folder of images, but its ending is not one of {', '.join(sorted(ENDINGS))}"
            raise DataError(path, reason, "Save it as PNG, or move it elsewhere.")
    return paths
