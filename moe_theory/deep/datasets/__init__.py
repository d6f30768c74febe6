"""The papers' data sets and one's own, read from a folder that the user names: checked, and never downloaded."""

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from moe_theory.core.digits import handwritten_digits
from moe_theory.core.errors import MissingDataError, unknown_name
from moe_theory.core.fields import documented
from moe_theory.deep.datasets import cifar, mnist, own, tiny_imagenet
from moe_theory.deep.datasets.files import DataSet as DataSet
from moe_theory.deep.datasets.files import Images as Images
from moe_theory.deep.datasets.files import Layout, changed_files, locate, no_folder_error
from moe_theory.deep.datasets.own import from_arrays as from_arrays

_GREY_SCALE = 15  # scikit-learn's grey levels end at 16, and 16 * 15 = 240 fits into a byte


@documented
class Loader(NamedTuple):
    """How a data set is read.

    Examples:
        >>> from moe_theory.deep import datasets
        >>> loader = datasets.DATASETS["digits"]
        >>> loader.title
        'digits'
    """

    title: str
    read: Callable[[Path], DataSet]
    layouts: tuple[Layout, ...]  # where its files may be; none for embedded data


@functools.cache
def load_digits() -> DataSet:
    """Scikit-learn's 1,797 digits of 8 x 8 pixels; a fifth of each digit, evenly spaced, is the test split.

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
    )


# What can be loaded, by name.
DATASETS: dict[str, Loader] = {
    "digits": Loader("digits", lambda _: load_digits(), ()),
    **{
        version.name: Loader(version.title, functools.partial(mnist.load_mnist, version), (version.layout,))
        for version in (mnist.MNIST, mnist.FASHION_MNIST)
    },
    **{
        version.name: Loader(version.title, functools.partial(cifar.load_cifar, version), version.layouts)
        for version in (cifar.CIFAR10, cifar.CIFAR100, cifar.CIFAR100_SUPERCLASSES)
    },
    "tiny-imagenet": Loader(tiny_imagenet.TITLE, tiny_imagenet.load_tiny_imagenet, tiny_imagenet.LAYOUTS),
    "folders": Loader(own.FOLDERS, own.load_folders, own.FOLDER_LAYOUTS),
    "arrays": Loader(own.ARRAYS, own.load_arrays, own.ARRAY_LAYOUTS),
}


OWN = ("folders", "arrays")  # what is looked for where there is no published data set


def found_in(folder: Path | str) -> list[str]:
    """Names of the data sets whose files a folder has; of those in one format the one that they are as published.

    One that `load` would refuse with MissingDataError is left out.

    Raises: DamagedDataError for files that cannot be read.

    Examples:
        >>> import tempfile
        >>> from moe_theory.deep import datasets
        >>> datasets.found_in(tempfile.mkdtemp())
        []
    """
    found: dict[str, tuple[str, ...]] = {}  # files that are not as published
    for name, loader in DATASETS.items():
        if loader.layouts:
            with contextlib.suppress(MissingDataError):
                found[name] = changed_files(locate(loader.title, Path(folder), loader.layouts))
    found = {name: changed for name, changed in found.items() if name not in OWN} or found
    fewest = min(map(len, found.values()), default=0)
    return [name for name, changed in found.items() if len(changed) == fewest]


def load(name: str, folder: Path | str | None = None) -> DataSet:
    """A data set of `DATASETS`.

    Args:
        folder: where its files are, or where its archive was unpacked; ignored for digits, which are embedded.
    Raises: UnknownNameError; MissingDataError, with the files and folders that were tried; DamagedDataError, with the
        file and its fault; InvalidRunError where an optional package is missing.

    Examples:
        >>> from moe_theory.deep import datasets
        >>> digits = datasets.load("digits")
        >>> images = digits.train
        >>> images.pixels.shape[1:], len(digits.class_names)
        ((8, 8, 1), 10)
    """
    if name not in DATASETS:
        raise unknown_name("data set", name, DATASETS)
    title, read, layouts = DATASETS[name]
    if layouts and folder is None:
        raise no_folder_error(name, title, layouts)
    return read(Path(folder or "."))
