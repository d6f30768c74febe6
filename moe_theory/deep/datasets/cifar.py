"""CIFAR-10 and CIFAR-100 as published in the binary version.

Files of the Python version are pickles, which run code: they are not read.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from moe_theory.core.errors import DataError
from moe_theory.deep.datasets.files import DataSet, Images, check_labels, read_whole

_SIDE = 32
_CHANNELS = 3
_PIXELS = _CHANNELS * _SIDE**2  # bytes of an image: all of red, then green, then blue, row by row


class Cifar(NamedTuple):
    name: str
    title: str
    class_names: tuple[str, ...]  # as published
    files: tuple[str, ...]  # the last one is the test split
    num_labels: int  # bytes before an image's pixels, the last of which is its label


CIFAR10 = Cifar(
    name="cifar10",
    title="CIFAR-10",
    class_names=tuple("airplane automobile bird cat deer dog frog horse ship truck".split()),
    files=(*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"),
    num_labels=1,
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
    files=("train.bin", "test.bin"),
    num_labels=2,  # coarse, fine
)


def load_cifar(cifar: Cifar, paths: list[Path]) -> DataSet:
    """Return images (n, 32, 32, 3) and their labels."""
    parts = [_read(cifar, path) for path in paths]
    pixels = np.concatenate([part.pixels for part in parts[:-1]])
    labels = np.concatenate([part.labels for part in parts[:-1]])
    source = f"files of the binary version in {paths[0].parent}"
    return DataSet(cifar.name, cifar.title, Images(pixels, labels), parts[-1], cifar.class_names, source)


def _read(cifar: Cifar, path: Path) -> Images:
    data = np.frombuffer(read_whole(path), np.uint8)
    record = cifar.num_labels + _PIXELS
    if not len(data) or len(data) % record:
        raise DataError(path, f"its {len(data):,} bytes are not a whole number of images of {record:,} bytes")
    records = data.reshape(-1, record)
    labels = records[:, cifar.num_labels - 1]
    check_labels(path, labels, len(cifar.class_names))
    planes = records[:, cifar.num_labels :].reshape(-1, _CHANNELS, _SIDE, _SIDE)
    return Images(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels.astype(np.int32))
