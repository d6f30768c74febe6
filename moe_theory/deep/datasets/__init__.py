"""The papers' data sets and users' data, which are read from a folder and never downloaded."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from moe_theory.core.digits import handwritten_digits
from moe_theory.core.errors import MissingError, unknown_name
from moe_theory.deep.datasets import folders, published
from moe_theory.deep.datasets.arrays import from_arrays as from_arrays
from moe_theory.deep.datasets.files import DataSet as DataSet
from moe_theory.deep.datasets.files import Images as Images
from moe_theory.deep.datasets.files import locate, matching

__all__ = ["DATASETS", "DataSet", "Images", "from_arrays", "load", "read_folder"]

_GREY_SCALE = 15  # scikit-learn's grey levels end at 16, and 16 * 15 = 240 fits into a byte


class Loader(NamedTuple):
    title: str
    read: Callable[[list[Path]], DataSet]  # called with the first file or folder for each pattern
    files: tuple[str, ...] = ()  # glob patterns of its files, or () for data in memory


@functools.cache
def load_digits() -> DataSet:
    """Return scikit-learn's 1,797 digits of 8 x 8 pixels. An evenly spaced fifth is for tests."""
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


# The readers of data sets, by name.
DATASETS: dict[str, Loader] = {
    "digits": Loader("digits", lambda _: load_digits()),
    "mnist": Loader("MNIST", published.load_mnist, published.MNIST.files),
    **{
        kind.name: Loader(kind.title, functools.partial(published.load_cifar, kind), kind.files)
        for kind in (published.CIFAR10, published.CIFAR100)
    },
    "tiny-imagenet": Loader(folders.TINY_IMAGENET, folders.load_tiny_imagenet, folders.TINY_IMAGENET_FILES),
    "folders": Loader(folders.TITLE, folders.load_folders, folders.FILES),
}


def read_folder(folder: Path | str, preferred: str = "") -> DataSet:
    """Return the data set in a folder: the preferred one, or else a published one or images in folders.

    Raises: MissingError if there is none. DataError or InvalidValueError for unreadable files.

    Examples:
        >>> import tempfile
        >>> from moe_theory.core.errors import MissingError
        >>> from moe_theory.deep import datasets
        >>> try:
        ...     datasets.read_folder(tempfile.mkdtemp())
        ... except MissingError as failure:
        ...     "images in train/CLASS" in str(failure)
        True
    """
    place = Path(folder).expanduser().absolute()
    loaders = {name: loader for name, loader in DATASETS.items() if loader.files}
    for name in sorted(loaders, key=lambda name: name != preferred):  # the preferred one first
        if place.is_dir() and all(matching(place, pattern) for pattern in loaders[name].files):
            return load(name, place)
    titles = ", ".join(loader.title for loader in loaders.values() if loader.files != folders.FILES)
    raise MissingError(
        f"there is no data set in {place}. The folder needs the published files of {titles}, or images in train/CLASS "
        "and test/CLASS."
    )


def load(name: str, folder: Path | str | None = None) -> DataSet:
    """Return a data set of `DATASETS`.

    Args:
        folder: the folder of its files. The digits need none.
    Raises: UnknownNameError. MissingError, naming the missing files. DataError, naming a file and its fault.
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
            f"{name} needs a folder (--data DIR), because {loader.title} is not part of moe_theory, which downloads "
            f"nothing. Name the folder that has {', '.join(loader.files)}."
        )
    return loader.read(locate(loader.title, Path(folder or "."), loader.files))
