"""Static shapes, traced parameters, and readings for choices that the papers leave open.

| open in the papers | parameter |
| --- | --- |
| whether all or half of a task's images show its class | `positive_share` |
| whether experts distinguish one class from the rest, or all K classes | `multi_class` |
| training loss (the papers say only that the test error is squared) | `squared_loss` |
| whether the mean image is centred before it is the gate's input | `centre` |
| scale of the gate's input | `gate_scale` |
| whether the locality loss is the norm of the change of all parameters, or per parameter | `per_parameter` |
| delays of servers (only d_u = 4 is given) | `min_execution_delay`, `max_execution_delay`, ... |
| eta, alpha, lambda and Gamma | `learning_rate`, `balance_weight`, `perturbation_scale`, `termination_threshold` |

The outcome depends most on `gate.drive`, which is kappa = eta |g|^2 |w_t - w_{t-1}|. Runs print it.
"""

import dataclasses
from typing import Annotated, Any, NamedTuple

from moe_theory import edge
from moe_theory.continual.params import GateStep, Power
from moe_theory.core import constraints
from moe_theory.core.constraints import (
    AtMost,
    Count,
    CountOrZero,
    Flag,
    NonNegative,
    PaddedTo,
    Positive,
    Real,
    Size,
    Within,
)
from moe_theory.core.errors import InvalidValueError, unknown_name, with_known_names
from moe_theory.core.papers import Reading
from moe_theory.deep.networks import NETWORKS
from moe_theory.edge.params import Delay, GateLag
from moe_theory.edge.params import check_params as check_edge_params

SGD = "sgd"
ADAM = "adam"
OPTIMIZERS = (SGD, ADAM)

Share = Annotated[Real, Within(0, 1, open_low=True, why="it is a share of a task's images")]
BaselineWeight = Annotated[Real, Within(0, 1, why="1 is the whole baseline")]
BETWEEN = "a delay is between them"  # why a least delay is at most the largest


@dataclasses.dataclass(frozen=True)
class Dims:
    """Static values for which a program is compiled. `max_experts` and `max_rounds` only pad arrays.

    Raises: InvalidValueError if a size is below 1 or batches do not divide the samples. UnknownNameError for an
        unknown network or optimizer.

    Examples:
        >>> from moe_theory import deep
        >>> dims = deep.Dims(4, num_classes=3, max_rounds=60, num_samples=100, batch_size=50, num_epochs=20)
        >>> dims.num_steps
        40
    """

    max_experts: Size  # largest number of experts M
    num_classes: Size  # K, the number of classes that become tasks
    max_rounds: Size  # T, rounds whose arrivals are stored
    num_samples: Size = 100  # s, training images per task
    num_tests: Size = 100  # test images per task
    num_epochs: Size = 20
    batch_size: Size = 100  # images per gradient step
    network: str = "mlp"  # a key of `networks.NETWORKS`
    optimizer: str = SGD  # the experts' optimizer, which restarts with every task
    compares: bool = False  # whether costs of moves are stored, for a baseline in the locality loss

    def __post_init__(self) -> None:
        constraints.check_sizes(self)
        if self.network not in NETWORKS:
            raise unknown_name("network", self.network, NETWORKS)
        if self.optimizer not in OPTIMIZERS:
            raise unknown_name("optimizer", self.optimizer, OPTIMIZERS)
        if self.num_samples % self.batch_size:
            raise InvalidValueError(
                f"batch_size={self.batch_size} must divide num_samples={self.num_samples}. Change batch_size.",
                argument="batch_size",
            )

    def __fingerprint__(self) -> Any:
        """Identify the network by its code."""
        return vars(self), NETWORKS[self.network]

    @property
    def servers(self) -> edge.Dims:
        """Sizes for the delay distributions of `edge`, which contain the number of servers."""
        return edge.Dims(self.max_experts, num_tasks=1, num_features=2, num_samples=1)

    @property
    def num_steps(self) -> int:
        """The number of gradient steps of an expert on one task."""
        return self.num_epochs * (self.num_samples // self.batch_size)


@with_known_names
class Params(NamedTuple):
    """Parameters that a user can sweep. Each is a leaf that may be traced.

    Algorithm 1 of `edge` has no auxiliary loss, no termination, and the plain norm. So `deep.edge` ignores
    `balance_weight`, `termination_threshold`, `terminate`, `accumulate_flags` and `locality_power`.

    Examples:
        >>> from moe_theory import deep
        >>> deep.Params(num_experts=7).delays.num_experts  # as `edge` calls it
        7
    """

    num_experts: Annotated[Count, PaddedTo("max_experts")] = 4  # M
    learning_rate: GateStep = 0.5  # eta, the gates' step size
    balance_weight: NonNegative = 0.5  # alpha of the auxiliary loss
    perturbation_scale: NonNegative = 0.3  # lambda of the routing noise
    termination_threshold: NonNegative = 0.3  # Gamma
    terminate: Flag = True  # whether updates of the gates end
    accumulate_flags: Flag = True  # whether a convergence flag I(m) stays set
    locality_power: Power = 1.0  # q of |w_t - w_{t-1}|^q
    per_parameter: Flag = False  # whether this norm is divided by the root of the number of parameters
    gate_scale: Positive = 10.0  # factor on the normalised mean image
    centre: Flag = True  # whether the running mean of the arrivals is subtracted from this image
    expert_rate: NonNegative = 0.1  # an expert's step size in the first round
    final_rate: NonNegative = 0.1  # its step size in the last round, after a cosine
    num_rounds: Count = 60  # T, period of the cosine
    weight_decay: NonNegative = 0.0
    positive_share: Share = 0.5  # share of a task's images that show its class
    multi_class: Flag = False  # whether experts distinguish all K classes, or one class from the rest
    incremental: Flag = False  # whether classes arrive one after the other for T / K rounds each, or at random
    squared_loss: Flag = False  # whether experts minimise the squared error or the cross entropy
    baseline_weight: BaselineWeight = 0.0  # of `core.baseline.repaired` in the locality loss, 0 in the papers
    policy: CountOrZero = 0  # index of the policy, which is adaptive, nearest, fastest or uniform
    gate_lag: GateLag = 1  # rounds between a completion and its gate step
    min_transfer_delay: Annotated[Delay, AtMost("max_transfer_delay", BETWEEN)] = 0  # rounds
    max_transfer_delay: Delay = 0
    min_execution_delay: Annotated[Delay, AtMost("max_execution_delay", BETWEEN)] = 4
    max_execution_delay: Delay = 4

    @property
    def num_active(self) -> int:
        """The number of experts that learn a task."""
        return 1

    @property
    def delays(self) -> edge.Params:
        """The parameters of `edge` for its delay distributions."""
        return edge.Params(
            num_experts=self.num_experts,
            min_transfer_delay=self.min_transfer_delay,
            max_transfer_delay=self.max_transfer_delay,
            min_execution_delay=self.min_execution_delay,
            max_execution_delay=self.max_execution_delay,
        )


def check_params(dims: Dims, params: Params, num_classes: int | None = None) -> None:
    if num_classes not in (None, dims.num_classes):
        raise InvalidValueError(
            f"num_classes={dims.num_classes} must be {num_classes}, the number of classes in the tasks. Change "
            "num_classes.",
            argument="num_classes",
        )
    values = constraints.check(params, dims)
    check_edge_params(dims.servers, params.delays)  # refuses delays of 0 rounds
    share = float(values.get("positive_share", 1))
    for name in ("num_samples", "num_tests"):
        number = getattr(dims, name)
        if round(share * number) < 1:
            raise InvalidValueError(
                f"positive_share={share} of {name}={number} leaves no image of the task's class. Raise positive_share "
                f"or Dims.{name}.",
                argument="positive_share",
            )
    if values.get("multi_class") and share < 1:
        raise InvalidValueError(
            f"multi_class needs positive_share=1, not {share}, because images of other classes have no label. Raise "
            "positive_share to 1.",
            argument="multi_class",
        )
    if values.get("baseline_weight") and not dims.compares:
        raise InvalidValueError(
            f"baseline_weight={values['baseline_weight']} needs stored costs of moves. Set Dims.compares.",
            argument="baseline_weight",
        )
    if values.get("multi_class") and dims.num_classes == 1:
        raise InvalidValueError(
            "multi_class needs num_classes above 1. Raise Dims.num_classes.", argument="multi_class"
        )


_MULTI_CLASS = {"positive_share": 1.0, "multi_class": True}
# The readings by name. The first has the defaults of `Params`.
READINGS: dict[str, Reading] = {
    name: Reading(name, summary, Params(), choices)
    for name, summary, choices in (
        ("balanced", "half of a task's images show its class, cross entropy, delays of 4 rounds", {}),
        ("multi-class", "all images show the task's class, which experts tell from the K - 1 others", _MULTI_CLASS),
        ("all-positive", "all images show the task's class: one label", {"positive_share": 1.0}),
        (
            "class-incremental",
            "as multi-class, the classes arrive one after the other, T / K rounds each",
            _MULTI_CLASS | {"incremental": True},
        ),
        ("squared-loss", "as balanced, experts minimise the squared error", {"squared_loss": True}),
        ("uncentred", "as balanced, the gate reads the mean image itself", {"centre": False}),
        ("per-parameter", "as balanced, the locality norm per parameter", {"per_parameter": True}),
        ("uniform-delay", "as balanced, execution delays uniform on 1 to 4 rounds", {"min_execution_delay": 1}),
    )
}
