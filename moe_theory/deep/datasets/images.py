"""A data set in memory."""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Int32, UInt8


class Images(NamedTuple):
    """One split of a data set."""

    pixels: UInt8[np.ndarray, "n h w c"]  # as stored: 0 is dark
    labels: Int32[np.ndarray, " n"]  # 0 .. num_classes - 1


@dataclasses.dataclass(frozen=True, eq=False)
class DataSet:
    """Labelled images, split as their publisher did. Compared by identity: programs are kept for each."""

    name: str  # as in `DATASETS`
    title: str  # as the papers write it
    train: Images
    test: Images
    class_names: tuple[str, ...]
