"""Presets and data at other sizes."""

import dataclasses
from typing import Any

import numpy as np

from moe_theory.core.errors import InvalidValueError
from moe_theory.deep.datasets import DataSet, Images
from moe_theory.deep.presets import Preset


def resized(
    preset: Preset, experts: tuple[int, ...] | None, classes: tuple[int, ...] | None, **sizes: int | str | None
) -> Preset:
    """Return the preset with other sizes of `Dims`, and batches within the samples.

    Raises: UnknownNameError for an unknown network, or InvalidValueError for sizes below 1, a batch that does not
        divide the samples, or absent or repeated numbers of experts.
    """
    if experts is None:
        experts = preset.experts
    if classes is None:
        classes = preset.classes
    if not experts or len(set(experts)) < len(experts):
        raise InvalidValueError(
            f"experts={list(experts)} must be one or more different numbers. Change experts.", argument="experts"
        )
    changes: dict[str, Any] = {name: value for name, value in sizes.items() if value is not None}
    changes |= {"num_classes": len(classes), "max_experts": max(experts)}
    samples = changes.get("num_samples", preset.dims.num_samples)
    changes.setdefault("batch_size", min(preset.dims.batch_size, max(samples, 1)))
    return dataclasses.replace(
        preset, dims=dataclasses.replace(preset.dims, **changes), experts=experts, classes=classes
    )


def thinned(data: DataSet, default: int | None, test_images: int | None) -> DataSet:
    """Return the data set with `test_images` test images, evenly spread (None: all).

    Raises: InvalidValueError for no images, or too many.
    """
    total = len(data.test.labels)
    if test_images is not None and not 1 <= test_images <= total:
        raise InvalidValueError(
            f"test_images={test_images} must be in 1..{total}, as many as {data.title} has. Change test_images.",
            argument="test_images",
        )
    number = min(test_images or default or total, total)
    if number == total:
        return data
    rows = np.linspace(0, total - 1, number).round().astype(int)
    return dataclasses.replace(data, test=Images(data.test.pixels[rows], data.test.labels[rows]))
