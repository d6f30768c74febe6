"""Small files in the formats in which the data sets are published, with what they hold."""

import gzip
import io
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np

MNIST_FILES = {
    ("train", "images"): "train-images{}idx3-ubyte",
    ("train", "labels"): "train-labels{}idx1-ubyte",
    ("test", "images"): "t10k-images{}idx3-ubyte",
    ("test", "labels"): "t10k-labels{}idx1-ubyte",
}
CIFAR10_FILES = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]
WNIDS = ["n02124075", "n01443537", "n04067472"]  # in the file's order, which is not the sorted one


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


def published_pickle(content: dict[bytes, Any]) -> bytes:
    """A dictionary of byte arrays, lists of numbers and of byte strings as Python 2 wrote it: protocol 2, byte strings
    without an encoding, NumPy under its old name, and the types' names as byte strings."""

    def text(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value

    def item(value: Any) -> bytes:
        if isinstance(value, bytes):
            return text(value)
        if isinstance(value, int):
            return b"K" + bytes([value]) if 0 <= value < 256 else b"J" + struct.pack("<i", value)
        if isinstance(value, list):
            return b"](" + b"".join(map(item, value)) + b"e"
        kind = (
            b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R(K\x03" + text(b"|") + b"NNN" + b"J\xff\xff\xff\xff" * 2
        )
        kind += b"K\x00tb"
        shape = b"(" + b"".join(map(item, value.shape)) + b"t"
        data = b"T" + struct.pack("<i", value.nbytes) + value.tobytes()
        start = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + text(b"b") + b"\x87R"
        return start + b"(K\x01" + shape + kind + b"\x89" + data + b"tb"

    items = b"".join(text(key) + item(value) for key, value in content.items())
    return b"\x80\x02}(" + items + b"u."


def cifar10_content(count: int = 4) -> dict[str, tuple[np.ndarray, list[int]]]:
    return {
        name: (images(seed, count, 32, 3), [(3 * seed + 2 * k) % 10 for k in range(count)])
        for seed, name in enumerate(CIFAR10_FILES)
    }


def cifar10(folder: Path, version: str) -> dict[str, tuple[np.ndarray, list[int]]]:
    """The six files in the "binary" or the "python" version; images and labels by file."""
    folder.mkdir(parents=True)
    held = cifar10_content()
    for name, (pixels, labels) in held.items():
        if version == "binary":
            data = np.column_stack([np.array(labels, np.uint8), rows(pixels)]).tobytes()
            (folder / f"{name}.bin").write_bytes(data)
        else:
            names = [b"%d.png" % k for k in range(len(labels))]
            content = {b"batch_label": b"1 of 5", b"labels": labels, b"data": rows(pixels), b"filenames": names}
            (folder / name).write_bytes(published_pickle(content))
    return held


def cifar100(folder: Path, version: str, count: int = 6) -> dict[str, tuple[np.ndarray, list[int]]]:
    """The two files; images and fine labels by split."""
    folder.mkdir(parents=True)
    held = {}
    for seed, split in enumerate(("train", "test")):
        pixels, fine = images(seed, count, 32, 3), [(17 * seed + 31 * k) % 100 for k in range(count)]
        coarse = [label % 20 for label in fine]
        held[split] = (pixels, fine)
        if version == "binary":
            data = np.column_stack([np.array(coarse, np.uint8), np.array(fine, np.uint8), rows(pixels)])
            (folder / f"{split}.bin").write_bytes(data.tobytes())
        else:
            content = {b"fine_labels": fine, b"coarse_labels": coarse, b"data": rows(pixels)}
            (folder / split).write_bytes(published_pickle(content))
    return held


def repickled(content: dict[Any, Any], protocol: int) -> bytes:
    """As today's Python and NumPy write it."""
    return pickle.dumps(content, protocol=protocol)


def jpeg(value: int, mode: str = "RGB", side: int = 64) -> bytes:
    """A picture of one colour, which JPEG keeps to a level or two."""
    from PIL import Image

    file = io.BytesIO()
    colour = value if mode == "L" else (value, 255 - value, value // 2)
    Image.new(mode, (side, side), colour).save(file, "JPEG", quality=95)
    return file.getvalue()


def tiny_imagenet(folder: Path, form: str, per_class: int = 3) -> dict[str, list[tuple[str, int]]]:
    """As "published" or as "folders"; class and brightness of red of each image, by split. Every third one is grey."""
    held: dict[str, list[tuple[str, int]]] = {"train": [], "val": []}
    folder.mkdir(parents=True, exist_ok=True)
    annotations = []
    for split, listed in held.items():
        for number in range(per_class * len(WNIDS)):
            wnid, value = WNIDS[number % len(WNIDS)], 20 + 20 * number + 7 * (split == "val")
            listed.append((wnid, value))
            place = folder / split / wnid / ("images" if form == "published" else "")
            name = f"{wnid}_{number}.JPEG"
            if (form, split) == ("published", "val"):
                place, name = folder / split / "images", f"val_{number}.JPEG"
                annotations.append(f"{name}\t{wnid}\t0\t32\t44\t62\n")
            place.mkdir(parents=True, exist_ok=True)
            (place / name).write_bytes(jpeg(value, "L" if number % 3 == 2 else "RGB"))
    if form == "published":
        (folder / "wnids.txt").write_text("\n".join(WNIDS) + "\n")
        (folder / "words.txt").write_text("n00001740\tentity\nn01443537\tgoldfish, Carassius auratus\n")
        (folder / "val" / "val_annotations.txt").write_text("".join(annotations))
        for wnid in WNIDS:
            (folder / "train" / wnid / f"{wnid}_boxes.txt").write_text("a box\n")
    return held
