"""A user's own images and features: as arrays, or as the `.npz` file or the `.csv` files of a folder."""

import dataclasses
import io
import math
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Int, Num

from moe_theory.core.errors import DamagedDataError, InvalidDimsError, InvalidParamsError, MissingDataError, shortened
from moe_theory.deep.datasets.files import DataSet, Images, Inventory, Layout, locate, read_bounded, reading
from moe_theory.deep.datasets.folders import TESTED, every_fifth
from moe_theory.runs.arrays import NUMBERS, names_of, read_arrays
from moe_theory.runs.reading import open_file

TITLE = "images or features in an .npz or .csv file"
LAYOUTS = (Layout(("*.npz",), ()), Layout(("*.csv",), ()))
MOST_CLASSES = 1 << 16  # each has a name, a share of every count and, in most networks, an output
_LARGEST_NUMBER = float(np.finfo(np.float32).max)
_MOST_SCALES = 8  # times as large as the other split's, from which images are on another scale
_NAMES = ("x_train", "y_train", "x_test", "y_test")  # Keras's
_ALIASES = (  # of these, MedMNIST's first
    ("train_images", "train_labels", "test_images", "test_labels"),
    ("X_train", "y_train", "X_test", "y_test"),
    ("train_x", "train_y", "test_x", "test_y"),
    ("X_train", "Y_train", "X_test", "Y_test"),
    ("x", "y"),
    ("X", "y"),
    ("images", "labels"),
    ("data", "labels"),
)
_CHANNELS = (1, 3)  # of images; PyTorch has them before the rows
_LABELS = ("label", "labels", "class", "target", "y")  # columns of a table, in any case
_MOST_TABLE = 1 << 28  # bytes of a table: 60,000 images of 28 x 28 take 110 MB
_NO_FEATURES = {"id", "index", "", "unnamed: 0"}  # columns that number rows
_HEAD = 1 << 20  # bytes that two lines of a table take at most
_LEAST_PIXELS = 64  # columns of whole numbers in 0..255, as many as a square has, are an image's


def from_arrays(
    name: str,
    train: Num[np.ndarray, "n ..."],
    train_labels: Int[np.ndarray, " n"],
    test: Num[np.ndarray, "m ..."],
    test_labels: Int[np.ndarray, " m"],
    class_names: Sequence[str] | None = None,
) -> DataSet:
    """A data set of arrays: images (n, h, w) or (n, h, w, c), or features (n, p), such as a frozen network's.

    Bytes are pixels in 0..255; floats stay as they are. Either is standardised, channel by channel or feature by
    feature, before a network reads it.

    Args:
        class_names: of the classes 0, 1, ...; their numbers unless given.
    Raises: InvalidDimsError for arrays that do not fit each other; InvalidParamsError for numbers that are not finite,
        or labels without a class.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import deep
        >>> features, labels = np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 3
        >>> data = deep.datasets.from_arrays("mine", features, labels, features[:9], labels[:9])
        >>> data.train.pixels.shape, data.class_names
        ((60, 1, 1, 5), ('0', '1', '2'))
    """
    splits, lowest, highest = [], 0, 0
    for values, labels in ((train, train_labels), (test, test_labels)):
        values, labels = np.asarray(values), np.asarray(labels)
        if values.ndim not in (2, 3, 4) or labels.shape != values.shape[:1] or not len(labels):
            raise InvalidDimsError(
                f"data of shape {values.shape} with labels of shape {labels.shape} must be images (n, h, w) or "
                "(n, h, w, c), or features (n, p), with n labels. Reshape them."
            )
        if labels.dtype.kind not in "iu":
            raise InvalidParamsError(f"labels of type {labels.dtype} must be whole numbers. Convert them.")
        if values.dtype.kind not in NUMBERS:
            raise InvalidParamsError(f"data of type {values.dtype} must be real numbers. Convert them.")
        if values.dtype != np.uint8:
            if not np.isfinite(values).all():
                raise InvalidParamsError("features must be finite: there are NaN or infinite ones. Remove them.")
            if values.dtype.kind == "f" and max(float(values.max()), -float(values.min())) > _LARGEST_NUMBER:
                raise InvalidParamsError(f"features must be at most {_LARGEST_NUMBER:g} in size. Scale them.")
            values = values.astype(np.float32)
        if is_channels_first(values):
            raise InvalidDimsError(
                f"images of shape {values.shape} look like PyTorch's (n, c, h, w), but must be (n, h, w, c). Use "
                "np.moveaxis(images, 1, -1); features are (n, p)."
            )
        if values.ndim == 2:
            values = values[:, None, None, :]
        elif values.ndim == 3:
            values = values[..., None]
        lowest, highest = min(lowest, int(labels.min())), max(highest, int(labels.max()))
        splits.append((values, labels))
    num_classes = min(highest + 1, MOST_CLASSES) if class_names is None else len(class_names)
    if lowest < 0 or highest >= num_classes:
        raise InvalidParamsError(
            f"labels must be in 0..{num_classes - 1}, one for each class, and one is "
            f"{lowest if lowest < 0 else highest}. Change the labels."
        )
    num_present = len(np.unique(splits[0][1]))
    if class_names is None and num_classes > 2 * max(num_present, 2):
        raise InvalidParamsError(
            f"labels go up to {highest}, but only {num_present} of these {num_classes} classes have training data. "
            "Renumber them from 0, as np.unique(labels, return_inverse=True)[1] does, or remove the data of the last."
        )
    names = tuple(map(str, range(num_classes) if class_names is None else class_names))
    splits = [Images(values, labels.astype(np.int32)) for values, labels in splits]
    if splits[0].pixels.shape[1:] != splits[1].pixels.shape[1:] or splits[0].pixels.dtype != splits[1].pixels.dtype:
        found = [f"{each.pixels.shape[1:]} of {each.pixels.dtype}" for each in splits]
        raise InvalidDimsError(
            f"training data {found[0]} and test data {found[1]} must be of one shape and one type. Convert them."
        )
    return DataSet(name, name, splits[0], splits[1], names)


def find_arrays(folder: Path) -> list[Path]:
    """The one `.npz` file of a folder or, where there is none, its `.csv` files that have labels.

    Raises: MissingDataError for none, or for more than one archive.
    """
    path = locate(TITLE, folder, LAYOUTS).files[0]
    files = sorted(path.parent.glob(f"*{path.suffix}"), key=lambda each: (_is_test(each), each))
    if path.suffix == ".npz" and len(files) > 1:
        named = ", ".join(each.name for each in files[:5])
        raise MissingDataError(f"{path.parent} has {len(files)} data sets: {named}. Put one in a folder of its own.", 1)
    if path.suffix == ".csv" and not (files := [each for each in files if _labels_of(each)]):
        raise MissingDataError(
            f"{path} is no table of numbers with a column `label`, but for columns such as id. Make it one, or write "
            f"{', '.join(_NAMES)} by np.savez.",
            1,
        )
    return files


def load_arrays(folder: Path) -> DataSet:
    """`x_train`, `y_train`, `x_test`, `y_test` of an `.npz` file, or under the names that Keras and MedMNIST have; or
    `.csv` files with a column of labels. Without test data every fifth of a class is held out.
    """
    files = find_arrays(folder)
    path, about = files[0], _Read(Counter(), Counter(), [])
    held, what = _from_archive(path, about) if path.suffix == ".npz" else _from_tables(files, about)
    try:
        held = {name: _arranged(name, array, about) for name, array in held.items()}
        if len(held) == 2:
            held = _divided(held, about)
        values = [held[name] for name in _NAMES]
        data = from_arrays(path.stem, values[0], values[1], values[2], values[3])
    except (InvalidDimsError, InvalidParamsError) as failure:
        raise type(failure)(f"{path}: {failure}") from None
    if held["x_train"].dtype != data.train.pixels.dtype:
        about.converted[f"{held['x_train'].dtype} to {data.train.pixels.dtype}"] += len(values[0]) + len(values[2])
    if data.train.pixels.dtype != np.uint8:
        about.notes.append(_scales(path, data))
    if absent := len(data.class_names) - len(np.unique(data.train.labels)):
        about.notes.append(f"classes without training images: {absent} of {len(data.class_names)}")
    kinds = {"ending": {path.suffix: len(files)}, "mode": {str(held["x_train"].dtype): len(data.train.labels)}}
    inventory = Inventory(what, tuple(files), kinds, about.left_out, about.converted, tuple(about.notes))
    return dataclasses.replace(data, inventory=inventory)


def _scales(path: Path, data: DataSet) -> str:
    """Between which numbers the splits are. Raises: InvalidParamsError for images of two scales."""
    spans = [(float(each.pixels.min()), float(each.pixels.max())) for each in (data.train, data.test)]
    said = [f"{low:g} to {high:g}" for low, high in spans]
    largest = [max(-low, high) for low, high in spans]
    if data.train.pixels.ndim > 2 and max(largest) > _MOST_SCALES * min(largest):
        raise InvalidParamsError(
            f"{path}: images are {said[0]} in the training data and {said[1]} in the test data, which are two scales. "
            "Write both in one."
        )
    return f"numbers are {said[0]} in the training data and {said[1]} in the test data"


class _Read(NamedTuple):
    left_out: Counter[str]
    converted: Counter[str]
    notes: list[str]


def _from_archive(path: Path, about: _Read) -> tuple[dict[str, np.ndarray], str]:
    way_out = f"Write {', '.join(_NAMES)} as numbers by np.savez."
    try:
        there = names_of(path)
        known = max((_NAMES, *_ALIASES), key=lambda names: (sum(map(there.__contains__, names)), names == _NAMES))
        if not any(name in there for name in known[:2]):
            known = _NAMES
        held = read_arrays(path, known)
    except (OSError, ValueError) as failure:
        reason = f"it cannot be read as arrays ({getattr(failure, 'strerror', None) or failure})"
        raise DamagedDataError(path, reason, way_out) from None
    needed = known if held.keys() & {*known[2:]} else known[:2]
    if missing := [name for name in needed if name not in held]:
        has = f", only {', '.join(map(shortened, there[:6]))}" if there else ""
        way_out = f"Write {', '.join(_NAMES[: len(needed)])} by np.savez."
        raise DamagedDataError(path, f"it has no {missing[0]}{has}", way_out)
    about.left_out.update(f"array {shortened(name)}" for name in there if name not in known)
    found = {ours: held[name] for ours, name in zip(_NAMES, needed, strict=False)}
    return found, f"arrays {', '.join(needed)} of {path}"


def _from_tables(files: list[Path], about: _Read) -> tuple[dict[str, np.ndarray], str]:
    """Tables by their names: one that is called test or val is the test split."""
    held: dict[str, np.ndarray] = {}
    for path in files:
        split = "test" if len(files) > 1 and _is_test(path) else "train"
        if f"x_{split}" in held:
            names = ", ".join(each.name for each in files)
            raise MissingDataError(f"{path.parent} has {names}, of which two are {split} data. Keep one of them.", 1)
        held[f"x_{split}"], held[f"y_{split}"] = _table(path)
    others = {each.name for each in files[0].parent.glob("*.csv")} - {each.name for each in files}
    about.left_out.update(f"{name}, which has no column of labels" for name in others)
    if held["x_train"].ndim == 3:
        about.converted[f"rows of bytes to images of {held['x_train'].shape[1]} x {held['x_train'].shape[2]}"] += sum(
            len(array) for name, array in held.items() if name.startswith("x")
        )
    return held, f"rows of {' and '.join(each.name for each in files)} in {files[0].parent}, a column being labels"


def _is_test(path: Path) -> bool:
    return re.search("test|val", path.stem.lower()) is not None


def _labels_of(path: Path) -> tuple[int, int] | None:
    """Column of a table that has labels, and number of lines before its numbers; None for another table."""
    with reading(path), open_file(path) as file:
        lines = [*file.read(_HEAD).decode("utf-8", "replace").splitlines(), "", ""]
    names, row = ([cell.strip(' "\t\ufeff').lower() for cell in line.split(",")] for line in lines[:2])
    if all(map(_is_number, names)):  # MNIST's digits are kept so, labels first
        return (0, 0) if math.isqrt(len(names) - 1) ** 2 == len(names) - 1 >= _LEAST_PIXELS else None
    column = next((names.index(name) for name in _LABELS if name in names), None)
    return None if column is None or not all(map(_is_number, row)) or _NO_FEATURES & {*names} else (column, 1)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _table(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Rows, as images where they are a square of bytes, and labels."""
    column, skipped = _labels_of(path) or (0, 0)
    data = io.BytesIO(read_bounded(path, _MOST_TABLE))
    try:
        rows = np.loadtxt(data, np.float32, delimiter=",", skiprows=skipped, ndmin=2, quotechar='"')
    except ValueError as failure:
        reason = f"it is no table of numbers ({shortened(str(failure))})"
        raise DamagedDataError(path, reason, "Keep columns of numbers alone, and one called `label`.") from None
    labels, rows = rows[:, column], np.delete(rows, column, axis=1)
    if np.array_equal(labels, np.round(labels)):
        labels = labels.astype(np.int64)
    side = math.isqrt(rows.shape[1])
    if side * side == rows.shape[1] >= _LEAST_PIXELS and np.array_equal(rows, rows.astype(np.uint8)):
        return rows.astype(np.uint8).reshape(-1, side, side), labels
    return rows, labels


def _arranged(name: str, array: np.ndarray, about: _Read) -> np.ndarray:
    """An array as `from_arrays` wants it: labels (n,), channels last."""
    if name.startswith("y"):
        if array.ndim == 2 and array.shape[1] == 1:
            about.converted["labels (n, 1) to (n,)"] += len(array)
            return array[:, 0]
        if array.ndim == 2:
            raise InvalidDimsError(
                f"labels of shape {array.shape} are several for each image. Write one class each: np.argmax(y, "
                "axis=1), if each row marks one."
            )
    elif is_channels_first(array):
        about.converted["axes (n, c, h, w), as PyTorch has them, to (n, h, w, c)"] += len(array)
        return np.moveaxis(array, 1, -1)
    elif name == "x_train" and array.ndim == 2 and math.isqrt(array.shape[1]) ** 2 == array.shape[1] >= _LEAST_PIXELS:
        side = math.isqrt(array.shape[1])
        about.notes.append(f"{array.shape[1]} features each: if they are images, reshape x to (n, {side}, {side})")
    return array


def is_channels_first(images: Num[np.ndarray, "n ..."]) -> bool:
    """Whether images (n, c, h, w) look like PyTorch's: 1 or 3 channels, then two sides of more than 4 pixels."""
    return images.ndim == 4 and images.shape[1] in _CHANNELS and min(images.shape[2:]) > 4


def _divided(held: dict[str, np.ndarray], about: _Read) -> dict[str, np.ndarray]:
    values, labels = held["x_train"], held["y_train"]
    if labels.ndim != 1 or values.shape[:1] != labels.shape:
        raise InvalidDimsError(
            f"x_train of shape {values.shape} and y_train of shape {labels.shape} must have as many rows. Change one."
        )
    about.notes.append(f"every {TESTED}th of a class is held out, as there is no test split")
    is_test = every_fifth(labels)
    if not is_test.any():  # of classes with one each, which are then refused as classes
        is_test[::TESTED] = True
    parts = (values[~is_test], labels[~is_test], values[is_test], labels[is_test])
    return dict(zip(_NAMES, parts, strict=True))
