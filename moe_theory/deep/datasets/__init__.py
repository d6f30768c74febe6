"""The papers' data sets, read from a folder that the user names; nothing is downloaded.

The files are taken for what anybody may have written: each of them is checked against its format.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from moe_theory.core.errors import unknown_name
from moe_theory.deep.datasets import cifar, digits, idx, tiny_imagenet
from moe_theory.deep.datasets.files import Layout, nothing_named
from moe_theory.deep.datasets.images import DataSet as DataSet
from moe_theory.deep.datasets.images import Images as Images


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
    layouts: tuple[Layout, ...]  # where its files may be; none for what is embedded


# What can be loaded, by name.
DATASETS: dict[str, Loader] = {
    "digits": Loader(digits.TITLE, lambda _: digits.load_digits(), ()),
    "mnist": Loader(idx.TITLE, idx.load_mnist, idx.LAYOUTS),
    "cifar10": Loader(cifar.CIFAR10.title, cifar.load_cifar10, cifar.CIFAR10.layouts),
    "cifar100": Loader(cifar.CIFAR100.title, cifar.load_cifar100, cifar.CIFAR100.layouts),
    "cifar100-superclasses": Loader(
        cifar.CIFAR100_SUPERCLASSES.title, cifar.load_cifar100_superclasses, cifar.CIFAR100_SUPERCLASSES.layouts
    ),
    "tiny-imagenet": Loader(tiny_imagenet.TITLE, tiny_imagenet.load_tiny_imagenet, tiny_imagenet.LAYOUTS),
}


def load(name: str, folder: Path | str | None = None) -> DataSet:
    """A data set of `DATASETS`.

    Args:
        folder: where its files are, or where its archive was unpacked; not looked at for digits, which are embedded.
    Raises: UnknownNameError; MissingDataError, which says what was looked for and where; DamagedDataError, which says
        what is wrong with which file; InvalidRunError without a package that it needs.

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
        raise nothing_named(name, title, layouts)
    return read(Path(folder or "."))
