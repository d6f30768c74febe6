"""Static shapes and traced parameters of the deep experiments, and what they may be."""

import dataclasses
from typing import NamedTuple

from jaxtyping import Bool, Float, Int

from moe_theory import continual, edge
from moe_theory.core import checks
from moe_theory.core.errors import InvalidDimsError, InvalidParamsError, unknown_name
from moe_theory.core.numerics import Scalar
from moe_theory.deep.networks import NETWORKS
from moe_theory.edge.params import LONGEST_DELAY

SGD, ADAM = "sgd", "adam"
OPTIMIZERS = (SGD, ADAM)


@dataclasses.dataclass(frozen=True)
class Dims:
    """Static shapes: what a program is compiled for.

    `max_experts` and `max_rounds` only pad.

    Raises: InvalidDimsError for sizes below 1, or batches that do not divide the samples; UnknownNameError for a
        network or an optimizer that does not exist.

    Examples:
        >>> from moe_theory import deep
        >>> dims = deep.Dims(4, num_classes=3, max_rounds=60, num_samples=100, batch_size=50, num_epochs=20)
        >>> dims.num_steps
        40
    """

    max_experts: int  # largest number of experts M
    num_classes: int  # K, the classes that tasks are to recognise
    max_rounds: int  # T, rounds that arrivals are remembered of
    num_samples: int = 100  # s, training images of a task
    num_tests: int = 100  # test images of a task
    num_epochs: int = 20
    batch_size: int = 100  # images of a step
    network: str = "mlp"  # a key of `networks.NETWORKS`
    optimizer: str = SGD  # of an expert, begun anew for every task

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if name not in ("network", "optimizer"):
                checks.require_size(name, value)
        if self.network not in NETWORKS:
            raise unknown_name("network", self.network, NETWORKS)
        if self.optimizer not in OPTIMIZERS:
            raise unknown_name("optimizer", self.optimizer, OPTIMIZERS)
        if self.num_samples % self.batch_size:
            raise InvalidDimsError(
                f"batch_size={self.batch_size} must divide num_samples={self.num_samples}: all steps are of one size. "
                "Change batch_size."
            )

    @property
    def servers(self) -> edge.Dims:
        """What `edge` needs to know of these for its laws of delays: the number of servers; its features are least."""
        return edge.Dims(self.max_experts, num_tasks=1, num_features=2, num_samples=1)

    @property
    def num_steps(self) -> int:
        """Steps of an expert on one task."""
        return self.num_epochs * (self.num_samples // self.batch_size)


class Params(NamedTuple):
    """Everything a user sweeps; every leaf may be traced. Those of mobile edge computing alone come last.

    Algorithm 1 of `edge` has no auxiliary loss, no termination and the plain norm: `deep.edge` does not look at
    `balance_weight`, `termination_threshold`, `terminate`, `accumulate_flags` and `locality_power`.

    Examples:
        >>> from moe_theory import deep
        >>> deep.Params(num_experts=7).routing.num_experts  # as `continual` calls it
        7
    """

    num_experts: Int[Scalar, ""] = 4  # M
    learning_rate: Float[Scalar, ""] = 0.5  # eta, of the gates
    balance_weight: Float[Scalar, ""] = 0.5  # alpha of the auxiliary loss
    perturbation_scale: Float[Scalar, ""] = 0.3  # lambda of the routing noise
    termination_threshold: Float[Scalar, ""] = 0.3  # Gamma
    terminate: Bool[Scalar, ""] = True  # whether the updates of the gates are terminated
    accumulate_flags: Bool[Scalar, ""] = True  # whether a convergence flag I(m), once set, stays set
    locality_power: Float[Scalar, ""] = 1.0  # q of |w_t - w_{t-1}|^q
    per_parameter: Bool[Scalar, ""] = False  # whether that norm is divided by the root of the number of parameters
    gate_scale: Float[Scalar, ""] = 10.0  # what the normalised mean image is multiplied by
    centre: Bool[Scalar, ""] = True  # whether the running mean of the arrivals is subtracted from it
    expert_rate: Float[Scalar, ""] = 0.1  # step size of an expert, in the first round
    final_rate: Float[Scalar, ""] = 0.1  # and in the last one, along a cosine
    num_rounds: Int[Scalar, ""] = 60  # T, rounds that the cosine goes over
    weight_decay: Float[Scalar, ""] = 0.0
    positive_share: Float[Scalar, ""] = 0.5  # of a task's images, those of its class
    multi_class: Bool[Scalar, ""] = False  # whether experts tell the K classes apart, or one class from the rest
    squared_loss: Bool[Scalar, ""] = False  # whether experts minimise the squared error, or the cross entropy
    policy: Int[Scalar, ""] = 0  # which of a system's policies routes: adaptive, nearest, fastest, uniform
    gate_lag: Int[Scalar, ""] = 1  # rounds from a completion to its gate step
    min_transfer_delay: Int[Scalar, ""] = 0  # rounds
    max_transfer_delay: Int[Scalar, ""] = 0
    min_execution_delay: Int[Scalar, ""] = 4
    max_execution_delay: Int[Scalar, ""] = 4

    @property
    def routing(self) -> continual.Params:
        """What `continual` calls these: its router is the one here."""
        return continual.Params(
            num_experts=self.num_experts,
            learning_rate=self.learning_rate,
            balance_weight=self.balance_weight,
            perturbation_scale=self.perturbation_scale,
            termination_threshold=self.termination_threshold,
            terminate=self.terminate,
            accumulate_flags=self.accumulate_flags,
            locality_power=self.locality_power,
        )

    @property
    def delays(self) -> edge.Params:
        """What `edge` calls these, for its laws of delays."""
        return edge.Params(
            num_experts=self.num_experts,
            min_transfer_delay=self.min_transfer_delay,
            max_transfer_delay=self.max_transfer_delay,
            min_execution_delay=self.min_execution_delay,
            max_execution_delay=self.max_execution_delay,
        )


_AT_LEAST_ZERO = ("balance_weight perturbation_scale termination_threshold expert_rate final_rate weight_decay").split()
_ABOVE_ZERO = ("learning_rate", "locality_power", "gate_scale", "positive_share")
_BOOLEANS = ("terminate", "accumulate_flags", "per_parameter", "centre", "multi_class", "squared_loss")
_DELAYS = ("min_transfer_delay", "max_transfer_delay", "min_execution_delay", "max_execution_delay")


def check_params(dims: Dims, params: Params, num_classes: int | None = None) -> None:
    """Refuse parameters outside their range; those that are traced, and so have no value yet, are passed over.

    Args:
        num_classes: of the pool, where there is one.
    Raises: InvalidDimsError for a pool of another number of classes; InvalidParamsError naming the value, the bound
        and the way out.
    """
    if num_classes not in (None, dims.num_classes):
        raise InvalidDimsError(
            f"num_classes={dims.num_classes} must be the number of classes that tasks recognise, {num_classes}. "
            "Change num_classes."
        )
    values = checks.known_values(params)
    for name in _ABOVE_ZERO:
        if name in values and values[name] <= 0:
            raise InvalidParamsError(f"{name}={values[name]} must be above 0. Raise {name}.")
    checks.require_at_least_zero(values, _AT_LEAST_ZERO)
    checks.require_boolean(values, _BOOLEANS)
    checks.require_whole(values, "num_experts", dims.max_experts, "max_experts")
    checks.require_whole(values, "num_rounds")
    checks.require_whole(values, "policy", least=0)
    if values.get("gate_lag", 0) not in (0, 1):
        raise InvalidParamsError(f"gate_lag={values['gate_lag']} must be 0 or 1. Change gate_lag.")
    _check_delays(values)
    _check_labels(dims, values)


def _check_delays(values: checks.Values) -> None:
    for name in _DELAYS:
        checks.require_whole(values, name, least=0)
    for part in ("transfer", "execution"):
        checks.require_ordered(values, f"min_{part}_delay", f"max_{part}_delay", "a delay is between them")
        if values.get(f"max_{part}_delay", 0) > LONGEST_DELAY:
            raise InvalidParamsError(
                f"max_{part}_delay={values[f'max_{part}_delay']} must be at most {LONGEST_DELAY}: rounds "
                f"are counted in 32 bits. Lower max_{part}_delay."
            )
    if values.get("min_transfer_delay", 1) + values.get("min_execution_delay", 1) < 1:
        raise InvalidParamsError(
            "min_transfer_delay=0 and min_execution_delay=0 allow a delay of 0 rounds: a task takes at least 1. "
            "Raise min_execution_delay to 1."
        )


def _check_labels(dims: Dims, values: checks.Values) -> None:
    share = float(values.get("positive_share", 1))
    if share > 1:
        raise InvalidParamsError(
            f"positive_share={share} must be at most 1: it is a share of a task's images. Lower positive_share."
        )
    for name, number in (("num_samples", dims.num_samples), ("num_tests", dims.num_tests)):
        if round(share * number) < 1:
            raise InvalidParamsError(
                f"positive_share={share} of {name}={number} leaves no image of the task's class. Raise positive_share "
                f"or Dims.{name}."
            )
    if values.get("multi_class") and share < 1:
        raise InvalidParamsError(
            f"multi_class needs positive_share=1, not {share}: other classes have no label. Raise positive_share to 1."
        )
    if values.get("multi_class") and dims.num_classes == 1:
        raise InvalidParamsError(
            "multi_class needs num_classes above 1, as one class has none to be told from. Raise Dims.num_classes."
        )
