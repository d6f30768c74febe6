"""MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100 as published.

MNIST's files have the IDX format, plain or compressed, and CIFAR's files are the binary version. CIFAR's Python version
is not read, because its pickles can run code.
"""

import hashlib
import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from moe_theory.core.errors import DataError
from moe_theory.deep.datasets.files import DataSet, Images, check_labels, read_whole

_UINT8 = 8  # IDX's code for unsigned bytes
_IDX = (
    "train-images[-.]idx3-ubyte*",
    "train-labels[-.]idx1-ubyte*",
    "t10k-images[-.]idx3-ubyte*",
    "t10k-labels[-.]idx1-ubyte*",
)


class Published(NamedTuple):
    name: str
    title: str
    class_names: tuple[str, ...]
    files: tuple[str, ...]  # glob patterns. Files of the test split come last
    md5: tuple[str, ...] = ()  # MD5 of each decompressed file
    num_labels: int = 0  # for CIFAR, the number of bytes before an image's pixels. The last byte is the label


MNIST = Published(
    name="mnist",
    title="MNIST",
    class_names=tuple("0123456789"),
    files=_IDX,
    md5=(
        "6bbc9ace898e44ae57da46a324031adb",
        "a25bea736e30d166cdddb491f175f624",
        "2646ac647ad5339dbf082846283269ea",
        "27ae3e4e09519cfbb04c329615203637",
    ),
)
FASHION_MNIST = Published(
    name="fashion-mnist",
    title="Fashion-MNIST",
    class_names=("T-shirt/top", *"Trouser Pullover Dress Coat Sandal Shirt Sneaker Bag".split(), "Ankle boot"),
    files=_IDX,
    md5=(
        "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "9018921c3c673c538a1fc5bad174d6f9",
        "8181f5470baa50b63fa0f6fddb340f0a",
        "15d484375f8d13e6eb1aabb0c3f46965",
    ),
)
CIFAR10 = Published(
    name="cifar10",
    title="CIFAR-10",
    class_names=tuple("airplane automobile bird cat deer dog frog horse ship truck".split()),
    files=(*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"),
    num_labels=1,
)
CIFAR100 = Published(
    name="cifar100",
    title="CIFAR-100",
    class_names=tuple(map(str, range(100))),
    files=("train.bin", "test.bin"),
    num_labels=2,  # coarse, fine
)


def load_mnist(paths: list[Path]) -> DataSet:
    """Return images (n, 28, 28, 1) of MNIST or Fashion-MNIST, distinguished by MD5. The title marks other files."""
    train = _idx_split(paths[0], paths[1], len(MNIST.class_names))
    test = _idx_split(paths[2], paths[3], len(MNIST.class_names))
    md5 = tuple(hashlib.md5(read_whole(path), usedforsecurity=False).hexdigest() for path in paths)
    version = MNIST
    if md5 == FASHION_MNIST.md5:
        version = FASHION_MNIST
    title = version.title
    if md5 != version.md5:
        title = f"{version.title} (not as published)"
    return DataSet(version.name, title, train, test, version.class_names, f"files of MNIST in {paths[0].parent}")


def _idx_split(image_file: Path, label_file: Path, num_classes: int) -> Images:
    pixels = _read_idx(image_file, (28, 28))
    labels = _read_idx(label_file, ())
    check_labels(label_file, labels, num_classes)
    if len(labels) != len(pixels):
        reason = f"it has {len(labels)} labels, but {image_file.name} has {len(pixels)} images"
        raise DataError(label_file, reason)
    return Images(pixels[..., None], labels.astype(np.int32))


def _read_idx(path: Path, shape: tuple[int, ...]) -> UInt8[np.ndarray, "n ..."]:
    data = read_whole(path)
    # The header has a magic number, then the count and the items' shape, each number in four bytes.
    start = 8 + 4 * len(shape)
    magic = bytes([0, 0, _UINT8, 1 + len(shape)])
    if data[:4] != magic or data[8:start] != np.array(shape, ">u4").tobytes():
        expected = f"{magic.hex(' ')}, a count and the shape {shape} of its items"
        raise DataError(path, f"its header is {data[:start].hex(' ') or 'empty'}, not {expected}")
    count = int.from_bytes(data[4:8], "big")
    size = count * math.prod(shape)
    if not count or len(data) - start != size:
        raise DataError(path, f"its header promises {size:,} bytes after it, but there are {len(data) - start:,}")
    return np.frombuffer(data, np.uint8, offset=start).reshape(count, *shape)


def load_cifar(version: Published, paths: list[Path]) -> DataSet:
    *training, test = [_read_cifar(version, path) for path in paths]
    pixels = np.concatenate([images.pixels for images in training])
    labels = np.concatenate([images.labels for images in training])
    source = f"files of the binary version in {paths[0].parent}"
    return DataSet(version.name, version.title, Images(pixels, labels), test, version.class_names, source=source)


def _read_cifar(version: Published, path: Path) -> Images:
    data = np.frombuffer(read_whole(path), np.uint8)
    num_bytes = version.num_labels + 3 * 32**2
    if not len(data) or len(data) % num_bytes:
        raise DataError(path, f"its {len(data):,} bytes are not a whole number of images of {num_bytes:,} bytes")
    records = data.reshape(-1, num_bytes)
    labels = records[:, version.num_labels - 1]
    check_labels(path, labels, len(version.class_names))
    planes = records[:, version.num_labels :].reshape(-1, 3, 32, 32)  # a plane per colour
    return Images(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels.astype(np.int32))
