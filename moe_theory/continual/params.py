"""Static shapes, traced parameters and readings: named choices where `continual` is silent.

| open in the paper | parameter |
| --- | --- |
| scale c of v_n = c w_n ("scaled by a constant", App. A.2) | `signal_scale` |
| which signal v_n belongs to a truth | `signal_law` |
| distribution of beta_t in (0, C] | `min_strength`, `max_strength` |
| whether sigma_0 in N(0, sigma_0) is a variance or a deviation | `scale_is_variance` |
| spread of truths inside a cluster, O(sigma_0^1.5) | `cluster_spread` |
| whether (6) has a norm or a squared norm | `locality_power` |
| whether convergence flags accumulate | `accumulate_flags` |
| Gamma in Fig. 2 (Algorithm 1: O(sigma_0^1.25)) | `termination_threshold` |

The outcome depends most on c, through `gate_drive`.
"""

import dataclasses
import math
from typing import Annotated, NamedTuple

import numpy as np

from moe_theory.core import constraints, tasks
from moe_theory.core.constraints import AtMost, Count, Flag, NonNegative, PaddedTo, Real, Scale, Size
from moe_theory.core.errors import with_known_names
from moe_theory.core.papers import Reading
from moe_theory.core.tasks import INDEPENDENT, ORTHOGONAL, PROPORTIONAL, SignalLaw

SIGMA_0 = 0.4  # the deviation sigma_0 of Fig. 2 (Appendix A.2), from which several defaults follow

DISTINCT = "a task is learned by distinct experts"

GateStep = Annotated[
    Real,
    constraints.Within(0, open_low=True, why="at 0 the exploration T1 = ceil(M / eta) never ends"),
    constraints.LARGEST_STEP,
]
Power = Annotated[
    Real, constraints.Within(0, open_low=True, why="a distance to the power 0 measures nothing, and (6) has power 1")
]
LeastStrength = Annotated[Scale, AtMost("max_strength", "beta_t is uniform between them")]


@dataclasses.dataclass(frozen=True)
class Dims:
    """Static shapes, for which a program is compiled.

    `max_experts` and `max_active` are upper bounds, to which arrays are padded.

    Raises: InvalidValueError outside 1 <= num_samples < num_features, or for sizes below 1.

    Examples:
        >>> from moe_theory import continual
        >>> continual.Dims(max_experts=4, num_tasks=6, num_features=10, num_samples=12)
        Traceback (most recent call last):
            ...
        moe_theory.core.errors.InvalidValueError: num_samples=12 must be below num_features=10: ...
    """

    max_experts: Size  # largest number of experts M
    num_tasks: Size  # N
    num_features: Size  # d
    num_samples: Size  # s, the signal's column included
    max_active: Annotated[Size, AtMost("max_experts", DISTINCT)] = 1  # largest k of top-k routing

    def __post_init__(self) -> None:
        constraints.check_sizes(self)
        constraints.require_overparameterized(self.num_features, self.num_samples)


# Orders in sigma_0 that the paper requires of Algorithm 1's input and of the clusters.
ORDERS = {
    "learning_rate": ("O", 0.5),
    "balance_weight": ("O", 0.5),
    "perturbation_scale": ("Θ", 1.25),
    "termination_threshold": ("O", 1.25),
    "cluster_spread": ("O", 1.5),
}


def in_order(truth_scale: float) -> dict[str, float]:
    """Return parameters of these orders at a sigma_0, with all constants 1."""
    return {name: truth_scale**power for name, (_, power) in ORDERS.items()}


@with_known_names
class Params(NamedTuple):
    """Parameters that a user sweeps. Each may be traced, and the defaults are Fig. 2 under `unit-signal`.

    Examples:
        >>> from moe_theory import continual
        >>> continual.Params(num_experts=5, learning_rate=0.1)._replace(terminate=False).num_experts
        5
    """

    num_experts: Annotated[Count, PaddedTo("max_experts")] = 10  # M
    num_active: Annotated[Count, PaddedTo("max_active"), AtMost("num_experts", DISTINCT)] = 1  # k. The paper's is 1
    learning_rate: GateStep = 0.5  # eta of (9)
    balance_weight: NonNegative = 0.5  # alpha of (7)
    perturbation_scale: NonNegative = 0.3  # lambda of (1)
    termination_threshold: NonNegative = SIGMA_0**1.25  # Gamma of Algorithm 1
    terminate: Flag = True  # whether Algorithm 1 terminates the gate updates
    accumulate_flags: Flag = True  # whether a convergence flag I(m), once set, stays set
    locality_power: Power = 1.0  # q of |w_t - w_{t-1}|^q in (6)
    truth_scale: Scale = SIGMA_0  # sigma_0 of N(0, sigma_0)
    scale_is_variance: Flag = False  # whether sigma_0 is a variance, or a deviation
    signal_scale: Scale = 1 / SIGMA_0  # c of v_n = c w_n
    signal_law: SignalLaw = PROPORTIONAL  # v_n = c w_n, or one v_k per cluster: orthogonal, or independent of w_n
    min_strength: LeastStrength = 1.0  # beta_t is uniform on (min_strength, max_strength]
    max_strength: Scale = 1.0  # C, the largest beta_t
    noise_scale: Scale = 0.1  # sigma_t, the deviation of a noise entry of X_t
    cluster_spread: Scale = SIGMA_0**1.5  # deviation of an entry of w_n inside its cluster
    num_clusters: Count = 3  # K, no clusters if it is at least N


def check_params(dims: Dims, params: Params) -> None:
    values = constraints.check(params, dims)
    num_signals = np.minimum(dims.num_tasks, values.get("num_clusters", 1))  # a traced number is not checked
    tasks.require_orthogonal(values.get("signal_law", PROPORTIONAL), num_signals, dims.num_features)


# The readings by name. The defaults of `Params` are the first.
READINGS: dict[str, Reading] = {
    reading.name: reading
    for reading in (
        Reading("unit-signal", "c = 1/sigma_0, spread sigma_0^1.5 inside a cluster, q = 1; the default", Params()),
        Reading("weak-signal", "c = 1: signals are the truths themselves", Params(), {"signal_scale": 1.0}),
        Reading(
            "strong-signal", "c = 5, no spread inside a cluster", Params(), {"signal_scale": 5.0, "cluster_spread": 0.0}
        ),
        Reading("identical-tasks", "c = 1/sigma_0, no spread inside a cluster", Params(), {"cluster_spread": 0.0}),
        Reading(
            "independent-signal",
            "signals drawn apart from the truths, one a cluster, c = 1/sigma_0",
            Params(),
            {"signal_law": INDEPENDENT},
        ),
        Reading(
            "orthogonal-signal",
            "orthogonal signals of equal norm, one a cluster, c = 1/sigma_0",
            Params(),
            {"signal_law": ORTHOGONAL},
        ),
        Reading("squared-locality", "|w_t - w_{t-1}|^2 in (6)", Params(), {"locality_power": 2.0}),
    )
}


def gate_drive(params: Params, num_features: int, num_tasks: int | None = None) -> float:
    """Return kappa = eta E|w| E|v|^2 E[beta^2] / M, dimensionless: how far one gate step moves a gate output.

    Entries are taken as Gaussian. Outputs stay far apart only above `corrected.critical_drive`.

    Args:
        num_tasks: N, by default above the number of clusters. With num_clusters >= N each task is a cluster, without
            `cluster_spread`.

    Examples:
        >>> from moe_theory import continual
        >>> params = continual.Params(learning_rate=0.25)
        >>> continual.gate_drive(params._replace(learning_rate=0.5), 10) / continual.gate_drive(params, 10)
        2.0
    """
    deviation = tasks.truth_deviation(params)
    has_clusters = num_tasks is None or params.num_clusters < num_tasks
    spread = float(params.cluster_spread) if has_clusters else 0.0
    signal_deviation = math.hypot(deviation, spread)
    signal_entry = params.signal_scale * (signal_deviation if params.signal_law == PROPORTIONAL else deviation)
    strength_squared = tasks.mean_square_strength(float(params.min_strength), float(params.max_strength))
    mean_norm = tasks.mean_norm(signal_deviation, num_features)
    drive = params.learning_rate * mean_norm * num_features * signal_entry**2 * strength_squared / params.num_experts
    return float(drive)
