"""Arrays that the readers of data sets return, from small files in each format that stays."""

import gzip
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks.oracle.records import Record, number_or_array
from moe_theory.deep import datasets

IDX = {
    "train-images-idx3-ubyte.gz": "train-labels-idx1-ubyte.gz",
    "t10k-images-idx3-ubyte.gz": "t10k-labels-idx1-ubyte.gz",
}


def readers(scratch: Path) -> Iterator[Record]:
    """Write each format's files, read them, and yield a record with both splits."""
    yield _record("digits", datasets.load("digits"))
    for name, (kind, write) in FORMATS.items():
        folder = scratch / name
        folder.mkdir(parents=True)
        write(folder)
        yield _record(name, datasets.load(kind, folder))


def _record(name: str, data: Any) -> Record:
    fields = {"num_classes": len(data.class_names)}
    for split in ("train", "test"):
        images = getattr(data, split)
        fields[f"{split}/pixels"] = number_or_array(images.pixels)
        fields[f"{split}/labels"] = number_or_array(images.labels)
    return Record(f"readers/{name}", fields)


def _pixels(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def _labels(count: int, num_classes: int) -> np.ndarray:
    return (7 * np.arange(count) % num_classes).astype(np.uint8)


def _planes(pixels: np.ndarray) -> np.ndarray:
    """Return rows of all red, all green, then all blue bytes."""
    return pixels.transpose(0, 3, 1, 2).reshape(len(pixels), -1)


def _write_idx(folder: Path) -> None:
    for seed, (images, labels) in enumerate(IDX.items()):
        count = 20 - 5 * seed
        for name, array in ((images, _pixels(seed, count, 28, 28)), (labels, _labels(count, 10))):
            header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
            (folder / name).write_bytes(gzip.compress(header + array.tobytes()))


def _write_cifar10(folder: Path) -> None:
    for seed, name in enumerate([*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"]):
        rows = np.column_stack([_labels(4, 10), _planes(_pixels(seed, 4, 32, 32, 3))])
        (folder / f"{name}.bin").write_bytes(rows.tobytes())


def _write_cifar100(folder: Path) -> None:
    for seed, name in enumerate(("train", "test")):
        fine = _labels(6, 100)
        rows = np.column_stack([fine % 20, fine, _planes(_pixels(seed, 6, 32, 32, 3))])
        (folder / f"{name}.bin").write_bytes(rows.tobytes())


def _write_grey_folders(folder: Path) -> None:
    _write_folders(folder, is_colour=False)


def _write_colour_folders(folder: Path) -> None:
    _write_folders(folder, is_colour=True)


def _write_folders(folder: Path, is_colour: bool) -> None:
    for split, count in (("train", 4), ("test", 2)):
        for place, name in enumerate(("cat", "dog", "owl")):
            for number in range(count):
                seed = 100 * len(split) + 10 * place + number
                _write_image(folder / split / name / f"{number}.png", seed, 16, is_colour)


def _write_image(path: Path, seed: int, side: int, is_colour: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (side, side, 3) if is_colour else (side, side)
    Image.fromarray(_pixels(seed, *shape)).save(path)


FORMATS: dict[str, tuple[str, Callable[[Path], None]]] = {  # the reader of each, and what writes its files
    "idx": ("mnist", _write_idx),
    "cifar10-binary": ("cifar10", _write_cifar10),
    "cifar100-binary": ("cifar100", _write_cifar100),
    "folders-grey": ("folders", _write_grey_folders),
    "folders-colour": ("folders", _write_colour_folders),
}
