"""Images and features of one's own: as arrays, as the `.npz` file of a folder, or as one folder for each class."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int, Num

from moe_theory.core.errors import DamagedDataError, InvalidDimsError, InvalidParamsError
from moe_theory.deep.datasets.files import DataSet, Images, Layout, locate
from moe_theory.deep.datasets.folders import by_folder, decoded, folders, size_of
from moe_theory.runs.arrays import NUMBERS, read_arrays

ARRAYS, FOLDERS = "images or features in an .npz file", "images in folders"
ARRAY_LAYOUTS = (Layout(("*.npz",), (".",)),)
FOLDER_LAYOUTS = (Layout(("train/", "test/"), (".",)),)
TESTED = 5  # every so many are the test split of data that have none
LARGEST = 64  # pixels a side: larger images are scaled
MOST_CLASSES = 1 << 16  # each has a name, a share of every count and, in most networks, an output
_LARGEST_NUMBER = float(np.finfo(np.float32).max)
_NAMES = ("x_train", "y_train", "x_test", "y_test")


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
    names = tuple(map(str, range(num_classes) if class_names is None else class_names))
    splits = [Images(values, labels.astype(np.int32)) for values, labels in splits]
    if splits[0].pixels.shape[1:] != splits[1].pixels.shape[1:] or splits[0].pixels.dtype != splits[1].pixels.dtype:
        found = [f"{each.pixels.shape[1:]} of {each.pixels.dtype}" for each in splits]
        raise InvalidDimsError(
            f"training data {found[0]} and test data {found[1]} must be of one shape and one type. Convert them."
        )
    return DataSet(name, name, splits[0], splits[1], names)


def load_arrays(folder: Path) -> DataSet:
    """The first `.npz` file: `x_train`, `y_train` and, or else every fifth of these, `x_test`, `y_test`."""
    (path,) = locate(ARRAYS, folder, ARRAY_LAYOUTS).files
    try:
        held = read_arrays(path, _NAMES)
    except (OSError, ValueError) as failure:
        reason = f"it cannot be read as arrays ({getattr(failure, 'strerror', None) or failure})"
        raise DamagedDataError(path, reason, f"Write {', '.join(_NAMES)} as numbers by np.savez.") from None
    needed = _NAMES[:2] if not held.keys() & {*_NAMES[2:]} else _NAMES
    if missing := [name for name in needed if name not in held]:
        raise DamagedDataError(path, f"it has no {missing[0]}", f"Write {', '.join(needed)} by np.savez.")
    try:
        train, train_labels, test, test_labels = _with_test(held)
        return from_arrays(path.stem, train, train_labels, test, test_labels)
    except (InvalidDimsError, InvalidParamsError) as failure:
        raise type(failure)(f"{path}: {failure}") from None


def _with_test(held: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    if all(name in held for name in _NAMES):
        return [held[name] for name in _NAMES]
    values, labels = held["x_train"], held["y_train"]
    if labels.ndim != 1 or values.shape[:1] != labels.shape:
        raise InvalidDimsError(
            f"x_train of shape {values.shape} and y_train of shape {labels.shape} must have as many rows. Change one."
        )
    is_test = np.zeros(len(labels), bool)
    order = np.argsort(labels, kind="stable")
    is_test[order[::TESTED]] = True  # every fifth of each class
    train = [held[name][~is_test] for name in _NAMES[:2]]
    return [*train, *(held[name][is_test] for name in _NAMES[:2])]


def load_folders(folder: Path) -> DataSet:
    """`train/CLASS` and `test/CLASS` with images in them, scaled to the size of the first one, at most 64 x 64."""
    found = locate(FOLDERS, folder, FOLDER_LAYOUTS)
    train, test = found.files
    names = [path.name for path in folders(train)]
    if not names:
        raise DamagedDataError(train, "it has no folder of a class")
    classes = {name: number for number, name in enumerate(names)}
    labelled = by_folder(train, classes)
    width, height = size_of(labelled[0].path)
    scale = min(1.0, LARGEST / max(width, height))
    size = max(round(width * scale), 1), max(round(height * scale), 1)
    title = found.folder.resolve().name
    return DataSet(title, title, decoded(labelled, size), decoded(by_folder(test, classes), size), tuple(names))
