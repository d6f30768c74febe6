"""Static shapes and traced parameters of the continual-learning system, and what they may be."""

import dataclasses
from typing import NamedTuple

from jaxtyping import Bool, Float, Int

from moe_theory.core import checks
from moe_theory.core.errors import InvalidDimsError, InvalidParamsError
from moe_theory.core.numerics import Scalar
from moe_theory.core.tasks import PoolScales

SIGMA_0 = 0.4  # the deviation sigma_0 of Fig. 2 (Appendix A.2), from which several defaults follow


@dataclasses.dataclass(frozen=True)
class Dims:
    """Static shapes: what a program is compiled for.

    `max_experts` and `max_active` only pad: a run uses `Params.num_experts` of them, and trains `Params.num_active`.

    Raises: InvalidDimsError outside 1 <= num_samples < num_features, or for sizes below 1.

    Examples:
        >>> from moe_theory import continual
        >>> continual.Dims(max_experts=4, num_tasks=6, num_features=10, num_samples=12)
        Traceback (most recent call last):
            ...
        moe_theory.core.errors.InvalidDimsError: num_samples=12 must be below num_features=10: ...
    """

    max_experts: int  # largest number of experts M
    num_tasks: int  # N
    num_features: int  # d
    num_samples: int  # s, the signal's column included
    max_active: int = 1  # largest k of top-k routing

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            checks.require_size(name, value)
        checks.require_overparameterized_sizes(self.num_features, self.num_samples)
        if self.max_active > self.max_experts:
            raise InvalidDimsError(
                f"max_active={self.max_active} must be at most max_experts={self.max_experts}: a task is learned by "
                "distinct experts. Lower max_active or raise max_experts."
            )


class Params(NamedTuple):
    """Everything a user sweeps; every leaf may be traced. Defaults: Fig. 2 under the reading `unit-signal`.

    Examples:
        >>> from moe_theory import continual
        >>> continual.Params(num_experts=5, learning_rate=0.1)._replace(terminate=False).num_experts
        5
    """

    num_experts: Int[Scalar, ""] = 10  # M
    num_active: Int[Scalar, ""] = 1  # k of top-k routing; the paper's is 1
    learning_rate: Float[Scalar, ""] = 0.5  # eta of (9)
    balance_weight: Float[Scalar, ""] = 0.5  # alpha of (7)
    perturbation_scale: Float[Scalar, ""] = 0.3  # lambda of (1)
    termination_threshold: Float[Scalar, ""] = SIGMA_0**1.25  # Gamma of Algorithm 1
    terminate: Bool[Scalar, ""] = True  # whether Algorithm 1 terminates the gate updates
    accumulate_flags: Bool[Scalar, ""] = True  # whether a convergence flag I(m), once set, stays set
    locality_power: Float[Scalar, ""] = 1.0  # q of |w_t - w_{t-1}|^q in (6)
    truth_scale: Float[Scalar, ""] = SIGMA_0  # sigma_0 of N(0, sigma_0)
    scale_is_variance: Bool[Scalar, ""] = False  # whether sigma_0 is a variance, or a deviation
    signal_scale: Float[Scalar, ""] = 1 / SIGMA_0  # c of v_n = c w_n
    independent_signals: Bool[Scalar, ""] = False  # whether v_n is drawn apart from w_n
    min_strength: Float[Scalar, ""] = 1.0  # beta_t is uniform on (min_strength, max_strength]
    max_strength: Float[Scalar, ""] = 1.0  # C, the largest beta_t
    noise_scale: Float[Scalar, ""] = 0.1  # sigma_t, the deviation of a noise entry of X_t
    cluster_spread: Float[Scalar, ""] = SIGMA_0**1.5  # deviation of an entry of w_n inside its cluster
    num_clusters: Int[Scalar, ""] = 3  # K; at least N means no clusters

    @property
    def pool_scales(self) -> PoolScales:
        """The parameters that decide the pool's distribution."""
        return PoolScales(*(getattr(self, name) for name in PoolScales._fields))


_AT_LEAST_ZERO = (
    "learning_rate balance_weight perturbation_scale termination_threshold truth_scale signal_scale "
    "min_strength max_strength noise_scale cluster_spread"
).split()
_BOOLEANS = ("terminate", "accumulate_flags", "scale_is_variance", "independent_signals")


def check_params(dims: Dims, params: Params) -> None:
    """Refuse parameters outside their range; those that are traced, and so have no value yet, are passed over.

    Raises: InvalidParamsError naming the value, the bound and the way out.
    """
    values = checks.known_values(params)
    checks.require_at_least_zero(values, _AT_LEAST_ZERO)
    checks.require_boolean(values, _BOOLEANS)
    checks.require_whole(values, "num_experts", dims.max_experts, "max_experts")
    checks.require_whole(values, "num_active", dims.max_active, "max_active")
    checks.require_whole(values, "num_clusters")
    if values.get("learning_rate") == 0:
        raise InvalidParamsError(
            "learning_rate=0 makes the exploration T1 = ceil(M / eta) endless. Raise learning_rate."
        )
    if "locality_power" in values and values["locality_power"] <= 0:
        raise InvalidParamsError(
            f"locality_power={values['locality_power']} must be above 0: a distance to the power 0 measures nothing. "
            "Use 1 (as printed in (6)) or 2."
        )
    if {"num_active", "num_experts"} <= values.keys() and values["num_active"] > values["num_experts"]:
        raise InvalidParamsError(
            f"num_active={values['num_active']} must be at most num_experts={values['num_experts']}. Lower num_active."
        )
    checks.require_ordered(values, "min_strength", "max_strength", "beta_t is uniform between them")
