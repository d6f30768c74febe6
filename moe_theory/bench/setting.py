"""What is timed, and what can be timed."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


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


Run = Callable[[], np.ndarray]  # runs everything, random draws included, blocks; G_t after the last round, (batch,)


class Contender(NamedTuple):
    """One way to run a setting's rounds."""

    name: str  # "NumPy loop", "batched NumPy", "batched Torch", "textbook vmap(scan)", "moe_theory"
    about: str  # one line
    systems: tuple[str, ...]  # what it can run
    prepare: Callable[[Setting], Run]
    requires: str | None = None  # module that must be importable, say "torch"; else None
    one_by_one: bool = False  # replicates run one after another: time few, the cost of one does not depend on batch
