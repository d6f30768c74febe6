"""Static shapes and traced parameters of mobile edge computing, constraints, and readings of the paper.

A reading sets parameters where the paper leaves a choice open:

| open | parameter |
| --- | --- |
| which signal v_t belongs to a ground truth (Assumption 1) | `signal_law` |
| the signals' scale, |v|_inf = O(1) | `signal_scale` |
| distribution of beta_t in (0, C] | `min_strength`, `max_strength` |
| whether sigma_0, "the variance of elements", is a variance or a deviation | `scale_is_variance` |
| spread of truths inside a cluster, O(sigma_0^2) in (6) | `cluster_spread`: sigma_0^2 / 12^(1/2) an entry |
| the noise r = o(1) of (4) | `perturbation_scale` |
| distributions of the delays in Fig. 3, of which only d_u = 10 is given | those in `delays`, with bounds |
| whether a completed task moves the gates in its own round, or in the next as in (13) | `gate_lag` |

The outcome depends on `gate_drive`, which is how far one gate step moves a gate output.
"""

import dataclasses
import functools
import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from jaxtyping import Int

from moe_theory.core import constraints, tasks
from moe_theory.core.constraints import AtMost, Count, Flag, NonNegative, PaddedTo, Real, Scale, Size
from moe_theory.core.errors import InvalidValueError, unknown_name, with_known_names
from moe_theory.core.numerics import Scalar
from moe_theory.core.papers import Reading as Reading
from moe_theory.core.tasks import INDEPENDENT, ORTHOGONAL, PROPORTIONAL, SignalLaw

LONGEST_DELAY = 2**20  # rounds of a transfer or an execution: even behind a full queue, the end must fit 32 bits
LONGEST_QUEUE = 2**9  # tasks that may wait at a server, so that ends fit 32 bits
SIGMA_0 = 0.6  # the deviation sigma_0 of Fig. 3 (Section VI), from which several defaults follow
# Entries uniform on an interval of width sigma_0^2 are at most sigma_0^2 apart, as (6) requires, and have this
# deviation.
CLUSTER_SPREAD = SIGMA_0**2 / 12**0.5

# What happens to a task that finds all servers busy.
WHEN_BUSY = {
    "drop": "it is lost, and counted",
    "soonest": "it waits at the server that becomes idle soonest",
}

GateStep = Annotated[
    Real,
    constraints.Within(0, open_low=True, why="at 0 the gates never train and T1 is infinite"),
    constraints.LARGEST_STEP,
]
GateLag = Annotated[
    Int[Scalar, ""], constraints.OneOf((0, 1), "a gate step follows in the round of its completion, or one later")
]
Delay = Annotated[Int[Scalar, ""], constraints.Whole(0, LONGEST_DELAY, "rounds are counted in 32 bits")]
StopProbability = Annotated[Real, constraints.Within(0, 1, open_low=True, why="it is a probability")]


@dataclasses.dataclass(frozen=True)
class Dims:
    """Static shapes, for which a program is compiled.

    `max_experts`, `max_capacity` and `max_delay` are upper bounds, to which arrays are padded. Without `max_delay`
    delays may have any length, and there is a slot for every task that servers may hold.

    Raises: InvalidValueError outside 1 <= num_samples < num_features, or for sizes below 1, or UnknownNameError for
        another `when_busy`.

    Examples:
        >>> from moe_theory import edge
        >>> edge.Dims(max_experts=4, num_tasks=3, num_features=6, num_samples=2, max_delay=10).num_slots
        4
    """

    max_experts: Size  # largest number of experts (servers) M
    num_tasks: Size  # N, task types: the clusters of ground truths
    num_features: Size  # p
    num_samples: Size  # s, the signal's column included
    max_delay: Size | None = None  # d_u, the largest total delay of a task, in rounds, or None for any
    max_capacity: Size = 1  # most tasks that one server may work on at once. The paper's is 1
    when_busy: str = "drop"  # what happens to a task that finds all servers busy: a key of `WHEN_BUSY`
    max_waiting: Annotated[int, constraints.Whole(0, LONGEST_QUEUE)] = 0  # length of a server's queue

    def __post_init__(self) -> None:
        constraints.check_sizes(self)
        constraints.require_overparameterized(self.num_features, self.num_samples)
        if not isinstance(self.when_busy, str) or self.when_busy not in WHEN_BUSY:
            raise unknown_name("when_busy", str(self.when_busy), WHEN_BUSY)
        if (self.when_busy == "drop") != (self.max_waiting == 0):
            raise InvalidValueError(
                f"max_waiting={self.max_waiting} does not fit when_busy={self.when_busy!r}, because only waiting "
                "tasks need a queue. Set max_waiting to 0 for 'drop', and above 0 otherwise.",
                argument="max_waiting",
            )

    @property
    def slots_per_server(self) -> int:
        """Number of tasks that one server may hold, including its queue."""
        return self.max_capacity + (self.max_waiting if self.when_busy == "soonest" else 0)

    @property
    def num_slots(self) -> int:
        """Number of tasks that may be pending at once: one arrives per round and stays for its delay."""
        everywhere = self.max_experts * self.slots_per_server
        if self.max_delay is None or self.when_busy == "soonest":
            return everywhere
        return min(everywhere, self.max_delay)


@with_known_names
class Params(NamedTuple):
    """Parameters that a user sweeps. Each may be traced, and the defaults are Fig. 3 at M = 50 under `sibling`.

    Examples:
        >>> from moe_theory import edge
        >>> edge.Params(num_experts=4, max_transfer_delay=2).max_execution_delay
        5
    """

    num_experts: Annotated[Count, PaddedTo("max_experts")] = 50  # M
    learning_rate: GateStep = 0.2  # eta of (13)
    gate_lag: GateLag = 1  # rounds from a completion to its gate step: 1 as in (13), or 0
    capacity: Annotated[Count, PaddedTo("max_capacity")] = 1  # tasks that a server works on at once (footnote 1)
    perturbation_scale: NonNegative = 0.1  # lambda: r in (4) is uniform on (0, lambda)
    truth_scale: Scale = SIGMA_0  # sigma_0 of N(0, sigma_0)
    scale_is_variance: Flag = False  # whether sigma_0 is a variance, or a deviation
    cluster_spread: Scale = CLUSTER_SPREAD  # deviation of an entry of w_t around its cluster's centre (6)
    signal_law: SignalLaw = PROPORTIONAL  # v_t = c w_t, or v_n orthogonal, or independent of the truths
    signal_scale: Scale = 1.0  # c, the signals' scale
    min_strength: Annotated[Scale, AtMost("max_strength", "beta_t is uniform between them")] = 1.0
    max_strength: Scale = 1.0  # C: beta_t is uniform on (min_strength, max_strength]
    noise_scale: Scale = 0.1  # sigma_t, the deviation of a noise entry of X_t
    min_transfer_delay: Annotated[Delay, AtMost("max_transfer_delay", "d^tr is between them")] = 0  # d_l^tr, in rounds
    max_transfer_delay: Delay = 5  # d_u^tr
    min_execution_delay: Annotated[Delay, AtMost("max_execution_delay", "d^ex is between them")] = 1  # d_l^ex
    max_execution_delay: Delay = 5  # d_u^ex
    geometric_stop: StopProbability = 0.4  # probability that a geometric delay ends after each further round
    uplink_delay: NonNegative = 4.0  # mean rounds of an uplink per unit of distance, user to nearest server
    fibre_delay: NonNegative = 3.0  # rounds of fibre per unit of distance, server to server


def check_params(dims: Dims, params: Params) -> None:
    values = constraints.check(params, dims)
    tasks.require_orthogonal(values.get("signal_law", PROPORTIONAL), dims.num_tasks, dims.num_features)
    lower_bounds = ("min_transfer_delay", "min_execution_delay")
    upper_bounds = ("max_transfer_delay", "max_execution_delay")
    if not {*lower_bounds, *upper_bounds} <= values.keys():
        return  # one of them is traced
    shortest = sum(int(values[name]) for name in lower_bounds)
    longest = sum(int(values[name]) for name in upper_bounds)
    if shortest < 1:
        raise InvalidValueError(
            "min_transfer_delay=0 and min_execution_delay=0 allow a delay of 0 rounds, but by (1) a task takes at "
            "least 1 round. Raise min_execution_delay to 1.",
            argument="min_execution_delay",
        )
    if dims.max_delay is not None and longest > dims.max_delay:
        raise InvalidValueError(
            f"max_transfer_delay={values['max_transfer_delay']} and max_execution_delay="
            f"{values['max_execution_delay']} allow a delay of {longest}, but arrays are padded to max_delay="
            f"{dims.max_delay}. Lower one of them or raise Dims.max_delay.",
            argument="max_transfer_delay",
        )


def require_whole_rounds(name: str, rounds: np.ndarray) -> None:
    if rounds.dtype.kind not in "iuf":
        raise InvalidValueError(
            f"{name} must be whole numbers of rounds, but has type {rounds.dtype}. Change {name}.", argument=name
        )
    is_wrong = ~(np.isfinite(rounds) & (rounds >= 0) & (rounds <= LONGEST_DELAY) & (rounds == np.floor(rounds)))
    if np.any(is_wrong):
        place = ", ".join(map(str, np.argwhere(is_wrong)[0]))
        raise InvalidValueError(
            f"{name}[{place}]={rounds[is_wrong][0]} must be a whole number of rounds in 0..{LONGEST_DELAY}. "
            f"Change {name}.",
            argument=name,
        )


FIGURE_3_FEATURES = 15  # p of Fig. 3
TUNED_EXPERTS = 50  # number of servers at which a tuned reading has a gate drive of 1


def gate_drive(params: Params, num_features: int) -> float:
    """Return kappa = eta E|w| E|v|^2 E[beta^2] / M, dimensionless: how far one gate step moves a gate output.

    Expectations are for the reading's distributions, with Gaussian entries of ground truths.

    Examples:
        >>> from moe_theory import edge
        >>> round(edge.gate_drive(edge.reading("scaled-signal").params(num_experts=50), 15), 6)
        1.0
    """
    deviation = tasks.truth_deviation(params)
    signal_deviation = math.hypot(deviation, float(params.cluster_spread))
    square_norms = {
        PROPORTIONAL: lambda: num_features * signal_deviation**2,
        ORTHOGONAL: lambda: 1.0,
        INDEPENDENT: lambda: _mean_square_bounded(num_features),
    }
    square_signal = float(params.signal_scale) ** 2 * square_norms[int(params.signal_law)]()
    strength_squared = tasks.mean_square_strength(float(params.min_strength), float(params.max_strength))
    drive = params.learning_rate * tasks.mean_norm(signal_deviation, num_features) * square_signal * strength_squared
    return float(drive / params.num_experts)


@functools.cache
def _mean_square_bounded(num_features: int) -> float:
    """Return E|z|^2 / |z|_inf^2 of a standard normal z by quadrature."""
    from scipy import integrate, special  # slow to import

    def integrand(largest: float) -> float:
        inside = 2 * special.ndtr(largest) - 1
        density = math.exp(-(largest**2) / 2) / math.sqrt(2 * math.pi)
        other_square = 1 - 2 * largest * density / inside  # of an entry that is smaller than the largest
        largest_density = num_features * 2 * density * inside ** (num_features - 1)
        return float(largest_density * other_square / largest**2)

    # The largest entry adds 1, and each other one the same integral, which has no weight above 12 deviations.
    return 1 + (num_features - 1) * float(integrate.quad(integrand, 1e-6, 12)[0])


def _with_drive_of_one(**choices: Any) -> dict[str, Any]:
    params = Params(num_experts=TUNED_EXPERTS, signal_scale=1.0)._replace(**choices)
    return {**choices, "signal_scale": 1 / math.sqrt(gate_drive(params, FIGURE_3_FEATURES))}


# The readings by name. The defaults of `Params` are the first.
READINGS: dict[str, Reading] = {
    reading.name: reading
    for reading in (
        Reading(
            "sibling",
            "v = w: signals are the truths themselves, as in the paper's sibling on continual learning",
            Params(),
        ),
        Reading("scaled-signal", "v = c w with the gate drive kappa = 1 at M = 50", Params(), _with_drive_of_one()),
        Reading(
            "orthogonal-signal",
            "orthogonal signals of equal norm with the gate drive kappa = 1 at M = 50",
            Params(),
            _with_drive_of_one(signal_law=ORTHOGONAL),
        ),
        Reading(
            "independent-signal",
            "signals drawn apart from the truths with |v|_inf = 1, beta uniform on (0, 1]",
            Params(),
            {"signal_law": INDEPENDENT, "min_strength": 0.0},
        ),
    )
}
