"""Grids of sigma_0, of learning rates and of numbers of experts: O() statements are tested by exponents on them."""

from moe_theory.continual import theory
from moe_theory.continual.gate_steps import system_with_steps
from moe_theory.continual.params import Dims, Params
from moe_theory.core.system import observe_info
from moe_theory.verify import Experiment

# Grids for the O() and Omega() statements about router and gates. On the grid of scales everything shrinks as
# Algorithm 1 asks, with constants of 1: alpha and eta as sigma_0^0.5, lambda and Gamma as sigma_0^1.25; signals keep
# entries of order 1 in every reading, |v_n|_inf = O(1), by c = 1/sigma_0. The grid lies where a reading's noise
# outweighs what shrinks with sigma_0 inside a cluster. T1 lies within the runs, with `ROUTED` rounds or more beyond it.
SCALES = (0.000625, 0.0025, 0.01, 0.04)
GRID_SCALE = 0.04  # sigma_0 on the grids of learning rates and of experts
RATES = (0.05, 0.1, 0.2, 0.4)  # the third is that of `GRID_SCALE`
ROUTED = 100
EXPERTS = (8, 16, 32, 64)
SCALE_EXPERTS, SCALE_FEWER = 10, 5  # M > N and M < N
SCALE_DIMS = Dims(max_experts=SCALE_EXPERTS, num_tasks=6, num_features=10, num_samples=6)
EXPERT_DIMS = Dims(max_experts=EXPERTS[-1], num_tasks=6, num_features=10, num_samples=6)
NOISE_SHARE = 0.25  # sigma_t / sigma_0 where the noise is small: that of Fig. 2


def scale_name(scale: float, variant: str = "") -> str:
    """The name of a cell of the grid of scales: M > N with the reading's noise, or a variant."""
    return f"sigma_0 = {scale}{variant and ', '}{variant}"


def rate_name(rate: float) -> str:
    """The name of a cell of the grid of learning rates; one of them lies on the grid of scales."""
    return scale_name(GRID_SCALE) if rate == GRID_SCALE**0.5 else f"eta = {rate}"


def experts_name(number: int, variant: str = "") -> str:
    """The name of a cell of the grid of numbers of experts."""
    return f"M = {number}{variant and ', '}{variant}"


def scaled(scale: float, **changes: float) -> dict[str, float]:
    """Algorithm 1's parameters at sigma_0 = `scale`, without clusters and with M > N unless changed."""
    return {
        "num_experts": SCALE_EXPERTS,
        "num_clusters": SCALE_DIMS.num_tasks,
        "learning_rate": scale**0.5,
        "balance_weight": scale**0.5,
        "perturbation_scale": scale**1.25,
        "termination_threshold": scale**1.25,
        "truth_scale": scale,
        "signal_scale": 1 / scale,
        "cluster_spread": scale**1.5,
    } | changes


# FEWER: M < N, truths of a cluster within O(sigma_0^1.5). QUIET: noise within O(sigma_0). NEAR: both, and signals of a
# cluster within O(sigma_0^1.5), as the proof of Lemma 1 supposes.
# BLIND: a perturbation that outweighs every gate output by far, so that routes are all but independent and uniform.
FEWER, QUIET, NEAR, BLIND = "M < N", "small noise", "near signals", "large lambda"
BLINDING = 1e3

SCALING = Experiment(
    name="scales",
    dims=SCALE_DIMS,
    system=system_with_steps(SCALE_DIMS),
    cells={scale_name(scale): scaled(scale) for scale in SCALES}
    | {scale_name(scale, FEWER): scaled(scale, num_experts=SCALE_FEWER, num_clusters=3) for scale in SCALES}
    | {scale_name(scale, QUIET): scaled(scale, noise_scale=NOISE_SHARE * scale) for scale in SCALES}
    | {
        scale_name(scale, NEAR): scaled(
            scale,
            num_experts=SCALE_FEWER,
            num_clusters=3,
            noise_scale=NOISE_SHARE * scale,
            cluster_spread=scale**2.5,
        )
        for scale in SCALES
    }
    | {rate_name(rate): scaled(GRID_SCALE, learning_rate=rate) for rate in RATES if rate != GRID_SCALE**0.5},
    num_rounds=int(theory.exploration_rounds(SCALE_EXPERTS, SCALES[0] ** 0.5)) + ROUTED,
    record_every=1,
    observe=observe_info,
    replicates=512,
)

EXPERT_GRID = Experiment(
    name="experts",
    dims=EXPERT_DIMS,
    system=system_with_steps(EXPERT_DIMS),
    cells={experts_name(number): scaled(GRID_SCALE, num_experts=number) for number in EXPERTS}
    | {
        experts_name(number, BLIND): scaled(GRID_SCALE, num_experts=number, perturbation_scale=BLINDING)
        for number in EXPERTS
    },
    num_rounds=int(theory.exploration_rounds(EXPERTS[-1], GRID_SCALE**0.5)),
    record_every=1,
    observe=observe_info,
    replicates=1024,
)


def exploration_rounds(params: Params) -> int:
    """T1 of a cell."""
    return int(theory.exploration_rounds(int(params.num_experts), float(params.learning_rate)))
