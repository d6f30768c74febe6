"""Fig. 4 of `edge`, on MNIST with five and with ten servers."""

from collections.abc import Callable

import numpy as np

from moe_theory.deep.experiments import EDGE_MNIST, final
from moe_theory.deep.presets import server_cell
from moe_theory.deep.statements.setting import statement
from moe_theory.runs import Run
from moe_theory.verification.claim import Runs
from moe_theory.verification.statement import equality, identity, ordering, ranged

FEW = 5
ENOUGH = 10
EXISTING = ("nearest", "fastest")
SIGMA_0 = 0.1  # the paper's value
final_error = final("generalization_error")
LARGEST_VARIANCE = 1 / 64  # mean over the elements of images of norm 1, which have at least 64 elements
ADAPTIVE_RUN = EDGE_MNIST.at(server_cell(ENOUGH))  # images are the same in all cells


def errors_of(num_experts: int, *policies: str) -> Callable[[Runs], np.ndarray]:
    return lambda runs: np.stack([final_error(runs[server_cell(num_experts, policy)]) for policy in policies])


def gains(num_experts: int, factor: float = 1.0) -> Callable[[Runs], np.ndarray]:
    """Return the gain of the adaptive gate over each existing strategy, times a factor (V, B)."""
    return lambda runs: factor * (errors_of(num_experts, *EXISTING)(runs) - errors_of(num_experts, "adaptive")(runs))


def variance_to(power: float) -> Callable[[Run], np.ndarray]:
    @ranged(low=0, high=LARGEST_VARIANCE**power)
    def variance(run) -> np.ndarray:
        return np.asarray(run.records.variance[-1]) ** power

    return variance


ASSUMPTION = statement("figure-4-assumption", module=__name__)
for name, words, power in (("sigma-0", "variance", 1.0), ("sigma-0-deviation", "deviation", 0.5)):
    ASSUMPTION.ours(
        f"edge-figure-4.{name}",
        ADAPTIVE_RUN,
        equality(SIGMA_0, margin=0.2),
        labels=[words],
        instead="edge-figure-4.sigma-0-bound",
    )(variance_to(power))


@ASSUMPTION.ours(
    "edge-figure-4.sigma-0-bound", ADAPTIVE_RUN, identity(within=1e-6), labels=["sum of the elements' variances"]
)
def variance_excess(run) -> np.ndarray:
    return np.maximum(np.asarray(run.records.total_variance[-1]) - 1.0, 0)


# `STATEMENT.ours(id, runs, criterion)(measure)` claims that `measure` meets the criterion.
FEW_SERVERS = statement("figure-4-too-few", module=__name__)
HALF_THE_GAINS = ordering(below=gains(ENOUGH, factor=0.5))
FEW_SERVERS.ours("edge-figure-4.too-few", EDGE_MNIST, HALF_THE_GAINS, labels=EXISTING)(gains(FEW))
FEW_SERVERS.ours(
    "edge-figure-4.large-error", EDGE_MNIST, ordering(below=errors_of(FEW, "adaptive")), labels=["adaptive"]
)(errors_of(ENOUGH, "adaptive"))

GAIN = statement("figure-4-gain", module=__name__)
GAIN.ours("edge-figure-4.gain", EDGE_MNIST, ordering(below=errors_of(ENOUGH, *EXISTING)), labels=EXISTING)(
    errors_of(ENOUGH, *["adaptive"] * len(EXISTING))
)
GAIN.ours("edge-figure-4.chance", EDGE_MNIST, ordering(below=errors_of(ENOUGH, "uniform")), labels=["uniform"])(
    errors_of(ENOUGH, "adaptive")
)
