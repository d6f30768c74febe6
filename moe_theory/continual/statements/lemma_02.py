"""Lemma 2: smoothness of routing probabilities in gate outputs."""

import numpy as np
from jaxtyping import Float

from moe_theory.continual import corrected
from moe_theory.continual.experiments import FREE_AT_LEVEL, ROUTER_GRID, ROUTER_SCALE, router_cell
from moe_theory.continual.statements.setting import statement
from moe_theory.runs.draws import draws_of
from moe_theory.verification.statement import counterexample, equality, identity, ranged

SIZES = (2, 5, 10)  # M
PERTURBED = ROUTER_GRID.at(router_cell(ROUTER_SCALE))  # has the router's lambda = sigma_0^1.25
BY_SIZE = [f"M = {number}" for number in SIZES]
NUM_PAIRS = 4  # pairs of outputs that a replicate draws for each M

LEMMA_2 = statement("lemma-2", module=__name__, free=FREE_AT_LEVEL)


def output_pairs(
    run, num_experts: int, spread: float, change: float
) -> tuple[Float[np.ndarray, "B pairs M"], Float[np.ndarray, "B pairs M"]]:
    """Return pairs h, h^ in units of lambda: h has a width of up to `spread`, and h^ differs from h by up to `change`.

    In every second pair one output rises and all others fall. In the rest outputs move at random.
    """
    draws = draws_of(run, NUM_PAIRS * (2 * num_experts + 2), stream=7).reshape(-1, NUM_PAIRS, 2 * num_experts + 2)
    sizes = draws[..., :2]  # shares of `spread` and of `change`
    signed = 2 * draws[..., 2:] - 1
    before = spread * sizes[..., :1] * signed[..., :num_experts]
    opposed = np.where(np.arange(num_experts) == 0, 1.0, -1.0)
    is_opposed = (np.arange(NUM_PAIRS) % 2 == 0)[:, None]
    moves = np.where(is_opposed, opposed, signed[..., num_experts:])
    return before, before + change * sizes[..., 1:] * moves


def steepness(run, num_experts: int, spread: float, change: float) -> Float[np.ndarray, "B pairs"]:
    scale = float(run.params.perturbation_scale)
    before, after = scale * np.array(output_pairs(run, num_experts, spread, change))
    moved = corrected.routing_probabilities(after, scale) - corrected.routing_probabilities(before, scale)
    return np.abs(moved).max(axis=-1) / np.abs(after - before).max(axis=-1)


@LEMMA_2.literal("lemma-2.constant", PERTURBED, counterexample(), labels=BY_SIZE, instead="lemma-2.lipschitz")
def exceeds_constant(run) -> np.ndarray:
    scale = float(run.params.perturbation_scale)
    slopes = [steepness(run, number, spread=0.25, change=0.25) for number in SIZES]
    printed = [scale * number**2 for number in SIZES]  # lambda M^2
    return np.stack([np.all(slope > constant, axis=1) for slope, constant in zip(slopes, printed, strict=True)])


@LEMMA_2.charitable("lemma-2.lipschitz", PERTURBED, identity(within=1e-6), labels=BY_SIZE)
def excess_over_lipschitz(run) -> np.ndarray:
    bound = corrected.lemma_2(float(run.params.perturbation_scale))
    excesses = [steepness(run, number, spread=1.0, change=1.0) / bound - 1 for number in SIZES]
    return np.stack([np.maximum(excess, 0).max(axis=1) for excess in excesses])


@LEMMA_2.replacement("lemma-2.sharp", PERTURBED, equality(1.0, margin=0.01), labels=BY_SIZE)
@ranged(low=0, high=1)
def attained_share(run) -> np.ndarray:
    bound = corrected.lemma_2(float(run.params.perturbation_scale))
    return np.stack([steepness(run, number, spread=1e-3, change=1e-3).max(axis=1) / bound for number in SIZES])
