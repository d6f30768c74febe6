"""The papers' data sets and users' own, read from a folder, never downloaded."""

import functools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from moe_theory.core.digits import handwritten_digits
from moe_theory.core.errors import MissingError, unknown_name
from moe_theory.deep.datasets import folders, own, published, tiny_imagenet
from moe_theory.deep.datasets.files import DataSet as DataSet
from moe_theory.deep.datasets.files import Images as Images
from moe_theory.deep.datasets.files import changed_files, is_system, locate, matching, reading
from moe_theory.deep.datasets.own import from_arrays as from_arrays

_GREY_SCALE = 15  # scikit-learn's grey levels end at 16, and 16 * 15 = 240 fits into a byte


class Loader(NamedTuple):
    """Reader of a data set.

    Examples:
        >>> from moe_theory.deep import datasets
        >>> loader = datasets.DATASETS["digits"]
        >>> loader.title
        'digits'
    """

    title: str
    read: Callable[[list[Path]], DataSet]  # of the first file or folder for each pattern
    files: tuple[str, ...] = ()  # glob patterns of its files; none for data that are in memory
    md5: tuple[str, ...] = ()  # of what these hold as published, where that tells data sets apart


@functools.cache
def load_digits() -> DataSet:
    """Return scikit-learn's 1,797 digits of 8 x 8 pixels, an evenly spaced fifth for tests.

    Examples:
        >>> from moe_theory.deep import datasets
        >>> datasets.load_digits().test.pixels.shape[1:]
        (8, 8, 1)
    """
    pixels, digits, is_test = handwritten_digits()
    images = (pixels * _GREY_SCALE).astype(np.uint8)[..., None]
    labels = digits.astype(np.int32)
    return DataSet(
        name="digits",
        title="digits",
        train=Images(images[~is_test], labels[~is_test]),
        test=Images(images[is_test], labels[is_test]),
        class_names=tuple(map(str, range(10))),
        source="scikit-learn's digits, which come with it",
    )


# What can be loaded, by name.
DATASETS: dict[str, Loader] = {
    "digits": Loader("digits", lambda _: load_digits()),
    **{
        kind.name: Loader(kind.title, functools.partial(published.load_mnist, kind), kind.files, kind.md5)
        for kind in (published.MNIST, published.FASHION_MNIST)
    },
    **{
        kind.name: Loader(kind.title, functools.partial(published.load_cifar, kind), kind.files)
        for kind in (published.CIFAR10, published.CIFAR100)
    },
    "tiny-imagenet": Loader(tiny_imagenet.TITLE, tiny_imagenet.load_tiny_imagenet, tiny_imagenet.FILES),
    "folders": Loader(folders.TITLE, folders.load_folders, folders.FILES),
    "arrays": Loader(own.TITLE, own.load_arrays, own.FILES),
}


OWN = ("folders", "arrays")  # what is looked for where there is no published data set


def found_in(folder: Path | str) -> list[str]:
    """Return the names of the data sets in a folder: published ones, or else the user's own.

    Of data sets in one format it is the one with the files' MD5, or else all.

    Raises: DataError for unreadable files.

    Examples:
        >>> import tempfile
        >>> from moe_theory.deep import datasets
        >>> datasets.found_in(tempfile.mkdtemp())
        []
    """
    place = Path(folder).expanduser()
    present = {
        name: loader
        for name, loader in DATASETS.items()
        if loader.files and all(matching(place, pattern) for pattern in loader.files)
    }
    names = [name for name in present if name not in OWN]
    if len(names) < 2:
        return names or [*present]
    num_changed = {
        name: len(changed_files([matching(place, pattern)[0] for pattern in present[name].files], present[name].md5))
        for name in names
    }
    return [name for name in names if num_changed[name] == min(num_changed.values())]


def missing(folder: Path | str) -> MissingError:
    """Return a MissingError that says what a folder has, and what it may have.

    Raises: DataError for files that cannot be read.

    Examples:
        >>> import tempfile
        >>> from moe_theory.deep import datasets
        >>> "which has nothing" in str(datasets.missing(tempfile.mkdtemp()))
        True
    """
    place = Path(folder).expanduser().absolute()
    if not place.is_dir():
        return MissingError(f"no data set in {place}, which is not a folder. Name the one that has it.")
    with reading(place):
        endings = Counter(path.suffix.lower() or "of no ending" for path in place.iterdir() if not is_system(path))
    there = ", ".join(f"{count} {ending}" for ending, count in endings.most_common(5)) or "nothing"
    titles = ", ".join(loader.title for name, loader in DATASETS.items() if loader.files and name not in OWN)
    return MissingError(
        f"no data set in {place}, which has {there}. It may have the published files of {titles}; images in "
        "train/CLASS and test/CLASS, or in CLASS alone; or an .npz file of x_train, y_train, x_test, y_test."
    )


def load(name: str, folder: Path | str | None = None) -> DataSet:
    """Return a data set of `DATASETS`.

    Args:
        folder: with its files, except for digits.
    Raises: UnknownNameError, MissingError with the absent files, DataError with the file and its fault, or
        InvalidValueError for unreadable arrays and images.

    Examples:
        >>> from moe_theory.deep import datasets
        >>> digits = datasets.load("digits")
        >>> images = digits.train
        >>> images.pixels.shape[1:], len(digits.class_names)
        ((8, 8, 1), 10)
    """
    if name not in DATASETS:
        raise unknown_name("data set", name, DATASETS)
    loader = DATASETS[name]
    if loader.files and folder is None:
        raise MissingError(
            f"{name} needs a folder (--data DIR): {loader.title} is neither embedded nor downloaded. Name the folder "
            f"that has {', '.join(loader.files)}."
        )
    return loader.read(locate(loader.title, Path(folder or "."), loader.files))
