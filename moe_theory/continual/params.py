"""Static shapes and traced parameters of the continual-learning system, and what they may be."""

import dataclasses
from typing import Annotated, NamedTuple

from moe_theory.core import constraints
from moe_theory.core.constraints import AtMost, Count, Flag, NonNegative, PaddedTo, Real, Size, Within
from moe_theory.core.tasks import PoolScales

SIGMA_0 = 0.4  # the deviation sigma_0 of Fig. 2 (Appendix A.2), from which several defaults follow

DISTINCT = "a task is learned by distinct experts"

GateStep = Annotated[Real, Within(0, open_low=True, why="at 0 the exploration T1 = ceil(M / eta) never ends")]
Power = Annotated[Real, Within(0, open_low=True, why="a distance to the power 0 measures nothing; (6) has 1")]
LeastStrength = Annotated[NonNegative, AtMost("max_strength", "beta_t is uniform between them")]


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

    max_experts: Size  # largest number of experts M
    num_tasks: Size  # N
    num_features: Size  # d
    num_samples: Size  # s, the signal's column included
    max_active: Annotated[Size, AtMost("max_experts", DISTINCT)] = 1  # largest k of top-k routing

    def __post_init__(self) -> None:
        constraints.check_sizes(self)
        constraints.require_overparameterized(self.num_features, self.num_samples)


class Params(NamedTuple):
    """Everything a user sweeps; every leaf may be traced. Defaults: Fig. 2 under the reading `unit-signal`.

    Examples:
        >>> from moe_theory import continual
        >>> continual.Params(num_experts=5, learning_rate=0.1)._replace(terminate=False).num_experts
        5
    """

    num_experts: Annotated[Count, PaddedTo("max_experts")] = 10  # M
    num_active: Annotated[Count, PaddedTo("max_active"), AtMost("num_experts", DISTINCT)] = 1  # k; the paper's is 1
    learning_rate: GateStep = 0.5  # eta of (9)
    balance_weight: NonNegative = 0.5  # alpha of (7)
    perturbation_scale: NonNegative = 0.3  # lambda of (1)
    termination_threshold: NonNegative = SIGMA_0**1.25  # Gamma of Algorithm 1
    terminate: Flag = True  # whether Algorithm 1 terminates the gate updates
    accumulate_flags: Flag = True  # whether a convergence flag I(m), once set, stays set
    locality_power: Power = 1.0  # q of |w_t - w_{t-1}|^q in (6)
    truth_scale: NonNegative = SIGMA_0  # sigma_0 of N(0, sigma_0)
    scale_is_variance: Flag = False  # whether sigma_0 is a variance, or a deviation
    signal_scale: NonNegative = 1 / SIGMA_0  # c of v_n = c w_n
    independent_signals: Flag = False  # whether v_n is drawn apart from w_n
    min_strength: LeastStrength = 1.0  # beta_t is uniform on (min_strength, max_strength]
    max_strength: NonNegative = 1.0  # C, the largest beta_t
    noise_scale: NonNegative = 0.1  # sigma_t, the deviation of a noise entry of X_t
    cluster_spread: NonNegative = SIGMA_0**1.5  # deviation of an entry of w_n inside its cluster
    num_clusters: Count = 3  # K; at least N means no clusters

    @property
    def pool_scales(self) -> PoolScales:
        """The parameters that decide the pool's distribution."""
        return PoolScales(*(getattr(self, name) for name in PoolScales._fields))


def check_params(dims: Dims, params: Params) -> None:
    """Refuse parameters outside their range; traced ones are passed over.

    Raises: InvalidParamsError naming the value, the bound and the way out.
    """
    constraints.check(params, dims)
