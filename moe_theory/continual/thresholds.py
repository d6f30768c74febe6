"""The runs of Figs. 8 and 9: four thresholds Gamma of termination."""

import numpy as np
from jaxtyping import Float

from moe_theory.continual.experiments import cell_name, observe_metrics
from moe_theory.continual.params import SIGMA_0, Dims
from moe_theory.continual.specialisation import SCALE_DIMS
from moe_theory.continual.system import system
from moe_theory.continual.tracking import observe_sight, tracked_system
from moe_theory.verify import Experiment

# Appendix A.7: four thresholds of termination, the perturbation lambda between the second and the last.
THRESHOLD_POWERS = (0.75, 1.0, 1.25, 1.5)  # Gamma = sigma_0^power
PERTURBATION_POWER = 1.25  # lambda = sigma_0^1.25


def threshold_name(power: float) -> str:
    """The name of a cell of Figs. 8 and 9."""
    return f"Gamma = sigma_0^{power:g}"


THRESHOLDS = {
    threshold_name(power): {
        "num_experts": 5,
        "perturbation_scale": SIGMA_0**PERTURBATION_POWER,
        "termination_threshold": SIGMA_0**power,
    }
    for power in THRESHOLD_POWERS
}
FIGURE_8_ROUNDS = 400
FIGURE_9_DIMS = Dims(max_experts=5, num_tasks=30, num_features=10, num_samples=6)
FIGURE_9_ROUNDS = 2000

FIGURE_8 = Experiment(
    name="figure-8",
    dims=SCALE_DIMS,
    system=tracked_system(SCALE_DIMS),
    cells=THRESHOLDS,
    num_rounds=FIGURE_8_ROUNDS,
    record_every=1,
    observe=observe_sight,
    replicates=512,
)

FIGURE_9 = Experiment(
    name="figure-9",
    dims=FIGURE_9_DIMS,
    system=system(FIGURE_9_DIMS),
    cells=THRESHOLDS | {cell_name(1, True): {**THRESHOLDS[threshold_name(PERTURBATION_POWER)], "num_experts": 1}},
    num_rounds=FIGURE_9_ROUNDS,
    record_every=FIGURE_9_ROUNDS,
    observe=observe_metrics,
    replicates=512,
)


def effective_experts(loads: Float[np.ndarray, "R M B"]) -> Float[np.ndarray, "R B"]:
    """exp of the entropy of the loads' shares: M for even loads, 1 if one expert has them all."""
    shares = loads / np.maximum(loads.sum(axis=1, keepdims=True), 1)
    return np.exp(-np.sum(shares * np.log(np.where(shares > 0, shares, 1)), axis=1))
