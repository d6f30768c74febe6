"""Users' images and features in arrays."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int, Num

from moe_theory.core.errors import InvalidValueError
from moe_theory.deep.datasets.files import DataSet, Images

MOST_CLASSES = 1 << 16  # without names. Each class needs a name, an entry in counts and, in most networks, an output
_NUMBERS = "biuf"  # kinds of dtypes, which are Booleans, integers with and without a sign, and floats
_LARGEST_NUMBER = float(np.finfo(np.float32).max)
_CHANNELS = (1, 3)  # usual numbers of channels


def from_arrays(
    name: str,
    train: Num[np.ndarray, "n ..."],
    train_labels: Int[np.ndarray, " n"],
    test: Num[np.ndarray, "m ..."],
    test_labels: Int[np.ndarray, " m"],
    class_names: Sequence[str] | None = None,
) -> DataSet:
    """Return a data set from arrays of images (n, h, w) or (n, h, w, c), or features (n, p).

    Bytes are pixels in 0..255, and floats stay unchanged. Both are later standardised by channel or feature.

    Args:
        class_names: names of the classes 0, 1, ..., by default their numbers.
    Raises: InvalidValueError for arrays that do not fit together, non-finite numbers, or labels without a class.

    Examples:
        >>> import numpy as np
        >>> from moe_theory import deep
        >>> features, labels = np.random.default_rng(0).normal(size=(60, 5)), np.arange(60) % 3
        >>> data = deep.datasets.from_arrays("mine", features, labels, features[:9], labels[:9])
        >>> data.train.pixels.shape, data.class_names
        ((60, 1, 1, 5), ('0', '1', '2'))
    """
    splits = [(train, np.asarray(train_labels)), (test, np.asarray(test_labels))]
    pixels = [_pixels(np.asarray(values), labels) for values, labels in splits]
    lowest = min(int(labels.min()) for _, labels in splits)
    highest = max(int(labels.max()) for _, labels in splits)
    num_classes = min(highest + 1, MOST_CLASSES) if class_names is None else len(class_names)
    if lowest < 0 or highest >= num_classes:
        raise InvalidValueError(
            f"labels must be in 0..{num_classes - 1}, but a label is {lowest if lowest < 0 else highest}. Change the "
            "labels.",
            argument="labels",
        )
    num_present = len(np.unique(train_labels))
    if class_names is None and num_classes > 2 * max(num_present, 2):
        raise InvalidValueError(
            f"labels go up to {highest}, but only {num_present} of these {num_classes} classes have training data. "
            "Renumber them from 0, for example with np.unique(labels, return_inverse=True)[1].",
            argument="labels",
        )
    if pixels[0].shape[1:] != pixels[1].shape[1:] or pixels[0].dtype != pixels[1].dtype:
        shapes = [f"{values.shape[1:]} of {values.dtype}" for values in pixels]
        raise InvalidValueError(
            f"training data {shapes[0]} and test data {shapes[1]} must have the same shape and type. Convert them."
        )
    names = tuple(map(str, range(num_classes) if class_names is None else class_names))
    images = [Images(values, labels.astype(np.int32)) for values, (_, labels) in zip(pixels, splits, strict=True)]
    return DataSet(name, name, images[0], images[1], names)


def _pixels(values: np.ndarray, labels: np.ndarray) -> Num[np.ndarray, "n h w c"]:
    if values.ndim not in (2, 3, 4) or labels.shape != values.shape[:1] or not len(labels):
        raise InvalidValueError(
            f"data of shape {values.shape} with labels of shape {labels.shape} must be images (n, h, w) or "
            "(n, h, w, c), or features (n, p), with n labels. Reshape them."
        )
    if labels.dtype.kind not in "iu":
        raise InvalidValueError(
            f"labels of type {labels.dtype} must be whole numbers. Convert them.", argument="labels"
        )
    if values.dtype.kind not in _NUMBERS:
        raise InvalidValueError(f"data of type {values.dtype} must be real numbers. Convert them.")
    if values.dtype != np.uint8:
        if not np.isfinite(values).all():
            raise InvalidValueError(
                "features must be finite, but some are NaN or infinite. Remove them.", argument="features"
            )
        if values.dtype.kind == "f" and max(float(values.max()), -float(values.min())) > _LARGEST_NUMBER:
            raise InvalidValueError(
                f"absolute values of features must be at most {_LARGEST_NUMBER:g}. Scale them.", argument="features"
            )
        values = values.astype(np.float32)
    # The last axis of images (n, h, w, c) has at most 4 channels.
    if values.ndim == 4 and values.shape[1] in _CHANNELS and min(values.shape[2:]) > 4:
        raise InvalidValueError(
            f"images of shape {values.shape} look like PyTorch's (n, c, h, w), but must be (n, h, w, c). Use "
            "np.moveaxis(images, 1, -1). Features have shape (n, p)."
        )
    if values.ndim == 2:
        return values[:, None, None, :]
    if values.ndim == 3:
        return values[..., None]
    return values
