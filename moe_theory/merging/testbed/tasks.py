"""The tasks that the testbed's transformer is trained on, and the setting that decides its weights.

A family has B base tasks and as many label maps as classes; task v is base task v mod B under label map v // B. Label
map m adds 3 m to a label, modulo the number of classes: any two of them disagree about every input, so that no single
expert can serve both.
"""

import functools
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Array, Float, Int

from moe_theory.core.checks import require_size
from moe_theory.core.errors import InvalidDimsError, InvalidParamsError, unknown_name
from moe_theory.merging.testbed import digits, sequences
from moe_theory.merging.testbed.families import Family

TRAIN, VALIDATION = SPLITS = ("train", "validation")
FAMILIES = {"digits": digits.FAMILY, "sequences": sequences.FAMILY}
_STRIDE = 3  # between label maps; prime to the number of classes of every family


@dataclass(frozen=True)
class Setting:
    """Everything that decides the trained weights."""

    tasks: str = "digits"  # or "sequences"
    num_tasks: int = 8  # V
    num_experts: int = 8  # K; expert v mod K serves task v
    width: int = 48
    hidden: int = 128  # of an expert
    num_layers: int = 2
    num_heads: int = 4
    dense_steps: int = 50  # of one FFN on all tasks, which all experts start from
    expert_steps: int = 500  # with task-level routing
    batch_size: int = 256
    learning_rate: float = 2e-3  # of Adam, at its highest
    seed: int = 0

    def __post_init__(self) -> None:
        """Raises: UnknownNameError, InvalidDimsError or InvalidParamsError for what cannot be trained."""
        if self.tasks not in FAMILIES:
            raise unknown_name("family of tasks", self.tasks, FAMILIES)
        for name in ("num_tasks", "num_experts", "width", "hidden", "num_layers", "num_heads", "batch_size"):
            require_size(name, getattr(self, name))
        for name in ("dense_steps", "expert_steps", "seed"):
            require_size(name, getattr(self, name), least=0)
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise InvalidParamsError(f"learning_rate={self.learning_rate} must be positive. Raise learning_rate.")
        family = FAMILIES[self.tasks]
        self._require_at_most("num_tasks", len(family.names) * family.num_classes, "there are no more label maps")
        self._require_at_most("num_experts", self.num_tasks, "an expert that serves no task is not trained")
        self._require_multiple("width", "num_heads", "heads share it evenly")
        self._require_multiple("batch_size", "num_experts", "experts share it evenly")

    def _require_at_most(self, name: str, bound: int, why: str) -> None:
        if getattr(self, name) > bound:
            raise InvalidDimsError(f"{name}={getattr(self, name)} must be at most {bound}: {why}. Lower {name}.")

    def _require_multiple(self, name: str, of: str, why: str) -> None:
        value, unit = getattr(self, name), getattr(self, of)
        if value % unit:
            raise InvalidDimsError(f"{name}={value} must be a multiple of {of}={unit}: {why}. Change {name}.")


SETTINGS = {"digits": Setting(), "sequences": Setting(tasks="sequences", expert_steps=1000)}


class Examples(NamedTuple):
    """Labelled inputs in order of their tasks: of V equal parts, the v-th holds every input under task v."""

    inputs: Float[Array | np.ndarray, "n s p"]  # sequences of s tokens of p features each, float32
    labels: Int[Array | np.ndarray, " n"]  # int32, from 0
    tasks: Int[Array | np.ndarray, " n"]  # int32, from 0


class Tasks(NamedTuple):
    """What the tasks of a setting are."""

    names: tuple[str, ...]  # (V,)
    num_classes: int
    num_tokens: int
    num_features: int  # of a token


def tasks_of(setting: Setting) -> Tasks:
    """Names and sizes of a setting's tasks."""
    family = FAMILIES[setting.tasks]
    bases = len(family.names)
    names = (f"{family.names[task % bases]}, labels + {_shift(task, family)}" for task in range(setting.num_tasks))
    return Tasks(tuple(names), family.num_classes, family.num_tokens, family.num_features)


def examples(setting: Setting, split: str) -> Examples:
    """Every input of a split, "train" or "validation", under every task of the setting.

    The same inputs in every setting. Raises: UnknownNameError for another split.
    """
    if split not in SPLITS:
        raise unknown_name("split", split, SPLITS)
    return _examples(setting.tasks, setting.num_tasks, split)


@functools.lru_cache
def _examples(name: str, num_tasks: int, split: str) -> Examples:
    family = FAMILIES[name]
    parts = [_of_task(family, task, split) for task in range(num_tasks)]
    inputs, labels = (np.concatenate(part) for part in zip(*parts, strict=True))
    numbers = np.repeat(np.arange(num_tasks, dtype=np.int32), len(inputs) // num_tasks)
    for part in (inputs, labels, numbers):
        part.flags.writeable = False  # who asks next is given the same arrays
    return Examples(inputs, labels, numbers)


def _of_task(family: Family, task: int, split: str) -> tuple[np.ndarray, np.ndarray]:
    inputs, labels = family.base_task(task % len(family.names), split == VALIDATION)
    shifted = (labels + _shift(task, family)) % family.num_classes
    return inputs.astype(np.float32), shifted.astype(np.int32)


def _shift(task: int, family: Family) -> int:
    return _STRIDE * (task // len(family.names)) % family.num_classes
