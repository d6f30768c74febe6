"""Static sizes and traced parameters of online expert merging, with the checks that name what is wrong."""

import dataclasses
from typing import NamedTuple

from jaxtyping import Bool, Float, Int

from moe_theory.core import checks
from moe_theory.core.errors import InvalidDimsError, InvalidParamsError, unknown_name
from moe_theory.core.numerics import Scalar
from moe_theory.core.readings import Reading as Reading

# How a leaf is split in two, where the paper says "along a random dimension".
RANDOM_SPLIT, EFFECTIVE_SPLIT, CYCLIC_SPLIT = 0, 1, 2
# Which feasible point of a leaf is its candidate, where the paper says "by an LP".
LINE_POINT, FILLED_POINT, RANDOM_POINT = 0, 1, 2


@dataclasses.dataclass(frozen=True)
class Dims:
    """Static shapes: what a program is compiled for.

    `max_experts` only pads: a run uses `Params.num_experts` of them. A run may be shorter than `max_rounds`.

    Raises: InvalidDimsError for sizes that are no whole numbers in range.

    Examples:
        >>> from moe_theory import merging
        >>> merging.Dims(max_experts=8, num_tasks=8, width=64).num_parameters  # 64 (8 + 8)
        1024
    """

    max_experts: int = 8  # largest number of experts K
    num_tasks: int = 8  # V, kinds of tasks: outputs of the reward network
    max_rounds: int = 2000  # T, slots that there is memory for
    max_leaves: int = 128  # leaves that the tree has room for; splits beyond are left out, and counted
    width: int = 64  # w, units of a hidden layer
    num_hidden: int = 1  # hidden layers: 1 is (3) with L = 2; 2 has the number of parameters that the paper names
    num_steps: int = 8  # J, gradient steps a slot
    num_candidates: int = 20  # weights that NUCB draws a slot

    def __post_init__(self) -> None:
        for name in ("num_tasks", "max_rounds", "max_leaves", "width", "num_steps", "num_candidates"):
            checks.require_size(name, getattr(self, name))
        checks.require_size("max_experts", self.max_experts, least=2)
        if self.num_hidden not in (1, 2):
            raise InvalidDimsError(
                f"num_hidden={self.num_hidden} must be 1, Eq. (3) with L = 2, or 2, the number of parameters given "
                "beside it. Choose one of them."
            )

    @property
    def num_parameters(self) -> int:
        """p, parameters of the reward network."""
        return self.width * (self.max_experts + self.num_tasks) + (self.num_hidden - 1) * self.width**2


class Params(NamedTuple):
    """Everything a user sweeps; every leaf may be traced.

    Examples:
        >>> from moe_theory import merging
        >>> merging.Params(num_experts=4, max_active=2).smoothness_ratio
        0.9
    """

    num_experts: Int[Scalar, ""] = 8  # K
    max_active: Int[Scalar, ""] = 8  # B, experts that a merge may use at most
    smoothness: Float[Scalar, ""] = 1.0  # nu_1 of Assumption 1
    smoothness_ratio: Float[Scalar, ""] = 0.9  # rho of Assumption 1
    split_constant: Float[Scalar, ""] = 1.0  # C of the threshold (2)
    confidence: Float[Scalar, ""] = 1.0  # delta of the threshold (2); the paper's experiments have 1
    exploration: Float[Scalar, ""] = 0.3  # gamma, in place of gamma_t, whose constants are unknown
    regularization: Float[Scalar, ""] = 1.0  # lambda
    learning_rate: Float[Scalar, ""] = 0.5  # eta w: steps on the mean loss, in units of 1 / width
    split_rule: Int[Scalar, ""] = RANDOM_SPLIT
    point_rule: Int[Scalar, ""] = LINE_POINT
    warm_start: Bool[Scalar, ""] = False  # whether x = psi is tried first, and stays a candidate: not in the paper
    noise_scale: Float[Scalar, ""] = 0.1  # deviation of a task's mean reward in a slot about its expectation
    slot_size: Int[Scalar, ""] = 128  # requests in a slot
    mix_concentration: Float[Scalar, ""] = 1.0  # of the Dirichlet law of the task mix
    mix_drift: Float[Scalar, ""] = 0.0  # how far the mix drifts, 0 for one that is fixed
    mix_period: Float[Scalar, ""] = 500.0  # slots in which it comes back
    monitor_rate: Float[Scalar, ""] = 0.1  # weight of the last slot in the monitor's average


def check_params(dims: Dims, params: Params) -> None:
    """Refuse parameters outside their range; those that are traced, and so have no value yet, are passed over.

    Raises: InvalidParamsError naming the value, the bound and the way out.
    """
    values = checks.known_values(params)
    at_least_zero = ("exploration", "learning_rate", "noise_scale", "mix_drift")
    checks.require_at_least_zero(values, at_least_zero)
    checks.require_boolean(values, ("warm_start",))
    checks.require_whole(values, "num_experts", dims.max_experts, "max_experts", least=2)
    for name in ("max_active", "slot_size"):
        checks.require_whole(values, name)
    checks.require_ordered(values, "max_active", "num_experts", "a merge is of B of the K experts (1b)")
    for name in ("smoothness", "split_constant", "regularization", "mix_concentration", "mix_period"):
        if name in values and values[name] <= 0:
            raise InvalidParamsError(f"{name}={values[name]} must be above 0. Raise {name}.")
    for name, includes_one in (("smoothness_ratio", False), ("confidence", True), ("monitor_rate", True)):
        if name in values and not (0 < values[name] < 1 or (includes_one and values[name] == 1)):
            end = "1 at most" if includes_one else "below 1"
            raise InvalidParamsError(f"{name}={values[name]} must be above 0 and {end}. Change {name}.")
    for name, most in (("split_rule", CYCLIC_SPLIT), ("point_rule", RANDOM_POINT)):
        checks.require_whole(values, name, least=0)
        if name in values and values[name] > most:
            raise InvalidParamsError(f"{name}={values[name]} must be one of 0 to {most}. Lower {name}.")
    if values.get("warm_start") and values.get("num_experts", dims.num_tasks) != dims.num_tasks:
        raise InvalidParamsError(
            f"warm_start needs as many experts as tasks, not num_experts={values['num_experts']} and "
            f"num_tasks={dims.num_tasks}: weights equal to the task mix give expert v the share of task v."
        )


# The readings by name; the first is that of `Params`.
READINGS: dict[str, Reading] = {
    reading.name: reading
    for reading in (
        Reading(
            "random-split",
            "a leaf is halved along any dimension, as Algorithm 1 says; candidates on its box's diagonal",
            Params(),
        ),
        Reading(
            "effective-split",
            "boxes are tightened to the simplex, the longest side is halved: no leaf is inactive",
            Params(),
            {"split_rule": EFFECTIVE_SPLIT},
        ),
        Reading("cyclic-split", "dimensions are halved in turn, by depth", Params(), {"split_rule": CYCLIC_SPLIT}),
        Reading(
            "filled-point",
            "random dimensions; a candidate is the leaf's point nearest to equal weights",
            Params(),
            {"point_rule": FILLED_POINT},
        ),
        Reading(
            "random-point",
            "random dimensions; a candidate is a random point of the leaf",
            Params(),
            {"point_rule": RANDOM_POINT},
        ),
        Reading(
            "warm-start",
            "random dimensions; weights equal to the task mix are tried first and stay a candidate",
            Params(),
            {"warm_start": True},
        ),
    )
}


def reading(name: str) -> Reading:
    """The reading called `name`. Raises: UnknownNameError, with the nearest name suggested.

    Examples:
        >>> from moe_theory import merging
        >>> merging.reading("warm-start").params(num_experts=8).warm_start
        True
    """
    if name not in READINGS:
        raise unknown_name("reading", name, READINGS)
    return READINGS[name]
