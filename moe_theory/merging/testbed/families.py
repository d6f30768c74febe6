"""What a family of tasks is."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Family(NamedTuple):
    """Tasks on the same inputs: each changes the inputs, or asks for something else of them."""

    names: tuple[str, ...]  # of the base tasks
    num_classes: int
    num_tokens: int
    num_features: int
    base_task: Callable[[int, bool], tuple[np.ndarray, np.ndarray]]  # number, whether of the validation split ->
    # inputs (n, num_tokens, num_features) and labels (n,)
