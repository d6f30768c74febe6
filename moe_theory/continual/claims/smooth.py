"""Lemma 2 and Corollary 1, on how smoothly the routing probabilities go with the gate outputs.

Probabilities are exact (`routing.py`), so that only the instances are random.
"""

import numpy as np
from jaxtyping import Float

from moe_theory.continual.claims.router import draws_of, gate_output_pairs
from moe_theory.continual.claims.values import EXPONENT_MARGIN, QUIET_CELLS, named, over
from moe_theory.continual.grids import GRID_SCALE, SCALES, SCALING, scale_name
from moe_theory.continual.routing import routing_probabilities, sharp_constant
from moe_theory.runs import Run
from moe_theory.verify.claim import claim

SMOOTH_EXPERTS = (2, 5, 10)
SMOOTH_CELL = scale_name(GRID_SCALE)  # whose lambda = sigma_0^1.25 is the router's
NUM_PAIRS = 4  # pairs of outputs that a replicate draws for each M
by_experts = named(*(f"M = {number}" for number in SMOOTH_EXPERTS))


def output_pairs(
    run: Run, num_experts: int, spread: float, change: float
) -> tuple[Float[np.ndarray, "B pairs M"], Float[np.ndarray, "B pairs M"]]:
    """Pairs h, h^ in units of lambda: h over a width of up to `spread`, and h^ apart by up to `change`.

    In every other pair one expert rises and all others fall; in the rest experts move at random.
    """
    draws = draws_of(run, NUM_PAIRS * (2 * num_experts + 2), 7).reshape(-1, NUM_PAIRS, 2 * num_experts + 2)
    units = (draws[..., :2] + 1) / 2
    before = spread * units[..., :1] * draws[..., 2 : 2 + num_experts]
    opposed = np.where(np.arange(num_experts) == 0, 1.0, -1.0)
    is_opposed = (np.arange(NUM_PAIRS) % 2 == 0)[:, None]
    moves = np.where(is_opposed, opposed, draws[..., 2 + num_experts :])
    return before, before + change * units[..., 1:] * moves


def _steepness(run: Run, num_experts: int, spread: float, change: float) -> Float[np.ndarray, "B pairs"]:
    """|p - p^|_inf / |h - h^|_inf at the run's lambda."""
    scale = float(run.params.perturbation_scale)
    before, after = (scale * part for part in output_pairs(run, num_experts, spread, change))
    moved = routing_probabilities(after, scale) - routing_probabilities(before, scale)
    return np.abs(moved).max(axis=-1) / np.abs(after - before).max(axis=-1)


def _over_experts(value):
    """What `value` says of a run, one component a number of experts."""
    return lambda runs: np.stack([value(runs[SMOOTH_CELL], number) for number in SMOOTH_EXPERTS], axis=1)


@claim(
    "continual.lemma-2.constant",
    paper="continual",
    where="Lemma 2",
    kind="counterexample",
    replaced_by="continual.lemma-2.lipschitz",
)
class Lemma2:
    """Routing probabilities move by at most lambda M^2 times the largest move of a gate output.

    Instances, all four of a replicate: outputs within lambda/4 of 0, moved by up to lambda/4, at lambda = 0.04^1.25.
    """

    formula = r"\|p - \hat{p}\|_\infty \leq \lambda M^2 \|h - \hat{h}\|_\infty"
    experiment = SCALING
    labels = by_experts

    @staticmethod
    @_over_experts
    def observe(run: Run, number: int) -> np.ndarray:
        return np.all(_steepness(run, number, 0.25, 0.25) > float(run.params.perturbation_scale) * number**2, axis=1)


@claim("continual.lemma-2.lipschitz", paper="continual", where="replaces Lemma 2", kind="identity", margin=1e-6)
class Lemma2Lipschitz:
    """Routing probabilities move by at most 2/lambda times the largest move of a gate output, for every M.

    The largest relative excess over outputs within lambda of 0, moved by up to lambda.
    """

    formula = r"\|p - \hat{p}\|_\infty \leq \frac{2}{\lambda} \|h - \hat{h}\|_\infty"
    experiment = SCALING
    labels = by_experts

    @staticmethod
    @_over_experts
    def observe(run: Run, number: int) -> np.ndarray:
        bound = sharp_constant(float(run.params.perturbation_scale))
        return np.maximum(_steepness(run, number, 1.0, 1.0) / bound - 1, 0).max(axis=1)


@claim("continual.lemma-2.sharp", paper="continual", where="replaces Lemma 2", kind="equality", margin=0.01)
class Lemma2Sharp:
    """No constant below 2/lambda will do: nearly equal outputs, one raised and all others lowered a little, attain it.

    The share of 2/lambda that is attained with outputs within 0.001 lambda of 0, moved by up to 0.001 lambda.
    """

    formula = r"\sup_{h, \hat{h}} \frac{\|p - \hat{p}\|_\infty}{\|h - \hat{h}\|_\infty} = \frac{2}{\lambda}"
    experiment = SCALING
    labels = by_experts
    predict = staticmethod(lambda runs: 1.0)

    @staticmethod
    @_over_experts
    def observe(run: Run, number: int) -> np.ndarray:
        bound = sharp_constant(float(run.params.perturbation_scale))
        return _steepness(run, number, 1e-3, 1e-3).max(axis=1) / bound


def _probability_gap(run: Run) -> np.ndarray:
    """|p - p^|_inf for two arrivals of one task, with the gates of round T."""
    probabilities = routing_probabilities(gate_output_pairs(run), float(run.params.perturbation_scale))
    return np.abs(np.diff(probabilities, axis=1)).max(axis=(1, 2))


@claim(
    "continual.corollary-1.probabilities",
    paper="continual",
    where="Corollary 1",
    kind="rate",
    margin=EXPONENT_MARGIN,
    replaced_by="continual.corollary-1.lipschitz",
)
class Corollary1:
    """Two arrivals of one task are routed with probabilities within O(lambda M^2 sigma_0^1.5) = O(sigma_0^2.75).

    M is fixed and lambda = sigma_0^1.25; the noise is small, so that Lemma 1 is not what fails.
    """

    formula = r"\|p - \hat{p}\|_\infty = O(\lambda M^2 \sigma_0^{1.5}), \lambda = \Theta(\sigma_0^{1.25})"
    experiment = SCALING
    side = "at_least"
    abscissa = SCALES
    labels = named(*QUIET_CELLS)
    observe = over(QUIET_CELLS, _probability_gap)
    predict = staticmethod(lambda runs: 2.75)


@claim(
    "continual.corollary-1.lipschitz",
    paper="continual",
    where="replaces Corollary 1",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Corollary1Lipschitz:
    """Where noise is O(sigma_0), they are routed with probabilities within O(sigma_0^1.5/lambda) = O(sigma_0^0.25)."""

    formula = r"\|p - \hat{p}\|_\infty = O(\sigma_0^{1.5} / \lambda), \lambda = \Theta(\sigma_0^{1.25})"
    experiment = SCALING
    side = "at_least"
    abscissa = SCALES
    labels = named(*QUIET_CELLS)
    observe = over(QUIET_CELLS, _probability_gap)
    predict = staticmethod(lambda runs: 0.25)
