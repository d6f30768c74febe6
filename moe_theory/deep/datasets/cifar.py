"""CIFAR-10 and CIFAR-100 as published in the binary version; CIFAR-100 by superclass too.

The Python version is refused: its files are pickles, which run code.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np

from moe_theory.core.errors import DataError, MissingError
from moe_theory.deep.datasets.files import (
    DataSet,
    Images,
    Layout,
    LocatedFiles,
    checked_labels,
    locate,
    opened,
    read_whole,
)

_SIDE, _CHANNELS = 32, 3
_PIXELS = _CHANNELS * _SIDE**2  # bytes of an image: all of red, then green, then blue, row by row
_PICKLE = b"\x80"  # the first byte of a pickle, from protocol 2 on


class Cifar(NamedTuple):
    name: str
    title: str
    class_names: tuple[str, ...]  # as published
    binary: Layout  # the last file is the test split
    num_labels: int  # bytes before an image's pixels
    label: int  # which of these is its label
    python: Layout  # which is refused, as soon as one of its files is there


CIFAR10 = Cifar(
    name="cifar10",
    title="CIFAR-10",
    class_names=tuple("airplane automobile bird cat deer dog frog horse ship truck".split()),
    binary=Layout((*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"), ("cifar-10-batches-bin",)),
    num_labels=1,
    label=0,
    python=Layout((*(f"data_batch_{k}" for k in range(1, 6)), "test_batch", "batches.meta"), ("cifar-10-batches-py",)),
)
CIFAR100 = Cifar(
    name="cifar100",
    title="CIFAR-100",
    class_names=tuple(
        "apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can "
        "castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin "
        "elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster "
        "man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck "
        "pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk "
        "skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger "
        "tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm".split()
    ),
    binary=Layout(("train.bin", "test.bin"), ("cifar-100-binary",)),
    num_labels=2,  # coarse, fine
    label=1,
    python=Layout(("train", "test", "meta"), ("cifar-100-python",)),
)
CIFAR100_SUPERCLASSES = CIFAR100._replace(
    name="cifar100-superclasses",
    title="CIFAR-100 by superclass",
    class_names=tuple(
        "aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices "
        "household_furniture insects large_carnivores large_man-made_outdoor_things large_natural_outdoor_scenes "
        "large_omnivores_and_herbivores medium_mammals non-insect_invertebrates people reptiles small_mammals trees "
        "vehicles_1 vehicles_2".split()
    ),
    label=0,
)


def find_cifar(cifar: Cifar, folder: Path) -> LocatedFiles:
    """Return the files of the binary version.

    Raises: MissingError, which names the Python version where that is there.
    """
    try:
        return locate(cifar.title, folder, (cifar.binary,))
    except MissingError as failure:
        if not failure.present:
            _refuse_pickles(cifar, folder)
        raise


def pickled_version(archive: str) -> str | None:
    """Return "cifar-10" or "cifar-100" for the name of an archive with its Python version."""
    match = re.match("(cifar-100?)-python", archive.lower())
    return match and match[1]


def load_cifar(cifar: Cifar, folder: Path) -> DataSet:
    """Return images (n, 32, 32, 3) and their labels."""
    located = find_cifar(cifar, folder)
    parts = [_read(cifar, path) for path in located.files]
    train = Images(*map(np.concatenate, zip(*parts[:-1], strict=True)))
    test = parts[-1]
    inventory = located.inventory(cifar.title, (50_000, 10_000), (len(train.labels), len(test.labels)))
    return DataSet(cifar.name, located.title(cifar.title), train, test, cifar.class_names, inventory)


def _read(cifar: Cifar, path: Path) -> Images:
    data = np.frombuffer(read_whole(path), np.uint8)
    record = cifar.num_labels + _PIXELS
    if not len(data) or len(data) % record:
        raise DataError(path, f"its {len(data):,} bytes are not a whole number of images of {record:,} bytes")
    records = data.reshape(-1, record)
    labels = checked_labels(path, records[:, cifar.label], len(cifar.class_names))
    planes = records[:, cifar.num_labels :].reshape(-1, _CHANNELS, _SIDE, _SIDE)
    return Images(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels)


def _refuse_pickles(cifar: Cifar, folder: Path) -> None:
    """Raise MissingError where a file of the Python version is there, and begins as a pickle does."""
    names = cifar.python.files
    try:
        pickled = locate(cifar.title, folder, tuple(cifar.python._replace(files=(name,)) for name in names))
        with opened(pickled.files[0]) as file:
            first_byte = file.read(1)
    except (MissingError, DataError):
        return
    if first_byte != _PICKLE:
        return
    raise MissingError(
        f"{pickled.folder} has {cifar.title} in its Python version, whose files are pickles and may run code. Get the "
        f"binary version, which has {cifar.binary.files[0]}.",
        sum((pickled.folder / name).exists() for name in names),
    )
