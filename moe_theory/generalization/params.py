"""Static sizes and traced parameters of sparse-MoE classifiers, with the checks that name what is wrong."""

import dataclasses
from typing import Any, NamedTuple

from jaxtyping import Bool, Float, Int

from moe_theory.core import checks
from moe_theory.core.errors import InvalidParamsError
from moe_theory.core.numerics import Scalar


@dataclasses.dataclass(frozen=True)
class Dims:
    """Static shapes. Experts and samples are padded, so that one program serves every T, k and m of a grid.

    Raises: InvalidDimsError for sizes that are no whole numbers in range.

    Examples:
        >>> from moe_theory import generalization
        >>> generalization.Dims(max_experts=8, num_features=4, max_samples=100).expert_width  # linear experts
        0
    """

    max_experts: int  # experts that arrays are padded to, at least every T
    num_features: int  # d, entries of an input
    max_samples: int  # samples that arrays are padded to, at least every m
    expert_width: int = 0  # hidden units of an expert network; 0 for a linear expert
    router_width: int = 0  # hidden units of the router network; 0 for a linear router

    def __post_init__(self) -> None:
        for name in ("max_experts", "num_features", "max_samples"):
            checks.require_size(name, getattr(self, name))
        for name in ("expert_width", "router_width"):
            checks.require_size(name, getattr(self, name), least=0)


class Params(NamedTuple):
    """Everything a user sweeps; every leaf may be traced.

    Examples:
        >>> from moe_theory import generalization
        >>> generalization.Params(num_experts=8, num_samples=100).num_active
        1
    """

    num_experts: Int[Scalar, ""] = 8  # T
    num_active: Int[Scalar, ""] = 1  # k
    num_samples: Int[Scalar, ""] = 128  # m
    expert_norm: Float[Scalar, ""] = 1.0  # B: linear experts have |w| <= B
    router_norm: Float[Scalar, ""] = 4.0  # W: rows of a linear router have |v| <= W
    delta: Float[Scalar, ""] = 0.05  # the probability with which a bound may fail
    whole_router: Bool[Scalar, ""] = False  # d_N of the whole router (Theorem 1), or of its masks (Definition 4)
    learning_rate: Float[Scalar, ""] = 0.05  # of the optimizer
    label_noise: Float[Scalar, ""] = 0.0  # chance that a teacher's label is flipped


def check_params(dims: Dims, params: Params) -> None:
    """Refuse parameters outside their range; those that are traced, and so have no value yet, are passed over.

    Raises: InvalidParamsError naming the value, the bound and the way out.
    """
    values = checks.known_values(params)
    checks.require_at_least_zero(values, ("expert_norm", "router_norm", "learning_rate"))
    checks.require_boolean(values, ("whole_router",))
    checks.require_whole(values, "num_experts", dims.max_experts, "max_experts")
    checks.require_whole(values, "num_samples", dims.max_samples, "max_samples")
    checks.require_whole(values, "num_active")
    checks.require_ordered(values, "num_active", "num_experts", "k of T experts are active (4)")
    if "delta" in values:
        require_probability("delta", values["delta"])
    if "label_noise" in values and not 0 <= values["label_noise"] <= 1:
        raise InvalidParamsError(
            f"label_noise={values['label_noise']} must be in [0, 1]: it is a probability. Change label_noise."
        )


def require_probability(name: str, value: Any) -> None:
    """Raise InvalidParamsError unless `value` is strictly between 0 and 1."""
    if not 0 < value < 1:
        raise InvalidParamsError(
            f"{name}={value} must be strictly between 0 and 1: a bound holds with probability 1 - {name}. Change it."
        )
