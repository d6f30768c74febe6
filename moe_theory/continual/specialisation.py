"""Runs past exploration: a grid of sigma_0 on which experts settle into sets, and the sets themselves."""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from moe_theory.continual import theory
from moe_theory.continual.params import SIGMA_0, Dims, Params
from moe_theory.continual.system import Info, State, system
from moe_theory.continual.tracking import expert_sets, observe_sight, tracked_system
from moe_theory.core.linear import ceil_to_rounds
from moe_theory.verify import Experiment

# A grid towards small sigma_0 for the O() statements of Lemma 12 to Proposition 3, with the sizes of steps that
# Algorithm 1 gives them, those of Fig. 2 at its sigma_0. Signals keep entries of order 1 whatever the reading, and the
# ratio of noise to truths is that of Fig. 2. t_1 lies within the runs, t_2 within those of `RETURNING`, which have a
# grid of their own since t_2 grows as sigma_0^-1.25.
SCALES = (0.003125, 0.00625, 0.0125, 0.025)
RETURN_SCALES = (0.0125, 0.025, 0.05, 0.1)
MANY_EXPERTS, FEW_EXPERTS = 12, 5  # M > N, where each task is a cluster of its own, and M < N, with K = 3
SCALE_DIMS = Dims(max_experts=MANY_EXPERTS, num_tasks=6, num_features=10, num_samples=6)
SCALE_ROUNDS = 1200


def scale_name(num_experts: int, scale: float) -> str:
    """The name of a cell of the grid of scales."""
    return f"M = {num_experts}, sigma_0 = {scale}"


def scaled(scale: float) -> dict[str, Any]:
    """Overrides that make sigma_0 `scale` and keep to the orders of Algorithm 1's input line."""
    ratio = scale / SIGMA_0
    return {
        "truth_scale": scale,
        "signal_scale": 1 / scale,
        "cluster_spread": scale**1.5,
        "noise_scale": Params().noise_scale * ratio,
        "learning_rate": Params().learning_rate * ratio**0.5,
        "balance_weight": Params().balance_weight * ratio**0.5,
        "perturbation_scale": Params().perturbation_scale * ratio**1.25,
        "termination_threshold": scale**1.25,
    }


def _scaled_cells(*scales: float, terminate: bool) -> dict[str, dict[str, Any]]:
    sizes = {MANY_EXPERTS: SCALE_DIMS.num_tasks, FEW_EXPERTS: Params().num_clusters}
    return {
        scale_name(num_experts, scale): {
            **scaled(scale),
            "num_experts": num_experts,
            "num_clusters": num_clusters,
            "terminate": terminate,
        }
        for num_experts, num_clusters in sizes.items()
        for scale in scales
    }


class Span(NamedTuple):
    """How far apart the gates are."""

    any_gap: Float[Array, ""]  # largest |h_m - h_m'| of all experts


def observe_span(state: State, info: Info) -> Span:
    """The span of the gate outputs."""
    del state
    exists = info.gate_probabilities > 0
    highest = jnp.max(jnp.where(exists, info.gate_outputs, -jnp.inf))
    return Span(highest - jnp.min(jnp.where(exists, info.gate_outputs, jnp.inf)))


SETTLING = Experiment(
    name="settling",
    dims=SCALE_DIMS,
    system=tracked_system(SCALE_DIMS),
    cells=_scaled_cells(*SCALES, SIGMA_0, terminate=True),
    num_rounds=SCALE_ROUNDS,
    record_every=1,
    observe=observe_sight,
    replicates=1024,
)

LEARNING = Experiment(
    name="settling-endless",
    dims=SCALE_DIMS,
    system=tracked_system(SCALE_DIMS),
    cells=_scaled_cells(*SCALES, terminate=False),
    num_rounds=SCALE_ROUNDS,
    record_every=1,
    observe=observe_sight,
    replicates=1024,
)

RETURNING = Experiment(
    name="settling-returning",
    dims=SCALE_DIMS,
    system=system(SCALE_DIMS),
    cells=_scaled_cells(*RETURN_SCALES, terminate=False),
    num_rounds=3640,
    record_every=1,
    observe=observe_span,
    replicates=512,
)

# Lemma 11 at the end of exploration, with as many experts as its proof asks for: N ln(N / delta) and K ln(K / delta).
SET_FAILURE = 0.05  # delta, which the paper leaves at o(1)
SET_TASKS, SET_CLUSTERS = 10, 2
SET_EXPERTS = {count: int(np.ceil(count * np.log(count / SET_FAILURE))) for count in (SET_TASKS, SET_CLUSTERS)}
SET_DIMS = Dims(max_experts=SET_EXPERTS[SET_TASKS], num_tasks=SET_TASKS, num_features=10, num_samples=6)


class Sets(NamedTuple):
    """Which set each expert is in."""

    sets: Int[Array, " M"]


def observe_sets(state: State, info: Info) -> Sets:
    """The sets at the gates of the next round."""
    del info
    return Sets(expert_sets(state))


SPECIALISTS = Experiment(
    name="specialists",
    dims=SET_DIMS,
    system=system(SET_DIMS),
    cells={
        f"{count} sets": {"num_experts": num_experts, "num_clusters": count}
        for count, num_experts in SET_EXPERTS.items()
    },
    num_rounds=int(theory.exploration_rounds(SET_DIMS.max_experts, Params().learning_rate)),
    record_every=2,
    observe=observe_sets,
    replicates=1024,
)


def stage_rounds(params: Params, power: float = 0.0) -> int:
    """ceil(M / eta sigma_0^-power): T1 at power 0, t_1 and T2 at 1/4, t_2 at 3/4."""
    quotient = float(params.num_experts) / float(params.learning_rate) * float(params.truth_scale) ** -power
    return int(ceil_to_rounds(quotient))
