"""Static shapes and traced parameters of mobile edge computing, and what they may be."""

import dataclasses
from typing import NamedTuple

from jaxtyping import Bool, Float, Int

from moe_theory.core import checks
from moe_theory.core.errors import InvalidDimsError, InvalidParamsError, unknown_name
from moe_theory.core.numerics import Scalar

LONGEST_DELAY = 2**20  # rounds, of a transfer or an execution: the end of a task behind others must fit 32 bits
LONGEST_QUEUE = 2**9  # places to wait at a server, for the same reason
SIGMA_0 = 0.6  # the deviation sigma_0 of Fig. 3 (Section VI), from which several defaults follow
# Entries uniform on an interval of width sigma_0^2 are at most sigma_0^2 apart, as (6) asks, and have this deviation.
CLUSTER_SPREAD = SIGMA_0**2 / 12**0.5

# Laws of the feature signals: which v_n a task has.
PROPORTIONAL, ORTHOGONAL, INDEPENDENT = 0, 1, 2
# What becomes of a task that meets no idle server.
WHEN_BUSY = {
    "drop": "it is lost, and counted",
    "wait": "it waits at the router, first come first served, for any server to become idle",
    "soonest": "it waits at the server that will be idle soonest",
}


@dataclasses.dataclass(frozen=True)
class Dims:
    """Static shapes: what a program is compiled for.

    `max_experts`, `max_capacity` and `max_delay` only pad: a run uses `Params.num_experts` servers of `Params.capacity`
    places. Without `max_delay` a delay may be of any length, at the price of one slot a place for tasks under way.

    Raises: InvalidDimsError outside 1 <= num_samples < num_features, or for sizes below 1; UnknownNameError for a
        `when_busy` that does not exist.

    Examples:
        >>> from moe_theory import edge
        >>> edge.Dims(max_experts=4, num_tasks=3, num_features=6, num_samples=2, max_delay=10).num_slots
        4
    """

    max_experts: int  # largest number of experts (servers) M
    num_tasks: int  # N, kinds of tasks: the clusters of ground truths
    num_features: int  # p
    num_samples: int  # s, the signal's column included
    max_delay: int | None = None  # largest total delay d_u of a task, in rounds; None: any
    max_capacity: int = 1  # most tasks that one server may work on at once; the paper's is 1
    when_busy: str = "drop"  # what becomes of a task that meets no idle server: a key of `WHEN_BUSY`
    max_waiting: int = 0  # places of the queue: the router's under `wait`, each server's under `soonest`

    def __post_init__(self) -> None:
        for name in ("max_experts", "num_tasks", "num_features", "num_samples", "max_capacity"):
            checks.require_size(name, getattr(self, name))
        checks.require_overparameterized_sizes(self.num_features, self.num_samples)
        if self.max_delay is not None:
            checks.require_size("max_delay", self.max_delay)
        if not isinstance(self.when_busy, str) or self.when_busy not in WHEN_BUSY:
            raise unknown_name("when_busy", str(self.when_busy), WHEN_BUSY)
        checks.require_size("max_waiting", self.max_waiting, 0)
        if self.max_waiting > LONGEST_QUEUE:
            raise InvalidDimsError(
                f"max_waiting={self.max_waiting} must be at most {LONGEST_QUEUE}. Lower max_waiting."
            )
        if (self.when_busy == "drop") != (self.max_waiting == 0):
            raise InvalidDimsError(
                f"max_waiting={self.max_waiting} does not go with when_busy={self.when_busy!r}: tasks that are dropped "
                "need no queue, and tasks that wait need one. Set max_waiting to 0 for 'drop', above 0 otherwise."
            )

    @property
    def places(self) -> int:
        """Tasks that one server may hold at once, those that wait there included."""
        return self.max_capacity + (self.max_waiting if self.when_busy == "soonest" else 0)

    @property
    def num_slots(self) -> int:
        """Tasks that may be under way at once, in the whole network: one arrives a round and stays for its delay."""
        everywhere = self.max_experts * self.places
        if self.max_delay is None or self.when_busy == "soonest":
            return everywhere
        return min(everywhere, self.max_delay + self.max_waiting)


class Params(NamedTuple):
    """Everything a user sweeps; every leaf may be traced. Defaults: Fig. 3, M = 50, under the reading `sibling`.

    Examples:
        >>> from moe_theory import edge
        >>> edge.Params(num_experts=4, max_transfer_delay=2).max_execution_delay
        5
    """

    num_experts: Int[Scalar, ""] = 50  # M
    learning_rate: Float[Scalar, ""] = 0.2  # eta of (13)
    gate_lag: Int[Scalar, ""] = 1  # rounds from a completion to its gate step: 1 as in (13), or 0
    capacity: Int[Scalar, ""] = 1  # tasks that a server works on at once (footnote 1); the paper's is 1
    perturbation_scale: Float[Scalar, ""] = 0.1  # lambda: r in (4) is uniform on (0, lambda)
    truth_scale: Float[Scalar, ""] = SIGMA_0  # sigma_0 of N(0, sigma_0)
    scale_is_variance: Bool[Scalar, ""] = False  # whether sigma_0 is a variance, or a deviation
    cluster_spread: Float[Scalar, ""] = CLUSTER_SPREAD  # deviation of an entry of w_t around its cluster's centre (6)
    signal_law: Int[Scalar, ""] = PROPORTIONAL  # v_t = c w_t, or v_n orthogonal, or independent of the truths
    signal_scale: Float[Scalar, ""] = 1.0  # c, the signals' scale
    min_strength: Float[Scalar, ""] = 1.0  # beta_t is uniform on (min_strength, max_strength]
    max_strength: Float[Scalar, ""] = 1.0  # C, the largest beta_t
    noise_scale: Float[Scalar, ""] = 0.1  # sigma_t, the deviation of a noise entry of X_t
    min_transfer_delay: Int[Scalar, ""] = 0  # d_l^tr, in rounds
    max_transfer_delay: Int[Scalar, ""] = 5  # d_u^tr
    min_execution_delay: Int[Scalar, ""] = 1  # d_l^ex
    max_execution_delay: Int[Scalar, ""] = 5  # d_u^ex
    geometric_stop: Float[Scalar, ""] = 0.4  # chance that a geometric delay ends after each further round
    uplink_delay: Float[Scalar, ""] = 4.0  # rounds of a mean uplink over a unit of distance, user to nearest server
    fibre_delay: Float[Scalar, ""] = 3.0  # rounds of fibre over a unit of distance, server to server


_AT_LEAST_ZERO = (
    "learning_rate perturbation_scale truth_scale cluster_spread signal_scale min_strength max_strength noise_scale "
    "uplink_delay fibre_delay"
).split()
_DELAYS = ("min_transfer_delay", "max_transfer_delay", "min_execution_delay", "max_execution_delay")


def check_params(dims: Dims, params: Params) -> None:
    """Refuse parameters outside their range; those that are traced, and so have no value yet, are passed over.

    Raises: InvalidParamsError naming the value, the bound and the way out.
    """
    values = checks.known_values(params)
    checks.require_at_least_zero(values, _AT_LEAST_ZERO)
    checks.require_boolean(values, ("scale_is_variance",))
    checks.require_whole(values, "num_experts", dims.max_experts, "max_experts")
    checks.require_whole(values, "capacity", dims.max_capacity, "max_capacity")
    for name in _DELAYS:
        checks.require_whole(values, name, least=0)
    _check_choice(values, "gate_lag", (0, 1), "a gate step is seen in the round of its completion, or one later")
    _check_choice(
        values, "signal_law", (PROPORTIONAL, ORTHOGONAL, INDEPENDENT), "proportional, orthogonal, independent"
    )
    _check_delays(dims, values)
    if values.get("learning_rate") == 0:
        raise InvalidParamsError("learning_rate=0 never trains the gates, and T1 is endless. Raise learning_rate.")
    if values.get("signal_law") == ORTHOGONAL and dims.num_tasks > dims.num_features:
        raise InvalidParamsError(
            f"signal_law={ORTHOGONAL} (orthogonal) needs num_tasks={dims.num_tasks} to be at most "
            f"num_features={dims.num_features}: no more signals are orthogonal. Raise num_features."
        )
    if "geometric_stop" in values and not 0 < values["geometric_stop"] <= 1:
        raise InvalidParamsError(
            f"geometric_stop={values['geometric_stop']} must be in (0, 1]: it is a probability. Change geometric_stop."
        )
    checks.require_ordered(values, "min_strength", "max_strength", "beta_t is uniform between them")


def _check_choice(values: checks.Values, name: str, choices: tuple[int, ...], why: str) -> None:
    if name in values and values[name] not in choices:
        listed = " or ".join(map(str, choices))
        raise InvalidParamsError(f"{name}={values[name]} must be {listed}: {why}. Change {name}.")


def _check_delays(dims: Dims, values: checks.Values) -> None:
    for part in ("transfer", "execution"):
        why = f"d^{'tr' if part == 'transfer' else 'ex'} is between them"
        checks.require_ordered(values, f"min_{part}_delay", f"max_{part}_delay", why)
        if f"max_{part}_delay" in values and values[f"max_{part}_delay"] > LONGEST_DELAY:
            raise InvalidParamsError(
                f"max_{part}_delay={values[f'max_{part}_delay']} must be at most {LONGEST_DELAY}: rounds are counted "
                f"in 32 bits. Lower max_{part}_delay."
            )
    if not set(_DELAYS) <= values.keys():
        return
    if values["min_transfer_delay"] + values["min_execution_delay"] < 1:
        raise InvalidParamsError(
            "min_transfer_delay=0 and min_execution_delay=0 allow a delay of 0 rounds: a task takes at least 1 (1). "
            "Raise min_execution_delay to 1."
        )
    largest = values["max_transfer_delay"] + values["max_execution_delay"]
    if dims.max_delay is not None and largest > dims.max_delay:
        raise InvalidParamsError(
            f"max_transfer_delay={values['max_transfer_delay']} and max_execution_delay="
            f"{values['max_execution_delay']} allow a delay of {largest}, above max_delay={dims.max_delay}, which the "
            "arrays are padded to. Lower one of them or raise Dims.max_delay."
        )
