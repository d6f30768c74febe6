"""What is timed, and what can be timed."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

Run = Callable[[], np.ndarray]  # runs all rounds, random draws included, and waits: G_t after the last round, (batch,)


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is timed: a system's sizes, replicates run together, rounds."""

    system: str  # a name of SYSTEMS
    num_experts: int  # M; also max_experts
    num_tasks: int  # N
    num_features: int  # d (p)
    num_samples: int  # s
    batch: int  # replicates
    num_rounds: int  # T
    precision: str = "float32"  # or "float64"
    seed: int = 0


class Contender(NamedTuple):
    """A way to run the rounds of a setting."""

    name: str
    about: str  # one line
    systems: tuple[str, ...]  # what it can run
    prepare: Callable[[Setting], Run]
    requires: str | None = None  # a module that must be importable
    one_by_one: bool = False  # one replicate after another: a replicate-round costs the same in every batch
