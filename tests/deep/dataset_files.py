"""Small files in the formats in which the data sets are published, with what they hold, and small made-up images."""

import functools
import gzip
import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from moe_theory.deep.datasets import DataSet, Images

MNIST_FILES = {
    ("train", "images"): "train-images{}idx3-ubyte",
    ("train", "labels"): "train-labels{}idx1-ubyte",
    ("test", "images"): "t10k-images{}idx3-ubyte",
    ("test", "labels"): "t10k-labels{}idx1-ubyte",
}
WNIDS = ["n02124075", "n01443537", "n04067472"]  # in the file's order, which is not the sorted one
CIFAR10_FILES = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]


def idx(array: np.ndarray) -> bytes:
    """An IDX file of bytes."""
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def images(seed: int, count: int, side: int, channels: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (count, side, side, channels), np.uint8)


def mnist(folder: Path, separator: str = "-", compressed: bool = False, count: int = 20) -> dict[str, Any]:
    """The four files; their images (n, 28, 28, 1) and labels by split."""
    folder.mkdir(parents=True, exist_ok=True)
    held = {}
    for seed, split in enumerate(("train", "test")):
        pixels, labels = images(seed, count - 5 * seed, 28, 1), np.arange(count - 5 * seed) * 7 % 10
        held[split] = (pixels, labels)
        for kind, data in (("images", idx(pixels[..., 0])), ("labels", idx(labels))):
            name = MNIST_FILES[split, kind].format(separator)
            (folder / (name + ".gz" * compressed)).write_bytes(gzip.compress(data) if compressed else data)
    return held


def rows(pixels: np.ndarray) -> np.ndarray:
    """CIFAR's: all of red, all of green, all of blue."""
    return np.concatenate([pixels[..., channel].reshape(len(pixels), -1) for channel in range(3)], axis=1)


def cifar10_content(count: int = 4) -> dict[str, tuple[np.ndarray, list[int]]]:
    return {
        name: (images(seed, count, 32, 3), [(3 * seed + 2 * k) % 10 for k in range(count)])
        for seed, name in enumerate(CIFAR10_FILES)
    }


def cifar10(folder: Path) -> dict[str, tuple[np.ndarray, list[int]]]:
    """The six files of the binary version; images and labels by file."""
    folder.mkdir(parents=True)
    held = cifar10_content()
    for name, (pixels, labels) in held.items():
        data = np.column_stack([np.array(labels, np.uint8), rows(pixels)]).tobytes()
        (folder / f"{name}.bin").write_bytes(data)
    return held


def cifar100(folder: Path, count: int = 6) -> dict[str, tuple[np.ndarray, list[int]]]:
    """The two files; images and fine labels by split."""
    folder.mkdir(parents=True)
    held = {}
    for seed, split in enumerate(("train", "test")):
        pixels, fine = images(seed, count, 32, 3), [(17 * seed + 31 * k) % 100 for k in range(count)]
        coarse = [label % 20 for label in fine]
        held[split] = (pixels, fine)
        data = np.column_stack([np.array(coarse, np.uint8), np.array(fine, np.uint8), rows(pixels)])
        (folder / f"{split}.bin").write_bytes(data.tobytes())
    return held


def jpeg(value: int, mode: str = "RGB", side: int = 64) -> bytes:
    """A picture of one colour, which JPEG keeps to a level or two."""

    file = io.BytesIO()
    colour = value if mode == "L" else (value, 255 - value, value // 2)
    Image.new(mode, (side, side), colour).save(file, "JPEG", quality=95)
    return file.getvalue()


def tiny_imagenet(folder: Path, per_class: int = 3) -> dict[str, list[tuple[str, int]]]:
    """As published; class and brightness of red of each image, by split. Every third one is grey."""
    held: dict[str, list[tuple[str, int]]] = {"train": [], "val": []}
    annotations = []
    for split, listed in held.items():
        for number in range(per_class * len(WNIDS)):
            wnid, value = WNIDS[number % len(WNIDS)], 20 + 20 * number + 7 * (split == "val")
            listed.append((wnid, value))
            path = folder / split / wnid / "images" / f"{wnid}_{number}.JPEG"
            if split == "val":
                path = folder / split / "images" / f"val_{number}.JPEG"
                annotations.append(f"{path.name}\t{wnid}\t0\t32\t44\t62\n")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(jpeg(value, "L" if number % 3 == 2 else "RGB"))
    (folder / "wnids.txt").write_text("\n".join(WNIDS) + "\n")
    (folder / "val" / "val_annotations.txt").write_text("".join(annotations))
    for wnid in WNIDS:
        (folder / "train" / wnid / f"{wnid}_boxes.txt").write_text("a box\n")
    return held


@functools.cache
def corners(num_train: int = 40, num_test: int = 30) -> DataSet:
    """Bytes of 4 x 4 pixels, brighter in a class's own place, of five classes."""
    generator = np.random.default_rng(7)

    def split(count: int) -> Images:
        labels = generator.permutation(np.arange(count) % 5).astype(np.int32)
        pixels = generator.integers(0, 120, (count, 4, 4, 1))
        for row, label in enumerate(labels):
            pixels[row, label % 4, label // 4 :, :] += 100
        return Images(pixels.astype(np.uint8), labels)

    return DataSet("corners", "corners", split(num_train), split(num_test), tuple("01234"))
