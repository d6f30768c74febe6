"""A user's own images and features: as arrays, or as the `.npz` file of a folder."""

import dataclasses
import io
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int, Num

from moe_theory.core.errors import DataError, InvalidValueError, MissingError, shortened
from moe_theory.deep.datasets.files import DataSet, Images, Inventory, Layout, locate, read_whole
from moe_theory.deep.datasets.folders import TESTED, every_fifth

TITLE = "images or features in an .npz file"
LAYOUTS = (Layout(("*.npz",), ()),)
NUMBERS = "biuf"  # kinds of dtypes: truth values, whole numbers with and without a sign, floats
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
_LEAST_PIXELS = 64  # features, as many as a square has, that may be an image's


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
    Raises: InvalidValueError for arrays that do not fit each other; InvalidValueError for numbers that are not finite,
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
            raise InvalidValueError(
                f"data of shape {values.shape} with labels of shape {labels.shape} must be images (n, h, w) or "
                "(n, h, w, c), or features (n, p), with n labels. Reshape them."
            )
        if labels.dtype.kind not in "iu":
            raise InvalidValueError(f"labels of type {labels.dtype} must be whole numbers. Convert them.")
        if values.dtype.kind not in NUMBERS:
            raise InvalidValueError(f"data of type {values.dtype} must be real numbers. Convert them.")
        if values.dtype != np.uint8:
            if not np.isfinite(values).all():
                raise InvalidValueError("features must be finite: there are NaN or infinite ones. Remove them.")
            if values.dtype.kind == "f" and max(float(values.max()), -float(values.min())) > _LARGEST_NUMBER:
                raise InvalidValueError(f"features must be at most {_LARGEST_NUMBER:g} in size. Scale them.")
            values = values.astype(np.float32)
        if is_channels_first(values):
            raise InvalidValueError(
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
        raise InvalidValueError(
            f"labels must be in 0..{num_classes - 1}, one for each class, and one is "
            f"{lowest if lowest < 0 else highest}. Change the labels."
        )
    num_present = len(np.unique(splits[0][1]))
    if class_names is None and num_classes > 2 * max(num_present, 2):
        raise InvalidValueError(
            f"labels go up to {highest}, but only {num_present} of these {num_classes} classes have training data. "
            "Renumber them from 0, as np.unique(labels, return_inverse=True)[1] does, or remove the data of the last."
        )
    names = tuple(map(str, range(num_classes) if class_names is None else class_names))
    splits = [Images(values, labels.astype(np.int32)) for values, labels in splits]
    if splits[0].pixels.shape[1:] != splits[1].pixels.shape[1:] or splits[0].pixels.dtype != splits[1].pixels.dtype:
        found = [f"{each.pixels.shape[1:]} of {each.pixels.dtype}" for each in splits]
        raise InvalidValueError(
            f"training data {found[0]} and test data {found[1]} must be of one shape and one type. Convert them."
        )
    return DataSet(name, name, splits[0], splits[1], names)


def find_arrays(folder: Path) -> Path:
    """Return the one `.npz` file of a folder. Raises: MissingError for none, or for several."""
    path = locate(TITLE, folder, LAYOUTS).files[0]
    files = sorted(path.parent.glob("*.npz"))
    if len(files) > 1:
        named = ", ".join(file.name for file in files[:5])
        raise MissingError(f"{path.parent} has {len(files)} data sets: {named}. Put one in a folder of its own.", 1)
    return path


def load_arrays(folder: Path) -> DataSet:
    """Return `x_train`, `y_train`, `x_test`, `y_test` of an `.npz` file, or under the names of Keras and MedMNIST.

    Without test data every fifth of a class is held out. Pickled objects are not loaded.
    """
    path = find_arrays(folder)
    arrays, names, others = _read(path)
    converted = Counter[str]()
    notes = []
    try:
        for name in ("y_train", "y_test"):
            if name in arrays:
                arrays[name], num_flattened = _flat_labels(arrays[name])
                converted["labels (n, 1) to (n,)"] += num_flattened
        if len(arrays) == 2:
            arrays = _divided(arrays)
            notes.append(f"every {TESTED}th of a class is held out, as there is no test split")
        values = [arrays[name] for name in _NAMES]
        data = from_arrays(path.stem, values[0], values[1], values[2], values[3])
    except InvalidValueError as failure:
        raise type(failure)(f"{path}: {failure}") from None
    given = arrays["x_train"]
    if given.dtype != data.train.pixels.dtype:
        converted[f"{given.dtype} to {data.train.pixels.dtype}"] += len(data.train.labels) + len(data.test.labels)
    if data.train.pixels.dtype != np.uint8:
        notes.append(_scales(path, data))
    if given.ndim == 2 and math.isqrt(given.shape[1]) ** 2 == given.shape[1] >= _LEAST_PIXELS:
        side = math.isqrt(given.shape[1])
        notes.append(f"{given.shape[1]} features each: if they are images, reshape x to (n, {side}, {side})")
    if absent := len(data.class_names) - len(np.unique(data.train.labels)):
        notes.append(f"classes without training images: {absent} of {len(data.class_names)}")
    inventory = Inventory(
        f"arrays {', '.join(names)} of {path}",
        (path,),
        {"ending": {path.suffix: 1}, "mode": {str(given.dtype): len(data.train.labels)}},
        Counter(f"array {shortened(name)}" for name in others),
        +converted,
        tuple(notes),
    )
    return dataclasses.replace(data, inventory=inventory)


def is_channels_first(images: Num[np.ndarray, "n ..."]) -> bool:
    """Return whether images (n, c, h, w) look like PyTorch's: 1 or 3 channels, then two sides of more than 4 pixels."""
    return images.ndim == 4 and images.shape[1] in _CHANNELS and min(images.shape[2:]) > 4


def _read(path: Path) -> tuple[dict[str, np.ndarray], Sequence[str], list[str]]:
    """Return the arrays by our names, their names in the file, and names of arrays that are not read."""
    way_out = f"Write {', '.join(_NAMES)} as numbers by np.savez."
    data = read_whole(path)
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            present = archive.files
            names = _names_among(present)
            arrays = {ours: archive[name] for ours, name in zip(_NAMES, names, strict=False) if name in present}
    except Exception as failure:  # damaged archives make zipfile, zlib and NumPy raise what they do not document
        reason = f"it cannot be read as arrays ({shortened(str(failure) or type(failure).__name__)})"
        raise DataError(path, reason, way_out) from None
    needed = _NAMES if arrays.keys() & {*_NAMES[2:]} else _NAMES[:2]
    if missing := [name for ours, name in zip(needed, names, strict=False) if ours not in arrays]:
        has = f", only {', '.join(map(shortened, present[:6]))}" if present else ""
        raise DataError(path, f"it has no {missing[0]}{has}", f"Write {', '.join(needed)} by np.savez.")
    return arrays, names[: len(needed)], [name for name in present if name not in names]


def _names_among(present: Sequence[str]) -> Sequence[str]:
    """Return the known names of four or two arrays of which the most are present."""
    names = max((_NAMES, *_ALIASES), key=lambda names: (sum(name in present for name in names), names == _NAMES))
    return names if any(name in present for name in names[:2]) else _NAMES


def _flat_labels(labels: np.ndarray) -> tuple[np.ndarray, int]:
    """Return labels (n,) of labels (n,) or (n, 1), and how many were of the second shape."""
    if labels.ndim != 2:
        return labels, 0
    if labels.shape[1] == 1:
        return labels[:, 0], len(labels)
    raise InvalidValueError(
        f"labels of shape {labels.shape} are several for each image. Write one class each: np.argmax(y, axis=1), if "
        "each row marks one."
    )


def _divided(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return training and test data of training data."""
    values = arrays["x_train"]
    labels = arrays["y_train"]
    if labels.ndim != 1 or values.shape[:1] != labels.shape:
        raise InvalidValueError(
            f"x_train of shape {values.shape} and y_train of shape {labels.shape} must have as many rows. Change one."
        )
    is_test = every_fifth(labels)
    if not is_test.any():  # of classes with one each, which are then refused as classes
        is_test[::TESTED] = True
    parts = (values[~is_test], labels[~is_test], values[is_test], labels[is_test])
    return dict(zip(_NAMES, parts, strict=True))


def _scales(path: Path, data: DataSet) -> str:
    """Between which numbers the splits are. Raises: InvalidValueError for images of two scales."""
    spans = [(float(each.pixels.min()), float(each.pixels.max())) for each in (data.train, data.test)]
    said = [f"{low:g} to {high:g}" for low, high in spans]
    largest = [max(-low, high) for low, high in spans]
    if data.train.pixels.ndim > 2 and max(largest) > _MOST_SCALES * min(largest):
        raise InvalidValueError(
            f"{path}: images are {said[0]} in the training data and {said[1]} in the test data, which are two scales. "
            "Write both in one."
        )
    return f"numbers are {said[0]} in the training data and {said[1]} in the test data"
