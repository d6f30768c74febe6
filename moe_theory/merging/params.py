"""Static sizes and traced parameters of online expert merging, and readings of the paper.

A reading names the choices that we make where the paper is silent or contradicts itself:

| open in the paper | parameter |
| --- | --- |
| "a random dimension" of a box: many splits cut nothing off the box's part of the simplex | `split_rule` |
| which feasible point of a leaf "an LP" gives | `point_rule` |
| the constant C of the threshold (2) | `split_constant` |
| gamma_t of (4), whose constants C_1, C_2, C_3 and S are unknown | `exploration`, in place of gamma_t |
| eta, of a loss that is summed over slots: here of a mean loss, so that steps do not grow with t | `learning_rate` |
| two matrices, as in (3) with L = 2, or three, as in the number of parameters p | `Dims.num_hidden` |
| the steps J | `Dims.num_steps` |
| how task shares are distributed and drift, and the noise of a slot's mean rewards | `mix_*`, `noise_scale` |
| the monitor's constants | `monitor_rate` |
"""

import dataclasses
from typing import Annotated, NamedTuple

from jaxtyping import Int

from moe_theory.core import constraints
from moe_theory.core.constraints import (
    AtMost,
    Count,
    Flag,
    NonNegative,
    OneOf,
    PaddedTo,
    Positive,
    Real,
    Scale,
    Size,
    StepSize,
    Whole,
    Within,
)
from moe_theory.core.errors import InvalidValueError, with_known_names
from moe_theory.core.numerics import Scalar
from moe_theory.core.papers import Reading as Reading

# How a leaf is split in two, where the paper says "along a random dimension".
RANDOM_SPLIT = 0
EFFECTIVE_SPLIT = 1
CYCLIC_SPLIT = 2
# Which feasible point of a leaf is its candidate, where the paper says "by an LP".
LINE_POINT = 0
FILLED_POINT = 1
RANDOM_POINT = 2

Rule = Annotated[Int[Scalar, ""], OneOf((0, 1, 2))]
Share = Annotated[Real, Within(0, 1, open_low=True)]
Constant = Annotated[Real, Within(1e-6, 1e4, why="(2) has squares of these constants, (4) adds them to rewards")]
Regularization = Annotated[Real, Within(1e-6, 1e6, why="gradient steps are of its size, and widths of its inverse")]
Noise = Annotated[Scale, Within(high=1e7, why="rewards are in [0, 1], and float32 loses them in larger noise")]
Ratio = Annotated[Real, Within(0, 1, open_low=True, open_high=True)]


@dataclasses.dataclass(frozen=True)
class Dims:
    """Static shapes for which a program is compiled.

    `max_experts` and `max_rounds` are upper bounds, to which arrays are padded.

    Raises: InvalidValueError for sizes out of range.

    Examples:
        >>> from moe_theory import merging
        >>> merging.Dims(max_experts=8, num_tasks=8, width=64).num_parameters  # 64 (8 + 8)
        1024
    """

    max_experts: Annotated[int, Whole(2)] = 8  # largest number of experts K
    num_tasks: Size = 8  # V, number of tasks and of outputs of the reward network
    max_rounds: Size = 2000  # T, number of slots for which there is memory
    max_leaves: Size = 128  # number of leaves for which the tree has room. Further splits are skipped, and counted
    width: Annotated[int, Whole(2)] = 64  # w, units of a hidden layer, even, for two equal halves at first
    num_hidden: Annotated[int, OneOf((1, 2), "as in Eq. (3) with L = 2, or as in the number of parameters")] = 1
    num_steps: Size = 8  # J, gradient steps per slot
    num_candidates: Size = 20  # weights that NUCB draws per slot

    def __post_init__(self) -> None:
        constraints.check_sizes(self)
        if self.width % 2:
            raise InvalidValueError(
                f"width={self.width} must be even, because a network begins with two equal halves. Change width.",
                argument="width",
            )

    @property
    def num_parameters(self) -> int:
        """Number p of the reward network's parameters."""
        return self.width * (self.max_experts + self.num_tasks) + (self.num_hidden - 1) * self.width**2


@with_known_names
class Params(NamedTuple):
    """Parameters that a user can sweep. Each may be traced.

    Examples:
        >>> from moe_theory import merging
        >>> merging.Params(num_experts=4, max_active=2).smoothness_ratio
        0.9
    """

    num_experts: Annotated[Int[Scalar, ""], Whole(2), PaddedTo("max_experts")] = 8  # K
    max_active: Annotated[Count, AtMost("num_experts", "a merge combines B of the K experts (1b)")] = 8  # B
    smoothness: Constant = 1.0  # nu_1 of Assumption 1
    smoothness_ratio: Ratio = 0.9  # rho of Assumption 1
    split_constant: Constant = 1.0  # C of the threshold (2)
    confidence: Share = 1.0  # delta of the threshold (2). The paper's experiments have 1
    exploration: NonNegative = 0.3  # gamma, in place of gamma_t, whose constants are unknown
    regularization: Regularization = 1.0  # lambda
    learning_rate: StepSize = 0.5  # eta times w, because steps are on the mean loss, in units of 1 / width
    split_rule: Rule = RANDOM_SPLIT
    point_rule: Rule = LINE_POINT
    warm_start: Flag = False  # whether x = psi is tried first and stays a candidate (not in the paper)
    noise_scale: Noise = 0.1  # deviation of a task's mean reward in a slot from its expectation
    slot_size: Count = 128  # requests in a slot
    mix_concentration: Positive = 1.0  # of the task mix's Dirichlet distribution
    mix_drift: NonNegative = 0.0  # amplitude of the mix's drift, 0 for a fixed mix
    mix_period: Positive = 500.0  # slots in a period of the drift
    monitor_rate: Share = 0.1  # weight of the last slot in the monitor's average


def check_params(dims: Dims, params: Params) -> None:
    values = constraints.check(params, dims)  # by name, without traced ones
    if values.get("warm_start") and values.get("num_experts", dims.num_tasks) != dims.num_tasks:
        raise InvalidValueError(
            f"warm_start gives expert v the share of task v, so num_experts={values['num_experts']} must equal "
            f"num_tasks={dims.num_tasks}. Change num_experts or leave out warm_start.",
            argument="warm_start",
        )


_CHOICES = {
    "random-split": ("a leaf is halved along any dimension, as Algorithm 1 says; candidates on its box's diagonal", {}),
    "effective-split": (
        "boxes are tightened to the simplex, the longest side is halved: no leaf is inactive",
        {"split_rule": EFFECTIVE_SPLIT},
    ),
    "cyclic-split": ("dimensions are halved in turn, by depth", {"split_rule": CYCLIC_SPLIT}),
    "filled-point": (
        "random dimensions; a candidate is the leaf's point nearest to equal weights",
        {"point_rule": FILLED_POINT},
    ),
    "random-point": ("random dimensions; a candidate is a random point of the leaf", {"point_rule": RANDOM_POINT}),
    "warm-start": (
        "random dimensions; weights equal to the task mix are tried first and stay a candidate",
        {"warm_start": True},
    ),
}
# The readings by name. Each has its choices in words and as parameters. The first has the defaults of `Params`.
READINGS: dict[str, Reading] = {
    name: Reading(name, summary, Params(), choices) for name, (summary, choices) in _CHOICES.items()
}
