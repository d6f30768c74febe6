"""MNIST as published: four files in the IDX format, plain or compressed.

The format: two zero bytes, a type code, the number of dimensions, each as a big-endian uint32, and the numbers.
"""

import gzip
import io
import math
import zlib
from pathlib import Path

import numpy as np

from moe_theory.core.errors import DamagedDataError
from moe_theory.deep.datasets.files import DataSet, Images, Layout, checked_labels, locate, reading

TITLE = "MNIST"
LAYOUTS = (
    Layout(
        (
            "train-images[-.]idx3-ubyte",
            "train-labels[-.]idx1-ubyte",
            "t10k-images[-.]idx3-ubyte",
            "t10k-labels[-.]idx1-ubyte",
        ),
        ("mnist", "MNIST", "MNIST/raw", "raw"),
        ("", ".gz"),
    ),
)
_SIDE = 28  # pixels
_NUM_CLASSES = 10
_BYTES = 8  # the code of unsigned bytes
_MAX_IMAGES = 1_000_000  # 60,000 are published; a small compressed file may claim any number


def load_mnist(folder: Path) -> DataSet:
    train_images, train_labels, test_images, test_labels = locate(TITLE, folder, LAYOUTS).files
    return DataSet(
        name="mnist",
        title=TITLE,
        train=_split(train_images, train_labels),
        test=_split(test_images, test_labels),
        class_names=tuple(map(str, range(_NUM_CLASSES))),
    )


def _split(images: Path, labels: Path) -> Images:
    pixels = _read(images, (_SIDE, _SIDE))
    found = checked_labels(labels, _read(labels, ()), _NUM_CLASSES)
    if len(found) != len(pixels):
        raise DamagedDataError(labels, f"it has {len(found)} labels for the {len(pixels)} images of {images.name}")
    return Images(pixels[..., None], found)


def _read(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    with reading(path), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        try:
            return _unpacked(path, file, shape)
        except (gzip.BadGzipFile, EOFError, zlib.error) as failure:
            raise DamagedDataError(path, f"it cannot be decompressed ({failure})") from None


def _unpacked(path: Path, file: io.BufferedIOBase, shape: tuple[int, ...]) -> np.ndarray:
    magic = bytes([0, 0, _BYTES, 1 + len(shape)])
    header = file.read(len(magic) + 4 * (1 + len(shape)))
    if header[:4] != magic:
        begins = header[:4].hex(" ") or "nothing"
        raise DamagedDataError(
            path, f"it begins with {begins}, not with {magic.hex(' ')} as an IDX file of bytes in {magic[3]} dimensions"
        )
    dimensions = [int(size) for size in np.frombuffer(header[4:], ">u4", count=len(header[4:]) // 4)]
    if len(dimensions) <= len(shape):
        raise DamagedDataError(path, f"it ends after {len(header)} bytes, within its header")
    count = dimensions[0]
    if tuple(dimensions[1:]) != shape:
        raise DamagedDataError(path, f"its images have shape {tuple(dimensions[1:])}, not {shape} as in {TITLE}")
    if not 0 < count <= _MAX_IMAGES:
        raise DamagedDataError(path, f"it claims {count:,} images or labels; between 1 and {_MAX_IMAGES:,} are read")
    size = count * math.prod(shape)
    data = file.read(size + 1)  # one byte more, to find trailing data and let gzip compare its checksum
    if len(data) != size:
        found = "more" if len(data) > size else f"{len(data):,}"
        raise DamagedDataError(path, f"its header promises {size:,} bytes after it; there are {found}")
    return np.frombuffer(data, np.uint8).reshape(count, *shape)
