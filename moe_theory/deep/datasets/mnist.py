"""MNIST and Fashion-MNIST as published: four files in the IDX format, plain or compressed.

The format: two zero bytes, a type code, the number of dimensions, each as a big-endian uint32, and the numbers.
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8

from moe_theory.core.errors import DataError
from moe_theory.deep.datasets.files import DataSet, Images, changed_files, check_labels, read_whole

FILES = (
    "train-images[-.]idx3-ubyte*",
    "train-labels[-.]idx1-ubyte*",
    "t10k-images[-.]idx3-ubyte*",
    "t10k-labels[-.]idx1-ubyte*",
)
_SIDE = 28  # pixels
_BYTES = 8  # the code of unsigned bytes


class Idx(NamedTuple):
    name: str
    title: str
    class_names: tuple[str, ...]
    md5: tuple[str, ...]  # of what each of the files holds, decompressed


MNIST = Idx(
    name="mnist",
    title="MNIST",
    class_names=tuple(map(str, range(10))),
    md5=(
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
    md5=(
        "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "9018921c3c673c538a1fc5bad174d6f9",
        "8181f5470baa50b63fa0f6fddb340f0a",
        "15d484375f8d13e6eb1aabb0c3f46965",
    ),
)


def load_mnist(version: Idx, paths: list[Path]) -> DataSet:
    """Return images (n, 28, 28, 1). The title says where they are not as published, by their MD5."""
    num_classes = len(version.class_names)
    train = _read_split(paths[0], paths[1], num_classes)
    test = _read_split(paths[2], paths[3], num_classes)
    changed = changed_files(paths, version.md5)
    title = f"{version.title} (not as published)" if changed else version.title
    notes = (f"not as {version.title} was published (by MD5): {', '.join(changed)}",) if changed else ()
    return DataSet(version.name, title, train, test, version.class_names, f"files of MNIST in {paths[0].parent}", notes)


def _read_split(image_file: Path, label_file: Path, num_classes: int) -> Images:
    pixels = _read(image_file, (_SIDE, _SIDE))
    labels = _read(label_file, ())
    check_labels(label_file, labels, num_classes)
    if len(labels) != len(pixels):
        reason = f"it has {len(labels)} labels for the {len(pixels)} images of {image_file.name}"
        raise DataError(label_file, reason)
    return Images(pixels[..., None], labels.astype(np.int32))


def _read(path: Path, shape: tuple[int, ...]) -> UInt8[np.ndarray, "n ..."]:
    """Return the numbers of an IDX file, whose items have this shape."""
    data = read_whole(path)
    start = 8 + 4 * len(shape)
    begin = bytes([0, 0, _BYTES, 1 + len(shape)])
    end = np.array(shape, ">u4").tobytes()
    if data[:4] != begin or data[8:start] != end:
        expected = f"{begin.hex(' ')}, a count and the shape {shape} of its items"
        raise DataError(path, f"its header is {data[:start].hex(' ') or 'empty'}, not {expected}")
    count = int.from_bytes(data[4:8], "big")
    size = count * math.prod(shape)
    if not count or len(data) - start != size:
        raise DataError(path, f"its header promises {size:,} bytes after it; there are {len(data) - start:,}")
    return np.frombuffer(data, np.uint8, offset=start).reshape(count, *shape)
