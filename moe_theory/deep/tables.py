"""Tables 1 and 2 of the continual-learning paper: what is printed, and the number that they print."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from moe_theory.deep.presets import SMALL, Preset, expert_cell


class Table(NamedTuple):
    """A printed table of average incremental accuracies."""

    where: str
    accuracies: Mapping[str, float]  # in [0, 1], by the names of a preset's cells


def printed(preset: Preset) -> Table | None:
    """The table of an experiment, or of the one that it is a small twin of; None where the paper has none."""
    return _TABLES.get(preset.name.removesuffix(SMALL))


def incremental_accuracy(accuracy: Float[np.ndarray, "T *batch"]) -> Float[np.ndarray, "*batch"]:
    """The average incremental accuracy: mean over rounds t of A_t, the mean accuracy of the tasks up to t.

    The paper names it and does not define it; this is the usual meaning (Rebuffi et al., iCaRL, 2017).
    """
    return np.asarray(np.mean(accuracy, axis=0, dtype=np.float64))


_TABLES = {
    "continual-cifar100": Table(
        "Table 1",
        {
            expert_cell(1): 0.171,
            expert_cell(8): 0.255,
            expert_cell(8, terminate=False): 0.103,
            expert_cell(10): 0.329,
            expert_cell(10, terminate=False): 0.091,
        },
    ),
    "continual-tiny-imagenet": Table(
        "Table 2",
        {
            expert_cell(1): 0.174,
            expert_cell(8): 0.376,
            expert_cell(8, terminate=False): 0.105,
            expert_cell(10): 0.283,
            expert_cell(10, terminate=False): 0.103,
        },
    ),
}
