"""MNIST and its relatives as published: four files in the IDX format, plain or compressed.

The format: two zero bytes, a type code, the number of dimensions, each as a big-endian uint32, and the numbers.
"""

import math
import string
from pathlib import Path
from typing import NamedTuple

import numpy as np

from moe_theory.core.errors import DataError
from moe_theory.deep.datasets.files import DataSet, Images, Layout, checked_labels, locate, read_whole


class Idx(NamedTuple):
    name: str
    title: str
    class_names: tuple[str, ...]
    layout: Layout
    published: tuple[int, int] = (60_000, 10_000)  # images of the two splits
    first_label: int = 0  # in its files, which is class 0 here
    is_transposed: bool = False  # columns before rows


def _layout(folder: str, title: str, *md5: str) -> Layout:
    names = ("train-images[-.]idx3", "train-labels[-.]idx1", "t10k-images[-.]idx3", "t10k-labels[-.]idx1")
    subfolders = (folder, title, f"{title}/raw", "raw")
    return Layout(tuple(f"{name}-ubyte" for name in names), subfolders, ("", ".gz"), md5)


MNIST = Idx(
    name="mnist",
    title="MNIST",
    class_names=tuple(map(str, range(10))),
    layout=_layout(
        "mnist",
        "MNIST",
        "6bbc9ace898e44ae57da46a324031adb",
        "a25bea736e30d166cdddb491f175f624",
        "2646ac647ad5339dbf082846283269ea",
        "27ae3e4e09519cfbb04c329615203637",
    ),
)
FASHION_MNIST = Idx(
    name="fashion-mnist",
    title="Fashion-MNIST",
    class_names=("T-shirt/top", *"Trouser Pullover Dress Coat Sandal Shirt Sneaker Bag".split(), "Ankle boot"),
    layout=_layout(
        "fashion-mnist",
        "FashionMNIST",
        "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "9018921c3c673c538a1fc5bad174d6f9",
        "8181f5470baa50b63fa0f6fddb340f0a",
        "15d484375f8d13e6eb1aabb0c3f46965",
    ),
)
KMNIST = Idx(
    name="kmnist",
    title="Kuzushiji-MNIST",
    class_names=tuple("o ki su tsu na ha ma ya re wo".split()),
    layout=_layout("kmnist", "KMNIST")._replace(
        packed_md5=(
            "bdb82020997e1d708af4cf47b453dcf7",
            "e144d726b3acfaa3e44228e80efcd344",
            "5c965bf0a639b31b8f53240b1b52f4d7",
            "7320c461ea6c1c855c0b718fb2a4b134",
        )
    ),
)


def _emnist(split: str, class_names: str, train: int, test: int, first_label: int = 0) -> Idx:
    files = tuple(f"emnist-{split}-{part}-idx{rank}-ubyte" for part, rank in _EMNIST_PARTS)
    layout = Layout(files, ("emnist", "EMNIST", "EMNIST/raw", "gzip", "raw"), ("", ".gz"))
    return Idx(f"emnist-{split}", f"EMNIST {split}", tuple(class_names), layout, (train, test), first_label, True)


_EMNIST_PARTS = (("train-images", 3), ("train-labels", 1), ("test-images", 3), ("test-labels", 1))
_MERGED = string.digits + string.ascii_uppercase + "abdefghnqrt"  # of the others both cases are one class
EMNIST = (
    _emnist("balanced", _MERGED, 112_800, 18_800),
    _emnist("byclass", string.digits + string.ascii_uppercase + string.ascii_lowercase, 697_932, 116_323),
    _emnist("bymerge", _MERGED, 697_932, 116_323),
    _emnist("digits", string.digits, 240_000, 40_000),
    _emnist("letters", string.ascii_lowercase, 124_800, 20_800, first_label=1),
    _emnist("mnist", string.digits, 60_000, 10_000),
)
_SIDE = 28  # pixels
_BYTES = 8  # the code of unsigned bytes


def load_mnist(version: Idx, folder: Path) -> DataSet:
    """Images (n, 28, 28, 1), upright; those of EMNIST are stored columns first."""
    found = locate(version.title, folder, (version.layout,))
    train_images, train_labels, test_images, test_labels = found.files
    train, test = _split(version, train_images, train_labels), _split(version, test_images, test_labels)
    counts = len(train.labels), len(test.labels)
    inventory = found.inventory(version.title, version.published, counts)
    if version.is_transposed:
        inventory = inventory._replace(converted={"transposed, as its files have columns for rows": sum(counts)})
    if version.first_label:
        inventory = inventory._replace(notes=(*inventory.notes, "labels 1, 2, ... of its files are classes 0, 1, ..."))
    return DataSet(version.name, found.title(version.title), train, test, version.class_names, inventory)


def _split(version: Idx, images: Path, labels: Path) -> Images:
    pixels = _read(images, (_SIDE, _SIDE))
    found = _read(labels, ()).astype(np.int32) - version.first_label
    found = checked_labels(labels, found, len(version.class_names))
    if len(found) != len(pixels):
        raise DataError(labels, f"it has {len(found)} labels for the {len(pixels)} images of {images.name}")
    if version.is_transposed:
        pixels = np.ascontiguousarray(pixels.swapaxes(1, 2))
    return Images(pixels[..., None], found)


def _read(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    magic = bytes([0, 0, _BYTES, 1 + len(shape)])
    data = read_whole(path)
    if data[:4] != magic:
        begins = data[:4].hex(" ") or "nothing"
        wanted = f"{magic.hex(' ')} as an IDX file of bytes"
        raise DataError(path, f"it begins with {begins}, not with {wanted} in {magic[3]} dimensions")
    start = len(magic) + 4 * (1 + len(shape))
    if len(data) < start:
        raise DataError(path, f"it ends after {len(data)} bytes, within its header")
    count, *found = np.frombuffer(data[len(magic) : start], ">u4").tolist()
    if tuple(found) != shape:
        raise DataError(path, f"its images have shape {tuple(found)}, not {shape} as in {MNIST.title}")
    size = count * math.prod(shape)
    if not count or len(data) - start != size:
        raise DataError(path, f"its header promises {size:,} bytes after it; there are {len(data) - start:,}")
    return np.frombuffer(data, np.uint8, offset=start).reshape(count, *shape)
