"""The papers' data sets and users' own, read from a folder that the user names: checked, and never downloaded."""

import functools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moe_theory.core.digits import handwritten_digits
from moe_theory.core.errors import MissingError, shortened, unknown_name
from moe_theory.core.fields import documented
from moe_theory.deep.datasets import cifar, folders, mnist, own, tiny_imagenet
from moe_theory.deep.datasets.files import DataSet as DataSet
from moe_theory.deep.datasets.files import Images as Images
from moe_theory.deep.datasets.files import Inventory as Inventory
from moe_theory.deep.datasets.files import Layout, LocatedFiles, is_system, locate, no_folder_error, reading
from moe_theory.deep.datasets.own import from_arrays as from_arrays

_GREY_SCALE = 15  # scikit-learn's grey levels end at 16, and 16 * 15 = 240 fits into a byte


@documented
class Loader(NamedTuple):
    """Reader of a data set.

    Examples:
        >>> from moe_theory.deep import datasets
        >>> loader = datasets.DATASETS["digits"]
        >>> loader.title
        'digits'
    """

    title: str
    read: Callable[[Path], DataSet]
    layouts: tuple[Layout, ...]  # where its files may be; none for embedded data
    find: Callable[[Path], Any] | None = None  # what is found of it, where that is not by its layouts alone


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
        inventory=Inventory("scikit-learn's digits, which come with it"),
    )


# What can be loaded, by name.
DATASETS: dict[str, Loader] = {
    "digits": Loader("digits", lambda _: load_digits(), ()),
    **{
        version.name: Loader(version.title, functools.partial(mnist.load_mnist, version), (version.layout,))
        for version in (mnist.MNIST, mnist.FASHION_MNIST, mnist.KMNIST, *mnist.EMNIST)
    },
    **{
        version.name: Loader(
            version.title,
            functools.partial(cifar.load_cifar, version),
            (version.binary,),
            functools.partial(cifar.find_cifar, version),
        )
        for version in (cifar.CIFAR10, cifar.CIFAR100, cifar.CIFAR100_SUPERCLASSES)
    },
    "tiny-imagenet": Loader(
        tiny_imagenet.TITLE,
        tiny_imagenet.load_tiny_imagenet,
        tiny_imagenet.LAYOUTS,
        tiny_imagenet.find_tiny_imagenet,
    ),
    "folders": Loader(folders.TITLE, folders.load_folders, (Layout(("train/", "test/"), (".",)),), folders.find_tree),
    "arrays": Loader(own.TITLE, own.load_arrays, own.LAYOUTS, own.find_arrays),
}


OWN = ("folders", "arrays")  # what is looked for where there is no published data set
_ARCHIVES = (".zip", ".tar", ".tgz", ".gz", ".bz2", ".xz", ".7z", ".rar")


def found_in(folder: Path | str) -> list[str]:
    """Names of the data sets whose files a folder has, by what they hold and not by their layout alone.

    Published ones come first, and of those in one format the one that they are as published, or else the one that
    their folder is called like. One that `load` would refuse with MissingError is left out.

    Raises: DataError for files that cannot be read.

    Examples:
        >>> import tempfile
        >>> from moe_theory.deep import datasets
        >>> datasets.found_in(tempfile.mkdtemp())
        []
    """
    found = {name: place for name, place in _looked_for(Path(folder)).items() if not isinstance(place, Exception)}
    found = {name: place for name, place in found.items() if name not in OWN} or found
    changed = {name: len(place.changed) if isinstance(place, LocatedFiles) else 0 for name, place in found.items()}
    fewest = min(changed.values(), default=0)
    return sorted((name for name in found if changed[name] == fewest), key=lambda name: not _is_called(name, found))


def missing(folder: Path | str) -> MissingError:
    """Why a folder has no data set: the nearest layout and what it lacks, or what is there.

    Returns: a MissingError.
    Raises: DataError for files that cannot be read.

    Examples:
        >>> import tempfile
        >>> from moe_theory.deep import datasets
        >>> "which has nothing" in str(datasets.missing(tempfile.mkdtemp()))
        True
    """
    folder = Path(folder).expanduser().absolute()
    near = max(_looked_for(folder).values(), key=lambda failure: getattr(failure, "present", 0))
    said = f"no data set in {folder}"
    paths = [folder] if folder.is_file() else []
    if folder.is_dir():
        with reading(folder):
            paths = [path for path in folder.iterdir() if not is_system(path.name)]
    names = [path.name for path in paths]
    if packed := sorted(name for name in names if name.lower().endswith(_ARCHIVES)):
        return MissingError(f"{said}: {_describe_archive(packed[0])}", 1)
    if getattr(near, "present", 0):
        return MissingError(f"{said}. The nearest: {near}", 1)
    with reading(folder):
        tables = [path for path in paths if path.suffix.lower() == ".csv" and path.is_file()]
        largest = max(tables, key=lambda path: path.stat().st_size, default=None)
    if largest is not None:
        return MissingError(f"{said}: {_describe_table(largest)}", 1)
    if not folder.is_dir():
        return MissingError(f"{said}, which is not a folder. Name the one that has it.")
    endings = Counter(Path(name).suffix.lower() or "of no ending" for name in names).most_common(5)
    there = ", ".join(f"{count} {ending}" for ending, count in endings) or "nothing"
    published = ", ".join(loader.title for name, loader in DATASETS.items() if loader.layouts and name not in OWN)
    return MissingError(
        f"{said}, which has {there}. It may have the published files of {published}; images in train/CLASS and "
        "test/CLASS, or in CLASS alone; or an .npz file of x_train, y_train, x_test, y_test."
    )


def _describe_archive(name: str) -> str:
    """Return what an archive is, and what to do."""
    if version := cifar.pickled_version(name):
        return (
            f"{shortened(name)} is the pickled version, which could run code. Take the binary version "
            f"({version}-binary.tar.gz)."
        )
    return f"{shortened(name)} is not unpacked. Unpack it, and name its folder."


def _describe_table(path: Path) -> str:
    """Return what a `.csv` file is, and how NumPy converts it."""
    arrays = path.with_suffix(".npz").name
    return (
        f"{path.name!r} is a table. Images are read from an .npz file or from folders of images. If its first row is a "
        f"header and its first column the labels, convert it by `t = np.loadtxt({path.name!r}, delimiter=',', "
        f"skiprows=1); np.savez({arrays!r}, x_train=t[:, 1:], y_train=t[:, 0].astype(int))`. Then name the folder of "
        f"{arrays!r}."
    )


def _looked_for(folder: Path) -> dict[str, Any]:
    """Files found of each data set, or the MissingError that says what is missing."""
    found: dict[str, Any] = {}
    for name, (title, _, layouts, find) in DATASETS.items():
        if layouts:
            try:
                found[name] = locate(title, folder, layouts) if find is None else find(folder)
            except MissingError as failure:
                found[name] = failure
    return found


def _is_called(name: str, found: dict[str, Any]) -> bool:
    parts = found[name].folder.parts[-3:] if isinstance(found[name], LocatedFiles) else ()
    return name.replace("-", "") in ("".join(filter(str.isalnum, part)).lower() for part in parts)


def load(name: str, folder: Path | str | None = None) -> DataSet:
    """A data set of `DATASETS`.

    Args:
        folder: where its files are, or where its archive was unpacked; ignored for digits, which are embedded.
    Raises: UnknownNameError; MissingError, with the files and folders that were tried; DataError, with the
        file and its fault; InvalidValueError and InvalidValueError for arrays and images that are not read.

    Examples:
        >>> from moe_theory.deep import datasets
        >>> digits = datasets.load("digits")
        >>> images = digits.train
        >>> images.pixels.shape[1:], len(digits.class_names)
        ((8, 8, 1), 10)
    """
    if name not in DATASETS:
        raise unknown_name("data set", name, DATASETS)
    title, read, layouts, _ = DATASETS[name]
    if layouts and folder is None:
        raise no_folder_error(name, title, layouts)
    return read(Path(folder or "."))
