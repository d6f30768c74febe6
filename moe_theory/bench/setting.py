"""What is timed, and what can be timed."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from moe_theory.sweep.systems import sweepable, system_names

SIZES = ("num_tasks", "num_features", "num_samples")  # of a system that can be timed, beside its experts

Run = Callable[[], np.ndarray]  # runs all rounds, random draws included, and waits: G_t after the last round, (batch,)


@dataclasses.dataclass(frozen=True)
class Setting:
    """What is timed: a system's sizes, replicates run together, rounds."""

    system: str  # one of `timed_systems`
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


@functools.cache
def timed_systems() -> tuple[str, ...]:
    """Registered systems that a `Setting` describes: those that have its sizes."""
    return tuple(name for name in system_names() if set(SIZES) <= set(sweepable(name).sizes))
